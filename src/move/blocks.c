/* Blocks in their new place: copied where nothing is to be done to them, else woven. What their last instructions do is
 * the instruction set's (isa.h); here is where control goes on behind them. */
#include "move/isa.h"

#include <string.h>

size_t move_here(const move_work *w, const isa_code *c) { return c->exec + c->at - w->plan.text_addr; }

size_t move_place(const move_work *w, const isa_code *c, size_t at) { return c->exec - w->plan.text_addr + at; }

bool move_copied(isa_code *c, const isa *set, const isa_insn *in)
{
    uint8_t bytes[16], len;
    set->relocate(in, c->exec + c->at, bytes, &len);
    if (!len) return false;
    isa_put(c, bytes, len);
    return true;
}

static bool exit_to(void *work, isa_code *c, uint64_t target)
{
    move_work *w = work;
    size_t near = w->near.count, far = w->far.count;
    if (w->in_head) target = w->follows;
    size_t begin = c->at;
    if (!w->isa->jump_to(w, c, target, false)) return false;
    if (c == &w->cold) return true;
    w->exit_begin = begin;
    w->exit_end = c->at;
    w->exit_is_near = w->near.count > near;
    w->exit_is_far = w->far.count > far;
    w->exit_fix = (w->exit_is_far ? w->far.count : w->near.count) - 1;
    w->exit_target = target;
    return true;
}

/* The last thing in the run is where control falls out of its last instruction, no transfer. */
static void note_fall(move_work *w, const isa_code *c, const isa_insn *last)
{
    if (last->flow != ISA_FLOW_NEXT || !w->exit_end || w->exit_end != c->at) return;
    if (w->exit_is_far) w->far.items[w->exit_fix].falls = true;
    if (w->exit_is_near) w->near.items[w->exit_fix].falls = true;
}

/* --- whole blocks --- */

static isa_code window(move_work *w)
{
    w->base = (uint32_t)w->plan.text_size;
    w->exit_end = 0;
    return (isa_code){.write = w->plan.text + w->base,
                      .exec = w->plan.text_addr + w->base,
                      .size = (w->cold_base ? w->cold_base : w->text_room) - w->base};
}

/* The last thing in the block is a jump to what follows it anyway: taken back. */
static void drop_last_exit(move_work *w, isa_code *c)
{
    if (!w->exit_end || w->exit_end != c->at || w->exit_target != w->follows) return;
    c->at = w->exit_begin;
    w->near.count--;
    for (size_t i = w->exit_fix; i < w->near.count; i++) w->near.items[i] = w->near.items[i + 1];
}

static bool falls(const move_work *w, const isa_insn *in)
{
    const cfg_block *b = &move_cfg(w)->blocks[w->block];
    if (move_call_stays(w, in)) return false;
    switch (in->flow) {
    case ISA_FLOW_JUMP:
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_RETURN: return false;
    case ISA_FLOW_TRAP:
    case ISA_FLOW_FAR: return b->edge_count > 0;
    default: return true;
    }
}

static bool ends_with_dead_call(const move_work *w, const isa_insn *last)
{
    bool call = last->flow == ISA_FLOW_CALL || last->flow == ISA_FLOW_CALL_IND;
    return call && move_cfg(w)->blocks[w->block].flags & CFG_BLOCK_NO_RETURN;
}

static bool put_old(const move_work *w, isa_code *c, uint64_t at)
{
    const cfg_program *p = move_cfg(w);
    const uint8_t *bytes;
    isa_insn in;
    size_t have = image_bytes(p->image, at, &bytes);
    if (p->isa->decode(bytes, have, at, &in) > ISA_UNKNOWN) return false;
    isa_put(c, in.raw, in.len);
    return true;
}

/* A call that seems not to return: should it, control goes where it would go in old code. Something stands there in
 * any case, the padding at least: the return address is not the next block's, which other code goes to. */
static bool go_on_anyway(move_work *w, isa_code *c, const isa_insn *call)
{
    uint64_t behind = call->addr + call->len - w->plan.bias, at;
    cfg_sight sight = cfg_look_at(move_cfg(w), behind, &at);
    if (sight == CFG_SEES_BLOCK) return (at == behind || put_old(w, c, behind)) && exit_to(w, c, move_assumed(w, at));
    return sight == CFG_SEES_UNKNOWN ? exit_to(w, c, move_assumed(w, behind)) : put_old(w, c, at);
}

/* Behind the last instruction: on to the next block. `done`: the weaver has seen to it. */
static bool go_on(move_work *w, isa_code *c, const isa_insn *last, bool done)
{
    uint64_t behind = last->addr + last->len;
    if (done || !falls(w, last)) return true;
    if (behind != w->follows && ends_with_dead_call(w, last)) return go_on_anyway(w, c, last);
    return behind == w->follows || exit_to(w, c, behind);
}

static inl_status finish(move_work *w, const isa_code *c, inl_error *e)
{
    if (c->full) return INL_ERR_RANGE;
    if (c->unreachable || w->bad_branch)
        return inl_fail_at(e, INL_ERR_UNSUPPORTED, move_cfg(w)->blocks[w->block].addr,
                           w->bad_branch ? "a branch leads into the middle of an instruction"
                                         : "an operand is out of reach from the new code");
    w->plan.text_size = w->base + c->at;
    return INL_OK;
}

static bool copied_or_far(const move_work *w, isa_code *c, const isa_insn *in)
{
    if (move_copied(c, w->run.isa, in)) return true;
    return w->isa->copy_far && w->isa->copy_far(c, w->run.isa, in);
}

inl_status move_copy_block(move_work *w, uint32_t first, uint32_t count, inl_error *e)
{
    isa_code c = window(w);
    uint32_t block = w->block - move_cfg(w)->procs[w->proc].first_block;
    if (!move_note_counts(w, NULL, (uint32_t)w->plan.map_count, block, 1)) return INL_ERR_NO_MEMORY;
    for (uint32_t i = first; i < first + count && !c.full; i++) {
        const isa_insn *in = &w->run.insns[i].in;
        uint32_t at = w->base + (uint32_t)c.at;
        if (!move_map_add(w, in->addr, at, at)) return INL_ERR_NO_MEMORY;
        if (in->flow == ISA_FLOW_NEXT && !(in->bits & ISA_BIT_PCREL_MEM)) {
            isa_put(&c, in->raw, in->len);
        } else if (in->flow == ISA_FLOW_NEXT) {
            if (!copied_or_far(w, &c, in)) c.unreachable = true;
        } else if (!move_lower(w, &c, &w->run, i) && !c.full) {
            c.unreachable = true;
        }
    }
    const isa_insn *last = &w->run.insns[first + count - 1].in;
    if (!c.full && !c.unreachable) go_on(w, &c, last, false);
    note_fall(w, &c, last);
    return finish(w, &c, e);
}

static void live_at(void *work, uint64_t target, uint64_t *regs, uint32_t *flags)
{
    move_work *w = work;
    const cfg_program *p = move_cfg(w);
    uint32_t b = w->in_head ? w->block : cfg_block_at(p, target - w->plan.bias);
    cfg_need need = {~0ull, ~0u};
    if (b != CFG_NONE && p->blocks[b].proc == w->proc && w->live)
        need = w->live[b - p->procs[w->proc].first_block].live;
    else if (b != CFG_NONE) need = cfg_flow_at_block(p, &w->facts, b);
    *regs = need.regs;
    *flags = need.flags;
}

/* Behind a jump through a table. */
static cfg_need live_on_edges(const move_work *w, const cfg_block *b)
{
    const cfg_program *p = move_cfg(w);
    cfg_need need = {0, 0};
    for (uint32_t k = 0; k < b->edge_count; k++) {
        uint32_t to = p->edges[b->first_edge + k].to;
        if (to == CFG_NONE || p->blocks[to].proc != w->proc) return (cfg_need){~0ull, ~0u};
        cfg_need at = w->live[to - p->procs[w->proc].first_block].live;
        need.regs |= at.regs;
        need.flags |= at.flags;
    }
    return need;
}

static void live_behind(void *work, const weave_run *run, uint32_t i, uint64_t *regs, uint32_t *flags)
{
    move_work *w = work;
    const cfg_block *b = &move_cfg(w)->blocks[w->block];
    unsigned flow = run->insns[i].in.flow;
    cfg_need need = {~0ull, ~0u};
    if (flow == ISA_FLOW_CALL || flow == ISA_FLOW_CALL_IND || b->flags & CFG_BLOCK_TAIL_IND)
        need = cfg_flow_at_call(&w->facts);
    else if (flow == ISA_FLOW_RETURN) need = cfg_flow_at_return(&w->facts);
    else if (w->live && !(b->flags & CFG_BLOCK_UNRESOLVED)) need = live_on_edges(w, b);
    *regs = need.regs & ~(uint64_t)run->insns[i].unwanted;
    *flags = need.flags;
}

/* The weaver may put code out of line behind the block's end: a call that returns must not fall into it. */
static bool lower_woven(void *work, isa_code *c, const weave_run *run, uint32_t i)
{
    move_work *w = work;
    const isa_insn *in = &run->insns[i].in;
    bool call = in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND;
    if (!move_lower(w, c, run, i)) return false;
    if (!call || move_call_stays(w, in) || i + 1 < run->insn_count) return true;
    if (ends_with_dead_call(w, in)) return go_on_anyway(w, c, in);
    return exit_to(w, c, in->addr + in->len);
}

/* A view of some blocks as a run of their own. False: no memory. */
static bool make_view(move_work *w, uint32_t k, uint32_t blocks, weave_run *view)
{
    const weave_block *from = &w->run.blocks[k];
    *view = w->run;
    view->blocks = inl_arena_alloc(&w->arena, blocks * sizeof *view->blocks);
    if (!view->blocks) return false;
    view->block_count = blocks;
    view->insns += from->first;
    view->insn_count = 0;
    for (uint32_t i = 0; i < blocks; i++) {
        view->blocks[i] = from[i];
        view->blocks[i].first = view->insn_count;
        for (uint32_t n = 0; n < from[i].count; n++, view->insn_count++) {
            view->insns[view->insn_count].index = view->insn_count;
            view->insns[view->insn_count].block = i;
        }
    }
    return true;
}

/* The procedure's code out of line, as it goes on. */
static void open_cold(move_work *w)
{
    w->cold.write = w->plan.text + w->cold_base;
    w->cold.exec = w->plan.text_addr + w->cold_base;
    w->cold.size = w->text_room - w->cold_base;
    w->cold.full = w->cold.unreachable = false;
}

static inl_status weave(move_work *w, const weave_run *run, isa_code *c, weave_output *out, inl_error *e)
{
    weave_engine engine = {.lower = lower_woven,
                           .exit_to = exit_to,
                           .arg = w,
                           .cold = &w->cold,
                           .live_at = live_at,
                           .live_behind = live_behind};
    weave_options options = w->client->weave;
    options.hide_dead = !w->has_labels;
    options.pc_relative = true;
    options.cold_exits = true;
    open_cold(w);
    inl_status status = weave_compile(run, &engine, &options, c, out, e);
    if (!status) w->plan.uses_frame = true;
    return status;
}

inl_status move_weave_head(move_work *w, uint32_t k, inl_error *e)
{
    weave_run run;
    weave_output out;
    isa_code c = window(w);
    if (!move_head_run(w, k, &run)) return INL_ERR_NO_MEMORY;
    w->follows = run.insns[0].in.addr;
    w->in_head = true;
    inl_status status = weave(w, &run, &c, &out, e);
    w->in_head = false;
    if (status) return status;
    if (!move_map_faults(w, &out, 1)) return INL_ERR_NO_MEMORY;
    drop_last_exit(w, &c);
    return finish(w, &c, e);
}

inl_status move_weave_blocks(move_work *w, uint32_t k, uint32_t blocks, inl_error *e)
{
    weave_run view;
    weave_output out;
    isa_code c = window(w);
    if (!make_view(w, k, blocks, &view)) return INL_ERR_NO_MEMORY;
    inl_status status = weave(w, &view, &c, &out, e);
    if (status) return status;
    if (!move_map_woven(w, &out, view.insn_count, k, blocks)) return INL_ERR_NO_MEMORY;
    for (uint32_t i = 1; i < blocks; i++)
        w->new_at[w->block - blocks + 1 + i] = w->base + out.map[view.blocks[i].first].snippets_at;
    note_fall(w, &c, &view.insns[view.insn_count - 1].in);
    drop_last_exit(w, &c);
    go_on(w, &c, &view.insns[view.insn_count - 1].in, true);
    return finish(w, &c, e);
}

bool move_pad(move_work *w, uint32_t bytes)
{
    if (!move_text_reserve(w, bytes)) return false;
    isa_code c = window(w);
    w->isa->pad(&c, bytes);
    w->plan.text_size = w->base + c.at;
    return !c.full;
}
