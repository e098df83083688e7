/* An import that is found when it is first called, and then a loop: whose time is the loop's? */
#include <stdlib.h>

__attribute__((noinline)) static int outer(void)
{
    int found = getenv("IT_IS_NOT_THERE") != NULL;
    for (volatile long i = 0; i < 30000000; i++) {}
    return found;
}

int main(void) { return outer(); }
