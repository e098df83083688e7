/* The registers of AArch64 (reg.h). Where a name ends in a number, the others of its kind follow: INLAY_V0 + 5. */
#ifndef INLAY_AARCH64_REG_H
#define INLAY_AARCH64_REG_H

/* clang-format off */
enum {
    /* general, by the processor's number; the stack pointer has the last */
    INLAY_X0, INLAY_X1, INLAY_X2, INLAY_X3, INLAY_X4, INLAY_X5, INLAY_X6, INLAY_X7,
    INLAY_X8, INLAY_X9, INLAY_X10, INLAY_X11, INLAY_X12, INLAY_X13, INLAY_X14, INLAY_X15,
    INLAY_X16, INLAY_X17, INLAY_X18, INLAY_X19, INLAY_X20, INLAY_X21, INLAY_X22, INLAY_X23,
    INLAY_X24, INLAY_X25, INLAY_X26, INLAY_X27, INLAY_X28, INLAY_X29, INLAY_X30, INLAY_XSP,

    INLAY_W0 = 0x1000, INLAY_WSP = 0x101f, /* their low 32 bits, in the same order */
    INLAY_A64_PC = 0x1020,
    INLAY_NZCV = 0x1022, INLAY_NZCV_V, INLAY_NZCV_C, INLAY_NZCV_Z, INLAY_NZCV_N,
    INLAY_TPIDR = 0x1028, INLAY_TPIDRRO, INLAY_FPCR, INLAY_FPSR,
    INLAY_V0 = 0x1040, INLAY_D0 = 0x1060, INLAY_S0 = 0x1080, INLAY_H0 = 0x10a0, INLAY_B0 = 0x10c0, /* 32 of each */
    INLAY_Z0 = 0x10e0,                /* 32; as long as they can be */
    INLAY_P0 = 0x1100, INLAY_FFR = 0x1110, /* 16, likewise */
};
/* clang-format on */

#endif
