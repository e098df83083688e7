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
    ISA_INVALID, /* would raise an invalid-opcode fault, or with ISA_BIT_PRIV one of protection (it is too long); length
                    is a best guess of at least 1 */
} isa_result;

typedef enum isa_flow {
    ISA_FLOW_NEXT = 0, /* falls through */
    ISA_FLOW_JUMP,     /* unconditional direct */
    ISA_FLOW_COND,     /* conditional direct, on flags */
    ISA_FLOW_COND_REG, /* conditional direct, on a register (and perhaps flags too) */
    ISA_FLOW_CALL,     /* direct call */
    ISA_FLOW_JUMP_IND, /* through register or memory */
    ISA_FLOW_CALL_IND,
    ISA_FLOW_RETURN,
    ISA_FLOW_SYSCALL, /* of any kind, told apart by op */
    ISA_FLOW_TRAP,    /* breakpoints and what certainly faults */
    ISA_FLOW_FAR,     /* changes the mode of execution as well: left to the hardware */
    ISA_FLOW_TX,      /* begins a transaction: `target` is where it goes on when it fails */
} isa_flow;

enum {                              /* isa_insn.bits */
       ISA_BIT_PCREL_MEM = 1 << 0,  /* a memory operand relative to the next instruction */
       ISA_BIT_REP = 1 << 1,        /* repeats itself, by a count in a register */
       ISA_BIT_REPNE = 1 << 2,      /* ... until two values are equal */
       ISA_BIT_MEM = 1 << 3,        /* may access memory at all (stack included) */
       ISA_BIT_LOCK = 1 << 4,       /* reads and writes memory in one step */
       ISA_BIT_UNKNOWN = 1 << 5,    /* decode answered ISA_UNKNOWN */
       ISA_BIT_PREDICATED = 1 << 6, /* executes conditionally (a conditional move, a repetition) */
       ISA_BIT_SERIALIZES = 1 << 7, /* barriers and others that must not be reordered */
       ISA_BIT_PRIV = 1 << 8,       /* faults in user mode */
       ISA_BIT_FP = 1 << 9,         /* floating-point or vector registers, arithmetic or data */
       /* A store that depends on what an earlier load reserved (load-linked, store-conditional): between the
          two nothing may come that accesses memory, or the store never succeeds. */
       ISA_BIT_EXCLUSIVE_LOAD = 1 << 10,
       ISA_BIT_EXCLUSIVE_STORE = 1 << 11, /* ... or gives the reservation up */
};

typedef struct isa_insn {
    uint64_t addr;   /* the application's address */
    uint64_t target; /* direct branch target; for ISA_BIT_PCREL_MEM: the absolute address */
    uint16_t op;     /* opcode identity: index for mnemonic() and category() */
    uint16_t row;    /* the table row it was decoded from; private to the ISA */
    uint8_t len;
    uint8_t flow;    /* isa_flow */
    uint16_t bits;   /* ISA_BIT_* */
    uint8_t raw[16]; /* the bytes, zero padded */
    /* Private to the ISA, for a set whose encodings are made of bytes: offsets in raw (opcode_at may be 0, the
     * others are 0 only where absent) and lengths. */
    uint8_t opcode_at, modrm_at, disp_at, imm_at;
    uint8_t disp_len, imm_len;
    uint8_t cond; /* ISA_FLOW_COND: the ISA's condition code, 0..15; its last bit changed, the opposite one */
    uint8_t x[9]; /* private to the ISA */
} isa_insn;

typedef uint64_t isa_regs; /* a set of general registers, by number */

/* Which parts of the machine state. */
typedef struct isa_effects {
    isa_regs reads;                            /* general registers read in any part (address registers included) */
    isa_regs writes;                           /* general registers written in any part, or perhaps */
    isa_regs kills;                            /* general registers certainly overwritten whole (old value lost) */
    uint32_t vec_reads, vec_writes, vec_kills; /* vector registers, by number, of any width */
    uint8_t mask_reads, mask_writes;           /* registers of masks for vectors */
    uint32_t other_reads, other_writes;        /* ISA_OTHER_* */
    uint32_t flags_read;
    uint32_t flags_written;   /* given a defined value, or perhaps */
    uint32_t flags_undefined; /* left undefined */
    uint32_t flags_kill;      /* certainly overwritten or undefined: the old value is lost */
} isa_effects;

enum {                          /* other state */
       ISA_OTHER_FP_STATUS = 2, /* control and status of floating-point arithmetic */
       ISA_OTHER_TLS_BASE = 4,  /* where the thread's own data are */
       ISA_OTHER_ALL_VEC = 16,  /* the whole vector state at once */
       ISA_OTHER_SYSTEM = 32,   /* anything else: access rights, time stamp ... */
       ISA_OTHER_OLD_FP = 1,    /* an older floating-point unit, its registers and status */
       ISA_OTHER_BASE_2 = 8,    /* another base for addresses */
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
       ISA_MEM_IMPLICIT = 1,     /* not written in assembly text: push, pop, call, return, string */
       ISA_MEM_STACK = 2,        /* base is the stack pointer and moves with the access */
       ISA_MEM_VECTOR_INDEX = 4, /* index is a vector register: gather or scatter, `count` elements */
       ISA_MEM_MASKED = 8,       /* a mask decides which elements are accessed: `mask` says how */
       ISA_MEM_REPEATED = 16,    /* once for each repetition */
       ISA_MEM_VARIABLE = 32,    /* size depends on state: `size` is 0 */
       ISA_MEM_PCREL = 64,       /* `disp` is the absolute address, base and index absent */
       ISA_MEM_ADDR32 = 128,     /* address truncated to 32 bits */
       ISA_MEM_INDEX8 = 256,     /* only the index register's low byte counts */
       ISA_MEM_WRITEBACK = 1024, /* the base register is changed too, by the operand's `imm` or a register */
       ISA_MEM_BIT_OFFSET = 512, /* a bit in memory, numbered by a register: what is said here is the base of
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
    uint8_t index_low;  /* 0: the index register counts whole; else only so many low bytes of it */
    bool index_signed;  /* ... which are extended by their sign */
} isa_mem;

/* clang-format off */
typedef enum isa_operand_kind { ISA_OPERAND_NONE, ISA_OPERAND_REG, ISA_OPERAND_VEC,
    ISA_OPERAND_MASK, ISA_OPERAND_MEM, ISA_OPERAND_IMM, ISA_OPERAND_TARGET,
    ISA_OPERAND_OTHER } isa_operand_kind;
typedef enum isa_modify { ISA_MODIFY_NONE, ISA_MODIFY_LSL, ISA_MODIFY_LSR, ISA_MODIFY_ASR, ISA_MODIFY_ROR,
    ISA_MODIFY_UXTB, ISA_MODIFY_UXTH, ISA_MODIFY_UXTW, ISA_MODIFY_UXTX, ISA_MODIFY_SXTB, ISA_MODIFY_SXTH,
    ISA_MODIFY_SXTW, ISA_MODIFY_SXTX } isa_modify;
typedef struct isa_operand {
    uint8_t kind;      /* isa_operand_kind */
    uint8_t access;    /* isa_access */
    uint8_t implicit;  /* not written in assembly text */
    uint8_t reg;       /* REG, VEC, MASK; MEM with WRITEBACK by a register: that one, else ISA_NO_REG */
    uint16_t size;     /* bytes */
    uint8_t mem;       /* MEM: index into memory()'s answer */
    uint8_t high_byte; /* REG: the second lowest byte of it */
    uint8_t modify;    /* REG, IMM: isa_modify; how the value is changed before it is used, extensions */
    uint8_t amount;    /* ... shifted to the left by so much besides */
    uint8_t set;       /* VEC, OTHER: which registers `reg` numbers, as the ISA names its sets; 0: it has one */
    uint8_t count;     /* REG, VEC: so many registers, one behind the other */
    int64_t imm;       /* IMM, TARGET, OTHER; MEM: what is added to the base register, with WRITEBACK */
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
    const char *name;     /* as its folder is called */
    uint16_t elf_machine; /* EM_* */
    uint8_t max_insn, stack_reg;
    uint8_t link_reg; /* that calls put the return address in; ISA_NO_REG: they push it */
    uint16_t op_count;
    isa_result (*decode)(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out);
    void (*effects)(const isa_insn *, isa_effects *);
    int (*memory)(const isa_insn *, isa_mem out[ISA_MAX_MEM]);            /* count */
    int (*operands)(const isa_insn *, isa_operand out[ISA_MAX_OPERANDS]); /* count */
    const char *(*mnemonic)(uint16_t op);                                 /* "mov", static */
    const char *(*category)(uint16_t op);                                 /* "data transfer", ... static */
    const char *(*reg_name)(unsigned reg);                                /* static */
    int (*format)(const isa_insn *, char *out, size_t size);              /* text, like snprintf */
    /* Copies `in` to run at `to`; out has room for 16 bytes; *len is set. */
    isa_move (*relocate)(const isa_insn *in, uint64_t to, uint8_t *out, uint8_t *len);
    /* Writes `in` with its PC-relative operand replaced by [reg + 0]; reg must not be used by `in`. */
    bool (*rebase)(const isa_insn *in, unsigned reg, uint8_t *out, uint8_t *len);
} isa;

extern const isa isa_x86_64, isa_aarch64;
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
