/* Little enough to be stepped through one by one: tail calls, recursion, longjmp. */
#include <setjmp.h>

#define ALONE __attribute__((noinline, noclone))

static volatile int sink;
static jmp_buf place;

ALONE void leaf(void) { sink = sink + 1; }
ALONE void third(void) { leaf(), sink = sink * 3; }
ALONE void second(void) { sink = sink + 2, third(); }
ALONE void first(void) { sink = sink + 1, second(); }
ALONE int down(int n)
{
    int below = n ? down(n - 1) : 0;
    sink = sink + below;
    return below + 1;
}
ALONE void jumper(int n)
{
    if (n == 0) longjmp(place, 1);
    jumper(n - 1);
    sink = sink + n;
}
ALONE void lands(void)
{
    if (setjmp(place) == 0) jumper(4);
    else leaf();
    sink = sink + 1;
}

int main(void)
{
    first();
    first();
    lands();
    return down(20) == 21 ? 0 : 1;
}
