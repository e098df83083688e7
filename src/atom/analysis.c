/* What analysis files may call (<cmplrs/atom.anal.h>), but for threads. */
#include "atom/xlate.h"

#include <cmplrs/atom.anal.h>

#include <stdlib.h>

unsigned XlateNum(XLATE *x) { return x->count; }
unsigned long XlateAddr(XLATE *x, unsigned k) { return k < x->count ? x->addresses[k] : 0; }
unsigned long XlateInstTextStart(XLATE *x) { return x->text; }
unsigned long XlateInstTextSize(XLATE *x) { return x->text_size; }
long XlateLoadShift(XLATE *x) { return (void)x, 0; }

unsigned long AnalHeapBase(void)
{
    static char *first; /* the one thing that the analysis side remembers; it knows nothing of the other's context */
    if (!first) first = malloc(1);
    return (unsigned long)first;
}
