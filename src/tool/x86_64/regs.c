/* The registers of x86-64 by their names. */
#include "tool/regs.h"

/* clang-format off */
static const char *const r64[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                  "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const r32[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi",
                                  "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};
static const char *const r16[] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di",
                                  "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w"};
static const char *const r8[] = {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil",
                                 "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"};
static const char *const high[] = {"ah", "ch", "dh", "bh"};
static const char *const rip[] = {"rip"}, *const eip[] = {"eip"};
static const char *const rflags[] = {"rflags"}, *const eflags[] = {"eflags"}, *const flags[] = {"flags"};
static const char *const bits[] = {"cf", NULL, "pf", NULL, "af", NULL, "zf", "sf", "tf", "if", "df", "of",
                                   NULL, NULL, "nt", NULL, "rf", "vm", "ac", "vif", "vip", "id"};
static const char *const segments[] = {"es", "cs", "ss", "ds", "fs", "gs"}, *const bases[] = {"fs_base", "gs_base"};
#define EIGHT(p)      p "0", p "1", p "2", p "3", p "4", p "5", p "6", p "7"
#define THIRTY_TWO(p) EIGHT(p), p "8", p "9", p "10", p "11", p "12", p "13", p "14", p "15", p "16", p "17", p "18", \
                      p "19", p "20", p "21", p "22", p "23", p "24", p "25", p "26", p "27", p "28", p "29", p "30", \
                      p "31"
static const char *const xmm[] = {THIRTY_TWO("xmm")}, *const ymm[] = {THIRTY_TWO("ymm")};
static const char *const zmm[] = {THIRTY_TWO("zmm")};
static const char *const k[] = {EIGHT("k")}, *const mm[] = {EIGHT("mm")}, *const st[] = {EIGHT("st")};
static const char *const tmm[] = {EIGHT("tmm")}, *const mxcsr[] = {"mxcsr"};
static const char *const x87[] = {"x87_control", "x87_status", "x87_tag"};
static const char *const bnd[] = {"bnd0", "bnd1", "bnd2", "bnd3"}, *const pkru[] = {"pkru"}, *const xcr0[] = {"xcr0"};
static const char *const cr[] = {"cr0", NULL, "cr2", "cr3", "cr4", NULL, NULL, NULL, "cr8"};
static const char *const dr[] = {"dr0", "dr1", "dr2", "dr3", NULL, NULL, "dr6", "dr7"};
/* clang-format on */

#define NAMES(list) sizeof(list) / sizeof *(list), (list)
#define WHOLE(reg)  .whole = (reg), .step = 1

/* The vector registers with numbers from 16 on are parts of 512 bits like the others; MMX lies in the x87 stack by
 * the hardware's numbers, which ST does not follow, so each is whole. */
const tool_reg_group tool_reg_groups[] = {
    {INLAY_RAX, NAMES(r64), INLAY_REG_GENERAL, 64, WHOLE(INLAY_RAX)},
    {INLAY_EAX, NAMES(r32), INLAY_REG_GENERAL, 32, WHOLE(INLAY_RAX)},
    {INLAY_AX, NAMES(r16), INLAY_REG_GENERAL, 16, WHOLE(INLAY_RAX)},
    {INLAY_AL, NAMES(r8), INLAY_REG_GENERAL, 8, WHOLE(INLAY_RAX)},
    {INLAY_AH, NAMES(high), INLAY_REG_GENERAL, 8, WHOLE(INLAY_RAX), .shift = 8},
    {INLAY_RIP, NAMES(rip), INLAY_REG_PC, 64, .whole = INLAY_RIP},
    {INLAY_EIP, NAMES(eip), INLAY_REG_PC, 32, .whole = INLAY_RIP},
    {INLAY_RFLAGS, NAMES(rflags), INLAY_REG_FLAGS, 64, .whole = INLAY_RFLAGS},
    {INLAY_EFLAGS, NAMES(eflags), INLAY_REG_FLAGS, 32, .whole = INLAY_RFLAGS},
    {INLAY_FLAGS, NAMES(flags), INLAY_REG_FLAGS, 16, .whole = INLAY_RFLAGS},
    {INLAY_CF, NAMES(bits), INLAY_REG_FLAGS, 1, .whole = INLAY_RFLAGS, .shift_step = 1},
    {INLAY_ES, NAMES(segments), INLAY_REG_SEGMENT, 16, WHOLE(INLAY_ES)},
    {INLAY_FS_BASE, NAMES(bases), INLAY_REG_SEGMENT, 64, WHOLE(INLAY_FS_BASE)},
    {INLAY_XMM0, NAMES(xmm), INLAY_REG_VECTOR, 128, WHOLE(INLAY_ZMM0)},
    {INLAY_YMM0, NAMES(ymm), INLAY_REG_VECTOR, 256, WHOLE(INLAY_ZMM0)},
    {INLAY_ZMM0, NAMES(zmm), INLAY_REG_VECTOR, 512, WHOLE(INLAY_ZMM0)},
    {INLAY_K0, NAMES(k), INLAY_REG_MASK, 64, WHOLE(INLAY_K0)},
    {INLAY_MM0, NAMES(mm), INLAY_REG_FLOAT, 64, WHOLE(INLAY_MM0)},
    {INLAY_ST0, NAMES(st), INLAY_REG_FLOAT, 80, WHOLE(INLAY_ST0)},
    {INLAY_TMM0, NAMES(tmm), INLAY_REG_VECTOR, 8192, WHOLE(INLAY_TMM0)},
    {INLAY_MXCSR, NAMES(mxcsr), INLAY_REG_CONTROL, 32, WHOLE(INLAY_MXCSR)},
    {INLAY_X87_CONTROL, NAMES(x87), INLAY_REG_FLOAT, 16, WHOLE(INLAY_X87_CONTROL)},
    {INLAY_BND0, NAMES(bnd), INLAY_REG_CONTROL, 128, WHOLE(INLAY_BND0)},
    {INLAY_PKRU, NAMES(pkru), INLAY_REG_CONTROL, 32, WHOLE(INLAY_PKRU)},
    {INLAY_XCR0, NAMES(xcr0), INLAY_REG_CONTROL, 64, WHOLE(INLAY_XCR0)},
    {INLAY_CR0, NAMES(cr), INLAY_REG_CONTROL, 64, WHOLE(INLAY_CR0)},
    {INLAY_DR0, NAMES(dr), INLAY_REG_CONTROL, 64, WHOLE(INLAY_DR0)},
};
const inlay_reg tool_reg_thread_pointer = INLAY_FS_BASE, tool_reg_segment = INLAY_FS;
const unsigned tool_reg_group_count = sizeof tool_reg_groups / sizeof *tool_reg_groups;
