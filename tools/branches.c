/* branches: for each branch: how often it was executed, how often taken, and where indirect ones
 * went (calls and returns included, unless left out). */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct target {
    uint64_t address, count;
} target;

typedef struct branch {
    inlay_counter executed, taken;
    const char *kind, *proc, *image;
    bool conditional, indirect;
    uint64_t direct; /* target of a direct branch */
    inlay_mutex lock;
    unsigned target_count, room;
    uint64_t last; /* where it went last, and how often in a row: not in targets yet */
    uint64_t last_count;
    target *targets;
} branch;

typedef struct line {
    uint64_t address, executed, taken;
    branch *b;
} line;

static uint64_t top = 40, top_targets = 4;
static bool no_returns;
static line *lines;
static size_t line_count, line_room;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

/* Adds what `last` has gathered to the target list. The caller holds the lock. */
static void settle(branch *b)
{
    if (!b->last_count) return;
    unsigned i = 0;
    while (i < b->target_count && b->targets[i].address != b->last) i++;
    if (i == b->room) {
        unsigned room = b->room ? b->room * 2 : 4;
        target *more = realloc(b->targets, room * sizeof *more);
        if (!more) return;
        b->targets = more;
        b->room = room;
    }
    if (i == b->target_count) b->targets[b->target_count++] = (target){b->last, 0};
    b->targets[i].count += b->last_count;
    b->last_count = 0;
}

/* Analysis: an indirect branch goes to `address`. */
static void went_to(branch *b, uint64_t address)
{
    inlay_lock(&b->lock);
    if (address != b->last) {
        settle(b);
        b->last = address;
    }
    b->last_count++;
    inlay_unlock(&b->lock);
}

static const char *kind_of(const inlay_insn *insn)
{
    if (inlay_insn_is_return(insn)) return "return";
    bool indirect = inlay_insn_is_indirect(insn);
    if (inlay_insn_is_call(insn)) return indirect ? "indirect call" : "call";
    if (inlay_insn_is_conditional(insn)) return "conditional";
    return indirect ? "indirect jump" : "jump";
}

static void describe(branch *b, const inlay_insn *insn)
{
    inlay_proc *proc = inlay_insn_proc(insn);
    const inlay_image *image = inlay_image_at(inlay_insn_address(insn));
    b->kind = kind_of(insn);
    b->proc = proc ? keep(inlay_proc_name(proc)) : "[unknown]";
    b->image = image ? keep(inlay_image_name(image)) : "[anonymous]";
    b->conditional = inlay_insn_is_conditional(insn);
    b->indirect = inlay_insn_is_indirect(insn);
    b->direct = inlay_insn_target(insn);
}

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_insn *insn = inlay_block_last(block);
    if (!inlay_insn_is_branch(insn)) return;
    if (no_returns && inlay_insn_is_return(insn)) return;
    branch *b = inlay_record(inlay_insn_address(insn), sizeof *b);
    if (!b) return;
    if (!b->kind) describe(b, insn);
    inlay_insert(inlay_block_anywhere(block), inlay_count(&b->executed, 1));
    if (b->conditional) inlay_insert(inlay_taken_edge(insn), inlay_count(&b->taken, 1));
    if (b->indirect) { inlay_insert(inlay_before(insn), inlay_call(went_to, inlay_pointer(b), inlay_branch_target())); }
}

static int by_count(const void *a, const void *b)
{
    const target *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int by_executed(const void *a, const void *b)
{
    const line *x = a, *y = b;
    if (x->executed != y->executed) return x->executed < y->executed ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void collect(uint64_t address, void *record, void *arg)
{
    (void)arg;
    branch *b = record;
    uint64_t executed = inlay_counter_sum(&b->executed);
    if (!executed) return;
    if (line_count == line_room) {
        size_t room = line_room ? line_room * 2 : 1024;
        line *more = realloc(lines, room * sizeof *more);
        if (!more) return;
        lines = more;
        line_room = room;
    }
    settle(b);
    if (b->target_count) qsort(b->targets, b->target_count, sizeof *b->targets, by_count);
    uint64_t taken = b->conditional ? inlay_counter_sum(&b->taken) : executed;
    lines[line_count++] = (line){address, executed, taken, b};
}

static void print_text(void)
{
    FILE *out = inlay_out();
    uint64_t executed = 0, taken = 0;
    for (size_t i = 0; i < line_count; i++) {
        executed += lines[i].executed;
        taken += lines[i].taken;
    }
    fprintf(out, "%s: %zu branches, executed %" PRIu64 " times, taken %" PRIu64 " times\n\n", inlay_program(),
            line_count, executed, taken);
    fprintf(out, "%18s %14s %14s %7s  %s\n", "address", "executed", "taken", "", "kind, procedure");
    char name[4096];
    size_t shown = top && top < line_count ? (size_t)top : line_count;
    for (size_t i = 0; i < shown; i++) {
        const line *l = &lines[i];
        fprintf(out, "%#18" PRIx64 " %14" PRIu64 " %14" PRIu64 " %6.1f%%  %s, %s (%s)", l->address, l->executed,
                l->taken, 100.0 * (double)l->taken / (double)l->executed, l->b->kind,
                inlay_demangle(l->b->proc, name, sizeof name), l->b->image);
        if (!l->b->indirect) fprintf(out, " -> %#" PRIx64, l->b->direct);
        fputc('\n', out);
        for (unsigned k = 0; k < l->b->target_count && k < top_targets; k++) {
            fprintf(out, "%18s %14s %14" PRIu64 " %7s  -> %#" PRIx64 "\n", "", "", l->b->targets[k].count, "",
                    l->b->targets[k].address);
        }
    }
    if (shown < line_count) { fprintf(out, "  ... %zu more (--top=0 shows all)\n", line_count - shown); }
}

static void print_json(void)
{
    char text[4096];
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "branches");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_begin("branches", '[');
    for (size_t i = 0; i < line_count; i++) {
        const line *l = &lines[i];
        inlay_json_begin(NULL, '{');
        inlay_json_uint("address", l->address);
        inlay_json_string("kind", l->b->kind);
        const char *plain = inlay_demangle(l->b->proc, text, sizeof text);
        inlay_json_string("procedure", l->b->proc);
        if (plain == text) inlay_json_string("demangled", plain);
        inlay_json_string("image", l->b->image);
        inlay_json_uint("executed", l->executed);
        inlay_json_uint("taken", l->taken);
        if (l->b->indirect) {
            inlay_json_begin("targets", '[');
            for (unsigned k = 0; k < l->b->target_count; k++) {
                inlay_json_begin(NULL, '{');
                inlay_json_uint("address", l->b->targets[k].address);
                inlay_json_uint("count", l->b->targets[k].count);
                inlay_json_end();
            }
            inlay_json_end();
        } else {
            inlay_json_uint("target", l->b->direct);
        }
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    inlay_records(collect, NULL);
    if (line_count) qsort(lines, line_count, sizeof *lines, by_executed);
    if (inlay_format_is_json()) print_json();
    else print_text();
}

int main(int argc, char **argv)
{
    inlay_option_uint(&top, "top", 'n', "branches to show as text; 0: all (default 40)");
    inlay_option_uint(&top_targets, "targets", 't', "targets to show of each indirect branch (default 4)");
    inlay_option_flag(&no_returns, "no-returns", 0, "leave returns out");
    inlay_init(&argc, &argv, "each branch: executed, taken, targets of indirect ones");
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
