/* Counts blocks, edges and loops of the program's own code, and at the end holds them against each other: what leaves a
 * block is what entered it, what enters a loop's head is what entered the loop and what went round. */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_EDGES = 400 };
typedef struct thing { /* a block, or a loop: `whole` is the sum of so many parts */
    struct thing *next;
    uint64_t address, whole;
    bool is_loop;
    unsigned count;
    bool closed;      /* a loop that is entered and left by its edges alone */
    uint64_t parts[]; /* of a loop behind those two: how often it was entered elsewhere, how often left */
} thing;
typedef struct found_things {
    thing *things;
    uint64_t refused, others, returns, calls, order, disorder, dominators;
} found_things;

static found_things *found;

static inlay_expr count(uint64_t *at)
{
    inlay_expr to = inlay_pointer(at);
    return inlay_store(to, inlay_binary(INLAY_ADD, inlay_load(to, 8), inlay_const(1)), 8);
}

static thing *new_thing(uint64_t address, bool is_loop, unsigned edges)
{
    thing *t = inlay_alloc(sizeof *t + (edges + 2) * sizeof *t->parts);
    if (!t) return NULL;
    *t = (thing){.next = found->things, .address = address, .is_loop = is_loop, .count = edges};
    return found->things = t;
}

/* Its end is one of its edges: no return, no call that may not come back, no jump to who knows where. */
static void each_block(inlay_block *b)
{
    enum { OTHER = INLAY_BLOCK_RETURN | INLAY_BLOCK_CALL | INLAY_BLOCK_UNRESOLVED | INLAY_BLOCK_NO_RETURN };
    unsigned n = inlay_block_successor_count(b);
    inlay_insn *last = inlay_block_last(b);
    if (!n || n > MOST_EDGES || inlay_block_flags(b) & OTHER || inlay_insn_is_syscall(last)) return;
    unsigned points = 0;
    for (unsigned k = 0; k < n; k++) points += inlay_edge_point(b, k) != NULL;
    if (points != n) {
        found->refused++;
        for (unsigned k = 0; k < n; k++)
            if (inlay_edge_point(b, k)) inlay_insert(inlay_edge_point(b, k), count(&found->others));
        return;
    }
    thing *t = new_thing(inlay_block_address(b), false, n);
    inlay_insert(inlay_block_entry(b), count(&t->whole));
    for (unsigned k = 0; k < n; k++) inlay_insert(inlay_edge_point(b, k), count(&t->parts[k]));
}

static bool all_have_points(const inlay_loop *l, inlay_loop_way way)
{
    for (unsigned k = 0; k < inlay_loop_edge_count(l, way); k++) {
        inlay_loop_edge e = inlay_loop_edge_at(l, way, k);
        if (!e.from || !inlay_edge_point(e.from, e.successor)) return false;
    }
    return true;
}

/* What leads to its head, and what leads elsewhere. */
static void insert(const inlay_loop *l, inlay_loop_way way, uint64_t *head, uint64_t *other)
{
    for (unsigned k = 0; k < inlay_loop_edge_count(l, way); k++) {
        inlay_loop_edge e = inlay_loop_edge_at(l, way, k);
        bool to_head = inlay_block_successor(e.from, e.successor).to == inlay_loop_head(l);
        inlay_insert(inlay_edge_point(e.from, e.successor), count(to_head ? head : other));
    }
}

/* Nothing but its edges, as far as can be seen, leads into it or out of it. */
static bool is_closed(const inlay_loop *l)
{
    enum { IN = INLAY_BLOCK_ENTRY | INLAY_BLOCK_LANDING | INLAY_BLOCK_ADDRESS_TAKEN | INLAY_BLOCK_OUTSIDE };
    inlay_block *b;
    for (unsigned k = 0; (b = inlay_loop_block(l, k)); k++)
        if (inlay_block_flags(b) & (IN | INLAY_BLOCK_UNRESOLVED)) return false;
    return all_have_points(l, INLAY_LOOP_LEAVE);
}

/* Whoever comes to the procedure comes to its entry first: in a loop it is the head. */
static bool holds_entry(const inlay_loop *l)
{
    inlay_block *b;
    for (unsigned k = 0; (b = inlay_loop_block(l, k)); k++)
        if (inlay_block_flags(b) & INLAY_BLOCK_ENTRY) return b != inlay_loop_head(l);
    return false;
}

static void each_loop(inlay_loop *l)
{
    enum { OTHER = INLAY_BLOCK_ENTRY | INLAY_BLOCK_LANDING | INLAY_BLOCK_ADDRESS_TAKEN | INLAY_BLOCK_OUTSIDE };
    inlay_block *head = inlay_loop_head(l);
    const inlay_loop *up = inlay_loop_parent(l);
    bool nested = inlay_loop_holds(l, head) && (!up || (inlay_loop_holds(up, head) && up != l));
    if (!nested || holds_entry(l) || inlay_loop_depth(l) != (up ? inlay_loop_depth(up) + 1 : 1)) found->disorder++;
    if (inlay_block_flags(head) & OTHER || !all_have_points(l, INLAY_LOOP_ENTER) ||
        !all_have_points(l, INLAY_LOOP_AGAIN)) {
        found->refused++;
        return;
    }
    thing *t = new_thing(inlay_block_address(head), true, 2);
    inlay_insert(inlay_block_entry(head), count(&t->whole));
    insert(l, INLAY_LOOP_ENTER, &t->parts[0], &t->parts[2]);
    insert(l, INLAY_LOOP_AGAIN, &t->parts[1], &t->parts[1]);
    t->closed = is_closed(l);
    if (t->closed) insert(l, INLAY_LOOP_LEAVE, &t->parts[3], &t->parts[3]);
}

/* At one point, the second before the first: who runs last has the last word. */
static void try_order(inlay_proc *p)
{
    inlay_expr at = inlay_pointer(&found->order);
    inlay_expr is_two = inlay_binary(INLAY_EQ, inlay_load(at, 8), inlay_const(2));
    inlay_insert(inlay_proc_entry(p), inlay_if(is_two, inlay_store(at, inlay_const(1), 8), count(&found->disorder)));
    inlay_insert_first(inlay_proc_entry(p), inlay_store(at, inlay_const(2), 8));
    inlay_insn *first = inlay_block_first(inlay_proc_block_first(p));
    inlay_insert(inlay_before(first), inlay_store(at, inlay_const(3), 8));
    inlay_insert_first(inlay_before(first), inlay_if(inlay_binary(INLAY_EQ, inlay_load(at, 8), inlay_const(1)),
                                                     inlay_const(0), count(&found->disorder)));
}

static void try_call(inlay_insn *i)
{
    inlay_point *back = inlay_insn_is_call(i) ? inlay_call_return(i) : NULL;
    if (!back) return;
    inlay_insert(inlay_before(i), count(&found->calls));
    inlay_insert(back, count(&found->returns));
}

/* --- dominators, as their definition says --- */

enum { MOST_BLOCKS = 48 };
typedef struct flow { /* without: this one may not be passed; -1: none */
    inlay_block *blocks[MOST_BLOCKS];
    int count, without;
    bool back, reached[MOST_BLOCKS];
} flow;

static int place_of(const flow *f, const inlay_block *b)
{
    for (int i = 0; i < f->count; i++)
        if (f->blocks[i] == b) return i;
    return -1;
}

static void reach(flow *f, int at)
{
    if (at < 0 || at == f->without || f->reached[at]) return;
    f->reached[at] = true;
    for (unsigned k = 0; !f->back && k < inlay_block_successor_count(f->blocks[at]); k++)
        reach(f, place_of(f, inlay_block_successor(f->blocks[at], k).to));
    inlay_block *from;
    for (unsigned k = 0; f->back && (from = inlay_block_predecessor(f->blocks[at], k)); k++)
        reach(f, place_of(f, from));
}

/* Where control comes in, or goes out. */
static bool is_end(const flow *f, int i)
{
    enum {
        IN = INLAY_BLOCK_ENTRY | INLAY_BLOCK_LANDING | INLAY_BLOCK_ADDRESS_TAKEN | INLAY_BLOCK_OUTSIDE,
        OUT = INLAY_BLOCK_RETURN | INLAY_BLOCK_NO_RETURN | INLAY_BLOCK_UNRESOLVED
    };
    inlay_block *b = f->blocks[i], *from = inlay_block_predecessor(b, 0);
    unsigned n = inlay_block_successor_count(b);
    bool only_own = !from || (from == b && !inlay_block_predecessor(b, 1));
    if (!f->back) return !i || only_own || inlay_block_flags(b) & IN;
    bool out = !n || inlay_block_flags(b) & OUT;
    for (unsigned k = 0; k < n; k++) out |= place_of(f, inlay_block_successor(b, k).to) < 0;
    return out;
}

static void reach_all(flow *f, int without)
{
    f->without = without;
    memset(f->reached, 0, sizeof f->reached);
    for (int i = 0; i < f->count; i++)
        if (is_end(f, i)) reach(f, i);
}

static void try_dominators(inlay_proc *p, bool back)
{
    flow f = {.back = back};
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
        if (f.count == MOST_BLOCKS) return;
        f.blocks[f.count++] = b;
    }
    reach_all(&f, -1);
    flow whole = f;
    for (int d = 0; d < f.count; d++) {
        reach_all(&f, d);
        for (int i = 0; i < f.count; i++) {
            bool is = back ? inlay_block_post_dominates(f.blocks[d], f.blocks[i])
                           : inlay_block_dominates(f.blocks[d], f.blocks[i]);
            found->disorder += whole.reached[i] ? is != !f.reached[i] : is != (i == d);
            found->dominators += is && i != d;
        }
    }
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    for (inlay_proc *p = inlay_image_proc_first(image); p; p = inlay_proc_next(p)) {
        if (inlay_proc_known(p, NULL) != INLAY_WHOLE || !inlay_proc_block_first(p)) continue;
        for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
            each_block(b);
            try_call(inlay_block_last(b));
        }
        for (inlay_loop *l = inlay_proc_loop_first(p); l; l = inlay_loop_next(l)) each_loop(l);
        try_order(p);
        try_dominators(p, false);
        try_dominators(p, true);
    }
}

static void report(int status, void *arg)
{
    uint64_t blocks = 0, loops = 0, wrong = 0, turns = 0, executed = 0, odd = 0;
    (void)status, (void)arg;
    for (const thing *t = found->things; t; t = t->next) {
        uint64_t sum = 0;
        for (unsigned k = 0; k < t->count; k++) sum += t->parts[k];
        executed += t->is_loop ? 0 : t->whole;
        turns += t->is_loop ? t->parts[1] : 0;
        *(t->is_loop ? &loops : &blocks) += t->whole != 0;
        if (t->is_loop && t->closed && t->parts[3] > t->parts[0] + t->parts[2] && !odd++)
            fprintf(stderr, "loop at %" PRIx64 ": left more often than entered\n", t->address);
        if (sum == t->whole) continue;
        if (!wrong++)
            fprintf(stderr, "%s at %" PRIx64 ": %" PRIu64 ", its edges %" PRIu64 "\n", t->is_loop ? "loop" : "block",
                    t->address, t->whole, sum);
    }
    inlay_json_begin(NULL, '{');
    inlay_json_uint("wrong", wrong);
    inlay_json_uint("disorder", found->disorder);
    inlay_json_uint("left_too_often", odd);
    inlay_json_uint("dominators", found->dominators);
    inlay_json_uint("blocks", blocks);
    inlay_json_uint("executed", executed);
    inlay_json_uint("loops", loops);
    inlay_json_uint("turns", turns);
    inlay_json_uint("calls", found->calls);
    inlay_json_uint("returns", found->returns);
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "holds counts of edges against those of blocks");
    found = inlay_alloc(sizeof *found);
    if (!found) return 1;
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
