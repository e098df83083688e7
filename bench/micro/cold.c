/* 1,024 different functions, each run twice: little but the discovery and translation of code. The
 * argument only says whether they are run at all.
 * operations: 2048 in all (calls of functions of about 25 instructions and 5 blocks) */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long word;

#define F(n)                                                                                                           \
    static __attribute__((noinline, noclone)) word f##n(word x)                                                        \
    {                                                                                                                  \
        x = x * 0x##n##1u + 0x##n##7u;                                                                                 \
        if (x & 0x40) x ^= x >> 7;                                                                                     \
        else x += 0x##n##3u;                                                                                           \
        for (int i = (int)(x & 1); i < 2; i++) x = (x << 3) - (x ^ 0x##n##5u);                                         \
        return x > 0x##n##9u ? x - 0x##n##u : x + 1;                                                                   \
    }
#define R16(M, p)                                                                                                      \
    M(p##0)                                                                                                            \
    M(p##1)                                                                                                            \
    M(p##2) M(p##3) M(p##4) M(p##5) M(p##6) M(p##7) M(p##8) M(p##9) M(p##a) M(p##b) M(p##c) M(p##d) M(p##e) M(p##f)
#define F16(p) R16(F, p)
#define N(n)   f##n,
#define N16(p) R16(N, p)
#define EACH256(X, p)                                                                                                  \
    X(p##0)                                                                                                            \
    X(p##1)                                                                                                            \
    X(p##2) X(p##3) X(p##4) X(p##5) X(p##6) X(p##7) X(p##8) X(p##9) X(p##a) X(p##b) X(p##c) X(p##d) X(p##e) X(p##f)
#define EACH1024(X) EACH256(X, 0) EACH256(X, 1) EACH256(X, 2) EACH256(X, 3)

EACH1024(F16)
static word (*const all[1024])(word) = {EACH1024(N16)};

int main(int argc, char **argv)
{
    word x = (word)argc;
    int wanted = argc > 1 ? atoi(argv[1]) : 1;
    for (int twice = 0; wanted && twice < 2; twice++) {
        for (int i = 0; i < 1024; i++) x = all[i](x);
    }
    printf("%lu\n", x);
    return 0;
}
