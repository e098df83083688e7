/* One instruction: what it is, what it reads and writes, how it moves elsewhere.
 *
 * This header is what every later part sees of an instruction set; it names no architecture except
 * in the tables at its end. A decoded instruction is small and cheap (`isa_decode`: length, opcode
 * identity, branch kind and target, PC-relative operand); what costs more is computed when asked:
 *
 *     isa_insn in;
 *     if (a->decode(bytes, avail, address, &in) == ISA_OK) {
 *         isa_effects fx;  a->effects(&in, &fx);        // registers and flags
 *         isa_mem mem[ISA_MAX_MEM]; int n = a->memory(&in, mem);
 *         char text[96];   a->format(&in, text, sizeof text);
 *     }
 *
 * Registers are numbered by the architecture (0..63 general, see the ISA's own header); sets of
 * them are bit masks. Flags are bits of a mask too: each flag by itself.
 */
#ifndef INL_ISA_ISA_H
#define INL_ISA_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ISA_MAX_INSN = 15, ISA_MAX_MEM = 5 };

typedef uint64_t isa_regs; /* a set of general registers */

typedef enum isa_result {
    ISA_OK = 0,
    ISA_UNKNOWN,   /* not in the tables, but length and (absence of) control flow are bounded: copy
                      verbatim; effects() then answers "reads and writes everything" */
    ISA_TRUNCATED, /* the bytes end before the instruction does */
    ISA_INVALID,   /* would raise an invalid-opcode fault; length is a best guess of at least 1 */
} isa_result;

typedef enum isa_flow {
    ISA_FLOW_NEXT = 0, /* falls through */
    ISA_FLOW_JUMP,     /* unconditional direct */
    ISA_FLOW_COND,     /* conditional direct, on flags */
    ISA_FLOW_COND_REG, /* conditional direct, on a register: jrcxz, loop, loope, loopne */
    ISA_FLOW_CALL,     /* direct call */
    ISA_FLOW_JUMP_IND, /* through register or memory */
    ISA_FLOW_CALL_IND,
    ISA_FLOW_RETURN,  /* near return, maybe with an immediate */
    ISA_FLOW_SYSCALL, /* syscall; and sysenter, int 0x80, told apart by op */
    ISA_FLOW_TRAP,    /* int3, int1, int n, ud2 and other certain faults, hlt */
    ISA_FLOW_FAR,     /* far call, jump, return, iret, sysret: left to the hardware */
    ISA_FLOW_TX,      /* xbegin: a transaction's fallback target */
} isa_flow;

enum {                             /* isa_insn.bits */
       ISA_BIT_PCREL_MEM = 1 << 0, /* a memory operand relative to the next instruction */
       ISA_BIT_REP = 1 << 1,       /* a string instruction with an effective REP/REPE/REPNE */
       ISA_BIT_REPNE = 1 << 2,
       ISA_BIT_MEM = 1 << 3, /* may access memory at all (stack included) */
       ISA_BIT_LOCK = 1 << 4,
       ISA_BIT_UNKNOWN = 1 << 5,    /* decode answered ISA_UNKNOWN */
       ISA_BIT_PREDICATED = 1 << 6, /* executes conditionally (cmov, rep with count) */
       ISA_BIT_SERIALIZES = 1 << 7, /* mfence, cpuid, ... and others that must not be reordered */
       ISA_BIT_PRIV = 1 << 8,       /* faults in user mode */
       ISA_BIT_FP = 1 << 9,         /* x87, MMX, SSE, AVX or AVX-512 arithmetic or data */
};

typedef struct isa_insn {
    uint64_t addr;   /* the application's address */
    uint64_t target; /* direct branch target; for ISA_BIT_PCREL_MEM: the absolute address */
    uint16_t op;     /* opcode identity: index for mnemonic() and category() */
    uint16_t row;    /* the table row it was decoded from; private to the ISA */
    uint8_t len;
    uint8_t flow;                                 /* isa_flow */
    uint16_t bits;                                /* ISA_BIT_* */
    uint8_t raw[16];                              /* the bytes, zero padded */
    uint8_t opcode_at, modrm_at, disp_at, imm_at; /* offsets in raw, 0 where absent (opcode_at may
                                                     be 0); modrm_at, disp_at, imm_at are never 0
                                                     when present */
    uint8_t disp_len, imm_len;
    uint8_t cond; /* ISA_FLOW_COND: condition code 0..15 */
    uint8_t x[9]; /* private to the ISA (prefixes, map, vector length, operand size ...) */
} isa_insn;

/* Which parts of the machine state. */
typedef struct isa_effects {
    uint64_t reads;                            /* general registers read in any part (address registers included) */
    uint64_t writes;                           /* general registers written in any part, or perhaps */
    uint64_t kills;                            /* general registers certainly overwritten whole (old value lost) */
    uint32_t vec_reads, vec_writes, vec_kills; /* vector registers, by number, of any width */
    uint8_t mask_reads, mask_writes;           /* opmask registers */
    uint32_t other_reads, other_writes;        /* ISA_OTHER_* */
    uint32_t flags_read;
    uint32_t flags_written;   /* given a defined value, or perhaps */
    uint32_t flags_undefined; /* left undefined */
    uint32_t flags_kill;      /* certainly overwritten or undefined: the old value is lost */
} isa_effects;

enum {                    /* other state */
       ISA_OTHER_X87 = 1, /* the x87/MMX stack, control and status words */
       ISA_OTHER_MXCSR = 2,
       ISA_OTHER_TLS_BASE = 4, /* FS base on x86-64 */
       ISA_OTHER_GS_BASE = 8,
       ISA_OTHER_ALL_VEC = 16, /* xsave, xrstor, vzeroall ...: the whole vector state */
       ISA_OTHER_SYSTEM = 32,  /* anything else: segment registers, PKRU, time stamp ... */
};

typedef enum isa_access {
    ISA_READ = 1,
    ISA_WRITE = 2,
    ISA_READ_WRITE = 3,
    ISA_PREFETCH = 4,
    ISA_ADDRESS_ONLY = 8 /* lea, nop */
} isa_access;

enum { ISA_NO_REG = 0xff };
enum {                           /* isa_mem.bits */
       ISA_MEM_IMPLICIT = 1,     /* push, pop, call, ret, string */
       ISA_MEM_STACK = 2,        /* base is the stack pointer and moves with the access */
       ISA_MEM_VECTOR_INDEX = 4, /* index is a vector register: gather or scatter, `count` elements */
       ISA_MEM_MASKED = 8,       /* a mask decides which elements are accessed: `mask` says how */
       ISA_MEM_REPEATED = 16,    /* once for each iteration of REP */
       ISA_MEM_VARIABLE = 32,    /* size depends on state (xsave): `size` is 0 */
       ISA_MEM_PCREL = 64,       /* `disp` is the absolute address, base and index absent */
       ISA_MEM_ADDR32 = 128,     /* address truncated to 32 bits */
       ISA_MEM_INDEX8 = 256,     /* only the index register's low byte counts (xlat) */
       ISA_MEM_BIT_OFFSET = 512, /* bt, bts, btr, btc with a register: what is said here is the base of
                                 the bit string; the access is at base + size * (signed offset >> log2 of
                                 its bits), the offset in the register operand */
};
/* How a mask lets elements through. `lanes` mask bits belong to the `elements` elements in memory: bit
 * i to element i % elements (there are more lanes than elements when memory is broadcast, and the
 * element is then accessed for any of its bits). A memory operand whose masked-out elements are
 * accessed all the same (no fault suppression) counts as not masked. */
typedef enum isa_mask {
    ISA_MASK_NONE,
    ISA_MASK_BITS,      /* opmask register: bit i */
    ISA_MASK_PACKED,    /* opmask register: as many elements as bits are set, from the first on */
    ISA_MASK_SIGNS,     /* vector register: the top bit of its i-th part of `element` bytes */
    ISA_MASK_SIGNS_MMX, /* likewise, an MMX register */
} isa_mask;
typedef struct isa_mem {
    uint8_t base, index; /* register numbers or ISA_NO_REG */
    uint8_t scale;       /* 1, 2, 4, 8 */
    uint8_t segment;     /* 0 none; else the ISA's number of a segment with a base of its own */
    uint8_t access;      /* isa_access */
    uint16_t bits;       /* ISA_MEM_* */
    uint16_t size;       /* bytes of one access (of one element for gather and scatter) */
    uint16_t count;      /* elements; 1 otherwise */
    int64_t disp;        /* effective address = segment base + base + index*scale + disp, with the
                            registers' values BEFORE the instruction (a push has disp = -8) */
    /* With a mask; all 0 without. Element e is at the operand's address + e * element, or where its
     * part of the index register says. */
    uint8_t mask, mask_reg; /* isa_mask, and the register by its own number */
    uint8_t element;        /* bytes of one */
    uint8_t elements, lanes;
    uint8_t index_size; /* bytes of one index, 4 (signed) or 8; 0: consecutive in memory */
} isa_mem;

/* clang-format off */
typedef enum isa_operand_kind { ISA_OPERAND_NONE, ISA_OPERAND_REG, ISA_OPERAND_VEC,
    ISA_OPERAND_MASK, ISA_OPERAND_MEM, ISA_OPERAND_IMM, ISA_OPERAND_TARGET,
    ISA_OPERAND_OTHER } isa_operand_kind;
typedef struct isa_operand {
    uint8_t kind;      /* isa_operand_kind */
    uint8_t access;    /* isa_access */
    uint8_t implicit;  /* not written in assembly text */
    uint8_t reg;       /* REG, VEC, MASK */
    uint16_t size;     /* bytes */
    uint8_t mem;       /* MEM: index into memory()'s answer */
    uint8_t high_byte; /* REG: ah, ch, dh, bh */
    int64_t imm;       /* IMM, TARGET */
} isa_operand;
/* clang-format on */
enum { ISA_MAX_OPERANDS = 10 };

/* Result of moving an instruction. */
typedef enum isa_move {
    ISA_MOVE_COPIED, /* bytes written, equal in effect at the new address */
    ISA_MOVE_FAR,    /* a PC-relative memory operand does not reach: the caller must put
                        in.target into a register and use rebase() */
    ISA_MOVE_BRANCH, /* a branch: the caller lowers it. Of an indirect one or a return the moved
                        bytes are there all the same when they reach (*len != 0), for callers that
                        keep them */
} isa_move;

typedef struct isa {
    const char *name;     /* "x86_64" */
    uint16_t elf_machine; /* EM_X86_64 */
    uint8_t max_insn, stack_reg;
    uint16_t op_count;
    isa_result (*decode)(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out);
    void (*effects)(const isa_insn *, isa_effects *);
    int (*memory)(const isa_insn *, isa_mem out[ISA_MAX_MEM]);            /* count */
    int (*operands)(const isa_insn *, isa_operand out[ISA_MAX_OPERANDS]); /* count */
    const char *(*mnemonic)(uint16_t op);                                 /* "mov", static */
    const char *(*category)(uint16_t op);                                 /* "data transfer", "SSE2", ... static */
    const char *(*reg_name)(unsigned reg);                                /* "rax" */
    int (*format)(const isa_insn *, char *out, size_t size);              /* text, like snprintf */
    /* Copies `in` to run at `to`; out has room for 16 bytes; *len is set. */
    isa_move (*relocate)(const isa_insn *in, uint64_t to, uint8_t *out, uint8_t *len);
    /* Writes `in` with its PC-relative operand replaced by [reg + 0]; reg must not be used by `in`. */
    bool (*rebase)(const isa_insn *in, unsigned reg, uint8_t *out, uint8_t *len);
} isa;

extern const isa isa_x86_64;
/* Some memory operand may be written. */
static inline bool isa_writes_memory(const isa *a, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = a->memory(in, mem);
    for (int i = 0; i < n; i++)
        if (mem[i].access & ISA_WRITE && mem[i].access != ISA_ADDRESS_ONLY) return true;
    return false;
}
/* The instruction set of an ELF machine number, or NULL. */
const isa *isa_for_machine(uint16_t elf_machine);

#endif
