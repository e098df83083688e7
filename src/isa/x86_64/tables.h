/* The decoder's tables: their shape, shared by the generator and the decoder.
 *
 * The generator (gen/) asks Zydis about every combination of opcode, prefixes and ModRM byte and
 * writes the answers as two-dimensional decision tables. What selects among the forms of one opcode
 * is put into two numbers:
 *
 *     context   8 bits: the prefixes that matter, X86_CTX_* below
 *     ModRM     the byte itself
 *
 * Both are first mapped to classes (few: contexts and bytes that never differ for this opcode share
 * one), then the classes select a cell, and the cell holds the number of a row:
 *
 *     opcode --> x86_opcode --> cells[base + (context_class << shift) + modrm_class] --> row
 *
 * A row says all that does not depend on register numbers or displacements: sizes, accesses and
 * vector lengths are already resolved. Rows, effects, memory and operand lists are each stored once
 * however many forms share them.
 */
#ifndef INL_ISA_X86_64_TABLES_H
#define INL_ISA_X86_64_TABLES_H

#include "isa/x86_64/x86.h"

/* One table of 256 opcodes each. */
enum x86_map {
    X86_MAP_LEGACY,    /* + 0..3: one byte, 0F, 0F38, 0F3A */
    X86_MAP_3DNOW = 4, /* 0F 0F, opcode after the operands */
    X86_MAP_VEX = 4,   /* + 1..3 */
    X86_MAP_XOP = 8,   /* + 0..2 for maps 8..10 */
    X86_MAP_EVEX = 10, /* + 1..6; 4 stays empty */
    X86_MAPS = 17
};

enum { /* legacy contexts */
       X86_CTX_66 = 1,
       X86_CTX_F3 = 2,
       X86_CTX_F2 = 4,
       X86_CTX_W = 8,
       X86_CTX_A32 = 16,
       X86_CTX_LOCK = 32,
       X86_CTX_B = 64,
       /* VEX, XOP: pp | W << 2 | L << 3; EVEX: pp | W << 2 | LL << 3 | b << 5 | z << 6 | (aaa != 0) << 7 */
};

typedef struct x86_opcode {
    uint32_t cells;   /* first cell */
    uint16_t context; /* X86_OPCODE_* | index of the context map */
    uint8_t modrm;    /* index of the ModRM map */
    uint8_t shift;    /* cells of one context class: 1 << shift */
} x86_opcode;
enum {
    X86_OPCODE_MODRM = 0x8000,
    X86_OPCODE_REGISTER = 0x4000, /* mod counts as 3 whatever it is */
    X86_OPCODE_CONTEXT = 0x0fff
};

enum { X86_ROW_INVALID = 0, X86_ROW_UNKNOWN = 1 };
enum {                        /* x86_row.form */
       X86_FORM_RELATIVE = 1, /* the immediate is a branch displacement */
       X86_FORM_MOFFS = 2,    /* what is called the immediate is an address: a displacement */
       X86_FORM_INT = 8,      /* int imm8: 0x80 is a system call */
       X86_FORM_VSIB = 16,    /* the index is a vector register */
       X86_FORM_ROUND = 32,   /* EVEX.b with registers: static rounding, LL is the mode */
       X86_FORM_SAE = 64,
       X86_FORM_IS4 = 128,                                           /* a register in the immediate's high bits */
       X86_FORM_ODD = X86_FORM_MOFFS | X86_FORM_INT | X86_FORM_VSIB, /* more to do than to check fields */
};
/* The first eight bytes lie as isa_insn's op to bits do, with `form`, `check` and `disp_shift` where
 * that has row and len. Rows 0 and 1 are no instructions (X86_ROW_*). */
enum { X86_CHECK_NOTHING = 0, X86_CHECK_FORM = 1 /* all fields go, but look at `form` */ };
typedef struct x86_row {
    uint16_t op;
    uint8_t disp_shift; /* EVEX: 8-bit displacements are scaled by 1 << disp_shift */
    uint8_t check;      /* index into checks; not 0 for whatever needs a closer look */
    uint8_t form;
    uint8_t flow;  /* isa_flow */
    uint16_t bits; /* ISA_BIT_*; PCREL_MEM is added by the decoder */
    uint8_t imm;   /* bytes of all immediates, | bytes of a relative one << 4 */
    uint8_t cond;  /* mask: the opcode bits that are a condition code */
    uint16_t fx;   /* indices of what is computed when asked */
    uint16_t mem;
    uint16_t operands;
} x86_row;

/* Which register numbers the fields may hold. */
enum {
    X86_SAME_REG_RM = 1,
    X86_SAME_REG_V = 2,
    X86_SAME_RM_V = 4,
    X86_SAME_REG_INDEX = 8,
    X86_SAME_INDEX_V = 16,
    X86_SAME_NONE = 128 /* tells X86_CHECK_FORM's entry from X86_CHECK_NOTHING's */
};
typedef struct x86_check {
    uint32_t reg, rm, vvvv; /* allowed values */
    uint8_t differ;         /* X86_SAME_*: fields that must differ */
} x86_check;

/* The register fields of an encoding. An opcode's own register field counts as rm. */
enum x86_slot { X86_SLOT_REG, X86_SLOT_RM, X86_SLOT_V, X86_SLOT_IS4, X86_SLOT_MASK, X86_SLOT_FIXED };

enum { /* x86_fx.quirks; HIGH_* are the bits of X86_PREFIX_NOREX, ADDRESS is the sign (effects.c) */
       X86_FX_HIGH_REG = 1,  /* reg is an 8-bit register: 4..7 without REX are ah..bh */
       X86_FX_SAME_RM = 2,   /* reg == rm: the result does not depend on the old values */
       X86_FX_SAME_V_RM = 4, /* vvvv == rm: likewise */
       X86_FX_COUNT = 8,     /* flags stay when the immediate count is 0 */
       X86_FX_COUNT64 = 16,  /* ... modulo 64, not 32 */
       X86_FX_RARE = 32,     /* one of x86_fx.rare, or has_vec */
       X86_FX_HIGH_RM = 64,
       X86_FX_ADDRESS = 128, /* the memory operand's registers are read (not so for nops) */
};
enum {                          /* x86_fx.rare */
       X86_RARE_EVERYTHING = 4, /* all is read and written */
       X86_RARE_BLOCK4 = 1,     /* vvvv names an aligned group of four vectors */
       X86_RARE_MASK_PAIR = 2,  /* reg names an aligned pair of masks */
};

/* Effects. The general registers read, written and overwritten are three 16-bit lanes of one number,
 *
 *     63      48 47      32 31      16 15       0
 *     |        |   kills   |  writes  |   reads  |
 *
 * so that one shift moves a slot's bits in all three to the register that the slot names. The other
 * sets have one bit a slot (1 << X86_SLOT_*). */
typedef struct x86_slots {
    uint8_t read, write, kill;
} x86_slots;
typedef struct x86_fx {
    uint64_t fixed;      /* lanes of registers that are always the same */
    uint64_t reg, rm, v; /* lanes of a register number 0, to be shifted by the slot's */
    uint32_t flags_read, flags_written, flags_undefined, flags_kill; /* in isa_effects' order */
    uint8_t quirks;
    uint8_t other_reads, other_writes;
    uint8_t has_vec; /* anything in the members below */
    uint8_t rare;
    x86_slots vec, mask;
    uint8_t mask_writes, mask_reads;
    uint8_t vec_fixed; /* index into vec_sets: vectors that are always the same */
} x86_fx;              /* 64 bytes, a cache line */
typedef struct x86_vec_set {
    uint32_t reads, writes, kills;
} x86_vec_set;
enum { X86_LANE_WRITES = 16, X86_LANE_KILLS = 32 };

/* clang-format off */
enum x86_place { /* where a memory operand's address comes from */
    X86_PLACE_MODRM, X86_PLACE_MOFFS, X86_PLACE_FIXED, /* base is a register number */
    X86_PLACE_REG,                                      /* base is the ModRM reg field */
};
/* clang-format on */
enum {
    X86_MEM_SEGMENT = 1, /* a segment prefix applies */
    X86_MEM_POPPED = 2,  /* rsp in the address counts after the pop */
    X86_MEM_INDEX8 = 4,  /* index is al, zero-extended */
    X86_MEM_LAST = 128
};
typedef struct x86_mem {
    uint8_t place, base;
    uint8_t access; /* isa_access */
    uint8_t flags;
    uint16_t bits; /* ISA_MEM_* */
    uint16_t size, count;
    int16_t disp;
    uint8_t mask, mask_slot;                      /* isa_mask, enum x86_slot */
    uint8_t element, elements, lanes, index_size; /* as in isa_mem */
} x86_mem;

enum {
    X86_OPERAND_IMPLICIT = 1,
    X86_OPERAND_SIGNED = 2,
    X86_OPERAND_ZEROING = 4,
    X86_OPERAND_VALUE = 8,
    X86_OPERAND_NIBBLE = 16, /* shares its byte with a register */
    X86_OPERAND_LAST = 128
};
typedef struct x86_operand {
    uint8_t kind;        /* isa_operand_kind */
    uint8_t slot, class; /* REG, VEC, MASK, OTHER */
    uint8_t number;      /* FIXED: register; MEM: index; IMM: offset, or the value itself */
    uint8_t access;
    uint8_t flags;
    uint16_t size;      /* bytes; IMM: bytes in the encoding */
    uint16_t broadcast; /* MEM: elements a broadcast fills */
} x86_operand;

#pragma GCC visibility push(hidden) /* addressed directly, not through a table of addresses */
extern const x86_opcode x86_opcodes[X86_MAPS][256];
extern const uint8_t x86_context_maps[][256];
extern const uint8_t x86_modrm_maps[][256];
extern const uint16_t x86_cells[];
extern const x86_row x86_rows[];
extern const x86_check x86_checks[];
extern const x86_fx x86_fxs[];
extern const x86_vec_set x86_vec_sets[];
extern const x86_mem x86_mems[];
extern const x86_operand x86_operands[];
extern const char *const x86_mnemonics[];
extern const char *const x86_categories[];
#pragma GCC visibility pop
/* X86_OP_COUNT, X86_OP_SYSCALL and X86_OP_INT are in the generated isa/x86_tables.h. */

/* How isa_insn.x is used. */
enum { X86_X_PREFIX, X86_X_SEGMENT, X86_X_REG, X86_X_RM, X86_X_V, X86_X_BASE, X86_X_INDEX, X86_X_SCALE, X86_X_VECTOR };
enum {
    X86_PREFIX_NOREX = 1 | 64,
    X86_PREFIX_A32 = 2,
    X86_PREFIX_W = 4,
    X86_PREFIX_MEM = 8 /* ModRM memory */,
    X86_PREFIX_REX2 = 16,
    X86_PREFIX_VEX = 32 /* or XOP */,
    X86_PREFIX_EVEX = 128
};
enum { X86_NONE = 63 }; /* no base, no index */

static inline const x86_row *x86_row_of(const isa_insn *in) { return &x86_rows[in->row]; }

/* decode.c, effects.c, operands.c, format.c, move.c */
isa_result x86_decode(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out);
void x86_effects(const isa_insn *, isa_effects *);
int x86_memory(const isa_insn *, isa_mem out[ISA_MAX_MEM]);
int x86_operand_list(const isa_insn *, isa_operand out[ISA_MAX_OPERANDS]);
int x86_format(const isa_insn *, char *out, size_t size);
const char *x86_reg_name(unsigned reg);
isa_move x86_relocate(const isa_insn *, uint64_t to, uint8_t *out, uint8_t *len);
bool x86_rebase(const isa_insn *, unsigned reg, uint8_t *out, uint8_t *len);
unsigned x86_slot_number(const isa_insn *, unsigned slot);
int64_t x86_displacement(const isa_insn *); /* of the ModRM operand or a moffs, scaled */

#endif
