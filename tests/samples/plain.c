/* plain [1]: deterministic work of the everyday kind: sorting, strings, recursion, printf, switch tables,
 * function pointers, floating point, and (without the argument) the heap. Built static, dynamic and with musl. */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t seed = 12345;
static uint32_t next_random(void) { return seed = seed * 1664525u + 1013904223u; }

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

static int classify(int c)
{
    switch (c) {
    case 'a': return 3;
    case 'b': return 1;
    case 'c': return 4;
    case 'd': return 1;
    case 'e': return 5;
    case 'f': return 9;
    case 'g': return 2;
    case 'h': return 6;
    default: return isalpha(c) ? 7 : 0;
    }
}

static double half(double x) { return x / 2; }
static double square(double x) { return x * x; }
static double (*const functions[])(double) = {half, square, sqrt, half};

static void words(void)
{
    char text[256] = "", copy[256];
    for (int i = 0; i < 20; i++) {
        char word[16];
        snprintf(word, sizeof word, "%c%u ", 'a' + i, next_random() % 1000);
        strcat(text, word);
    }
    memcpy(copy, text, sizeof copy);
    int sum = 0, count = 0;
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "), count++) sum += classify(w[0]) * (int)strlen(w);
    printf("%d words, sum %d, 'k' at %td\n", count, sum, strchr(text, 'k') - text);
}

static void heap(void)
{
    char *grown = NULL;
    for (int i = 1; i < 40; i++) {
        grown = realloc(grown, (size_t)i * 100);
        memset(grown + (i - 1) * 100, i, 100);
    }
    unsigned sum = 0;
    for (int i = 0; i < 3900; i++) sum += (unsigned char)grown[i];
    free(grown);
    printf("heap %u\n", sum);
}

int main(int argc, char **argv)
{
    (void)argv;
    uint32_t numbers[300];
    for (int i = 0; i < 300; i++) numbers[i] = next_random();
    qsort(numbers, 300, sizeof *numbers, by_value);
    printf("sorted %u %u %u\n", numbers[0], numbers[150], numbers[299]);
    words();
    printf("ackermann %u\n", ackermann(2, 9));
    double x = 100;
    for (int i = 0; i < 40; i++) x = functions[i & 3](x) + i;
    printf("float %.6f\n", x);
    if (argc == 1) heap();
    return 0;
}
