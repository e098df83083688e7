! What told.c is in C: by reference, arrays with descriptors, strings with lengths.
module things
  implicit none
  integer :: opaque = 0
contains
  subroutine seen(v)
    integer, intent(in) :: v
    opaque = opaque + v
  end subroutine

  real(8) function folded(list, n, factor, text)
    integer, intent(in) :: n
    real(8), intent(in) :: list(:)
    integer, intent(inout) :: factor
    character(len=*), intent(in) :: text
    real(8) :: total, rate
    integer :: i, weight, units
    integer, parameter :: limit = 12
    common /shared/ rate, units
    units = units + limit
    rate = units / 4d0
    total = 0
    do i = 1, n
      weight = factor + len(text)
      total = total + list(i) * weight
      call seen(weight)
      factor = factor + i
    end do
    folded = total
  end function

  integer function by_value(n, m, wide) bind(c)
    use iso_c_binding
    integer(c_int), value :: n, m
    integer(c_long), value :: wide
    integer :: product
    product = n * m
    call seen(product)
    n = n - 5
    call seen(n + int(wide))
    by_value = product + n
  end function

  recursive integer function deep(n) result(answer)
    integer, value :: n
    integer :: below
    below = 1
    if (n > 0) below = deep(n - 1)
    call seen(below)
    answer = below * 2 + n
  end function
end module

program told
  use things
  implicit none
  real(8) :: values(5), sum
  integer :: k, turn
  sum = 0
  values = [1d0, 2d0, 3d0, 4d0, 5d0]
  do turn = 1, 3
    k = turn + 3
    sum = sum + folded(values(1:5:2), 3, k, "abc")
    sum = sum + by_value(turn, k, 70_8) + deep(turn + 2)
  end do
  print *, sum, opaque
end program
