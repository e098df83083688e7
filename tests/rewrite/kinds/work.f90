! Fortran: arrays, recursion, internal procedures passed on, formatted output.
program work
  implicit none
  integer :: i, n
  real(8) :: a(40, 40), b(40, 40)
  character(len=20) :: text
  do i = 1, 40
    a(:, i) = [(real(mod(n * i, 17), 8), n = 1, 40)]
  end do
  b = matmul(a, transpose(a))
  print '(F14.3)', sum(b)
  print '(I8)', apply(inner, 12)
  write (text, '(I10, F8.3)') fib(18), sqrt(2d0)
  print '(A)', text
  select case (mod(fib(15), 7))
  case (0); print *, 'none'
  case (1:3); print *, 'few'
  case default; print *, 'many'
  end select
  n = count(b > 1000d0)
  if (n > 3) stop 7
contains
  recursive integer function fib(k) result(r)
    integer, intent(in) :: k
    if (k < 2) then
      r = k
    else
      r = fib(k - 1) + fib(k - 2)
    end if
  end function
  integer function inner(k)
    integer, intent(in) :: k
    inner = k * k + i
  end function
  integer function apply(f, k)
    interface
      integer function f(k)
        integer, intent(in) :: k
      end function
    end interface
    integer, intent(in) :: k
    integer :: j
    apply = 0
    do j = 1, k
      apply = apply + f(j)
    end do
  end function
end program
