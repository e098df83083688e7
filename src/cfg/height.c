/* How far the stack pointer is from where it was at the entry, at the end of each block: a jump that leaves
 * the procedure does so with the stack as it was. Registers that hold addresses in the frame are followed
 * along, each block once. Where the unwind table says it, that is believed instead: it also knows the frames of
 * parts that are entered in the middle. */
#include "cfg/work.h"

#define UNKNOWN INT64_MIN

typedef struct frame { /* registers as distances from the stack pointer at the entry */
    int64_t reg[64];
} frame;

static int64_t plus(int64_t a, int64_t b) { return a == UNKNOWN ? UNKNOWN : a + b; }

static void forget(frame *f, uint64_t regs)
{
    for (unsigned r = 0; regs; r++, regs >>= 1)
        if (regs & 1) f->reg[r] = UNKNOWN;
}

static void assign(const cfg_work *w, const cfg_shape *s, frame *f)
{
    const cfg_machine *m = w->machine;
    unsigned dst = s->dst.reg;
    int64_t value = UNKNOWN;
    switch (s->sem) {
    case SEM_MOV:
        if (s->src.kind == ISA_OPERAND_REG && s->dst.size == 8) value = f->reg[s->src.reg & 63];
        break;
    case SEM_LEA:
        if (s->has_mem && s->mem.base < 64 && s->mem.index == ISA_NO_REG && s->dst.size == 8) {
            value = plus(f->reg[s->mem.base], s->mem.disp);
            /* The end of a frame that was aligned: the old stack pointer comes back by way of a copy. */
            if (dst == m->stack && value == UNKNOWN && m->pushed && s->mem.disp == -m->pushed) value = 0;
        }
        break;
    case SEM_ADD:
        if (s->src.kind == ISA_OPERAND_IMM && s->dst.size == 8) value = plus(f->reg[dst], s->src.imm);
        break;
    case SEM_SUB:
        if (s->src.kind == ISA_OPERAND_IMM && s->dst.size == 8) value = plus(f->reg[dst], -s->src.imm);
        break;
    default: break;
    }
    f->reg[dst] = value;
}

/* An access that changes the register its address is in. */
static void advance(const cfg_shape *s, uint64_t writes, frame *f)
{
    int64_t value = plus(f->reg[s->step_reg & 63], s->step);
    forget(f, writes);
    f->reg[s->step_reg & 63] = value;
}

static void step(const cfg_work *w, const isa_insn *in, frame *f)
{
    const cfg_machine *m = w->machine;
    uint64_t writes = cfg_insn_writes(w, in), stack = 1ull << m->stack;
    uint8_t sem = w->sems[in->op];
    cfg_shape s;
    if (in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND) {
        forget(f, writes & ~stack);
    } else if (sem == SEM_PUSH) {
        f->reg[m->stack] = plus(f->reg[m->stack], -8);
    } else if (sem == SEM_POP) {
        forget(f, writes & ~stack);
        f->reg[m->stack] = writes == stack ? UNKNOWN : plus(f->reg[m->stack], 8);
    } else if (sem == SEM_LEAVE) {
        f->reg[m->stack] = plus(f->reg[m->frame], 8);
        f->reg[m->frame] = UNKNOWN;
    } else if (writes) {
        cfg_shape_of(w, in, &s);
        bool plain = s.has_dst && s.dst.kind == ISA_OPERAND_REG && s.dst.reg < 64 && s.has_src &&
                     writes == 1ull << s.dst.reg;
        if (s.has_step) advance(&s, writes, f);
        else if (plain) assign(w, &s, f);
        else forget(f, writes);
    }
}

static void walk_block(cfg_view *v, uint32_t block, frame *f)
{
    uint32_t count;
    const isa_insn *in = cfg_view_insns(v, block, &count);
    for (uint32_t i = 0; i < count; i++) step(v->work, &in[i], f);
    v->heights.items[block] = f->reg[v->work->machine->stack];
}

typedef struct visit {
    uint32_t block;
    frame at;
} visit;

static void compute(cfg_view *v)
{
    const cfg_work *w = v->work;
    size_t count = v->blocks.count;
    INL_VEC(visit) stack = {0};
    v->has_heights = true;
    v->heights.count = 0;
    if (!inl_vec_reserve(&v->heights, count)) {
        v->work->failed = true;
        return;
    }
    v->heights.count = count;
    for (size_t i = 0; i < count; i++) v->heights.items[i] = UNKNOWN;
    if (count == 0 || v->blocks.items[0].addr != w->procs.items[v->proc].addr) return;
    visit first = {.block = 0};
    forget(&first.at, ~0ull);
    first.at.reg[w->machine->stack] = 0;
    v->epoch++;
    v->blocks.items[0].seen = v->epoch;
    cfg_keep(v->work, &stack, first);
    while (stack.count && !w->failed) {
        visit now = stack.items[--stack.count];
        const cfg_view_block b = v->blocks.items[now.block];
        walk_block(v, now.block, &now.at);
        for (uint32_t i = 0; i < b.edge_count; i++) {
            uint32_t to = v->edges.items[b.first_edge + i].to;
            if (to == CFG_NONE || v->blocks.items[to].seen == v->epoch) continue;
            v->blocks.items[to].seen = v->epoch;
            now.block = to;
            cfg_keep(v->work, &stack, now);
        }
    }
    inl_vec_free(&stack);
}

bool cfg_stack_height(cfg_view *v, uint32_t block, int64_t *height)
{
    unsigned reg;
    int64_t offset;
    if (image_frame_at(v->work->image, v->blocks.items[block].last, &reg, &offset) &&
        reg == v->work->machine->dwarf_stack) { /* the return address may lie between */
        *height = v->work->machine->pushed - offset;
        return true;
    }
    if (!v->has_heights) compute(v);
    if (v->work->failed) return false;
    *height = v->heights.items[block];
    return *height != UNKNOWN;
}
