/* Nested functions whose addresses are taken: trampolines on an executable stack; a jump out of one. */
#include <stdio.h>
#include <stdlib.h>
static int apply(int (*f)(int), int n)
{
    int s = 0;
    for (int i = 0; i < n; i++) s += f(i);
    return s;
}
static int search(const int *v, int n, int what)
{
    __label__ found;
    int at = -1;
    void look(int i)
    {
        if (v[i] == what) {
            at = i;
            goto found;
        }
    }
    void (*volatile f)(int) = look;
    for (int i = 0; i < n; i++) f(i);
found:
    return at;
}
int main(int argc, char **argv)
{
    int k = argc * 3, v[50];
    int times(int x) { return x * k + (int)(**argv == 0); }
    int compare(const void *a, const void *b)
    {
        k++;
        return *(const int *)a - *(const int *)b;
    }
    for (int i = 0; i < 50; i++) v[i] = i * 37 % 53;
    printf("%d\n", apply(times, 20));
    qsort(v, 50, sizeof *v, compare);
    printf("%d %d\n", v[20], search(v, 50, v[33]));
    return k & 63;
}
