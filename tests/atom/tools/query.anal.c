#include <stdio.h>
#include <cmplrs/atom.anal.h>

void Answer(char *what, long n) { printf("%s %ld\n", what, n); }

void List(XLATE *x)
{
    unsigned i;
    printf("list of %u, shift %ld, text %d\n", XlateNum(x), XlateLoadShift(x), XlateInstTextSize(x) > 50);
    for (i = 0; i < XlateNum(x); i++) printf("%lx\n", XlateAddr(x, i) - XlateInstTextStart(x));
}
