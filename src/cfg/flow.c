/* Backward dataflow over the blocks of one procedure; see the header for what is assumed at its rim.
 *
 * A block's effect on what is wanted behind it is wanted' = uses | (wanted & ~kills), twice: for what is
 * live and for what is seen. Summaries are made in one walk over the instructions; then blocks are
 * visited from the last to the first until nothing changes, which for reducible code takes as many
 * rounds as loops are nested.
 */
#include "cfg/flow.h"

#include <stdlib.h>
#include <string.h>

static const cfg_need everything = {~0ull, ~0u};
static const cfg_need nothing = {0, 0};

typedef struct summary {
    cfg_need live_use, live_kill, seen_use, seen_kill;
} summary;

static cfg_need join(cfg_need a, cfg_need b) { return (cfg_need){a.regs | b.regs, a.flags | b.flags}; }

static cfg_need without(cfg_need a, cfg_need b) { return (cfg_need){a.regs & ~b.regs, a.flags & ~b.flags}; }

static bool same(cfg_need a, cfg_need b) { return a.regs == b.regs && a.flags == b.flags; }

cfg_need cfg_flow_at_call(const cfg_facts *facts) { return (cfg_need){~0ull, facts->flags_at_entry}; }

cfg_need cfg_flow_at_return(const cfg_facts *facts) { return (cfg_need){~0ull, facts->flags_at_return}; }

/* A division leaves flags undefined and defines none. */
static bool may_fault(const isa_insn *in, const isa_effects *fx)
{
    if (in->bits & (ISA_BIT_MEM | ISA_BIT_UNKNOWN | ISA_BIT_PRIV | ISA_BIT_FP)) return true;
    return in->flow != ISA_FLOW_NEXT || (fx->flags_undefined && !fx->flags_written);
}

/* Puts an instruction in front of what `s` sums up so far. */
static void prepend(summary *s, cfg_need reads, cfg_need kills, bool faults)
{
    s->live_use = join(without(s->live_use, kills), reads);
    s->live_kill = join(s->live_kill, kills);
    s->seen_use = faults ? everything : join(without(s->seen_use, kills), reads);
    s->seen_kill = join(s->seen_kill, kills);
}

/* A trap shows its flags to a handler, a system call keeps them; neither asks anything of them. */
static bool asks(const isa_insn *in) { return in->flow != ISA_FLOW_TRAP && in->flow != ISA_FLOW_SYSCALL; }

static void prepend_insn(summary *s, const isa *isa, const isa_insn *in)
{
    isa_effects fx;
    isa->effects(in, &fx);
    cfg_need kills = {fx.kills, fx.flags_kill};
    cfg_need reads = {fx.reads, asks(in) ? fx.flags_read : 0};
    prepend(s, reads, kills, may_fault(in, &fx));
}

/* A procedure's entry, as against the begin of a part that only jumps lead to. */
static bool is_called(const cfg_program *p, const cfg_block *b)
{
    enum { CALLED = CFG_PROC_CALLED | CFG_PROC_ADDRESS_TAKEN | CFG_PROC_EXPORTED };
    return b->flags & CFG_BLOCK_ENTRY && p->procs[b->proc].flags & CALLED;
}

cfg_need cfg_flow_at_block(const cfg_program *p, const cfg_facts *facts, uint32_t block)
{
    bool entry = block == CFG_NONE || is_called(p, &p->blocks[block]);
    return (cfg_need){~0ull, entry ? facts->flags_at_entry : facts->flags_at_outside};
}

/* What is wanted behind a block's last instruction, its edges within the procedure apart. */
static cfg_need at_rim(const cfg_program *p, const cfg_facts *facts, const cfg_block *b)
{
    cfg_need need = nothing;
    if (b->flags & CFG_BLOCK_CALL) need = join(need, cfg_flow_at_call(facts));
    if (b->flags & CFG_BLOCK_RETURN) need = join(need, cfg_flow_at_return(facts));
    if (b->flags & CFG_BLOCK_TAIL_IND) need = join(need, cfg_flow_at_call(facts));
    if (b->flags & CFG_BLOCK_UNRESOLVED) /* to a place like those that are known */
        need = join(need, (cfg_need){~0ull, facts->flags_at_entry | facts->flags_at_outside});
    for (uint32_t i = 0; i < b->edge_count; i++) {
        const cfg_edge *e = &p->edges[b->first_edge + i];
        bool inside = e->to != CFG_NONE && p->blocks[e->to].proc == b->proc;
        if (inside) continue;
        need = join(need, cfg_flow_at_block(p, facts, e->to));
    }
    bool goes_on = b->edge_count ||
                   b->flags & (CFG_BLOCK_CALL | CFG_BLOCK_RETURN | CFG_BLOCK_TAIL_IND | CFG_BLOCK_UNRESOLVED);
    return goes_on ? need : (cfg_need){~0ull, 0}; /* a trap */
}

/* A call uses up everything itself: what is wanted behind it comes from the callee's return. */
static void add_rim(summary *s, cfg_need rim, bool calls, cfg_need returned)
{
    if (calls) {
        s->live_kill = s->seen_kill = (cfg_need){0, ~returned.flags};
        s->live_use = s->seen_use = rim;
        return;
    }
    s->live_use = s->seen_use = rim;
}

static void solve(const cfg_program *p, const cfg_proc *proc, const summary *sums, cfg_live *at)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = proc->block_count; k-- > 0;) {
            const cfg_block *b = &p->blocks[proc->first_block + k];
            cfg_live out = {nothing, nothing}, in;
            for (uint32_t i = 0; i < b->edge_count; i++) {
                uint32_t to = p->edges[b->first_edge + i].to - proc->first_block;
                if (to >= proc->block_count) continue;
                out.live = join(out.live, at[to].live);
                out.seen = join(out.seen, at[to].seen);
            }
            in.live = join(sums[k].live_use, without(out.live, sums[k].live_kill));
            in.seen = join(join(sums[k].seen_use, without(out.seen, sums[k].seen_kill)), in.live);
            if (same(in.live, at[k].live) && same(in.seen, at[k].seen)) continue;
            at[k] = in;
            changed = true;
        }
    }
}

static const isa_insn *insn_at(const cfg_flow_code *code, size_t i)
{
    return (const isa_insn *)((const char *)code->first + i * code->stride);
}

cfg_live *cfg_flow_solve(const cfg_program *p, const cfg_facts *facts, uint32_t proc, const cfg_flow_code *code,
                         inl_arena *arena)
{
    const cfg_proc *of = &p->procs[proc];
    summary *sums = inl_arena_alloc(arena, of->block_count * sizeof *sums);
    cfg_live *at = inl_arena_alloc(arena, of->block_count * sizeof *at);
    if (!sums || !at) return NULL;
    size_t first = 0;
    for (uint32_t k = 0; k < of->block_count; k++) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        add_rim(&sums[k], at_rim(p, facts, b), b->flags & CFG_BLOCK_CALL, cfg_flow_at_return(facts));
        for (size_t i = first + b->insn_count; i-- > first;) {
            if (code->after) prepend(&sums[k], code->after[i], nothing, false);
            prepend_insn(&sums[k], p->isa, insn_at(code, i));
            if (code->before) prepend(&sums[k], code->before[i], nothing, false);
        }
        first += b->insn_count;
    }
    solve(p, of, sums, at);
    return at;
}

/* --- the whole image --- */

/* A block's flags: those that are looked at before they are written, those that are lost. Where control leaves a
 * procedure nothing is hoped to look at any, so calls, at which a block ends, and jumps to elsewhere add none. */
typedef struct flag_sum {
    uint32_t use, kill, live;
} flag_sum;

typedef struct finder {
    const cfg_program *program;
    flag_sum *sums; /* of one procedure's blocks */
    size_t room;
} finder;

static bool reserve(finder *f, size_t count)
{
    if (count <= f->room) return true;
    size_t room = count + count / 2;
    flag_sum *bigger = realloc(f->sums, room * sizeof *bigger);
    if (!bigger) return false;
    f->sums = bigger;
    f->room = room;
    return true;
}

/* A block whose bytes are gone counts as unknown code. */
static flag_sum sum_up(const cfg_program *p, const cfg_block *b)
{
    flag_sum s = {0};
    const uint8_t *bytes = NULL;
    size_t avail = image_bytes(p->image, b->addr, &bytes), at = 0;
    for (uint32_t i = 0; i < b->insn_count; i++) {
        isa_insn in;
        isa_effects fx;
        isa_result r = p->isa->decode(bytes + at, avail - at, b->addr + at, &in);
        if (r == ISA_TRUNCATED || r == ISA_INVALID)
            in = (isa_insn){.len = 0, .bits = ISA_BIT_UNKNOWN, .flow = ISA_FLOW_TRAP};
        p->isa->effects(&in, &fx);
        if (asks(&in)) s.use |= fx.flags_read & ~s.kill;
        s.kill |= fx.flags_kill;
        at += in.len;
    }
    if (b->flags & CFG_BLOCK_CALL) s.kill = ~0u; /* what is wanted behind it comes from the callee's return */
    return s;
}

static void solve_flags(const cfg_program *p, const cfg_proc *proc, flag_sum *sums)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = proc->block_count; k-- > 0;) {
            const cfg_block *b = &p->blocks[proc->first_block + k];
            uint32_t out = 0;
            for (uint32_t i = 0; i < b->edge_count; i++) {
                uint32_t to = p->edges[b->first_edge + i].to - proc->first_block;
                if (to < proc->block_count) out |= sums[to].live;
            }
            uint32_t live = sums[k].use | (out & ~sums[k].kill);
            changed |= live != sums[k].live;
            sums[k].live = live;
        }
    }
}

static bool is_returned(const cfg_program *p, const cfg_block *b, uint32_t *to)
{
    for (uint32_t i = 0; i < b->edge_count; i++) {
        const cfg_edge *e = &p->edges[b->first_edge + i];
        if (e->kind != CFG_EDGE_RETURNED || e->to == CFG_NONE) continue;
        *to = e->to;
        return true;
    }
    return false;
}

static bool examine(finder *f, uint32_t index, cfg_facts *facts)
{
    const cfg_program *p = f->program;
    const cfg_proc *proc = &p->procs[index];
    bool code_for_sure = !(proc->flags & CFG_PROC_GUESSED);
    if (!code_for_sure || proc->block_count == 0) return true;
    if (!reserve(f, proc->block_count)) return false;
    for (uint32_t k = 0; k < proc->block_count; k++) f->sums[k] = sum_up(p, &p->blocks[proc->first_block + k]);
    solve_flags(p, proc, f->sums);
    for (uint32_t k = 0; k < proc->block_count; k++) {
        const cfg_block *b = &p->blocks[proc->first_block + k];
        uint32_t to;
        if (is_called(p, b)) facts->flags_at_entry |= f->sums[k].live;
        else if (b->flags & (CFG_BLOCK_ENTRY | CFG_BLOCK_OUTSIDE)) facts->flags_at_outside |= f->sums[k].live;
        if (!(b->flags & CFG_BLOCK_CALL) || !is_returned(p, b, &to)) continue;
        /* Behind a call that ends a procedure another may begin: looked at there, as an entry. */
        to -= proc->first_block;
        if (to < proc->block_count) facts->flags_at_return |= f->sums[to].live;
        else facts->flags_at_return |= p->blocks[to + proc->first_block].flags & CFG_BLOCK_ENTRY ? 0 : ~0u;
    }
    return true;
}

bool cfg_facts_find(const cfg_program *p, cfg_facts *facts)
{
    finder f = {.program = p};
    bool ok = true;
    *facts = (cfg_facts){0};
    for (uint32_t i = 0; i < p->proc_count && ok; i++) ok = examine(&f, i, facts);
    facts->flags_at_return |= facts->flags_at_entry; /* of what a call falls into */
    if (!ok) *facts = (cfg_facts){~0u, ~0u, ~0u};
    free(f.sums);
    return ok;
}
