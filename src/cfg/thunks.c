/* Jumps that are not written as such, so that a processor does not guess where they go (retpolines): an address is
 * put where a return takes it from.
 *
 *     jmp thunk                      thunk: call 1f            both `jmp thunk` and `call 1f` are jumps to
 *                                           pause; lfence ...  where the register leads; `call thunk` stays
 *                                    1:     mov %rax,(%rsp)    a call
 *                                           ret
 *
 *     push (%rdx,%rax,8)             back:  call 1f            a jump to what is pushed, as with `ret` itself
 *     jmp back                              pause; lfence ...
 *                                    1:     lea 8(%rsp),%rsp
 *                                           ret
 *
 * A thunk may as well be `jmp *%rax`, with a fence before it. What these pieces do is read from their own few
 * instructions, whatever their names are. */
#include "cfg/thunks.h"
#include "cfg/work.h"
#include "image/file.h"

#include <stdlib.h>

/* What becomes of control in a piece: words on the stack since the instruction that leads there, and the register that
 * has been stored over the last of them. */
typedef struct piece {
    const cfg_work *work;
    unsigned words, reg;
    bool called, plain; /* a call was met; an indirect jump */
} piece;

typedef enum outcome { GOES_ON, OTHER, TO_REGISTER, BACK } outcome;

static bool is_register(const isa_operand *o) { return o->kind == ISA_OPERAND_REG && o->size == 8 && o->reg < 64; }

static bool is_top(const cfg_work *w, const isa_mem *m)
{
    return m->base == w->machine->stack && m->index == ISA_NO_REG && m->disp == 0 && m->size == 8 && !m->segment;
}

/* mov %reg,(%rsp) */
static bool stores_on_top(const cfg_work *w, const cfg_shape *s)
{
    return s->sem == SEM_MOV && s->has_mem && s->dst.kind == ISA_OPERAND_MEM && is_register(&s->src) &&
           s->src.reg != w->machine->stack && is_top(w, &s->mem);
}

/* lea 8(%rsp),%rsp; add $8,%rsp; sub $8,%rsp: what is added to the stack pointer, 0: something else. */
static int64_t moves_stack(const cfg_work *w, const cfg_shape *s)
{
    const unsigned stack = w->machine->stack;
    bool by_number = s->has_src && s->src.kind == ISA_OPERAND_IMM;
    if (!s->has_src || !is_register(&s->dst) || s->dst.reg != stack) return 0;
    if (s->sem == SEM_ADD) return by_number ? s->src.imm : 0;
    if (s->sem == SEM_SUB) return by_number ? -s->src.imm : 0;
    return s->sem == SEM_LEA && s->mem.base == stack && s->mem.index == ISA_NO_REG ? s->mem.disp : 0;
}

static bool changes_nothing(const cfg_work *w, const isa_insn *in)
{
    isa_effects fx;
    if (in->flow != ISA_FLOW_NEXT || w->sems[in->op] != SEM_OTHER || in->bits & (ISA_BIT_MEM | ISA_BIT_UNKNOWN))
        return false;
    w->isa->effects(in, &fx);
    return !fx.writes;
}

static outcome of_return(const piece *p)
{
    if (p->reg != ISA_NO_REG) return p->words == 1 ? TO_REGISTER : OTHER;
    return p->words == 0 ? BACK : OTHER;
}

/* One instruction of a piece, *at being where the next one is. */
static outcome step(piece *p, const isa_insn *in, uint64_t *at)
{
    const cfg_work *w = p->work;
    cfg_shape s;
    *at = in->addr + in->len;
    if (in->flow == ISA_FLOW_RETURN) return in->imm_len ? OTHER : of_return(p);
    if (p->reg != ISA_NO_REG) return OTHER;
    if (in->flow == ISA_FLOW_CALL && !p->called) {
        p->called = true;
        p->words++;
        *at = in->target;
        return GOES_ON;
    }
    if (w->sems[in->op] == SEM_NOP || changes_nothing(w, in)) return GOES_ON;
    if (in->flow != ISA_FLOW_NEXT && in->flow != ISA_FLOW_JUMP_IND) return OTHER;
    cfg_shape_of(w, in, &s);
    if (in->flow == ISA_FLOW_JUMP_IND) {
        p->reg = s.dst.reg;
        p->plain = true;
        return is_register(&s.dst) && p->words == 0 ? TO_REGISTER : OTHER;
    }
    if (stores_on_top(w, &s) && p->words) {
        p->reg = s.src.reg;
    } else if (s.sem == SEM_PUSH && is_register(&s.dst)) {
        p->reg = s.dst.reg;
        p->words++;
    } else if (moves_stack(w, &s) == 8 && p->words) {
        p->words--;
    } else if (moves_stack(w, &s) == -8) {
        p->words++;
    } else {
        return OTHER;
    }
    return GOES_ON;
}

/* Outside of an analysis, from the file alone. */
static bool decode(const cfg_work *w, uint64_t at, isa_insn *out)
{
    const cfg_region *r = cfg_region_at(w, at);
    const uint8_t *bytes;
    uint64_t end;
    if (w->regions.count) return r && cfg_decode(w, at, r->end, out);
    size_t have = image_executable(w->image, at, &end) ? image_bytes(w->image, at, &bytes) : 0;
    return have && w->isa->decode(bytes, have, at, out) == ISA_OK;
}

static outcome follow(piece *p, uint64_t at)
{
    enum { longest = 12 };
    for (unsigned i = 0; i < longest; i++) {
        isa_insn in;
        if (!decode(p->work, at, &in)) return OTHER;
        outcome o = step(p, &in, &at);
        if (o != GOES_ON) return o;
    }
    return OTHER;
}

/* What becomes of control where `in` leads. */
static outcome beyond(const cfg_work *w, const isa_insn *in, cfg_leap *leap)
{
    piece p = {.work = w, .reg = ISA_NO_REG};
    outcome o = OTHER;
    if (in->flow == ISA_FLOW_JUMP) {
        o = follow(&p, in->target);
    } else if (in->flow == ISA_FLOW_CALL) {
        p.called = true;
        p.words = 1;
        o = follow(&p, in->target);
    }
    *leap = (cfg_leap){.value = {.kind = ISA_OPERAND_REG, .reg = (uint8_t)p.reg, .size = 8}, .plain = p.plain};
    return o;
}

cfg_detour cfg_leaps(const cfg_work *w, const isa_insn *in, const isa_insn *before, cfg_leap *out)
{
    cfg_shape s = {0};
    bool returns = in->flow == ISA_FLOW_RETURN;
    if (!w->machine->pushed || (!returns && in->flow != ISA_FLOW_JUMP && in->flow != ISA_FLOW_CALL)) return CFG_GOES_ON;
    if (before) cfg_shape_of(w, before, &s);
    if (returns && stores_on_top(w, &s)) {
        *out = (cfg_leap){.value = s.src, .before = true};
        return CFG_LEAPS;
    }
    outcome o = returns && !in->imm_len ? BACK : beyond(w, in, out);
    if (o == BACK && before && s.sem == SEM_PUSH && s.has_dst) {
        *out = (cfg_leap){.value = s.dst, .mem = s.mem, .before = true, .pushed = true};
        return CFG_LEAPS;
    }
    if (o == BACK && in->flow == ISA_FLOW_CALL) return CFG_COMES_BACK;
    return o == TO_REGISTER ? CFG_LEAPS : CFG_GOES_ON;
}

/* --- for others --- */

struct cfg_thunks {
    cfg_work work;
};

cfg_thunks *cfg_thunks_new(const isa *set)
{
    cfg_thunks *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->work.isa = set;
    t->work.machine = cfg_machine_for(set);
    if (t->work.machine && cfg_name_sems(&t->work)) return t;
    cfg_thunks_free(t);
    return NULL;
}

void cfg_thunks_free(cfg_thunks *t)
{
    if (!t) return;
    free(t->work.sems);
    free(t);
}

/* The piece that ends with the return begins with a call to `store`, and what stands behind it calls the piece. */
static bool is_called(const cfg_work *w, uint64_t behind, uint64_t store)
{
    isa_insn call, first;
    return decode(w, behind, &call) && call.flow == ISA_FLOW_CALL && decode(w, call.target, &first) &&
           first.flow == ISA_FLOW_CALL && first.target == store;
}

cfg_departure cfg_thunks_departure(cfg_thunks *t, image *im, const isa_insn *in, const isa_insn *before, unsigned *reg)
{
    cfg_work *w = &t->work;
    cfg_leap leap = {0};
    w->image = im;
    if (cfg_leaps(w, in, before, &leap) == CFG_LEAPS) {
        *reg = leap.value.reg;
        if (in->flow == ISA_FLOW_JUMP) return leap.pushed ? CFG_TO_TOP : CFG_TO_REGISTER;
        return is_called(w, in->addr + in->len, before->addr) ? CFG_TO_CALLEE : CFG_TO_TOP;
    }
    if (in->flow != ISA_FLOW_JUMP || !w->machine->pushed) return CFG_AS_WRITTEN;
    piece p = {.work = w, .reg = ISA_NO_REG};
    return follow(&p, in->target) == BACK ? CFG_TO_CALLER : CFG_AS_WRITTEN; /* a mere return may be a thunk, too */
}

bool cfg_thunks_fills(cfg_thunks *t, image *im, uint64_t from, uint64_t to)
{
    isa_insn in;
    t->work.image = im;
    while (from < to && decode(&t->work, from, &in) && t->work.sems[in.op] == SEM_NOP) from += in.len;
    return from == to;
}
