#include <stdlib.h>

long Answer(long a, long b)
{
    free(malloc(a + b)); /* changes all that it may */
    return 42;
}
