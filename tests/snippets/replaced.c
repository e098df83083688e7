/* What tools of replaced_tool.c replace: procedures, calls of them (also with arguments on the stack), calls across
 * images. Each line tells what a caller sees, and what it has kept over the calls. */
#include <stdio.h>
#include <stdlib.h>

static int noted;

int twice(int n) { return 2 * n; }
int other(int n) { return n + 1000; }
int plus(int a, int b) { return a + b; }
void note(void) { noted++; }
int whole(int n) { return n + 1; }
int many(int a, int b, int c, int d, int e, int f, int g, int h) { return a + b + c + d + e + f + g + h; }
int on_twice(int n) { return n % 2 ? twice(n) : twice(n + 1); } /* ends in jumps to it */

int through(int n)
{
    int a = twice(n), b = plus(a, n);
    note();
    return a * 10000 + b + many(1, 2, 3, 4, 5, 6, 7, n) + abs(-n);
}

int again(int n) { return twice(n) + plus(n, 1); }

int main(void)
{
    for (int i = 0; i < 4; i++) printf("%d %d %d %d\n", through(i), again(i), whole(i), on_twice(i));
    printf("%d\n", noted);
    return 5;
}
