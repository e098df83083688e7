/* JSON, written as it comes. Bit k of `begun` says that the level k has an element already. */
#include "tool/rewriter.h"
#include "base/json_text.h"

#include <inlay/output.h>

#include <inttypes.h>
#include <math.h>

void tool_json_to(FILE *f) { tool_now->json.target = f; }

static FILE *out(void) { return tool_now->json.target ? tool_now->json.target : inlay_out(); }

static FILE *value(const char *key)
{
    FILE *f = out();
    tool_json *j = &tool_now->json;
    if (j->depth && j->begun[j->depth]) fputc(',', f);
    j->begun[j->depth] = true;
    bool begins_line = j->depth == 1 || (j->depth == 2 && j->closing[1] == ']');
    if (begins_line && !j->one_line) fputs("\n ", f);
    if (key) {
        inl_json_text(f, key, "");
        fputs(": ", f);
    }
    return f;
}

void inlay_json_one_line(void) { tool_now->json.one_line = true; }

void inlay_json_begin(const char *key, char open)
{
    FILE *f = value(key);
    tool_json *j = &tool_now->json;
    fputc(open, f);
    if (j->depth < TOOL_JSON_DEPTH) j->closing[j->depth++] = open == '{' ? '}' : ']';
    else tool_say_limited("JSON is nested too deep");
    j->begun[j->depth] = false;
}

void inlay_json_end(void)
{
    tool_json *j = &tool_now->json;
    if (j->depth == 0) return;
    FILE *f = out();
    fputc(j->closing[--j->depth], f);
    if (j->depth == 0) fputc('\n', f);
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
    if (v) inl_json_text(f, v, "");
    else fputs("null", f);
}

void inlay_json_bool(const char *key, bool v) { fputs(v ? "true" : "false", value(key)); }
