/* The registers of AArch64 by their names. */
#include "tool/regs.h"

/* clang-format off */
#define EIGHT(p)      p "0", p "1", p "2", p "3", p "4", p "5", p "6", p "7"
#define SIXTEEN(p)    EIGHT(p), p "8", p "9", p "10", p "11", p "12", p "13", p "14", p "15"
#define THIRTY_ONE(p) SIXTEEN(p), p "16", p "17", p "18", p "19", p "20", p "21", p "22", p "23", p "24", p "25", \
                      p "26", p "27", p "28", p "29", p "30"
#define THIRTY_TWO(p) THIRTY_ONE(p), p "31"
static const char *const x[] = {THIRTY_ONE("x"), "sp"}, *const w[] = {THIRTY_ONE("w"), "wsp"};
static const char *const pc[] = {"pc"}, *const nzcv[] = {"nzcv"}, *const bits[] = {"v", "c", "z", "n"};
static const char *const bases[] = {"tpidr_el0", "tpidrro_el0"}, *const settings[] = {"fpcr", "fpsr"};
static const char *const v[] = {THIRTY_TWO("v")}, *const d[] = {THIRTY_TWO("d")}, *const s[] = {THIRTY_TWO("s")};
static const char *const h[] = {THIRTY_TWO("h")}, *const b[] = {THIRTY_TWO("b")}, *const z[] = {THIRTY_TWO("z")};
static const char *const p[] = {SIXTEEN("p"), "ffr"};
/* clang-format on */

#define NAMES(list) sizeof(list) / sizeof *(list), (list)
#define WHOLE(reg)  .whole = (reg), .step = 1

/* The conditions are the highest four bits of their register's low half. */
const tool_reg_group tool_reg_groups[] = {
    {INLAY_X0, NAMES(x), INLAY_REG_GENERAL, 64, WHOLE(INLAY_X0)},
    {INLAY_W0, NAMES(w), INLAY_REG_GENERAL, 32, WHOLE(INLAY_X0)},
    {INLAY_A64_PC, NAMES(pc), INLAY_REG_PC, 64, WHOLE(INLAY_A64_PC)},
    {INLAY_NZCV, NAMES(nzcv), INLAY_REG_FLAGS, 64, WHOLE(INLAY_NZCV)},
    {INLAY_NZCV_V, NAMES(bits), INLAY_REG_FLAGS, 1, .whole = INLAY_NZCV, .shift = 28, .shift_step = 1},
    {INLAY_TPIDR, NAMES(bases), INLAY_REG_SEGMENT, 64, WHOLE(INLAY_TPIDR)},
    {INLAY_FPCR, NAMES(settings), INLAY_REG_CONTROL, 32, WHOLE(INLAY_FPCR)},
    {INLAY_V0, NAMES(v), INLAY_REG_VECTOR, 128, WHOLE(INLAY_Z0)},
    {INLAY_D0, NAMES(d), INLAY_REG_VECTOR, 64, WHOLE(INLAY_Z0)},
    {INLAY_S0, NAMES(s), INLAY_REG_VECTOR, 32, WHOLE(INLAY_Z0)},
    {INLAY_H0, NAMES(h), INLAY_REG_VECTOR, 16, WHOLE(INLAY_Z0)},
    {INLAY_B0, NAMES(b), INLAY_REG_VECTOR, 8, WHOLE(INLAY_Z0)},
    {INLAY_Z0, NAMES(z), INLAY_REG_VECTOR, 2048, WHOLE(INLAY_Z0)},
    {INLAY_P0, NAMES(p), INLAY_REG_MASK, 256, WHOLE(INLAY_P0)},
};
const inlay_reg tool_reg_thread_pointer = INLAY_TPIDR, tool_reg_segment = INLAY_X0; /* there are none */
const unsigned tool_reg_group_count = sizeof tool_reg_groups / sizeof *tool_reg_groups;
