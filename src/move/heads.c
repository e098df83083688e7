/* Where blocks begin.
 *
 * The analysis also ends a block in front of an instruction that something leads to. Control that falls in there
 * goes on with a block that has begun before (docs/glossary.md); control that comes by a transfer begins one. So
 * what the client inserted for each block that begins there (weave_block.entry) must be passed by when control
 * falls in:
 *
 *   - counts by constants are taken in the block, and taken off again in the one in front, at its last
 *     instruction. For a counter of all blocks the two are nothing there and one addition here: blocks are counted
 *     where they end.
 *   - whatever else becomes code of its own, the head, to which all transfers lead:
 *
 *         block in front ; jmp body | head: snippets | body: the block
 *
 * In the map the head counts as snippets in front of the block's first instruction. Such a block is shown to the
 * client up to the next control transfer, wherever the analysis cuts it; `behind` are the instructions that this
 * takes beyond the procedure. */
#include "move/plan.h"

enum { MOST_BEHIND = 8 }; /* blocks */

/* Does control only fall out of it, without a control transfer? */
static bool falls(const cfg_program *p, const cfg_block *b)
{
    bool falls = b->edge_count == 1 && p->edges[b->first_edge].kind == CFG_EDGE_FALL;
    return falls && !(b->flags & CFG_BLOCK_SYSCALL);
}

/* ... into the next one? */
static bool falls_on(const cfg_program *p, uint32_t block)
{
    const cfg_block *b = &p->blocks[block];
    return block + 1 < p->block_count && b[1].addr == b->addr + b->size && falls(p, b);
}

bool move_is_fallen_into(const move_work *w, uint32_t block)
{
    const cfg_program *p = move_cfg(w);
    return block > 0 && falls_on(p, block - 1) && move_is_moved(w, p->blocks[block - 1].proc);
}

/* --- what lies behind the procedure --- */

static uint32_t blocks_behind(const cfg_program *p, uint32_t proc)
{
    uint32_t last = p->procs[proc].first_block + p->procs[proc].block_count - 1, n = 0;
    while (n < MOST_BEHIND && falls_on(p, last + n)) n++;
    return n;
}

uint32_t move_behind(const move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    uint32_t first = p->procs[proc].first_block + p->procs[proc].block_count, insns = 0;
    for (uint32_t n = blocks_behind(p, proc); n; n--) insns += p->blocks[first++].insn_count;
    return insns;
}

inl_status move_look_behind(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    uint32_t first = p->procs[w->proc].first_block + p->procs[w->proc].block_count, at = w->run.insn_count;
    w->run.behind = 0;
    for (uint32_t n = blocks_behind(p, w->proc); n; n--, first++) {
        inl_status status = move_decode_block(w, &p->blocks[first], w->run.insns + at, at);
        if (status) return status;
        for (uint32_t end = at + p->blocks[first].insn_count; at < end; at++)
            w->run.insns[at].block = w->run.block_count - 1;
    }
    w->run.behind = at - w->run.insn_count;
    return INL_OK;
}

/* --- what was inserted --- */

static bool is_constant(const weave_insert *i)
{
    return i->code->kind == SNIPPET_COUNT && i->code->a->kind == SNIPPET_CONST;
}

static bool only_constants(const weave_list *l)
{
    for (const weave_insert *i = l->first; i; i = i->next)
        if (!is_constant(i)) return false;
    return true;
}

/* Takes off, at the last instruction of the block in front, what counting in this block adds. */
static bool take_off(weave_run *run, uint32_t k, const snippet *count)
{
    const weave_block *from = &run->blocks[k - 1];
    snippet *less = snippet_new(run->arena, SNIPPET_CONST), *code = snippet_new(run->arena, SNIPPET_COUNT);
    const char *why;
    if (!less || !code) return false;
    less->value = -count->a->value;
    code->a = less;
    code->index = count->index;
    return weave_insert_at(run, WEAVE_BEFORE, from->first + from->count - 1, code, false, &why);
}

static bool count_instead(weave_run *run, uint32_t k)
{
    weave_list list = run->blocks[k].entry;
    const char *why;
    run->blocks[k].entry = (weave_list){0};
    for (const weave_insert *i = list.first; i; i = i->next)
        if (!weave_insert_at(run, WEAVE_ANYWHERE, k, i->code, false, &why) || !take_off(run, k, i->code)) return false;
    return true;
}

/* The lists that stay become heads. False: no memory. */
bool move_settle_heads(move_work *w)
{
    for (uint32_t k = 1; k < w->run.block_count; k++)
        if (w->run.blocks[k].entry.first && only_constants(&w->run.blocks[k].entry) && !count_instead(&w->run, k))
            return false;
    return true;
}

bool move_has_head(const move_work *w, uint32_t k) { return k < w->run.block_count && w->run.blocks[k].entry.first; }

/* The head as a run: of the block's first instruction, for its snippets to ask about, but without its code. */
bool move_head_run(move_work *w, uint32_t k, weave_run *run)
{
    const weave_block *of = &w->run.blocks[k];
    *run = w->run;
    run->insns = inl_arena_alloc(&w->arena, sizeof *run->insns);
    run->blocks = inl_arena_alloc(&w->arena, sizeof *run->blocks);
    if (!run->insns || !run->blocks) return false;
    run->insn_count = run->block_count = 1;
    run->behind = 0;
    run->insns[0] = w->run.insns[of->first];
    run->insns[0].index = run->insns[0].block = 0;
    run->insns[0].elided = 1;
    run->insns[0].before = of->entry;
    run->insns[0].after = run->insns[0].taken = (weave_list){0};
    run->blocks[0] = (weave_block){.run = run, .count = 1, .head = true};
    return true;
}

/* --- where branches lead --- */

uint32_t move_fix_target(const move_work *w, const move_fixup *f)
{
    uint64_t body;
    return f->falls && inl_map_get(&w->bodies, f->block, &body) ? (uint32_t)body : w->new_at[f->block];
}
