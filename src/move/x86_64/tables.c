/* Is the address of a jump table used for its dispatch only?
 *
 *     lea table(%rip),%b           the naming instruction; or a table as an absolute displacement, where
 *     movslq (%b,%i,4),%t          nothing has to be followed
 *     add %b,%t   (or lea (%b,%t),%t)
 *     jmp *%t
 *
 *     lea table(%rip),%b ; mov (%i,%b,1),%t ; ... ; lea table(%rip),%c ; add %c,%t     not optimised
 *
 * From a lea on, every path is followed as long as %b keeps its value; any other instruction that reads
 * it is a refusal. A load of an entry and an addition must be met, or, of two that name it, one by each. Where control
 * leaves for a callee, a caller or an import the value counts as dead: nobody is handed the address of a compiler's own
 * table. So it does when the register's low byte is set: what the others then are matters to no one.
 */
#include "base/map.h"
#include "isa/x86_64/x86.h"
#include "move/x86_64/machine.h"

#include <elf.h>
#include <string.h>

enum { MAX_BLOCKS = 4096 };

typedef struct walk {
    const cfg_program *program;
    unsigned reg;
    unsigned loads, adds;
    inl_map seen; /* blocks entered with the register holding the table */
    uint32_t stack[MAX_BLOCKS];
    uint32_t depth;
} walk;

typedef enum step { GOES_ON, ENDS, REFUSED } step;

enum { KEPT_BY_CALLS = 1 << X86_RBX | 1 << X86_RBP | 0xf << X86_R12 };

static unsigned rex_of(const isa_insn *in)
{
    uint8_t b = in->opcode_at ? in->raw[in->opcode_at - 1] : 0;
    return (b & 0xf0) == 0x40 ? b : 0;
}

static unsigned reg_field(const isa_insn *in) { return (in->raw[in->modrm_at] >> 3 & 7) | (rex_of(in) & 4) << 1; }

static bool is_entry_load(const walk *w, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    uint8_t op = in->raw[in->opcode_at];
    if ((op != 0x63 && op != 0x8b) || w->program->isa->memory(in, mem) != 1) return false;
    unsigned table = mem[0].base, index = mem[0].index;
    if (mem[0].scale == 1 && index == w->reg) table = index, index = mem[0].base;
    return table == w->reg && index != ISA_NO_REG && index != w->reg && mem[0].disp == 0 && mem[0].size == 4 &&
           mem[0].segment == 0;
}

static bool is_sum(const walk *w, const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    isa_mem mem[ISA_MAX_MEM];
    if (!in->modrm_at || !(rex_of(in) & 8)) return false;
    if (op == 0x01 || op == 0x03) return in->raw[in->modrm_at] >= 0xc0;
    if (op != 0x8d || w->program->isa->memory(in, mem) != 1) return false;
    return mem[0].scale == 1 && mem[0].disp == 0 && mem[0].index != ISA_NO_REG && mem[0].base != ISA_NO_REG &&
           mem[0].base != mem[0].index;
}

/* sete %bl, mov $1,%bl, mov (%rcx),%bl: the byte is written and nothing of the register read. Only the plain
 * forms: an opcode, perhaps behind 0f, perhaps behind a REX prefix, and nothing in front. */
static bool sets_byte(const walk *w, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    unsigned at = in->opcode_at, op = in->raw[at], rex = 0, reg;
    bool escaped = at && in->raw[at - 1] == 0x0f;
    at -= escaped;
    if (at && (in->raw[at - 1] & 0xf0) == 0x40) rex = in->raw[--at];
    if (at) return false;
    if (escaped) {
        if ((op & 0xf0) != 0x90 || in->raw[in->modrm_at] < 0xc0) return false;
        reg = (in->raw[in->modrm_at] & 7) | (rex & 1) << 3;
    } else if ((op & 0xf8) == 0xb0) {
        reg = (op & 7) | (rex & 1) << 3;
    } else {
        if (op != 0x8a || w->program->isa->memory(in, mem) != 1) return false;
        if (mem[0].base == w->reg || mem[0].index == w->reg) return false;
        reg = (in->raw[in->modrm_at] >> 3 & 7) | (rex & 4) << 1;
    }
    return reg == w->reg && (rex || reg < 4); /* without the prefix 4 to 7 are ah, ch, dh and bh */
}

static step look(walk *w, const isa_insn *in)
{
    isa_effects fx;
    uint64_t bit = 1ull << w->reg;
    if (in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND) {
        isa_mem mem[ISA_MAX_MEM];
        int n = w->program->isa->memory(in, mem);
        for (int i = 0; i < n; i++)
            if (mem[i].base == w->reg || mem[i].index == w->reg) return REFUSED;
        return bit & KEPT_BY_CALLS ? GOES_ON : ENDS;
    }
    if (in->flow == ISA_FLOW_RETURN) return ENDS;
    if (in->flow == ISA_FLOW_TRAP) return GOES_ON; /* in most cases nowhere */
    if (sets_byte(w, in)) return ENDS;
    w->program->isa->effects(in, &fx);
    if (in->bits & ISA_BIT_UNKNOWN) return REFUSED;
    if (fx.reads & bit) {
        if (is_entry_load(w, in)) w->loads++;
        else if (is_sum(w, in)) w->adds++;
        else return REFUSED;
    }
    if (!(fx.writes & bit)) return GOES_ON;
    return fx.kills & bit ? ENDS : REFUSED;
}

static bool enter(walk *w, uint32_t block)
{
    uint64_t unused;
    if (inl_map_get(&w->seen, block, &unused)) return true;
    if (w->depth == MAX_BLOCKS || !inl_map_put(&w->seen, block, 1)) return false;
    w->stack[w->depth++] = block;
    return true;
}

/* Follows the block from address `at`; false: refused. */
static bool follow(walk *w, uint32_t block, uint64_t at)
{
    const cfg_program *p = w->program;
    const cfg_block *b = &p->blocks[block];
    const uint8_t *bytes;
    size_t avail = image_bytes(p->image, b->addr, &bytes);
    if (avail < b->size) return false;
    for (uint64_t off = at - b->addr; off < b->size;) {
        isa_insn in;
        if (p->isa->decode(bytes + off, avail - off, b->addr + off, &in) > ISA_UNKNOWN) return false;
        step s = look(w, &in);
        if (s != GOES_ON) return s == ENDS;
        off += in.len;
    }
    if (b->flags & CFG_BLOCK_UNRESOLVED) return false;
    for (uint32_t i = 0; i < b->edge_count; i++) {
        const cfg_edge *e = &p->edges[b->first_edge + i];
        bool leaves = e->to == CFG_NONE || p->procs[p->blocks[e->to].proc].flags & CFG_PROC_PLT;
        if (!leaves && !enter(w, e->to)) return false;
    }
    return true;
}

enum { LOADS = 1, ADDS = 2 };

/* What it is used for, if for nothing but that; 0: for something else, too. */
static unsigned uses_for_dispatch(const cfg_program *p, uint32_t block, uint64_t behind, unsigned reg)
{
    walk w = {.program = p, .reg = reg};
    bool ok = reg != X86_RSP && follow(&w, block, behind);
    while (ok && w.depth) {
        uint32_t next = w.stack[--w.depth];
        ok = follow(&w, next, p->blocks[next].addr);
    }
    inl_map_free(&w.seen);
    return ok ? (w.loads ? LOADS : 0) | (w.adds ? ADDS : 0) : 0;
}

static bool has_displacement(const isa_insn *in, uint64_t value)
{
    int32_t disp;
    if (in->disp_len != 4 || in->bits & ISA_BIT_PCREL_MEM) return false;
    memcpy(&disp, in->raw + in->disp_at, 4);
    return (uint64_t)(int64_t)disp == value;
}

/* The instruction at `at`, which names the table, and its block; CFG_NONE: it is not in the jump's procedure. */
static uint32_t naming(const cfg_program *p, const cfg_table *t, uint64_t at, isa_insn *in)
{
    const uint8_t *bytes;
    uint32_t block = cfg_block_covering(p, at);
    size_t avail = image_bytes(p->image, at, &bytes);
    if (block == CFG_NONE || p->blocks[block].proc != p->blocks[t->block].proc) return CFG_NONE;
    return p->isa->decode(bytes, avail, at, in) == ISA_OK ? block : CFG_NONE;
}

/* By a lea: what it is used for. */
static unsigned uses(const cfg_program *p, const cfg_table *t, uint64_t at)
{
    isa_insn in;
    uint32_t block = naming(p, t, at, &in);
    if (block == CFG_NONE || in.raw[in.opcode_at] != 0x8d || !(in.bits & ISA_BIT_PCREL_MEM) || in.target != t->table ||
        t->base != t->table || !(rex_of(&in) & 8))
        return 0;
    return uses_for_dispatch(p, block, at + in.len, reg_field(&in));
}

bool move_x86_names_table_only(const cfg_program *p, const cfg_table *t)
{
    isa_insn in;
    if (t->kind == CFG_TABLE_ABSOLUTE) {
        if (naming(p, t, t->named_at, &in) == CFG_NONE) return false;
        uint8_t op = in.raw[in.opcode_at];
        return (in.flow == ISA_FLOW_JUMP_IND || op == 0x8b) && has_displacement(&in, t->table);
    }
    if (!t->added_at) return uses(p, t, t->named_at) == (LOADS | ADDS);
    return uses(p, t, t->named_at) == LOADS && uses(p, t, t->added_at) == ADDS;
}

/* Where the block leads to if nothing decides it, up to an indirect jump; CFG_NONE: elsewhere. */
static uint32_t leads_to(const cfg_program *p, uint32_t block)
{
    enum { HOPS = 4 };
    for (unsigned k = 0; k < HOPS; k++) {
        const cfg_block *b = &p->blocks[block];
        const cfg_edge *e = &p->edges[b->first_edge];
        if (b->edge_count == 0 || e->kind == CFG_EDGE_TABLE) return block;
        if (b->edge_count != 1 || e->to == CFG_NONE || p->blocks[e->to].proc != b->proc) return CFG_NONE;
        block = e->to;
    }
    return CFG_NONE;
}

/* mov table(,%i,8),%r ; (jmp ...) jmp *%r */
static bool loads_for_jump(const cfg_program *p, uint32_t block, const isa_insn *in)
{
    isa_insn last;
    isa_mem mem[ISA_MAX_MEM];
    if (in->raw[in->opcode_at] != 0x8b || !(rex_of(in) & 8)) return false;
    if (p->isa->memory(in, mem) != 1 || mem[0].base != ISA_NO_REG || mem[0].segment) return false;
    uint32_t end = leads_to(p, block);
    if (end == CFG_NONE || !move_last_insn(p, &p->blocks[end], &last) || last.flow != ISA_FLOW_JUMP_IND) return false;
    unsigned modrm = last.raw[last.modrm_at];
    return modrm >> 6 == 3 && ((modrm & 7) | (rex_of(&last) & 1) << 3) == reg_field(in);
}

bool move_x86_names_table(const cfg_program *p, const cfg_table *t, uint32_t block, const isa_insn *in, bool *only)
{
    bool names = has_displacement(in, t->table);
    *only = names && (in->flow == ISA_FLOW_JUMP_IND || loads_for_jump(p, block, in));
    return names;
}

/* An absolute one is named by a 32-bit displacement; the copy lies behind the image. */
bool move_x86_table_fits(const cfg_program *p, const cfg_table *t)
{
    uint64_t high = t->table + (uint64_t)t->count * t->entry_size;
    if (t->kind == CFG_TABLE_RELATIVE) return t->entry_size == 4;
    return t->entry_size == 8 && image_type(p->image) == ET_EXEC && high < 0x70000000;
}

void move_x86_reaim(isa_insn *in, const move_reaim *r)
{
    if (in->bits & ISA_BIT_PCREL_MEM) {
        in->target = r->now;
        return;
    }
    int32_t disp = (int32_t)r->now;
    memcpy(in->raw + in->disp_at, &disp, 4);
}
