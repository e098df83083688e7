/* Which procedures move.
 *
 * Those that are wholly known and wanted do, unless some address at which their old code can be reached
 * cannot be caught. Whoever stays in place takes away room (its bytes are not dead) and asks for more
 * catches (its jumps lead into old code), so the choice is made again until nothing changes; each round
 * leaves at least one more procedure alone, in practice few rounds do.
 */
#include "image/file.h"
#include "move/isa.h"

#include <string.h>

void move_leave(move_work *w, uint32_t proc, const char *reason)
{
    move_proc *p = &w->plan.procs[proc];
    p->how = MOVE_LEFT;
    p->reason = reason;
}

bool move_last_insn(const cfg_program *p, const cfg_block *b, isa_insn *in)
{
    const uint8_t *bytes;
    size_t avail = image_bytes(p->image, b->addr, &bytes);
    if (avail < b->size) return false;
    for (uint32_t at = 0; at < b->size; at += in->len)
        if (p->isa->decode(bytes + at, avail - at, b->addr + at, in) > ISA_UNKNOWN) return false;
    return true;
}

/* A branch to where no block begins. */
static void note_split(move_work *w, uint64_t target)
{
    uint32_t b = cfg_block_covering(move_cfg(w), target);
    if (b != CFG_NONE && cfg_block_at(move_cfg(w), target) == CFG_NONE) w->block_bits[b] |= MOVE_SPLIT;
}

static void leave_split(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->edge_count; i++)
        if (p->edges[i].to == CFG_NONE) note_split(w, p->edges[i].target);
    for (uint32_t i = 0; i < p->block_count; i++)
        if (w->block_bits[i] & MOVE_SPLIT && move_is_moved(w, p->blocks[i].proc))
            move_leave(w, p->blocks[i].proc, "a branch leads into one of its instructions");
}

/* A call of the next instruction, which is no other procedure: what does not return may stand right in front of that.
 */
static bool asks_where(const move_work *w, uint32_t proc, const isa_insn *call)
{
    const cfg_program *p = move_cfg(w);
    if (!w->isa->asks_where(call)) return false;
    uint32_t to = cfg_block_at(p, call->target), of = to == CFG_NONE ? proc : p->blocks[to].proc;
    return of == proc || p->procs[of].addr != call->target || p->procs[of].source == CFG_SOURCE_CALL;
}

/* What is called looks for data behind the call. */
static bool has_data_behind(const move_work *w, const isa_insn *call)
{
    const uint8_t *bytes;
    uint64_t end;
    if (!w->isa->takes_return || call->flow != ISA_FLOW_CALL) return false;
    if (!image_executable(move_cfg(w)->image, call->target, &end)) return false;
    size_t have = image_bytes(move_cfg(w)->image, call->target, &bytes);
    return have && w->isa->takes_return(bytes, have);
}

static const char *refusal(move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[proc];
    const char *why = w->goes_back != CFG_NONE ? move_refuse_compiled(w, proc) : move_lookups_of_proc(w, proc);
    if (why) return why;
    for (uint32_t i = 0; i < of->block_count; i++) {
        const cfg_block *b = &p->blocks[of->first_block + i];
        isa_insn in;
        if (!(b->flags & CFG_BLOCK_CALL)) continue;
        if (!move_last_insn(p, b, &in)) return "its bytes do not decode";
        if (in.flow == ISA_FLOW_CALL) note_split(w, in.target);
        if (move_compares_return(p, b)) return "it compares return addresses of its calls with where they should lead";
        if (asks_where(w, proc, &in)) return "it calls the next instruction to learn its own address";
        if (has_data_behind(w, &in))
            return "it calls code that takes the return address for one of data behind the call";
    }
    return NULL;
}

/* Nothing is to be inserted there, nor is the tool to hear of its system calls. */
static bool may_stay(const move_work *w, uint32_t i)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[i];
    const move_client *client = w->client;
    if (!client || !client->empty || !client->empty(client->arg, p, i)) return false;
    for (uint32_t k = 0; k < of->block_count; k++)
        if (p->blocks[of->first_block + k].flags & CFG_BLOCK_SYSCALL) return false;
    return true;
}

/* `of_image`: why none of them moves, or NULL. */
static void first_choice(move_work *w, uint32_t i, const char *of_image, bool few)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[i];
    const move_client *client = w->client;
    w->plan.procs[i].reason = NULL;
    if (of->status != CFG_PROC_WHOLE || of->block_count == 0) {
        move_leave(w, i, of->reason ? of->reason : "its code is not wholly known");
        return;
    }
    bool asked = i != w->goes_back; /* the other one moves with whatever does */
    if (asked && ((client && client->wanted && !client->wanted(client->arg, p, i)) || (few && may_stay(w, i)))) {
        w->plan.procs[i].how = MOVE_UNWANTED;
        return;
    }
    const char *why = of_image ? of_image : refusal(w, i);
    if (why) move_leave(w, i, why);
    else w->plan.procs[i].how = MOVE_MOVED;
}

/* --- what runs before the tool does --- */

static bool add_early(move_work *w, uint32_t *stack, uint32_t *depth, uint32_t proc)
{
    if (proc == CFG_NONE || w->runs_early[proc]) return false;
    w->runs_early[proc] = 1;
    stack[(*depth)++] = proc;
    return true;
}

static bool add_early_at(move_work *w, uint32_t *stack, uint32_t *depth, uint64_t addr)
{
    uint32_t k = cfg_proc_covering(move_cfg(w), addr);
    if (k == CFG_NONE || move_cfg(w)->procs[k].addr != addr) return false;
    add_early(w, stack, depth, k);
    return true;
}

/* The procedures that a block names, or that a pointer it names leads to; false: none. */
static bool add_named(move_work *w, uint32_t *stack, uint32_t *depth, const cfg_block *b)
{
    const cfg_program *p = move_cfg(w);
    const uint8_t *bytes;
    size_t avail = image_bytes(p->image, b->addr, &bytes);
    bool any = false;
    isa_insn in;
    for (uint32_t at = 0; at < b->size && avail >= b->size; at += in.len) {
        isa_operand operands[ISA_MAX_OPERANDS];
        isa_mem memory[ISA_MAX_MEM];
        if (p->isa->decode(bytes + at, avail - at, b->addr + at, &in) > ISA_UNKNOWN) return any;
        for (int i = p->isa->operands(&in, operands); i-- > 0;)
            if (operands[i].kind == ISA_OPERAND_IMM) any |= add_early_at(w, stack, depth, (uint64_t)operands[i].imm);
        for (int i = p->isa->memory(&in, memory); i-- > 0;) {
            uint64_t at_pointer = (uint64_t)memory[i].disp;
            const image_reloc *r = image_reloc_at(p->image, at_pointer);
            if (memory[i].access & ISA_ADDRESS_ONLY) any |= add_early_at(w, stack, depth, at_pointer);
            else if (r) any |= add_early_at(w, stack, depth, r->value);
        }
    }
    return any;
}

/* But what ends the process (a damaged stack, a failed assertion): that leads to much of a C library, mmap and getpid
 * among it, and before the tool it would be the end in any case. */
static void add_callees(move_work *w, uint32_t *stack, uint32_t *depth, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[proc];
    const cfg_block *blocks = &p->blocks[of->first_block];
    bool far = false; /* what a register or memory leads to is named elsewhere than at the call */
    for (uint32_t i = 0; i < of->block_count; i++) {
        isa_insn in;
        for (uint32_t k = 0; k < blocks[i].edge_count; k++) {
            const cfg_edge *e = &p->edges[blocks[i].first_edge + k];
            if (e->to != CFG_NONE) add_early(w, stack, depth, p->blocks[e->to].proc);
        }
        if (blocks[i].flags & CFG_BLOCK_NO_RETURN || !move_last_insn(p, &blocks[i], &in)) continue;
        if (in.flow == ISA_FLOW_CALL) add_early(w, stack, depth, cfg_proc_covering(p, in.target));
        if (in.flow == ISA_FLOW_CALL_IND || blocks[i].flags & (CFG_BLOCK_TAIL_IND | CFG_BLOCK_UNRESOLVED))
            far |= !add_named(w, stack, depth, &blocks[i]);
    }
    for (uint32_t i = 0; far && i < of->block_count; i++) add_named(w, stack, depth, &blocks[i]);
}

/* With what it calls. */
static bool find_early(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const move_target *t = w->target;
    uint32_t depth = 0;
    if (!w->instruments || !t->runs_before_tool) return true;
    uint32_t *stack = calloc(p->proc_count + 1u, sizeof *stack);
    w->runs_early = calloc(p->proc_count + 1u, 1);
    if (!stack || !w->runs_early) {
        free(stack);
        return false;
    }
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (t->runs_before_tool(t->arg, p, i)) add_early(w, stack, &depth, i);
    while (depth) add_callees(w, stack, &depth, stack[--depth]);
    free(stack);
    return true;
}

/* --- what leads into old code --- */

static void mark_edges(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->edge_count; i++) {
        const cfg_edge *e = &p->edges[i];
        if (e->to == CFG_NONE) continue;
        uint32_t from = p->blocks[e->from].proc;
        if (from == p->blocks[e->to].proc) {
            const cfg_block *before = &p->blocks[e->from];
            if (w->target->has_frames && p->blocks[e->to].addr != before->addr + before->size)
                w->block_bits[e->to] |= MOVE_BRANCHED;
            continue;
        }
        w->block_bits[e->to] |= MOVE_TAIL_SEEN;
        if (w->target->one_by_one || !move_is_moved(w, from) || w->lands_old[from])
            w->block_bits[e->to] |= MOVE_FROM_LEFT;
    }
}

static void mark_tables(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (move_redirects(w, t)) continue;
        for (uint32_t k = 0; k < t->count; k++) {
            uint32_t b = cfg_block_at(p, cfg_table_target(p, t, k));
            if (b != CFG_NONE) w->block_bits[b] |= MOVE_TABLE_KEPT;
        }
    }
}

static bool all_moved(const move_work *w, uint64_t from, uint64_t to)
{
    const cfg_program *p = move_cfg(w);
    while (from < to) {
        uint32_t i = cfg_proc_covering(p, from);
        if (i == CFG_NONE || !move_is_moved(w, i)) return false;
        uint64_t end = p->procs[i].addr + p->procs[i].size + p->procs[i].padding;
        if (end <= from) return false;
        from = end;
    }
    return true;
}

bool move_old_may_run(const move_work *w, uint32_t proc) { return w->target->has_frames || w->lands_old[proc]; }

/* A pad of code that has moved: only what is thrown out of a signal's handler, and finds a frame that shows an original
 * address, lands there, or what finds an old frame. Old code may run then where it is whole. */
static void mark_pad_of_moved(move_work *w, uint32_t block, bool own)
{
    const move_target *t = w->target;
    uint8_t *bits = &w->block_bits[block];
    if (!t->outside_stays) *bits |= own ? 0 : MOVE_PAD_LEFT;
    else *bits |= move_old_may_run(w, move_cfg(w)->blocks[block].proc) ? MOVE_BRANCHED | MOVE_TAIL_SEEN : MOVE_PAD_LEFT;
}

static void mark_landing_pads(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const image_unwind_range *ranges;
    image_lsda lsda = {0};
    size_t n = image_unwind_ranges(p->image, &ranges);
    for (size_t i = 0; i < n; i++) {
        const image_unwind_range *r = &ranges[i];
        bool moved = all_moved(w, r->addr, r->addr + r->size);
        if (!r->lsda || (moved && !w->target->one_by_one && !w->target->outside_stays)) continue;
        image_lsda_read(p->image, r->lsda, r->addr, &lsda);
        for (size_t k = 0; k < lsda.count; k++) {
            uint32_t b = lsda.sites[k].landing_pad ? cfg_block_at(p, lsda.sites[k].landing_pad) : CFG_NONE;
            /* where procedures come and go, it may be another part of the procedure's that is in */
            if (b == CFG_NONE) continue;
            if (moved) mark_pad_of_moved(w, b, p->blocks[b].proc == cfg_proc_covering(p, r->addr));
            else w->block_bits[b] |= MOVE_PAD_LEFT;
        }
    }
    image_lsda_free(&lsda);
}

static bool needs_catch(const cfg_block *b, uint8_t bits)
{
    if (b->flags & (CFG_BLOCK_ENTRY | CFG_BLOCK_ADDRESS_TAKEN)) return true;
    if (bits & (MOVE_TABLE_KEPT | MOVE_FROM_LEFT | MOVE_PAD_LEFT | MOVE_BEHIND_CALL)) return true;
    /* Reached from elsewhere by no jump that is known: a call into the middle. */
    return b->flags & CFG_BLOCK_OUTSIDE && !(bits & MOVE_TAIL_SEEN);
}

/* Must the place be caught? A part of a procedure that only jumps of moved code lead to can do without:
 * its old bytes then stay as they are. */
bool move_catch_is_needed(const move_work *w, uint32_t block)
{
    const cfg_program *p = move_cfg(w);
    const cfg_block *b = &p->blocks[block];
    uint8_t bits = w->block_bits[block];
    /* Where old code is whole, only what leads to the block itself counts, not what leads to its procedure. */
    if (w->lands_old[b->proc] && !(b->flags & CFG_BLOCK_ENTRY)) return needs_catch(b, bits);
    return b->flags & CFG_BLOCK_ADDRESS_TAKEN || p->procs[b->proc].flags & MOVE_WAYS_IN ||
           (bits & (MOVE_TABLE_KEPT | MOVE_FROM_LEFT | MOVE_PAD_LEFT | MOVE_BEHIND_CALL)) || !(bits & MOVE_TAIL_SEEN) ||
           b->addr == image_entry(p->image);
}

static bool collect(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    w->catches.count = 0;
    for (uint32_t i = 0; i < p->block_count; i++) {
        const cfg_block *b = &p->blocks[i];
        bool needed = needs_catch(b, w->block_bits[i]);
        if (!move_is_moved(w, b->proc) || !(needed || w->block_bits[i] & MOVE_BRANCHED)) continue;
        w->block_bits[i] |= MOVE_CATCH;
        if (!inl_vec_push(&w->catches, (move_catch){.block = i, .optional = !needed})) return false;
    }
    return true;
}

static uint32_t count_asked(const move_work *w)
{
    const cfg_program *p = move_cfg(w);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->proc_count; i++) n += move_is_moved(w, i) && !w->client->empty(w->client->arg, p, i);
    return n;
}

/* `why`: none of the image moves, or NULL. False: because so few move, one of them cannot in which something is to be
 * inserted. */
static bool settle(move_work *w, const char *why, bool few)
{
    const cfg_program *p = move_cfg(w);
    memset(w->calls_stay, 0, p->proc_count);
    memset(w->lands_old, 0, p->proc_count);
    for (uint32_t i = 0; i < p->proc_count; i++) first_choice(w, i, why, few);
    move_leave_sequences(w);
    leave_split(w);
    if (!move_leave_faulty(w)) w->no_room = true;
    uint32_t asked = few ? count_asked(w) : 0;
    for (uint32_t i = 0; w->runs_early && i < p->proc_count; i++)
        if (w->runs_early[i] && move_is_moved(w, i)) w->plan.procs[i].how = MOVE_MOVED_QUIETLY;
    do {
        memset(w->block_bits, 0, p->block_count);
        for (uint32_t i = 0; i < p->proc_count; i++)
            if (w->lands_old[i]) w->lands_old[i] = MOVE_LANDS_OLD;
        mark_edges(w);
        mark_tables(w);
        mark_landing_pads(w);
        move_mark_returns(w);
        if (!collect(w)) w->no_room = true;
    } while (!w->no_room && !move_catch_all(w) && (!few || count_asked(w) == asked));
    return !few || count_asked(w) == asked;
}

/* Nothing of the image is asked for: what would be found out about it is of no use. */
static bool leave_all(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const move_client *c = w->client;
    if (!c || !c->wanted) return false;
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (c->wanted(c->arg, p, i)) return false;
    w->goes_back = CFG_NONE;
    for (uint32_t i = 0; i < p->proc_count; i++) w->plan.procs[i].how = MOVE_UNWANTED, w->plan.procs[i].reason = NULL;
    return true;
}

bool move_choose(move_work *w)
{
    bool few = w->client && w->client->empty;
    if (leave_all(w)) return true;
    if (!find_early(w) || !move_find_lookups(w)) return false;
    const char *why = move_lookups_of_image(move_cfg(w)->image);
    w->goes_back = move_is_go(why) ? move_find_return(w) : CFG_NONE;
    for (;;) {
        bool can = w->goes_back != CFG_NONE;
        if (!settle(w, can ? NULL : why, few)) settle(w, can ? NULL : why, false);
        if (!can || w->plan.procs[w->goes_back].how <= MOVE_MOVED_SHORT) break;
        w->goes_back = CFG_NONE;
    }
    for (uint32_t i = 0; i < move_cfg(w)->proc_count; i++)
        w->plan.procs[i].calls_stay = w->calls_stay[i] && move_is_moved(w, i);
    return !w->no_room;
}
