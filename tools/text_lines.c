/* Routines that code given as text calls to write a line: print, print_real, show. Of print there is one for each kind
 * of value. */
#include "text_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print(int64_t value)
{
    char line[32];
    snprintf(line, sizeof line, "%" PRId64, value);
    text_line(line);
}

static void print_unsigned(uint64_t value)
{
    char line[32];
    snprintf(line, sizeof line, "%" PRIu64, value);
    text_line(line);
}

static void print_address(uint64_t value)
{
    char line[32];
    snprintf(line, sizeof line, "%#" PRIx64, value);
    text_line(line);
}

static void print_real(double value)
{
    char line[64];
    snprintf(line, sizeof line, "%.17g", value);
    text_line(line);
}

static void show(uint64_t text)
{
    char line[TEXT_LINE];
    text_line(inlay_memory_string(line, text, sizeof line) >= 0 ? line : "(unreadable)");
}

static void print_text(const char *text)
{
    char line[TEXT_LINE];
    size_t n = strlen(text);
    if (n < sizeof line) text_line(text);
    else snprintf(line, sizeof line, "%.*s...", TEXT_LINE - 4, text), text_line(line);
}

void text_line_routines(inlay_scope *names)
{
    inlay_scope_routine(names, "void print(unsigned long)", (void (*)(void))print_unsigned);
    inlay_scope_routine(names, "void print(double)", (void (*)(void))print_real);
    inlay_scope_routine(names, "void print(const void *)", (void (*)(void))print_address);
    inlay_scope_routine(names, "void print(const char *)", (void (*)(void))show);
    inlay_scope_routine(names, "void print(long)", (void (*)(void))print);
    inlay_scope_text_routine(names, "print", print_text);
    inlay_scope_routine(names, "void print_real(double)", (void (*)(void))print_real);
    inlay_scope_routine(names, "void show(const void *)", (void (*)(void))show);
}
