/* What ATOM's names of registers by their role are on x86-64. REG_0 to REG_15 are the general registers by the
 * machine's numbers; roles that no register has keep the number that they had on Alpha. */
#ifndef INLAY_COMPAT_X86_64_ATOM_REGS_H
#define INLAY_COMPAT_X86_64_ATOM_REGS_H

/* clang-format off */
#define ATOM_REG_ROLES                                                                                                 \
    REG_RETVAL = REG_0, REG_SP = REG_4,                                                                                \
    REG_ARG_1 = REG_7, REG_ARG_2 = REG_6, REG_ARG_3 = REG_2, REG_ARG_4 = REG_1, REG_ARG_5 = REG_8, REG_ARG_6 = REG_9,  \
    REG_RA = REG_26, REG_GP = REG_29, REG_ZERO = REG_31,                                                               \
    FREG_RETVAL = FREG_0,                                                                                              \
    FREG_ARG_1 = FREG_0, FREG_ARG_2 = FREG_1, FREG_ARG_3 = FREG_2,                                                     \
    FREG_ARG_4 = FREG_3, FREG_ARG_5 = FREG_4, FREG_ARG_6 = FREG_5,                                                     \
    FREG_ZERO = FREG_31
/* clang-format on */

#endif
