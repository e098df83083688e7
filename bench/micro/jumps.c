/* A small interpreter's loop: a switch that compiles to a jump table, 12 cases, a program of 64
 * operations that repeats.
 * operations: 16000000 (switches) */
#include <stdio.h>
#include <stdlib.h>

static unsigned long interpret(const unsigned char *code, unsigned long a)
{
    unsigned long b = 7;
    for (;;) {
        switch (*code++) {
        case 0: a += b; break;
        case 1: a ^= b << 3; break;
        case 2: b += a; break;
        case 3: a = a << 5 | a >> 59; break;
        case 4: b ^= 0x9e37; break;
        case 5: a -= 11; break;
        case 6: b = b << 1 | 1; break;
        case 7: a = ~a; break;
        case 8: b -= a; break;
        case 9: a *= 3; break;
        case 10: a ^= a >> 7; break;
        default: return a + b;
        }
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    unsigned char code[64];
    unsigned seed = 5;
    for (int i = 0; i < 63; i++) {
        seed = seed * 1103515245 + 12345;
        code[i] = (seed >> 16) % 11;
    }
    code[63] = 11;
    unsigned long a = 1;
    for (int i = 0; i < rounds * 250000; i++) a = interpret(code, a);
    printf("%lu\n", a);
    return 0;
}
