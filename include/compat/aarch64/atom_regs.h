/* What ATOM's names of registers by their role are on AArch64. REG_0 to REG_30 are x0 to x30, REG_31 is the stack
 * pointer; the number 31 is zero elsewhere, so that REG_ZERO, and REG_GP, lie behind all others. */
#ifndef INLAY_COMPAT_AARCH64_ATOM_REGS_H
#define INLAY_COMPAT_AARCH64_ATOM_REGS_H

/* clang-format off */
#define ATOM_REG_ROLES                                                                                                 \
    REG_RETVAL = REG_0, REG_SP = REG_31,                                                                               \
    REG_ARG_1 = REG_0, REG_ARG_2 = REG_1, REG_ARG_3 = REG_2, REG_ARG_4 = REG_3, REG_ARG_5 = REG_4, REG_ARG_6 = REG_5,  \
    REG_RA = REG_30, REG_GP = REG_MAX + 1, REG_ZERO = REG_MAX + 2,                                                     \
    FREG_RETVAL = FREG_0,                                                                                              \
    FREG_ARG_1 = FREG_0, FREG_ARG_2 = FREG_1, FREG_ARG_3 = FREG_2,                                                     \
    FREG_ARG_4 = FREG_3, FREG_ARG_5 = FREG_4, FREG_ARG_6 = FREG_5,                                                     \
    FREG_ZERO = REG_MAX + 3
/* clang-format on */

#endif
