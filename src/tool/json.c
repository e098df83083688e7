/* JSON, written as it comes. Bit k of `begun` says that the level k has an element already. */
#include "tool/rewriter.h"

#include <inlay/output.h>

#include <inttypes.h>
#include <math.h>

enum { MAX_DEPTH = 64 };
static char closing[MAX_DEPTH];
static bool begun[MAX_DEPTH + 1];
static unsigned depth;
static FILE *target; /* NULL: the tool's result */

void tool_json_to(FILE *f) { target = f; }

static FILE *out(void) { return target ? target : inlay_out(); }

static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c == '\n') fputs("\\n", f);
        else if (c == '\t') fputs("\\t", f);
        else if (c < 0x20 || c == 0x7f) fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

static FILE *value(const char *key)
{
    FILE *f = out();
    if (depth && begun[depth]) fputc(',', f);
    begun[depth] = true;
    if (depth == 1 || (depth == 2 && closing[1] == ']')) fputs("\n ", f);
    if (key) {
        put_string(f, key);
        fputs(": ", f);
    }
    return f;
}

void inlay_json_begin(const char *key, char open)
{
    FILE *f = value(key);
    fputc(open, f);
    if (depth < MAX_DEPTH) closing[depth++] = open == '{' ? '}' : ']';
    else tool_say_limited("JSON is nested too deep");
    begun[depth] = false;
}

void inlay_json_end(void)
{
    if (depth == 0) return;
    FILE *f = out();
    fputc(closing[--depth], f);
    if (depth == 0) fputc('\n', f);
}

void inlay_json_uint(const char *key, uint64_t v) { fprintf(value(key), "%" PRIu64, v); }

void inlay_json_real(const char *key, double v)
{
    if (isfinite(v)) fprintf(value(key), "%.17g", v);
    else fputs("null", value(key));
}

void inlay_json_string(const char *key, const char *v)
{
    FILE *f = value(key);
    if (v) put_string(f, v);
    else fputs("null", f);
}

void inlay_json_bool(const char *key, bool v) { fputs(v ? "true" : "false", value(key)); }
