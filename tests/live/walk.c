/* What snippets can name, one of a kind: walk.py. */
#include <stdio.h>
#include <string.h>

struct inner {
    short s;
    float f;
};
struct thing {
    int number;
    unsigned bits : 5;
    struct inner in[2];
    const char *name;
} thing = {-7, 9, {{1, 1.5f}, {-2, 2.5f}}, "thing"};
long array[4] = {10, 20, 30, 40};
__thread int mine = 77;
unsigned char byte = 200;
long long wide = -1;
enum colour { RED, BLUE = 6 } colour = BLUE;

__attribute__((noinline)) long helper(long a, double b) { return a * 2 + (long)b; }
long (*volatile by_pointer)(long, double) = helper;

__attribute__((noinline)) long work(int n, const char *text, double real, struct thing *t)
{
    long sum = t->number;
    for (int i = 0; i < n; i++) sum += array[i] + text[i];
    return sum + by_pointer((long)real, 1.0);
}

int main(void)
{
    for (int i = 0; i < 3; i++) printf("%ld\n", work(i + 1, "abcdef", 2.5, &thing));
    return byte == 200 ? 0 : 1;
}
