/* snippet: runs code, given as text, at a procedure's entry or exit.
 *
 *     inlay snippet write:entry 'static long calls; if ($arg0 == 1) calls++;' -- ls -l
 *
 * The language is C's (docs/howto-snippets.md). Variables that the code declares `static` are shared by all threads
 * (they are not atomic) and reported when the program ends; print(long) and show(const char *) write a line at once.
 * The code is compiled for each procedure of the name, in every image; names are those seen at that procedure's entry.
 */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    struct row *next;
    const char *proc; /* that it belongs to */
    inlay_scope_static v;
} row;

typedef struct found_things { /* what instrumentation finds, for the report */
    row *rows;
    uint64_t places, refused;
} found_things;

static found_things *found;
static const char *point = "main", *code = "";

static void print(int64_t value) { fprintf(inlay_out(), "%" PRId64 "\n", value); }

static void show(uint64_t text)
{
    char copy[512];
    long n = inlay_memory_string(copy, text, sizeof copy);
    fprintf(inlay_out(), "%s\n", n >= 0 ? copy : "(unreadable)");
}

static void keep(const inlay_scope_static *v, void *proc)
{
    row *r = inlay_alloc(sizeof *r);
    if (!r) return;
    *r = (row){found->rows, proc, *v};
    found->rows = r;
}

static const char *copy_of(const char *text)
{
    char *copy = inlay_alloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : "?";
}

/* PROC, PROC:entry, PROC:exit. A name of C++ has colons of its own. */
static bool at_exit_of(size_t *length)
{
    size_t n = strlen(point);
    bool is_exit = n > 5 && !strcmp(point + n - 5, ":exit");
    bool is_entry = n > 6 && !strcmp(point + n - 6, ":entry");
    *length = n - (is_exit ? 5 : is_entry ? 6 : 0);
    return is_exit;
}

static bool is_named(const char *name, size_t length) { return strlen(name) == length && !memcmp(name, point, length); }

static void each_proc(inlay_proc *proc, void *arg)
{
    size_t length;
    bool is_exit = at_exit_of(&length);
    (void)arg;
    if (!is_named(inlay_proc_name(proc), length) && !is_named(inlay_proc_display_name(proc), length)) return;
    inlay_scope *names = inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc));
    inlay_scope_routine(names, "void print(long)", (void (*)(void))print);
    inlay_scope_routine(names, "void show(const void *)", (void (*)(void))show);
    inlay_expr e = inlay_scope_parse(names, code);
    if (!e)
        inlay_warn("%s (%s): %s", inlay_proc_name(proc), inlay_image_name(inlay_proc_image(proc)),
                   inlay_scope_error(names));
    inlay_insertion *done = e ? inlay_insert(is_exit ? inlay_proc_exit(proc) : inlay_proc_entry(proc), e) : NULL;
    if (!done) {
        found->refused++;
        return;
    }
    found->places++;
    inlay_scope_statics(names, keep, (void *)copy_of(inlay_proc_name(proc)));
}

static uint64_t integer_of(const inlay_scope_static *v)
{
    uint64_t bits = 0;
    memcpy(&bits, v->at, v->size < 8 ? v->size : 8);
    unsigned gone = v->size < 8 ? 64 - 8 * (unsigned)v->size : 0;
    return v->format == 'i' ? (uint64_t)((int64_t)(bits << gone) >> gone) : bits;
}

static double real_of(const inlay_scope_static *v)
{
    float f;
    double d;
    memcpy(&f, v->at, sizeof f);
    if (v->size == 4) return f;
    memcpy(&d, v->at, sizeof d);
    return d;
}

static void value_text(const inlay_scope_static *v, char *out, size_t size)
{
    switch (v->format) {
    case 'i': snprintf(out, size, "%" PRId64, (int64_t)integer_of(v)); return;
    case 'u': snprintf(out, size, "%" PRIu64, integer_of(v)); return;
    case 'p': snprintf(out, size, "%#" PRIx64, integer_of(v)); return;
    case 'f': snprintf(out, size, "%.17g", real_of(v)); return;
    default: break;
    }
    size_t n = 0; /* others: their bytes */
    for (size_t i = 0; i < v->size && n + 4 < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%02x ", ((const uint8_t *)v->at)[i]);
    if (n) out[n - 1] = 0;
}

static void report_json(void)
{
    char text[400];
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "snippet");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_uint("places", found->places);
    inlay_json_begin("variables", '[');
    for (row *r = found->rows; r; r = r->next) {
        value_text(&r->v, text, sizeof text);
        inlay_json_begin(NULL, '{');
        inlay_json_string("procedure", r->proc);
        inlay_json_string("name", r->v.name);
        inlay_json_string("type", r->v.type);
        inlay_json_string("value", text);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

static void report(int status, void *arg)
{
    char text[400];
    (void)status, (void)arg;
    if (!found->places && !found->refused) inlay_warn("no procedure '%s' has been met (or it has no name)", point);
    if (inlay_format_is_json()) {
        report_json();
        return;
    }
    fprintf(inlay_out(), "%s: code at %" PRIu64 " places, refused at %" PRIu64 "\n", inlay_program(), found->places,
            found->refused);
    for (row *r = found->rows; r; r = r->next) {
        value_text(&r->v, text, sizeof text);
        fprintf(inlay_out(), "%s: %s = %s\n", r->proc, r->v.name, text);
    }
}

int main(int argc, char **argv)
{
    inlay_option_string(&point, "at", 'a', "where: PROCEDURE, PROCEDURE:entry or PROCEDURE:exit");
    inlay_option_string(&code, "code", 'c', "what to do there, in a small C");
    inlay_init(&argc, &argv, "runs code given as text at a procedure's entry or exit");
    found = inlay_alloc(sizeof *found);
    if (!found) return 1;
    inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
