/* Offsets in the thread's block that assembly and lowered code use; checked against the structures in
 * block.c. Only #defines: assembly includes this file. */
#ifndef INL_RUN_AARCH64_OFFSETS_H
#define INL_RUN_AARCH64_OFFSETS_H

/* From tpidr_el0 on, the program's and the tool's: the address of the block. */
#define TLS_BLOCK 8

#define OFF_SLOT         0x010 /* + 8 * register; 31: the stack pointer */
#define OFF_SLOT_X0      0x010
#define OFF_SLOT_X1      0x018
#define OFF_SLOT_X2      0x020
#define OFF_SLOT_X3      0x028
#define OFF_SLOT_X8      0x050
#define OFF_SLOT_X16     0x090
#define OFF_SLOT_X17     0x098
#define OFF_SLOT_X30     0x100
#define OFF_SLOT_SP      0x108
#define OFF_FLAGS        0x110
#define OFF_APP_TLS      0x1e0
#define OFF_TOOL_TLS     0x1e8
#define OFF_SAVE_VECTORS 0x210
#define OFF_LOAD_VECTORS 0x218
#define OFF_FIRST_TLS    0x508

#define OFF_CTX            0x1000
#define CTX_X(n)           (0x1000 + 8 * (n))
#define CTX_SP             0x10f8
#define CTX_PC             0x1100
#define CTX_FLAGS          0x1108
#define CTX_TLS            0x1110
#define OFF_WHERE          0x1120
#define OFF_LEAVE          0x1128
#define OFF_LEAVE_ARG      0x1130
#define OFF_RUNTIME_STACK  0x1138
#define OFF_DISPATCH_ENTRY 0x1140
#define OFF_ENTER_PC       0x1148
#define OFF_SYSCALL_GATE   0x1168
#define OFF_PENDING        0x1170
#define OFF_ENGINE         0x1208

#endif
