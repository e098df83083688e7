/* branches: for each branch: how often it was executed, how often taken, and where indirect ones
 * went (calls and returns included, unless left out).
 *
 * Where indirect branches go is counted in a table of each thread's own, an entry for each pair of a branch and a place
 * that it leads to. The entry that the pair's key asks for is looked at in line, without a change of flags, and counts;
 * what is not there is looked for in the entries behind it, or takes a free one. A pair for which there is none turns
 * another one out, whose count goes to the branch's own list, as all do when the thread ends.
 *
 * A key is the target and the branch's number in the bits above, which also moves the low ones: so different branches
 * that go to the same place have different entries. Branches beyond the last number have their lists alone.
 */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct target {
    uint64_t address, count;
} target;

typedef struct branch {
    inlay_counter executed, taken; /* of an indirect one neither */
    const char *kind, *proc, *image;
    bool conditional, indirect;
    uint64_t direct; /* target of a direct branch */
    uint64_t mark;   /* of an indirect one: what is added to a target to make a key; 0: it has none */
    inlay_mutex lock;
    unsigned target_count, room;
    target *targets;
} branch;

enum { PLACE_BITS = 14, PAIRS = 1 << PLACE_BITS, TRIES = 8, NUMBER_BIT = 48, MAX_NUMBER = (1 << 16) - 1 };

/* For who adds the key: 0 where it is this one. Of 1 << PAIR_BITS bytes. */
enum { PAIR_BITS = 4 };
typedef struct pair {
    uint64_t missing, count;
} pair;

typedef struct pairs {
    pair pairs[PAIRS + TRIES];
    branch *branches[PAIRS + TRIES];
    uint64_t listed[PAIRS + TRIES]; /* of the count: what is in the branch's list already */
    uint32_t used[PAIRS + TRIES], used_count;
} pairs; /* large, but only what is touched takes memory: a thousand threads have half a gigabyte of addresses */

typedef struct line {
    uint64_t address, executed, taken;
    branch *b;
} line;

static inlay_local *tables;
/* What instrumentation leaves, in memory that travels into a rewritten program. */
static struct {
    uint64_t numbers; /* given to branches */
} * found;
static uint64_t top = 40, top_targets = 4;
static bool no_returns;
static line *lines;
static size_t line_count, line_room;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

/* Not for analysis code: the list may grow. */
static void add_to_list(branch *b, uint64_t address, uint64_t count)
{
    inlay_lock(&b->lock);
    unsigned i = 0;
    while (i < b->target_count && b->targets[i].address != address) i++;
    if (i == b->room) {
        unsigned room = b->room ? b->room * 2 : 4;
        target *more = realloc(b->targets, room * sizeof *more);
        if (more) b->targets = more, b->room = room;
    }
    if (i < b->target_count) b->targets[i].count += count;
    else if (i < b->room) b->targets[b->target_count++] = (target){address, count};
    inlay_unlock(&b->lock);
}

/* The thread may be counting meanwhile. */
static void list(pairs *t, uint32_t at)
{
    const pair *p = &t->pairs[at];
    branch *b = t->branches[at];
    uint64_t count = p->count;
    if (count != t->listed[at]) add_to_list(b, -p->missing - b->mark, count - t->listed[at]);
    t->listed[at] = count;
}

/* --- analysis --- */

static uint32_t place_of(uint64_t key) { return key & (PAIRS - 1); }

static void take(pairs *t, uint32_t at, branch *b, uint64_t key)
{
    t->branches[at] = b;
    t->pairs[at] = (pair){-key, 1};
    t->listed[at] = 0;
}

/* Counts a pair that is not where its key asks for it, unless there is neither an entry of it nor a free one. */
static bool finds_no_room(pairs *t, branch *b, uint64_t key)
{
    for (uint32_t at = place_of(key), end = at + TRIES; at < end; at++) {
        pair *p = &t->pairs[at];
        if (p->missing + key == 0) {
            p->count++;
            return false;
        }
        if (t->branches[at]) continue;
        if (t->used_count < PAIRS + TRIES) t->used[t->used_count++] = at;
        take(t, at, b, key);
        return false;
    }
    return true;
}

static void turn_out(pairs *t, branch *b, uint64_t key)
{
    uint32_t at = place_of(key);
    list(t, at);
    take(t, at, b, key);
}

static void went_to(branch *b, uint64_t address) { add_to_list(b, address, 1); }

/* --- threads --- */

static void list_all(inlay_thread *thread, void *arg)
{
    (void)arg;
    pairs *t = inlay_local_of(tables, thread);
    for (uint32_t i = 0; t && i < t->used_count; i++) list(t, t->used[i]);
}

static void forget(uint64_t address, void *record, void *arg)
{
    (void)address;
    (void)arg;
    branch *b = record;
    b->target_count = 0;
    b->lock = (inlay_mutex){0}; /* another thread may have had it */
}

/* The parent reports what was before. */
static void fork_child(void *arg)
{
    pairs *t = inlay_local_now(tables);
    for (uint32_t i = 0; t && i < t->used_count; i++) t->listed[t->used[i]] = t->pairs[t->used[i]].count;
    inlay_records(forget, arg);
}

/* --- instrumentation --- */

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
    if (!b->indirect || found->numbers == MAX_NUMBER) return;
    uint64_t number = ++found->numbers;
    b->mark = number << NUMBER_BIT | (number * 0x9e5 & (PAIRS - 1));
}

/* The entry is looked at with additions and loads alone, so no flags need be saved. */
static inlay_expr count_target(branch *b)
{
    if (!b->mark) return inlay_call(went_to, inlay_pointer(b), inlay_branch_target());
    enum { KEY, ENTRY };
    inlay_expr key = inlay_let_value(KEY), entry = inlay_let_value(ENTRY), table = inlay_local_address(tables);
    inlay_expr up = inlay_binary(INLAY_SHL, key, inlay_const(16 - PLACE_BITS)); /* 16 bits are cut without a mask */
    inlay_expr offset = inlay_binary(INLAY_SHL, inlay_extend(up, 2, false), inlay_const(PAIR_BITS - (16 - PLACE_BITS)));
    inlay_expr count = inlay_binary(INLAY_ADD, entry, inlay_const(offsetof(pair, count)));
    inlay_expr more = inlay_binary(INLAY_ADD, inlay_load(count, 8), inlay_const(1));
    inlay_expr elsewhere = inlay_if(inlay_call(finds_no_room, table, inlay_pointer(b), key),
                                    inlay_call(turn_out, table, inlay_pointer(b), key), NULL);
    inlay_expr look = inlay_if(inlay_binary(INLAY_ADD, inlay_load(entry, 8), key), elsewhere,
                               inlay_store(count, more, 8));
    return inlay_let(KEY, inlay_binary(INLAY_ADD, inlay_branch_target(), inlay_const(b->mark)),
                     inlay_let(ENTRY, inlay_binary(INLAY_ADD, table, offset), look));
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
    if (b->indirect) inlay_insert(inlay_before(insn), count_target(b));
    else inlay_insert(inlay_block_anywhere(block), inlay_count(&b->executed, 1));
    if (b->conditional) inlay_insert(inlay_taken_edge(insn), inlay_count(&b->taken, 1));
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
    uint64_t executed = b->indirect ? 0 : inlay_counter_sum(&b->executed);
    for (unsigned i = 0; i < b->target_count; i++) executed += b->targets[i].count;
    if (!executed) return;
    if (line_count == line_room) {
        size_t room = line_room ? line_room * 2 : 1024;
        line *more = realloc(lines, room * sizeof *more);
        if (!more) return;
        lines = more;
        line_room = room;
    }
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
    inlay_process *self = inlay_process_self();
    for (inlay_thread *t = inlay_process_thread_first(self); t; t = inlay_process_thread_next(self, t))
        list_all(t, arg);
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
    found = inlay_alloc(sizeof *found);
    tables = inlay_local_new(sizeof(pairs));
    if (!found || !tables) return 1;
    inlay_on_thread_end(list_all, NULL);
    inlay_on_fork_child(fork_child, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
