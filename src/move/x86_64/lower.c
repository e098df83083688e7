/* Instructions of x86-64 in their new place, with native control flow.
 *
 *   jmp, jcc        the same, to the target's new place if it has moved; the short form where it reaches
 *   loop, jrcxz     the same, or over a short jump to a long one
 *   call            the same: the return address is the new one
 *   indirect, ret   copied; RIP-relative operands re-aimed
 *   syscall         copied, or by way of the gate where the tool has to know of it:
 *                       lea behind(%rip),%rcx ; jmp *%gs:gate ; behind:
 *                   (the instruction destroys rcx and r11 anyway)
 *   others          copied
 */
#include "isa/x86_64/emit.h"
#include "move/plan.h"

#include <string.h>

/* Offset in the new text. */
static size_t here(const move_work *w, const x86_code *c) { return x86_here(c) - w->plan.text_addr; }

/* ... of a place in a window. */
static size_t place(const move_work *w, const x86_code *c, size_t at) { return c->exec - w->plan.text_addr + at; }

static bool jump_to(move_work *w, x86_code *c, uint64_t target, bool was_short)
{
    uint32_t site;
    if (move_branch_is_short(w, target, here(w, c), was_short, &site)) {
        static const uint8_t bytes[] = {0xeb, 0};
        x86_bytes(c, bytes, sizeof bytes);
        return c->full || move_note_branch(w, target, here(w, c) - 1, 1, site);
    }
    size_t at = x86_jmp_rel32(c, x86_here(c), false);
    return c->full || move_note_branch(w, target, place(w, c, at), 4, site);
}

static bool jump_if(move_work *w, x86_code *c, const isa_insn *in)
{
    uint32_t site;
    if (move_branch_is_short(w, in->target, here(w, c), in->len <= 3, &site)) {
        uint8_t bytes[] = {(uint8_t)(0x70 | in->cond), 0};
        x86_bytes(c, bytes, sizeof bytes);
        return c->full || move_note_branch(w, in->target, here(w, c) - 1, 1, site);
    }
    size_t at = x86_jcc_rel32(c, in->cond, x86_here(c), false);
    return c->full || move_note_branch(w, in->target, place(w, c, at), 4, site);
}

/* loop, loope, loopne, jrcxz and jecxz have the short form only. */
static bool jump_on_register(move_work *w, x86_code *c, const isa_insn *in)
{
    uint8_t bytes[16];
    uint32_t site;
    bool is_short = move_branch_is_short(w, in->target, here(w, c) + in->len - 2u, true, &site);
    memcpy(bytes, in->raw, in->len);
    bytes[in->len - 1] = is_short ? 0 : 2;
    x86_bytes(c, bytes, in->len);
    if (is_short) return c->full || move_note_branch(w, in->target, here(w, c) - 1, 1, site);
    x86_label past = x86_jmp_label(c, 1);
    size_t at = x86_jmp_rel32(c, x86_here(c), false);
    bool ok = c->full || move_note_branch(w, in->target, place(w, c, at), 4, site);
    return x86_bind(c, past) && ok;
}

/* Anything with a 32-bit displacement at its end: call, xbegin. */
static bool with_rel32(move_work *w, x86_code *c, const isa_insn *in, const uint8_t *head, unsigned n)
{
    static const uint8_t zero[4];
    x86_bytes(c, head, n);
    x86_bytes(c, zero, sizeof zero);
    return c->full || move_note_branch(w, in->target, here(w, c) - 4, 4, MOVE_NOWHERE);
}

static bool copy_moved(x86_code *c, const isa_insn *in)
{
    uint8_t bytes[16], len;
    isa_x86_64.relocate(in, x86_here(c), bytes, &len);
    if (!len) return false;
    x86_bytes(c, bytes, len);
    return true;
}

/* --- system calls --- */

static bool sets_rax(const isa_insn *in, long *nr)
{
    const uint8_t *op = in->raw + in->opcode_at;
    int32_t imm;
    if (in->opcode_at == 0 && op[0] == 0xb8 && in->imm_len == 4) {
        memcpy(&imm, in->raw + in->imm_at, 4);
        *nr = (long)(uint32_t)imm;
        return true;
    }
    if (in->opcode_at == 1 && in->raw[0] == 0x48 && op[0] == 0xc7 && op[1] == 0xc0) {
        memcpy(&imm, in->raw + in->imm_at, 4);
        *nr = imm;
        return true;
    }
    if (in->opcode_at == 0 && (op[0] == 0x31 || op[0] == 0x33) && op[1] == 0xc0) {
        *nr = 0;
        return true;
    }
    return false;
}

/* The call's number where the run's own instructions before it say so, else -1. */
static long call_number(const weave_run *run, uint32_t i)
{
    while (i-- > 0) {
        const isa_insn *in = &run->insns[i].in;
        isa_effects fx;
        long nr;
        if (sets_rax(in, &nr)) return nr;
        run->isa->effects(in, &fx);
        if (in->flow != ISA_FLOW_NEXT || fx.writes & 1u << X86_RAX) return -1;
    }
    return -1;
}

static bool lower_syscall(move_work *w, x86_code *c, const weave_run *run, uint32_t i)
{
    const isa_insn *in = &run->insns[i].in;
    bool early = w->runs_early && w->runs_early[w->proc];
    if (!w->instruments || early || !x86_is_syscall(in) || !w->client->gate.matters ||
        !w->client->gate.matters(call_number(run, i))) {
        x86_bytes(c, in->raw, in->len);
        return true;
    }
    x86_addr gate = x86_gs(w->client->gate.at);
    x86_code probe = {.write = (uint8_t[16]){0}, .exec = x86_here(c), .size = 16};
    x86_jmp_m(&probe, gate);
    x86_lea(c, X86_RCX, x86_rip(x86_here(c) + 7 + probe.at)); /* lea with a displacement: 7 bytes */
    x86_jmp_m(c, gate);
    w->plan.has_syscalls = w->plan.uses_frame = true;
    return true;
}

bool move_lower(void *work, x86_code *c, const weave_run *run, uint32_t i)
{
    static const uint8_t call[] = {0xe8}, xbegin[] = {0xc7, 0xf8};
    move_work *w = work;
    const isa_insn *in = &run->insns[i].in;
    switch (in->flow) {
    case ISA_FLOW_JUMP: return jump_to(w, c, in->target, in->len <= 3);
    case ISA_FLOW_COND: return jump_if(w, c, in);
    case ISA_FLOW_COND_REG: return jump_on_register(w, c, in);
    case ISA_FLOW_CALL: return with_rel32(w, c, in, call, sizeof call);
    case ISA_FLOW_TX: return with_rel32(w, c, in, xbegin, sizeof xbegin);
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND:
    case ISA_FLOW_RETURN: return copy_moved(c, in);
    case ISA_FLOW_SYSCALL: return lower_syscall(w, c, run, i);
    default: return copy_moved(c, in);
    }
}

bool move_exit_to(void *work, x86_code *c, uint64_t target)
{
    move_work *w = work;
    size_t near = w->near.count, far = w->far.count;
    if (w->in_head) target = w->follows;
    if (!jump_to(w, c, target, false)) return false;
    if (c == &w->cold) return true;
    w->exit_end = c->at;
    w->exit_is_near = w->near.count > near;
    w->exit_is_far = w->far.count > far;
    w->exit_fix = (w->exit_is_far ? w->far.count : w->near.count) - 1;
    w->exit_target = target;
    return true;
}

/* The last thing in the run is where control falls out of its last instruction, no transfer. */
static void note_fall(move_work *w, const x86_code *c, const isa_insn *last)
{
    if (last->flow != ISA_FLOW_NEXT || !w->exit_end || w->exit_end != c->at) return;
    if (w->exit_is_far) w->far.items[w->exit_fix].falls = true;
    if (w->exit_is_near) w->near.items[w->exit_fix].falls = true;
}

/* --- whole blocks --- */

static x86_code window(move_work *w)
{
    w->base = (uint32_t)w->plan.text_size;
    w->exit_end = 0;
    return (x86_code){.write = w->plan.text + w->base,
                      .exec = w->plan.text_addr + w->base,
                      .size = (w->cold_base ? w->cold_base : w->text_room) - w->base};
}

/* The last thing in the block is a jump to what follows it anyway: taken back. */
static void drop_last_exit(move_work *w, x86_code *c)
{
    if (!w->exit_end || w->exit_end != c->at || w->exit_target != w->follows) return;
    c->at = w->near.items[w->exit_fix].at - w->base - 1; /* one byte of opcode in both forms */
    w->near.count--;
    for (size_t i = w->exit_fix; i < w->near.count; i++) w->near.items[i] = w->near.items[i + 1];
}

static bool falls(const move_work *w, const isa_insn *in)
{
    const cfg_block *b = &move_cfg(w)->blocks[w->block];
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

/* A call that seems not to return: should it, control goes where it would go in old code. */
static bool go_on_anyway(move_work *w, x86_code *c, const isa_insn *call)
{
    const cfg_program *p = move_cfg(w);
    const uint8_t *bytes;
    isa_insn trap;
    uint64_t behind = call->addr + call->len - w->plan.bias, at;
    cfg_sight sight = cfg_look_at(p, behind, &at);
    if (sight == CFG_SEES_BLOCK) return move_exit_to(w, c, move_assumed(w, at));
    if (sight == CFG_SEES_UNKNOWN) return move_exit_to(w, c, move_assumed(w, behind));
    size_t have = image_bytes(p->image, at, &bytes);
    if (p->isa->decode(bytes, have, at, &trap) > ISA_UNKNOWN) return false;
    x86_bytes(c, trap.raw, trap.len);
    return true;
}

/* Behind the last instruction: on to the next block. `done`: the weaver has seen to it. */
static bool go_on(move_work *w, x86_code *c, const isa_insn *last, bool done)
{
    uint64_t behind = last->addr + last->len;
    if (done || !falls(w, last)) return true;
    if (behind != w->follows && ends_with_dead_call(w, last)) return go_on_anyway(w, c, last);
    return behind == w->follows || move_exit_to(w, c, behind);
}

static inl_status finish(move_work *w, const x86_code *c, inl_error *e)
{
    if (c->full) return INL_ERR_RANGE;
    if (c->unreachable || w->bad_branch)
        return inl_fail_at(e, INL_ERR_UNSUPPORTED, move_cfg(w)->blocks[w->block].addr,
                           w->bad_branch ? "a branch leads into the middle of an instruction"
                                         : "an operand is out of reach from the new code");
    w->plan.text_size = w->base + c->at;
    return INL_OK;
}

inl_status move_copy_block(move_work *w, uint32_t first, uint32_t count, inl_error *e)
{
    x86_code c = window(w);
    uint32_t block = w->block - move_cfg(w)->procs[w->proc].first_block;
    if (!move_note_counts(w, NULL, (uint32_t)w->plan.map_count, block, 1)) return INL_ERR_NO_MEMORY;
    for (uint32_t i = first; i < first + count && !c.full; i++) {
        const isa_insn *in = &w->run.insns[i].in;
        uint32_t at = w->base + (uint32_t)c.at;
        if (!move_map_add(w, in->addr, at, at)) return INL_ERR_NO_MEMORY;
        if (in->flow == ISA_FLOW_NEXT && !(in->bits & ISA_BIT_PCREL_MEM)) {
            x86_bytes(&c, in->raw, in->len);
        } else if (in->flow == ISA_FLOW_NEXT) {
            if (!copy_moved(&c, in)) c.unreachable = true;
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
static bool lower_woven(void *work, x86_code *c, const weave_run *run, uint32_t i)
{
    move_work *w = work;
    const isa_insn *in = &run->insns[i].in;
    bool call = in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND;
    if (!move_lower(work, c, run, i)) return false;
    if (!call || i + 1 < run->insn_count) return true;
    if (ends_with_dead_call(w, in)) return go_on_anyway(w, c, in);
    return move_exit_to(work, c, in->addr + in->len);
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

static inl_status weave(move_work *w, const weave_run *run, x86_code *c, weave_output *out, inl_error *e)
{
    weave_engine engine = {.lower = lower_woven,
                           .exit_to = move_exit_to,
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
    x86_code c = window(w);
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
    x86_code c = window(w);
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

/* --- small answers --- */

bool move_needs_weaver(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x65) return true;
    if (op == 0xa9 && in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f) return true; /* pop gs */
    if (op == 0x8e && (in->raw[in->modrm_at] >> 3 & 7) == 5) return true;               /* mov gs */
    return x86_is_rdfsbase_family(in);
}

bool move_asks_where(const isa_insn *in) { return in->flow == ISA_FLOW_CALL && in->target == in->addr + in->len; }

bool move_pad(move_work *w, uint32_t bytes)
{
    if (!move_text_reserve(w, bytes)) return false;
    x86_code c = window(w);
    for (uint32_t n; bytes; bytes -= n) {
        n = bytes < 9 ? bytes : 9;
        x86_nop(&c, n);
    }
    w->plan.text_size = w->base + c.at;
    return !c.full;
}

bool move_jump(uint64_t at, uint64_t target, unsigned room, uint8_t *out)
{
    int64_t d = (int64_t)(target - (at + room));
    if (room == 2) {
        out[0] = 0xeb;
        out[1] = (uint8_t)d;
        return d == (int8_t)d;
    }
    int32_t narrow = (int32_t)d;
    out[0] = 0xe9;
    memcpy(out + 1, &narrow, 4);
    return d == narrow;
}
