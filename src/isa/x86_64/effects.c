/* What an instruction reads and writes.
 *
 * The row's template holds everything that is fixed; left to do is to shift each slot's lanes to the
 * register that the slot names, to add the address registers, and a few rules that hang on the
 * operands' values (x86_fx.quirks). As in decode.c, the common case has no unpredictable branch.
 */
#include <string.h>
#include "isa/x86_64/tables.h"

/* clang-format off */
enum { S_REG = 1 << X86_SLOT_REG, S_RM = 1 << X86_SLOT_RM, S_V = 1 << X86_SLOT_V,
       S_IS4 = 1 << X86_SLOT_IS4, S_MASK = 1 << X86_SLOT_MASK };

typedef struct numbers { unsigned reg, rm, v; } numbers;
/* clang-format on */

static inline uint64_t pick(unsigned slots, numbers n)
{
    return (uint64_t)(slots >> X86_SLOT_REG & 1) << n.reg | (uint64_t)(slots >> X86_SLOT_RM & 1) << n.rm |
           (uint64_t)(slots >> X86_SLOT_V & 1) << n.v;
}

static void everything(isa_effects *e)
{
    memset(e, 0, sizeof *e);
    e->reads = e->writes = ~0ull;
    e->vec_reads = e->vec_writes = ~0u;
    e->mask_reads = e->mask_writes = 0xff;
    e->other_reads = e->other_writes = ISA_OTHER_OLD_FP | ISA_OTHER_FP_STATUS | ISA_OTHER_TLS_BASE | ISA_OTHER_BASE_2 |
                                       ISA_OTHER_ALL_VEC | ISA_OTHER_SYSTEM;
    e->flags_read = e->flags_written = X86_ARITH | X86_TF | X86_IF | X86_DF | X86_AC | X86_ID;
}

static unsigned is4(const isa_insn *in) { return in->raw[in->imm_at] >> 4; }

/* The three register sets, slot by slot; `mask` takes lanes away. */
static void set_registers(isa_effects *e, const x86_fx *f, numbers n, uint64_t address, uint64_t mask)
{
    const uint64_t lanes[3] = {f->reg & mask, f->rm & mask, f->v & mask};
    const unsigned number[3] = {n.reg, n.rm, n.v};
    e->reads = (f->fixed & 0xffff) | address;
    e->writes = f->fixed >> X86_LANE_WRITES & 0xffff;
    e->kills = f->fixed >> X86_LANE_KILLS & 0xffff;
    for (unsigned i = 0; i < 3; i++) {
        e->reads |= (lanes[i] & 1) << number[i];
        e->writes |= (lanes[i] >> X86_LANE_WRITES & 1) << number[i];
        e->kills |= (lanes[i] >> X86_LANE_KILLS & 1) << number[i];
    }
}

static void add_masks(const isa_insn *in, const x86_fx *f, isa_effects *e)
{
    numbers n = {in->x[X86_X_REG] & 7, in->x[X86_X_RM] & 7, in->x[X86_X_V] & 7};
    unsigned aaa = in->x[X86_X_VECTOR] & 7;
    e->mask_reads |= pick(f->mask.read, n) | (f->mask.read & S_MASK ? 1u << aaa : 0);
    e->mask_writes |= pick(f->mask.write, n) | (f->mask.write & S_MASK ? 1u << aaa : 0);
    if (f->rare & X86_RARE_MASK_PAIR) e->mask_writes |= 3u << (n.reg & 6);
}

static void add_vectors(const isa_insn *in, const x86_fx *f, isa_effects *e)
{
    numbers n = {in->x[X86_X_REG], in->x[X86_X_RM], in->x[X86_X_V]};
    unsigned reads = f->vec.read;
    if (f->quirks & X86_FX_SAME_RM && n.reg == n.rm) reads &= ~(S_REG | S_RM);
    if (f->quirks & X86_FX_SAME_V_RM && n.v == n.rm) reads &= ~(S_V | S_RM);
    const x86_vec_set *fixed = &x86_vec_sets[f->vec_fixed];
    e->vec_reads = fixed->reads | pick(reads, n);
    e->vec_writes = fixed->writes | pick(f->vec.write, n);
    e->vec_kills = fixed->kills | pick(f->vec.kill, n);
    if (f->vec.read & S_IS4) e->vec_reads |= 1u << is4(in);
    if (f->vec.write & S_IS4) e->vec_writes |= 1u << is4(in);
    if (f->rare & X86_RARE_BLOCK4) e->vec_reads |= 15u << (n.v & ~3u);
    e->mask_reads = f->mask_reads;
    e->mask_writes = f->mask_writes;
    if (f->mask.read | f->mask.write) add_masks(in, f, e);
}

/* A shift count of 0 keeps the flags. Counts are taken modulo 32, or 64 with REX.W; what REX.W does
 * to a byte operand's count the manuals leave open. */
static void mend_count(const isa_insn *in, const x86_fx *f, isa_effects *e)
{
    unsigned count = in->raw[in->imm_at] & 63;
    bool wide = in->x[X86_X_PREFIX] & X86_PREFIX_W;
    if (!(wide ? count : count & 31)) e->flags_written = e->flags_undefined = e->flags_kill = 0;
    else if (!(count & 31) && !(f->quirks & X86_FX_COUNT64)) e->flags_kill = 0;
}

/* Registers of the address: absent ones have number X86_NONE, a bit past those that the mask keeps. */
static inline uint64_t address_registers(const isa_insn *in, const x86_fx *f)
{
    uint32_t used = (uint32_t)((int8_t)f->quirks >> 7);
    return (1ull << in->x[X86_X_BASE] | 1ull << in->x[X86_X_INDEX]) & used;
}

/* The read lane (bit 0) where reg == rm makes the old value not matter. The fields are compared,
 * not the registers: xor al,ah clears nothing. */
static inline uint64_t reads_cleared(const x86_fx *f, unsigned reg, unsigned rm)
{
    return f->quirks / X86_FX_SAME_RM & (reg == rm);
}

static void add_quirks(const isa_insn *in, const x86_fx *f, isa_effects *e)
{
    if (f->quirks & X86_FX_COUNT) mend_count(in, f, e);
    if (f->rare & X86_RARE_EVERYTHING) everything(e);
}

/* Registers that are not what the fields say: high bytes, those past the lanes. */
static void mend_numbers(const isa_insn *in, const x86_fx *f, numbers *n, isa_effects *e)
{
    unsigned prefix = in->x[X86_X_PREFIX];
    if (prefix & X86_PREFIX_NOREX && f->quirks & X86_FX_HIGH_REG) n->reg &= 3;
    if (prefix & X86_PREFIX_NOREX && f->quirks & X86_FX_HIGH_RM) n->rm &= 3;
    if (prefix & X86_PREFIX_EVEX) n->rm &= 15; /* EVEX.X extends vectors only */
    uint64_t cleared = reads_cleared(f, in->x[X86_X_REG], in->x[X86_X_RM]);
    set_registers(e, f, *n, address_registers(in, f), ~cleared);
}

static void add_vector_index(const isa_insn *in, const x86_fx *f, numbers n, isa_effects *e)
{
    e->vec_reads |= 1u << in->x[X86_X_INDEX];
    set_registers(e, f, n, 1ull << in->x[X86_X_BASE] & ~(1ull << X86_NONE), ~0ull);
}

/* Everything that is not in the lanes. */
enum { IN_LANES = X86_FX_HIGH_REG | X86_FX_HIGH_RM | X86_FX_ADDRESS | X86_FX_SAME_RM };
static __attribute__((noinline)) void add_rest(const isa_insn *in, const x86_fx *f, unsigned high, isa_effects *e)
{
    numbers n = {in->x[X86_X_REG], in->x[X86_X_RM], in->x[X86_X_V]};
    if (high || in->x[X86_X_PREFIX] & (X86_PREFIX_REX2 | X86_PREFIX_EVEX)) mend_numbers(in, f, &n, e);
    if (f->has_vec) {
        add_vectors(in, f, e);
        if (x86_row_of(in)->form & X86_FORM_VSIB) add_vector_index(in, f, n, e);
    }
    if (f->quirks & ~IN_LANES) add_quirks(in, f, e);
    if (in->x[X86_X_SEGMENT] && in->bits & ISA_BIT_MEM)
        e->other_reads |= in->x[X86_X_SEGMENT] == X86_SEG_FS ? ISA_OTHER_TLS_BASE : ISA_OTHER_BASE_2;
}

/* The general registers, as the lanes have them. */
static inline void store_registers(const isa_insn *in, const x86_fx *f, isa_effects *e)
{
    unsigned reg = in->x[X86_X_REG], rm = in->x[X86_X_RM];
    uint64_t lanes = f->fixed | f->reg << reg | f->rm << rm | f->v << in->x[X86_X_V];
    lanes &= ~(reads_cleared(f, reg, rm) << rm);
    e->kills = lanes >> X86_LANE_KILLS;
    e->writes = lanes >> X86_LANE_WRITES & 0xffff;
    e->reads = (lanes & 0xffff) | address_registers(in, f);
}

void x86_effects(const isa_insn *in, isa_effects *e)
{
    const x86_fx *f = &x86_fxs[x86_row_of(in)->fx];
    store_registers(in, f, e);
    memset(&e->vec_reads, 0, offsetof(isa_effects, other_reads) - offsetof(isa_effects, vec_reads));
    e->other_reads = f->other_reads;
    e->other_writes = f->other_writes;
    memcpy(&e->flags_read, &f->flags_read, 4 * sizeof e->flags_read);
    /* Byte registers 4..7 without a REX are the high bytes of 0..3: rare, so a branch. Without a REX, the
     * numbers are below 8: the shifts bring their highest bits to the places of HIGH_REG and HIGH_RM. With
     * other prefixes something else may stand there; add_rest does not mind being called for nothing. */
    unsigned prefix = in->x[X86_X_PREFIX], quirks = f->quirks;
    unsigned high = quirks & prefix & (in->x[X86_X_REG] >> 2 | in->x[X86_X_RM] << 4);
    if (high | (quirks & ~IN_LANES) | in->x[X86_X_SEGMENT] | (prefix & (X86_PREFIX_REX2 | X86_PREFIX_EVEX)))
        add_rest(in, f, high, e);
}
_Static_assert(sizeof(x86_fx) == 64, "one line of cache");
_Static_assert(offsetof(isa_effects, flags_kill) - offsetof(isa_effects, flags_read) ==
                   offsetof(x86_fx, flags_kill) - offsetof(x86_fx, flags_read),
               "copied as one");
