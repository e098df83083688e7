/* Jumps and returns by way of thunks, whose flags the test chooses: tables, computed gotos, tail calls, calls. */
#include <stdio.h>

typedef int work(int);

__attribute__((noinline)) int other(int x)
{
    __asm__ volatile("");
    return x * 3;
}

__attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }

__attribute__((noinline)) int pick(int n, int x)
{
    switch (n) {
    case 0: x += other(3); break;
    case 1: x *= other(5); break;
    case 2: x -= other(7); break;
    case 3: x ^= other(11); break;
    case 4: return other(x);
    case 5: x |= other(16); break;
    default: return -x;
    }
    return other(x) + 1;
}

work *volatile way = other;
void (*volatile no_way)(void) = nothing;

__attribute__((noinline)) int tail(int n) { return way(n + 1); }
__attribute__((noinline)) int calls(int n) { return way(n + 1) + 2; }
__attribute__((noinline)) void ends_in_nothing(int n)
{
    way(n);
    nothing();
}
__attribute__((noinline)) void leads_to_nothing(int n)
{
    way(n);
    no_way();
}
__attribute__((noinline)) int either(int n) { return n & 1 ? way(n) : other(n) + 1; }

__attribute__((noinline)) int steps(const unsigned char *p, int x)
{
    static const void *const go[] = {&&add, &&sub, &&call, &&end};
    goto *go[*p++];
add:
    x += 3;
    goto *go[*p++];
sub:
    x -= 1;
    goto *go[*p++];
call:
    x = other(x);
    goto *go[*p++];
end:
    return x;
}

int main(void)
{
    int s = 0;
    for (int i = 0; i < 8; i++) {
        s += pick(i, i + 1) + tail(i) + calls(i) + either(i);
        ends_in_nothing(i);
        leads_to_nothing(i);
    }
    s += steps((unsigned char[]){0, 1, 2, 0, 2, 3}, 4);
    printf("%d\n", s);
    return 0;
}
