/* figures: procedures whose parameters are of all kinds, called in a fixed way, with debug information: what snippets
 * by name look at. */
#include <stdio.h>
#include <string.h>

struct figure {
    const char *name;
    struct figure *next;
    unsigned kind : 3;
    signed int level : 9;
    float scale;
    double corners[4];
    union {
        int whole;
        unsigned char bytes[4];
    };
};

enum hue { RED = -2, GREEN, BLUE = 7 };

int seen;
enum hue paint = BLUE;
static double total = 0.5;
struct figure first = {"circle", NULL, 1, -3, 0.5f, {1, 2, 3, 4}, {.whole = 0x01020304}};

__attribute__((noinline)) double area(const struct figure *f, float factor, int corner, double extra)
{
    __asm__ volatile("" ::: "memory");
    total += f->corners[corner & 3] * factor + extra;
    return total;
}

__attribute__((noinline)) long count(char tag, unsigned short width, long long deep, const char *text)
{
    __asm__ volatile("" ::: "memory");
    seen++;
    return tag + width + deep + (long)strlen(text);
}

/* A vector within a structure, and what is laid on the stack at its own alignment. */
struct turned {
    float by __attribute__((vector_size(16)));
};
struct apart {
    _Alignas(32) int far;
};

__attribute__((noinline)) long laid(struct turned t, double width, long a, long b, long c, long d, long e, long f,
                                    char first_there, struct apart there, int behind)
{
    __asm__ volatile("" ::: "memory");
    return (long)(t.by[1] + (float)width) + a + b + c + d + e + f + first_there + there.far + behind;
}

int main(void)
{
    struct figure second = {"square", &first, 2, 100, 2, {5, 6, 7, 8}, {.whole = -1}};
    double sum = 0;
    long all = 0;
    for (int i = 0; i < 10; i++) {
        sum += area(i & 1 ? &first : &second, (float)i, i, i / 8.0);
        all += count((char)-i, (unsigned short)(65530 + i), 1ll << i, i % 3 ? "three" : "x");
    }
    all += laid((struct turned){{1, 2, 3, 4}}, 0.5, 1, 2, 3, 4, 5, 6, 'x', (struct apart){1000}, 2000);
    printf("%.3f %ld %d\n", sum, all, seen);
    return 0;
}
