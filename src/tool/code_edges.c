/* What the analysis knows of procedures, blocks and edges, and of operands (code.h). */
#include "tool/code.h"
#include "tool/regs.h"

/* --- what is known --- */

inlay_known inlay_proc_known(inlay_proc *p, const char **why)
{
    static const inlay_known known[] = {[CFG_PROC_WHOLE] = INLAY_WHOLE, [CFG_PROC_PARTLY] = INLAY_PARTLY};
    bool entered = tool_enter();
    tool_code *c = p ? code_of(p->image) : NULL;
    uint32_t k = c && c->cfg ? cfg_proc_covering(c->cfg, p->low - p->image->bias) : CFG_NONE;
    tool_leave(entered);
    bool stub = k != CFG_NONE && c->cfg->procs[k].flags & CFG_PROC_PLT;
    const char *reason = k == CFG_NONE ? "no code is known there" : stub ? "import stub" : c->cfg->procs[k].reason;
    if (why) *why = reason;
    return k == CFG_NONE || stub ? INLAY_LEFT : known[c->cfg->procs[k].status];
}

bool inlay_proc_address_taken(inlay_proc *p)
{
    bool entered = tool_enter();
    tool_code *c = p ? code_of(p->image) : NULL;
    uint32_t k = c && c->cfg ? cfg_proc_covering(c->cfg, p->low - p->image->bias) : CFG_NONE;
    tool_leave(entered);
    return k != CFG_NONE && c->cfg->procs[k].flags & CFG_PROC_ADDRESS_TAKEN;
}

/* Does a branch lead to block k? Within the procedure: blocks of one are contiguous. */
static bool is_branched_to(const cfg_program *p, const cfg_block *b)
{
    uint32_t k = (uint32_t)(b - p->blocks);
    const cfg_proc *of = &p->procs[b->proc];
    const cfg_block *first = &p->blocks[of->first_block], *end = first + of->block_count;
    if (b->flags & (CFG_BLOCK_TABLE | CFG_BLOCK_OUTSIDE)) return true;
    for (uint32_t e = first->first_edge; e < end[-1].first_edge + end[-1].edge_count; e++) {
        unsigned kind = p->edges[e].kind;
        if (p->edges[e].to == k && (kind == CFG_EDGE_TAKEN || kind == CFG_EDGE_JUMP || kind == CFG_EDGE_TAIL))
            return true;
    }
    return false;
}

unsigned inlay_block_flags(const inlay_block *block)
{
    static const struct {
        uint32_t from, to;
    } flags[] = {
        {CFG_BLOCK_ENTRY, INLAY_BLOCK_ENTRY},
        {CFG_BLOCK_LANDING, INLAY_BLOCK_LANDING},
        {CFG_BLOCK_ADDRESS_TAKEN, INLAY_BLOCK_ADDRESS_TAKEN},
        {CFG_BLOCK_OUTSIDE, INLAY_BLOCK_OUTSIDE},
        {CFG_BLOCK_LOOP_HEAD, INLAY_BLOCK_LOOP_HEAD},
        {CFG_BLOCK_CALL, INLAY_BLOCK_CALL},
        {CFG_BLOCK_NO_RETURN, INLAY_BLOCK_NO_RETURN},
        {CFG_BLOCK_RETURN, INLAY_BLOCK_RETURN},
        {CFG_BLOCK_UNRESOLVED, INLAY_BLOCK_UNRESOLVED},
    };
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = code_known_block(block, &c);
    unsigned out = 0;
    for (size_t i = 0; b && i < sizeof flags / sizeof *flags; i++)
        if (b->flags & flags[i].from) out |= flags[i].to;
    if (b && is_branched_to(c->cfg, b)) out |= INLAY_BLOCK_TARGET;
    tool_leave(entered);
    return out;
}

unsigned inlay_block_id(const inlay_block *block)
{
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = code_known_block(block, &c);
    unsigned id = b ? (unsigned)(b - c->cfg->blocks) : 0;
    tool_leave(entered);
    return id;
}

unsigned inlay_block_successor_count(const inlay_block *block)
{
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = code_known_block(block, &c);
    tool_leave(entered);
    return b ? b->edge_count : 0;
}

_Static_assert((int)INLAY_EDGE_TAKEN == (int)CFG_EDGE_TAKEN && (int)INLAY_EDGE_TABLE == (int)CFG_EDGE_TABLE &&
                   (int)INLAY_EDGE_TAIL == (int)CFG_EDGE_TAIL,
               "edges are numbered alike");

inlay_edge inlay_block_successor(const inlay_block *block, unsigned k)
{
    inlay_edge out = {0};
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = code_known_block(block, &c);
    if (b && k < b->edge_count) {
        const cfg_edge *e = &c->cfg->edges[b->first_edge + k];
        out = (inlay_edge){.kind = (inlay_edge_kind)e->kind,
                           .target = e->target + c->image->bias,
                           .to = code_block_by_index(c, e->to),
                           .back = e->back};
    }
    tool_leave(entered);
    return out;
}

inlay_address inlay_insn_address_of(const inlay_insn *insn, unsigned k)
{
    const weave_insn *i = (const weave_insn *)insn;
    isa_mem mem[ISA_MAX_MEM];
    inlay_address a = {.base = -1, .index = -1, .segment = -1};
    unsigned n = i ? (unsigned)i->run->isa->memory(&i->in, mem) : 0;
    if (k >= n) return a;
    const isa_mem *m = &mem[k];
    if (inlay_reg_kind_of(m->base) == INLAY_REG_GENERAL) a.base = m->base;
    if (inlay_reg_kind_of(m->index) == INLAY_REG_GENERAL && !(m->bits & ISA_MEM_VECTOR_INDEX)) a.index = m->index;
    a.scale = m->scale;
    a.displacement = m->disp;
    a.pc_relative = m->bits & ISA_MEM_PCREL;
    if (m->segment) a.segment = (int)tool_reg_segment + m->segment - 1;
    return a;
}
