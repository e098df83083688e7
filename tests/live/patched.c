/* Answers numbers with prices, and keeps something each time: `more-examples` of points.py. With -DLIBRARY: what takes
 * the price's place. */
#ifdef LIBRARY
int better_price(int item, int count) { return item * count * 2; }
#else
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int price(int item, int count) { return item * count; }

char *volatile last;
__attribute__((noinline)) void keeps(size_t n)
{
    last = malloc(n);
    last[0] = 1;
}

int main(void)
{
    char line[100];
    setvbuf(stdout, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        for (size_t i = 0; i < 10; i++) {
            free(malloc(50));
            keeps(100 + i);
            free(realloc(calloc(2, 8), 1000));
        }
        printf("%d\n", price(atoi(line), 7));
    }
    return 3;
}
#endif
