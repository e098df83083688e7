/* x86-64: register and flag numbers, for the parts that emit or inspect its machine code. */
#ifndef INL_ISA_X86_64_X86_H
#define INL_ISA_X86_64_X86_H

#include "isa/isa.h"

/* clang-format off */
enum x86_reg { /* general registers, hardware numbers; 16..31 are APX's r16..r31 */
    X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI,
    X86_R8, X86_R9, X86_R10, X86_R11, X86_R12, X86_R13, X86_R14, X86_R15,
    X86_REGS = 16
};
/* clang-format on */
enum x86_segment { X86_SEG_NONE = 0, X86_SEG_FS = 1, X86_SEG_GS = 2 };

/* clang-format off */
enum x86_class { /* sets of registers: isa_operand.set */
    X86_CLASS_GPR, X86_CLASS_XMM, X86_CLASS_YMM, X86_CLASS_ZMM, X86_CLASS_MASK, X86_CLASS_MMX,
    X86_CLASS_ST, X86_CLASS_SEGMENT, X86_CLASS_CR, X86_CLASS_DR, X86_CLASS_BND, X86_CLASS_TMM,
    X86_CLASS_SPECIAL /* number: enum x86_special */
};
/* clang-format on */
enum x86_special {
    X86_X87CONTROL,
    X86_X87STATUS,
    X86_X87TAG,
    X86_GDTR,
    X86_LDTR,
    X86_IDTR,
    X86_TR,
    X86_MXCSR,
    X86_PKRU,
    X86_XCR0,
    X86_BNDCFG,
    X86_BNDSTATUS,
    X86_UIF
};

/* clang-format off */
enum x86_flag { /* as in EFLAGS */
    X86_CF = 1 << 0, X86_PF = 1 << 2, X86_AF = 1 << 4, X86_ZF = 1 << 6, X86_SF = 1 << 7,
    X86_TF = 1 << 8, X86_IF = 1 << 9, X86_DF = 1 << 10, X86_OF = 1 << 11, X86_AC = 1 << 18,
    X86_ID = 1 << 21,
    X86_ARITH = X86_CF | X86_PF | X86_AF | X86_ZF | X86_SF | X86_OF
};
/* clang-format on */

/* clang-format off */
enum x86_cond { X86_O, X86_NO, X86_B, X86_AE, X86_E, X86_NE, X86_BE, X86_A,
                X86_S, X86_NS, X86_P, X86_NP, X86_L, X86_GE, X86_LE, X86_G };
/* Flags a condition code reads. */
uint32_t x86_cond_flags(unsigned cond);

/* What some callers must tell apart. */
bool x86_is_syscall(const isa_insn *);  /* the 64-bit syscall instruction */
bool x86_is_int80(const isa_insn *);
bool x86_is_popf(const isa_insn *);
bool x86_is_one_byte(const isa_insn *, uint8_t opcode); /* of the first table: no escape before it */
bool x86_is_rdfsbase_family(const isa_insn *); /* rd/wr fs/gs base */
/* How the instruction is encoded; all but legacy forms clear a vector register above what they write. */
enum x86_encoding { X86_LEGACY, X86_VEX, X86_EVEX, X86_XOP };
enum x86_encoding x86_encoding_of(const isa_insn *);
static inline bool x86_clears_upper(const isa_insn *in) { return x86_encoding_of(in) != X86_LEGACY; }

#endif

/* clang-format on */