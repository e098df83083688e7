/* snippet: runs code, given as text, at points of a program.
 *
 *     inlay snippet write:entry 'static long calls; if ($arg0 == 1) calls++;' -- ls -l
 *
 * The language is C's (docs/howto-snippets.md). Variables that the code declares `static` are shared by all threads
 * (they are not atomic) and reported when the program ends, one row for each procedure; print(long) and
 * show(const char *) write a line at once. The code is compiled for each point; names are those seen there.
 */
#include <inlay.h>

#include <fnmatch.h>
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
static char said[320]; /* the last error: one text is wrong in the same way at many points */
static const char *point = "main", *code = "";

static void print(int64_t value) { fprintf(inlay_out(), "%" PRId64 "\n", value); }

static void print_real(double value) { fprintf(inlay_out(), "%.17g\n", value); }

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

/* --- where --- */

typedef enum point_kind {
    AT_ENTRY,
    AT_EXIT,
    AT_CALLS,
    AT_BLOCKS,
    AT_LOOPS,
    AT_LOADS,
    AT_STORES,
    AT_BRANCHES,
    AT_SYSCALLS,
    AT_INSTRUCTIONS,
    AT_LINE,
    AT_ADDRESS,
} point_kind;

static const char *const kind_words[] = {"entry",  "exit",     "calls",    "blocks",       "loops", "loads",
                                         "stores", "branches", "syscalls", "instructions", NULL};

static struct place {
    char *name; /* of a procedure, a file of source, an image */
    point_kind kind;
    unsigned line;
    uint64_t address; /* link-time */
} place;

/* NAME, NAME:KIND, FILE:LINE, ADDRESS, IMAGE:ADDRESS. A name of C++ has colons of its own. */
static void read_point(void)
{
    char *end;
    const char *colon = strrchr(point, ':'), *last = colon ? colon + 1 : point;
    size_t length = colon ? (size_t)(colon - point) : 0;
    place.kind = AT_ENTRY;
    bool found = false;
    for (unsigned k = 0; colon && kind_words[k]; k++)
        if (!strcmp(last, kind_words[k])) place.kind = (point_kind)k, found = true;
    if (!found && (last[0] == '0' && last[1] == 'x')) {
        place.address = strtoull(last, &end, 16);
        if (!*end) place.kind = AT_ADDRESS, found = true;
    } else if (!found && colon && length && colon[-1] != ':') {
        place.line = (unsigned)strtoul(last, &end, 10);
        if (*last && !*end) place.kind = AT_LINE, found = true;
    }
    place.name = strdup(point);
    if (found && place.name) place.name[length] = 0;
}

static bool is_wanted(const char *name)
{
    return strpbrk(place.name, "*?") ? !fnmatch(place.name, name, 0) : !strcmp(name, place.name);
}

static bool is_kind(inlay_insn *insn)
{
    bool read = false, write = false;
    switch (place.kind) {
    case AT_CALLS: return inlay_insn_is_call(insn);
    case AT_BRANCHES: return inlay_insn_is_branch(insn);
    case AT_SYSCALLS: return inlay_insn_is_syscall(insn);
    case AT_INSTRUCTIONS: return true;
    default: break;
    }
    for (unsigned k = 0; k < inlay_insn_memory_count(insn); k++) {
        inlay_memory m = inlay_insn_memory(insn, k);
        read |= m.read, write |= m.write;
    }
    return place.kind == AT_LOADS ? read : write;
}

/* --- what --- */

/* Where the text is wrong: its line, and a mark under the column. */
static void show_error(const char *where, inlay_image *image, const char *why)
{
    unsigned line = 1, column = 0;
    const char *text = code;
    if (sscanf(why, "%u:%u:", &line, &column) < 2) line = 1, sscanf(why, "%u:", &column);
    inlay_warn("%s (%s): %s", where, inlay_image_name(image), why);
    for (; line > 1 && strchr(text, '\n'); line--) text = strchr(text, '\n') + 1;
    int length = (int)strcspn(text, "\n");
    if (!column || length > 200) return;
    inlay_warn("    %.*s", length, text);
    inlay_warn("    %*s", (int)column, "^");
}

static void one(inlay_scope *names, inlay_point *at, const char *where, inlay_image *image)
{
    inlay_expr e = inlay_scope_parse(names, code);
    bool is_new = !e && strcmp(said, inlay_scope_error(names));
    if (is_new) snprintf(said, sizeof said, "%s", inlay_scope_error(names));
    if (is_new) show_error(where, image, said);
    if (e && inlay_insert(at, e)) found->places++;
    else found->refused++;
}

static inlay_scope *new_names(inlay_image *image, uint64_t address)
{
    inlay_scope *names = inlay_scope_new(image, address);
    inlay_scope_routine(names, "void print(long)", (void (*)(void))print);
    inlay_scope_routine(names, "void print_real(double)", (void (*)(void))print_real);
    inlay_scope_routine(names, "void show(const void *)", (void (*)(void))show);
    return names;
}

static void at_block(inlay_scope *names, inlay_block *b, const char *where, inlay_image *image)
{
    bool whole = place.kind == AT_BLOCKS || place.kind == AT_LOOPS;
    bool wanted = place.kind == AT_BLOCKS || inlay_block_flags(b) & INLAY_BLOCK_LOOP_HEAD;
    if (whole && wanted) one(inlay_scope_at(names, inlay_block_address(b)), inlay_block_entry(b), where, image);
    for (inlay_insn *i = whole ? NULL : inlay_block_first(b); i; i = inlay_insn_next(i))
        if (is_kind(i)) one(inlay_scope_at(names, inlay_insn_address(i)), inlay_before(i), where, image);
}

static void each_proc(inlay_proc *proc, void *arg)
{
    const char *name = inlay_proc_name(proc);
    inlay_image *image = inlay_proc_image(proc);
    (void)arg;
    if (!is_wanted(name) && !is_wanted(inlay_proc_display_name(proc))) return;
    uint64_t before = found->places;
    inlay_scope *names = new_names(image, inlay_proc_address(proc));
    if (place.kind == AT_ENTRY) one(names, inlay_proc_entry(proc), name, image);
    else if (place.kind == AT_EXIT) one(names, inlay_proc_exit(proc), name, image);
    else
        for (inlay_block *b = inlay_proc_block_first(proc); b; b = inlay_block_next(b)) at_block(names, b, name, image);
    if (found->places > before) inlay_scope_statics(names, keep, (void *)copy_of(name));
}

static void at_address(inlay_image *image, uint64_t address)
{
    inlay_insn *insn = inlay_insn_at(address);
    inlay_proc *proc = inlay_proc_at(address);
    const char *name = proc ? inlay_proc_name(proc) : inlay_image_name(image);
    if (!insn) {
        inlay_warn("%s: no instruction is known to begin at %#" PRIx64, inlay_image_name(image),
                   address - inlay_image_bias(image));
        found->refused++;
        return;
    }
    uint64_t before = found->places;
    inlay_scope *names = new_names(image, address);
    one(names, inlay_before(insn), name, image);
    if (found->places > before) inlay_scope_statics(names, keep, (void *)copy_of(name));
}

static void each_image(inlay_image *image, void *arg)
{
    enum { MOST = 256 };
    uint64_t at[MOST];
    unsigned nearest = 0;
    (void)arg;
    if (!inlay_image_wanted(image)) return;
    if (place.kind == AT_ADDRESS) {
        bool named = *place.name ? is_wanted(inlay_image_name(image)) : inlay_image_is_main(image);
        if (named) at_address(image, place.address + inlay_image_bias(image));
        return;
    }
    unsigned n = inlay_line_addresses(image, place.name, place.line, at, MOST, &nearest);
    for (unsigned k = 0; k < n && k < MOST; k++) at_address(image, at[k]);
    if (n > MOST) inlay_warn("the code of line %u begins at %u places; %u are taken", place.line, n, (unsigned)MOST);
    if (!n && nearest) inlay_warn("%s has no code for line %u; the next is line %u", place.name, place.line, nearest);
}

/* --- the report --- */

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
    if (!found->places && !found->refused) inlay_warn("no point '%s' has been met", point);
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
    inlay_option_string(
        &point, "at", 'a',
        "where: PROCEDURE, PROCEDURE:KIND, FILE:LINE, ADDRESS or IMAGE:ADDRESS (see inlay snippet --help)");
    inlay_option_string(&code, "code", 'c', "what to do there, in a small C");
    inlay_init(&argc, &argv, "runs code given as text at points of the program");
    found = inlay_alloc(sizeof *found);
    read_point();
    if (!found || !place.name) return 1;
    if (place.kind == AT_LINE || place.kind == AT_ADDRESS) inlay_on_image_load(each_image, NULL);
    else inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
