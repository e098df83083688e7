#include "base/error.h"
#include "base/libc_ready.h"

#include <stdio.h>
#include <string.h>

void (*inl_libc_wanted)(void);

static inl_status fill(inl_error *e, inl_status code, uint64_t address, const char *fmt, va_list args)
{
    if (!e) return code;
    inl_libc_ready();
    /* Formatted aside first: a caller may wrap the text that `e` already holds. */
    char text[sizeof e->text];
    if (vsnprintf(text, sizeof text, fmt, args) < 0) text[0] = '\0';
    size_t n = strlen(text);
    while (n && text[n - 1] == '\n') n--;
    memcpy(e->text, text, n);
    e->text[n] = '\0';
    e->code = code;
    e->address = address;
    return code;
}

inl_status inl_fail(inl_error *e, inl_status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(e, code, 0, fmt, args);
    va_end(args);
    return code;
}

inl_status inl_fail_at(inl_error *e, inl_status code, uint64_t address, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(e, code, address, fmt, args);
    va_end(args);
    return code;
}
