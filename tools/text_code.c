#include "text_code.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- where --- */

static const char *const kind_words[] = {"entry", "exit",   "return",   "calls",    "blocks",       "loops",
                                         "loads", "stores", "branches", "syscalls", "instructions", NULL};

/* As names of C++ may stand in texts. */
static void drop_backquotes(char *name)
{
    size_t n = strlen(name);
    if (n < 2 || name[0] != '`' || name[n - 1] != '`') return;
    memmove(name, name + 1, n - 2);
    name[n - 2] = 0;
}

/* NAME, NAME:KIND, FILE:LINE, ADDRESS, IMAGE:ADDRESS. A name of C++ has colons of its own. */
bool text_code_begin(text_code *t)
{
    char *end;
    const char *colon = strrchr(t->point, ':'), *last = colon ? colon + 1 : t->point;
    size_t length = colon ? (size_t)(colon - t->point) : 0;
    t->place.kind = AT_ENTRY;
    bool found = false;
    for (unsigned k = 0; colon && kind_words[k]; k++)
        if (!strcmp(last, kind_words[k])) t->place.kind = (point_kind)k, found = true;
    if (!found && (last[0] == '0' && last[1] == 'x')) {
        t->place.address = strtoull(last, &end, 16);
        if (!*end) t->place.kind = AT_ADDRESS, found = true;
    } else if (!found && colon && length && colon[-1] != ':') {
        t->place.line = (unsigned)strtoul(last, &end, 10);
        if (*last && !*end) t->place.kind = AT_LINE, found = true;
    }
    t->place.name = strdup(t->point);
    if (!t->place.name) return false;
    if (found) t->place.name[length] = 0;
    drop_backquotes(t->place.name);
    return true;
}

bool text_code_is_by_image(const text_code *t) { return t->place.kind == AT_LINE || t->place.kind == AT_ADDRESS; }

static bool is_wanted(const text_code *t, const char *image)
{
    return !strcmp(t->place.name, image) || fnmatch(t->place.name, image, 0) == 0;
}

/* A clone of the compiler's ("f(int) [clone .isra.0]") does not stand for what it was made from. */
bool text_code_means(const text_code *t, inlay_proc *proc)
{
    const char *name = t->place.name;
    if (!inlay_proc_matches(proc, name)) return false;
    const char *shown = inlay_proc_display_name(proc);
    return !strstr(shown, "[clone") || strpbrk(name, "*?") || !strcmp(name, shown) ||
           !strcmp(name, inlay_proc_name(proc));
}

static bool is_kind(const text_code *t, inlay_insn *insn)
{
    bool read = false, write = false;
    switch (t->place.kind) {
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
    return t->place.kind == AT_LOADS ? read : write;
}

/* --- what --- */

/* Where the text is wrong: its line, and a mark under the column. */
static void show_error(const text_code *t, inlay_image *image, const char *why)
{
    unsigned line = 1, column = 0;
    const char *text = t->code;
    if (sscanf(why, "%u:%u:", &line, &column) < 2) line = 1, sscanf(why, "%u:", &column);
    inlay_warn("%s (%s): %s", t->where, inlay_image_name(image), why);
    for (; line > 1 && strchr(text, '\n'); line--) text = strchr(text, '\n') + 1;
    int length = (int)strcspn(text, "\n");
    if (!column || length > 200) return;
    inlay_warn("    %.*s", length, text);
    inlay_warn("    %*s", (int)column, "^");
}

static void one(text_code *t, inlay_scope *names, inlay_point *at, inlay_image *image, uint64_t address)
{
    inlay_expr e = inlay_scope_parse(names, t->code);
    bool is_new = !e && strcmp(t->said, inlay_scope_error(names));
    if (is_new) snprintf(t->said, sizeof t->said, "%s", inlay_scope_error(names));
    if (is_new) show_error(t, image, t->said);
    if (e && t->made) e = t->made(names, e, address);
    inlay_insertion *i = e ? inlay_insert(at, e) : NULL;
    if (i && t->inserted) t->inserted(i, t->proc);
    ++*(i ? t->places : t->refused);
}

static inlay_scope *new_names(const text_code *t, inlay_image *image, uint64_t address)
{
    inlay_scope *names = inlay_scope_new(image, address);
    if (names) t->names(names);
    return names;
}

static void each_static(const inlay_scope_static *v, void *arg)
{
    text_code *t = arg;
    t->variable(v, t->where);
}

static void at_block(text_code *t, inlay_scope *names, inlay_block *b, inlay_image *image)
{
    bool whole = t->place.kind == AT_BLOCKS || t->place.kind == AT_LOOPS;
    bool wanted = t->place.kind == AT_BLOCKS || inlay_block_flags(b) & INLAY_BLOCK_LOOP_HEAD;
    if (whole && wanted)
        one(t, inlay_scope_at(names, inlay_block_address(b)), inlay_block_entry(b), image, inlay_block_address(b));
    for (inlay_insn *i = whole ? NULL : inlay_block_first(b); i; i = inlay_insn_next(i))
        if (is_kind(t, i))
            one(t, inlay_scope_at(names, inlay_insn_address(i)), inlay_before(i), image, inlay_insn_address(i));
}

static const char *copy_of(const char *text)
{
    char *copy = inlay_alloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : "?";
}

static void report_variables(text_code *t, inlay_scope *names, uint64_t places_before)
{
    if (*t->places == places_before) return;
    t->where = copy_of(t->where);
    inlay_scope_statics(names, each_static, t);
}

void text_code_in_proc(text_code *t, inlay_proc *proc)
{
    inlay_image *image = inlay_proc_image(proc);
    uint64_t before = *t->places;
    t->where = inlay_proc_name(proc);
    t->proc = proc;
    if (!text_code_means(t, proc)) return;
    if (t->met) *t->met = true;
    inlay_scope *names = new_names(t, image, inlay_proc_address(proc));
    if (t->place.kind == AT_ENTRY) one(t, names, inlay_proc_entry(proc), image, inlay_proc_address(proc));
    else if (t->place.kind == AT_EXIT)
        one(t, inlay_scope_at_exit(names), inlay_proc_exit(proc), image, inlay_proc_address(proc));
    else if (t->place.kind == AT_RETURN)
        one(t, inlay_scope_at_exit(names), inlay_proc_return(proc), image, inlay_proc_address(proc));
    else
        for (inlay_block *b = inlay_proc_block_first(proc); b; b = inlay_block_next(b)) at_block(t, names, b, image);
    report_variables(t, names, before);
}

/* In another process too, of which inlay_insn_at knows nothing. */
static inlay_insn *insn_at(inlay_image *image, inlay_proc *proc, uint64_t address)
{
    if (inlay_image_process(image) == inlay_process_self()) return inlay_insn_at(address);
    for (inlay_block *b = proc ? inlay_proc_block_first(proc) : NULL; b; b = inlay_block_next(b))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i))
            if (inlay_insn_address(i) == address) return i;
    return NULL;
}

static void at_address(text_code *t, inlay_image *image, uint64_t address)
{
    inlay_proc *proc = inlay_process_proc_at(inlay_image_process(image), address);
    inlay_insn *insn = insn_at(image, proc, address);
    uint64_t before = *t->places;
    t->where = proc ? inlay_proc_name(proc) : inlay_image_name(image);
    t->proc = proc;
    if (!insn) {
        inlay_warn("%s: no instruction is known to begin at %#" PRIx64, inlay_image_name(image),
                   address - inlay_image_bias(image));
        ++*t->refused;
        return;
    }
    inlay_scope *names = new_names(t, image, address);
    one(t, names, inlay_before(insn), image, address);
    report_variables(t, names, before);
}

void text_code_in_image(text_code *t, inlay_image *image)
{
    enum { MOST = 256 };
    uint64_t at[MOST];
    unsigned nearest = 0;
    if (!inlay_image_wanted(image)) return;
    if (t->place.kind == AT_ADDRESS) {
        bool named = *t->place.name ? is_wanted(t, inlay_image_name(image)) : inlay_image_is_main(image);
        if (named) at_address(t, image, t->place.address + inlay_image_bias(image));
        return;
    }
    const char *file = t->place.name;
    unsigned n = inlay_line_addresses(image, file, t->place.line, at, MOST, &nearest);
    for (unsigned k = 0; k < n && k < MOST; k++) at_address(t, image, at[k]);
    if (n > MOST) inlay_warn("the code of line %u begins at %u places; %u are taken", t->place.line, n, (unsigned)MOST);
    if (!n && nearest) inlay_warn("%s has no code for line %u; the next is line %u", file, t->place.line, nearest);
}

/* --- where there is none --- */

typedef struct named {
    const text_code *t;
    inlay_proc *proc;  /* NULL: none; one that is looked at rather than one that is not */
    inlay_proc *clone; /* a part or another form of one of that name, which does not stand for it */
} named;

static void note_named(inlay_proc *proc, void *arg)
{
    named *n = arg;
    bool is_it = text_code_means(n->t, proc);
    if (!is_it && strstr(inlay_proc_display_name(proc), "[clone")) n->clone = proc;
    if (is_it && (!n->proc || !inlay_proc_wanted(n->proc))) n->proc = proc;
}

/* (That a line behind it has code has been told.) */
static void why_no_line(const text_code *t, inlay_process *process, char *out, size_t size)
{
    bool told = false, known = false, any = false;
    for (inlay_image *i = inlay_process_image_first(process); i; i = inlay_image_next(i)) {
        unsigned behind = 0, first = 0;
        any |= !inlay_module_is_rest(inlay_image_module_first(i));
        told |= inlay_line_addresses(i, t->place.name, t->place.line, NULL, 0, &behind) || behind;
        known |= inlay_line_addresses(i, t->place.name, 1, NULL, 0, &first) || first;
    }
    if (told) return;
    const char *why = known ? "the file has no code there, nor behind it"
                      : any ? "no debug information tells of a file of that name"
                            : "there is no debug information";
    snprintf(out, size, "; %s", why);
}

const char *text_code_why_none(const text_code *t, inlay_process *process, char *out, size_t size)
{
    named n = {.t = t};
    *out = 0;
    if (t->place.kind == AT_LINE) why_no_line(t, process, out, size);
    if (text_code_is_by_image(t)) return out;
    for (inlay_image *i = inlay_process_image_first(process); i; i = inlay_image_next(i))
        inlay_image_procs_matching(i, t->place.name, note_named, &n);
    if (!n.proc && n.clone) {
        snprintf(out, size, "; there is '%s' (%s), by this whole name or a pattern", inlay_proc_display_name(n.clone),
                 inlay_image_name(inlay_proc_image(n.clone)));
        return out;
    }
    if (!n.proc) {
        char near_ones[240];
        inlay_process_procs_near(process, t->place.name, near_ones, sizeof near_ones);
        if (*near_ones) snprintf(out, size, "; near it are %s", near_ones);
        return out;
    }
    const char *why = !inlay_proc_wanted(n.proc) ? "is left out (--image, --proc, --not-proc)"
                      : !t->met || *t->met       ? "has none of that kind"
                                                 : "is there, but has not been executed";
    snprintf(out, size, ": '%s' (%s) %s", inlay_proc_display_name(n.proc), inlay_image_name(inlay_proc_image(n.proc)),
             why);
    return out;
}
