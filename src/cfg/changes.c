/* What calling a procedure changes of the registers that callers must not count on. A compiler that has seen the
 * callee may count on more than the calling convention promises: on what the callee, and all that it calls,
 * leaves as it is. So only what is written somewhere there counts; if control can leave for code that a compiler
 * cannot have seen (another object's, through a pointer), nothing is promised but by the convention. */
#include "cfg/changes.h"
#include "cfg/work.h"

typedef struct search {
    const cfg_program *p;
    cfg_changed found;
    isa_regs all;
    bool unknown; /* what the convention says */
    uint8_t *seen;
    uint32_t *stack, depth;
} search;

static void visit(search *s, uint32_t block)
{
    uint32_t proc = block == CFG_NONE ? CFG_NONE : s->p->blocks[block].proc;
    if (proc == CFG_NONE || s->p->procs[proc].flags & CFG_PROC_PLT) {
        s->unknown = true;
    } else if (!s->seen[proc]) {
        s->seen[proc] = 1;
        s->stack[s->depth++] = proc;
    }
}

/* Where its last instruction leads, besides the edges. */
static void look_at_end(search *s, const cfg_block *b, const isa_insn *last)
{
    if (last->flow == ISA_FLOW_CALL) visit(s, cfg_block_at(s->p, last->target));
    if (last->flow == ISA_FLOW_CALL_IND || b->flags & (CFG_BLOCK_UNRESOLVED | CFG_BLOCK_TAIL_IND)) s->unknown = true;
    for (uint32_t k = 0; k < b->edge_count; k++) {
        const cfg_edge *e = &s->p->edges[b->first_edge + k];
        if (e->kind != CFG_EDGE_RETURNED) visit(s, e->to);
    }
}

static void look_at_block(search *s, const cfg_block *b)
{
    const uint8_t *bytes;
    size_t avail = image_bytes(s->p->image, b->addr, &bytes), at = 0;
    isa_insn in = {0};
    for (uint32_t i = 0; i < b->insn_count && at < avail; i++, at += in.len) {
        isa_effects fx;
        if (s->p->isa->decode(bytes + at, avail - at, b->addr + at, &in) > ISA_UNKNOWN) return;
        s->p->isa->effects(&in, &fx);
        s->found.regs |= fx.writes & s->all;
        s->found.vectors |= fx.other_writes & ISA_OTHER_ALL_VEC ? UINT32_MAX : fx.vec_writes;
    }
    look_at_end(s, b, &in);
}

cfg_changed cfg_proc_changes(const cfg_program *p, uint32_t proc)
{
    search s = {.p = p, .all = cfg_machine_for(p->isa)->call_clobbers};
    s.seen = calloc(p->proc_count + 1u, 1);
    s.stack = calloc(p->proc_count + 1u, sizeof *s.stack);
    if (s.seen && s.stack && p->procs[proc].block_count) visit(&s, p->procs[proc].first_block);
    while (s.depth && !s.unknown) {
        const cfg_proc *of = &p->procs[s.stack[--s.depth]];
        for (uint32_t k = 0; k < of->block_count; k++) look_at_block(&s, &p->blocks[of->first_block + k]);
    }
    free(s.seen);
    free(s.stack);
    return s.unknown ? (cfg_changed){s.all, UINT32_MAX} : s.found;
}
