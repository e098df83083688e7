/* Goes by branches.S, which tells of `chosen`. */
#include <stdio.h>

int flag;
static volatile long times;
__attribute__((noinline)) void look(void)
{
    times += 3;
    times *= 2;
}

int main(void)
{
    for (flag = 0; flag < 4; flag++) look();
    puts("looked");
    return 0;
}
