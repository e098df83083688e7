/* AArch64 inside: the rows that tables.py makes of table/, and what its files share.
 *
 * A row says all that is fixed of an encoding; its slots say where the operands stand. Decoding, encoding,
 * effects, memory operands and text are walks over the slots. */
#ifndef INL_ISA_AARCH64_TABLES_H
#define INL_ISA_AARCH64_TABLES_H

#include "isa/aarch64/a64.h"

enum a64_slot_kind {
    A64_SLOT_REG,          /* 31: the zero register */
    A64_SLOT_REG_SP,       /* 31: the stack pointer */
    A64_SLOT_REG_SHIFTED,  /* by type and amount */
    A64_SLOT_REG_EXTENDED, /* from a part of it, then shifted */
    A64_SLOT_VEC,
    A64_SLOT_VEC_ELEMENT, /* only a part of the register is accessed */
    A64_SLOT_IMM,
    A64_SLOT_IMM_SIGNED,
    A64_SLOT_IMM_ADD,
    A64_SLOT_IMM_MASK,
    A64_SLOT_IMM_WIDE,
    A64_SLOT_IMM_BIT,
    A64_SLOT_IMM_FLOAT,
    A64_SLOT_IMM_VECTOR,
    A64_SLOT_IMM_ZERO,
    A64_SLOT_COND,
    A64_SLOT_CRN,
    A64_SLOT_CRM,
    A64_SLOT_SYSREG,
    A64_SLOT_TARGET,
    A64_SLOT_MEM, /* `at` is the form */
};

enum a64_rule {                  /* what a slot's size is multiplied by */
                A64_RULE_NUMBER, /* 1 */
                A64_RULE_F,      /* 4 or 8, by the row's bit */
                A64_RULE_FTYPE,  /* 4, 8, -, 2 by bits 22 and 23 */
                A64_RULE_Q,      /* 8 or 16 by bit 30 */
                A64_RULE_Z10,    /* 1, 2, 4, 8 by bits 10 and 11 */
                A64_RULE_Z22,    /* likewise by bits 22 and 23 */
                A64_RULE_BIT22,  /* 1 or 2 */
                A64_RULE_IMMH,   /* 1, 2, 4, 8 by the first one of bits 22 to 19, from the last on */
                A64_RULE_UNKNOWN
};

enum a64_form { /* of a memory operand */
                A64_MEM_B,
                A64_MEM_T,
                A64_MEM_U12,
                A64_MEM_S9,
                A64_MEM_S9POST,
                A64_MEM_S9PRE,
                A64_MEM_R,
                A64_MEM_P7,
                A64_MEM_P7POST,
                A64_MEM_P7PRE,
                A64_MEM_P7G,
                A64_MEM_P7GPOST,
                A64_MEM_P7GPRE,
                A64_MEM_G9,
                A64_MEM_G9POST,
                A64_MEM_G9PRE,
                A64_MEM_LIT,
                A64_MEM_ADR,
                A64_MEM_PAC,
                A64_MEM_PACPRE,
                A64_MEM_VPOST,
};

typedef struct a64_slot {
    uint8_t kind, access, at, width; /* access: isa_access; the field's first bit and width */
    uint8_t size, rule, count;       /* count: registers that follow one another; of immediates: scale */
} a64_slot;

typedef struct a64_bits {
    uint32_t mask, value;
} a64_bits;

typedef struct a64_row {
    uint32_t mask, value;
    a64_bits reject[2];     /* words that are no instruction for all that */
    uint32_t free;          /* bits that vary and are part of no operand */
    uint32_t reads, writes; /* general registers besides the operands */
    uint16_t op, slots;
    uint8_t slot_count, flow;
    uint16_t bits;                                 /* ISA_BIT_* */
    uint8_t flags_read, flags_written, flags_kill; /* N Z C V are bits 3 to 0 */
    uint8_t other_reads, other_writes;
    uint8_t cond; /* reads the flags that its condition says */
    uint8_t f;    /* the bit that tells 4 from 8 bytes */
} a64_row;

extern const a64_row a64_rows[];
extern const a64_slot a64_slots[];
extern const char *const a64_mnemonics[];
extern const uint16_t a64_bucket_rows[], a64_buckets[2048];

static inline const a64_row *a64_row_of(const isa_insn *in) { return &a64_rows[in->row]; }
static inline uint32_t a64_field(uint32_t word, unsigned at, unsigned width)
{
    return word >> at & ((1u << width) - 1);
}
static inline int64_t a64_signed(uint64_t value, unsigned bits)
{
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}
/* Where the condition of a row with `cond` stands. */
unsigned a64_cond_at(const a64_row *row);
unsigned a64_slot_size(const a64_row *row, const a64_slot *s, uint32_t word);
/* The base register is changed behind, or before the access. */
bool a64_is_post(unsigned form);
bool a64_is_pre(unsigned form);
/* Distance of the units in which a memory form counts its offset. */
unsigned a64_scale(const a64_slot *s, unsigned size);

isa_result a64_decode(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out);
void a64_effects(const isa_insn *, isa_effects *);
int a64_memory(const isa_insn *, isa_mem out[ISA_MAX_MEM]);
int a64_operands(const isa_insn *, isa_operand out[ISA_MAX_OPERANDS]);
int a64_format(const isa_insn *, char *out, size_t size);
const char *a64_reg_name(unsigned reg);
isa_move a64_relocate(const isa_insn *in, uint64_t to, uint8_t *out, uint8_t *len);
bool a64_rebase(const isa_insn *in, unsigned reg, uint8_t *out, uint8_t *len);

#endif
