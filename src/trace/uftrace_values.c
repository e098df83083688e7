/* The lists, and the bytes: a number in its own size, a string behind two bytes that tell its length, each a multiple
 * of 4 bytes and all of a record's together one of 8. */
#include "trace/uftrace_values.h"

#include <stdlib.h>
#include <string.h>

typedef struct uftrace_list {
    const char *name;
    bool is_result;
    char text[UFTRACE_LIST_MOST];
} uftrace_list;

/* Structures, names of constants and their like are shown as texts. */
static bool is_text(const trace_calls *c, const inlay_trace_record *v)
{
    return trace_value_form(v) == 'w' || trace_value_layout(c, v);
}

static unsigned form_of(const trace_calls *c, const inlay_trace_record *v)
{
    return is_text(c, v) ? 's' : trace_value_form(v);
}

/* "arg1/d32"; the numbers only have to differ. False: uftrace has no such. */
static bool put_spec(char *out, const trace_calls *c, const inlay_trace_record *v, unsigned number, bool is_result)
{
    unsigned form = form_of(c, v), bits = trace_value_size(v) * 8;
    char kind[24] = "retval", size[8] = "";
    if (form != 's' && form != 'p' && form != 'c') snprintf(size, sizeof size, "%u", bits);
    if (!is_result) snprintf(kind, sizeof kind, form == 'f' ? "fparg%u" : "arg%u", number);
    size_t used = strlen(out);
    int n = snprintf(out + used, UFTRACE_LIST_MOST - used, "%s%s/%c%s", number > 1 ? "," : "", kind, (char)form, size);
    return form && strchr("diuxpcfs", (int)form) && n > 0 && (size_t)n < UFTRACE_LIST_MOST - used;
}

static size_t put_string(uint8_t *out, const trace_calls *c, const inlay_trace_record *v)
{
    static const uint8_t null[] = {255, 255, 255, 255};
    char text[TRACE_STRING_MOST + 4];
    size_t n;
    bool cut = false;
    if (is_text(c, v)) trace_value_text(c, v, text, TRACE_STRING_MOST), n = strlen(text);
    else if (!(v->stack & INLAY_TRACE_UNREADABLE)) trace_value_string(v, text, &n, &cut);
    else if (!v->when) memcpy(text, null, n = sizeof null);
    else n = strlen(memcpy(text, "no memory", sizeof "no memory"));
    if (cut) memcpy(text + n, "...", 3);
    if (cut) n += 3;
    out[0] = (uint8_t)n;
    out[1] = (uint8_t)(n >> 8);
    memcpy(out + 2, text, n);
    return n + 2;
}

static size_t put_bytes(uint8_t *out, const trace_calls *c, const inlay_trace_record *v)
{
    if (form_of(c, v) == 's') return put_string(out, c, v);
    size_t size = trace_value_form(v) == 'p' ? sizeof v->when : trace_value_size(v);
    if (size > sizeof v->when) size = sizeof v->when;
    memcpy(out, &v->when, size);
    return size;
}

static const inlay_trace_record *next_of(const trace_calls *c, const inlay_trace_record *v)
{
    char text[TRACE_STRING_MOST];
    size_t n;
    bool cut;
    if (is_text(c, v)) return trace_value_text(c, v, text, sizeof text);
    if (trace_value_form(v) != 's' || v->stack & INLAY_TRACE_UNREADABLE) return v + 1;
    return trace_value_string(v, text, &n, &cut);
}

/* The list of this procedure's name, which is this one where it had none. */
static const uftrace_list *list_of(uftrace_values *u, uint32_t proc, bool is_result, const char *text)
{
    const uint64_t key = (uint64_t)proc << 1 | is_result;
    const char *name = trace_name(&u->s->procs.items[proc - 1]);
    uint64_t at = 0;
    if (inl_map_get(&u->by_proc, key, &at)) return at ? &u->lists.items[at - 1] : NULL;
    for (size_t i = 0; i < u->lists.count && !at; i++)
        if (u->lists.items[i].is_result == is_result && !strcmp(u->lists.items[i].name, name)) at = i + 1;
    if (!at && !strpbrk(name, "@;,\n")) {
        uftrace_list made = {.name = name, .is_result = is_result};
        strcpy(made.text, text);
        if (!inl_vec_push(&u->lists, made)) u->failed = true;
        else at = u->lists.count;
    }
    if (!inl_map_put(&u->by_proc, key, at)) u->failed = true;
    return at ? &u->lists.items[at - 1] : NULL;
}

size_t uftrace_values_of(uftrace_values *u, const trace_calls *calls, const trace_call *c, bool is_exit,
                         uint8_t out[UFTRACE_BYTES_MOST])
{
    enum { LONGEST = TRACE_STRING_MOST + 16 };
    char text[UFTRACE_LIST_MOST] = "";
    unsigned number = 0;
    size_t used = 0;
    memset(out, 0, UFTRACE_BYTES_MOST);
    const inlay_trace_record *v = trace_calls_first(calls, is_exit ? c->results : c->arguments);
    for (; v->what; v = next_of(calls, v)) {
        if (!put_spec(text, calls, v, ++number, is_exit) || used + LONGEST > UFTRACE_BYTES_MOST) return 0;
        used = (used + put_bytes(out + used, calls, v) + 3) & ~(size_t)3;
    }
    const uftrace_list *list = number ? list_of(u, c->proc, is_exit, text) : NULL;
    return list && !strcmp(list->text, text) ? (used + 7) & ~(size_t)7 : 0;
}

bool uftrace_values_any(const uftrace_values *u, bool results)
{
    for (size_t i = 0; i < u->lists.count; i++)
        if (u->lists.items[i].is_result == results) return true;
    return false;
}

bool uftrace_values_has(const uftrace_values *u, const char *name)
{
    for (size_t i = 0; i < u->lists.count; i++)
        if (!strcmp(u->lists.items[i].name, name)) return true;
    return false;
}

void uftrace_values_put(FILE *f, const uftrace_values *u)
{
    bool any[] = {uftrace_values_any(u, false), uftrace_values_any(u, true)};
    fprintf(f, "argspec:lines=%d\n", any[0] + any[1]);
    for (int results = 0; results < 2; results++) {
        const char *between = results ? "retspec:" : "argspec:";
        for (size_t i = 0; i < u->lists.count; i++) {
            const uftrace_list *list = &u->lists.items[i];
            if (list->is_result != results) continue;
            fprintf(f, "%s%s@%s", between, list->name, list->text);
            between = ";";
        }
        if (any[results]) fputc('\n', f);
    }
    fputs("pattern_type:simple\n", f);
}

void uftrace_values_free(uftrace_values *u)
{
    inl_vec_free(&u->lists);
    inl_map_free(&u->by_proc);
}
