#include "isa/text.h"

#include <stdarg.h>
#include <stdio.h>

void isa_text_put(isa_text *t, const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    int n = vsnprintf(t->at, t->room, form, ap);
    va_end(ap);
    if (n < 0) return;
    size_t step = (size_t)n < t->room ? (size_t)n : t->room ? t->room - 1 : 0;
    t->at += step;
    t->room -= step;
    t->length += n;
}
