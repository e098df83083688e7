/* Offsets in the thread's block that assembly and lowered code use; checked against the structures in
 * block.c. Only #defines: assembly includes this file. */
#ifndef INL_RUN_X86_64_OFFSETS_H
#define INL_RUN_X86_64_OFFSETS_H

#define OFF_SLOT       0x010 /* + 8 * register */
#define OFF_SLOT_RAX   0x010
#define OFF_SLOT_RCX   0x018
#define OFF_SLOT_RDX   0x020
#define OFF_SLOT_RBX   0x028
#define OFF_SLOT_RSP   0x030
#define OFF_SLOT_RSI   0x040
#define OFF_SLOT_RDI   0x048
#define OFF_SLOT_R8    0x050
#define OFF_SLOT_R9    0x058
#define OFF_SLOT_R10   0x060
#define OFF_SLOT_R11   0x068
#define OFF_FLAGS      0x090
#define OFF_TOOL_FS    0x168
#define OFF_APP_GS     0x170
#define OFF_IN_TOOL    0x188
#define OFF_XSAVE_AREA 0x190
#define OFF_XSAVE_MASK 0x198

#define OFF_SAVE_VECTORS 0x588
#define OFF_NO_XSAVE     0x598
#define OFF_BASE_IN      0x5c0

#define OFF_CTX            0x1000
#define CTX_RAX            0x1000
#define CTX_RCX            0x1008
#define CTX_RDX            0x1010
#define CTX_RBX            0x1018
#define CTX_RSP            0x1020
#define CTX_RBP            0x1028
#define CTX_RSI            0x1030
#define CTX_RDI            0x1038
#define CTX_R8             0x1040
#define CTX_R9             0x1048
#define CTX_R10            0x1050
#define CTX_R11            0x1058
#define CTX_R12            0x1060
#define CTX_R13            0x1068
#define CTX_R14            0x1070
#define CTX_R15            0x1078
#define CTX_PC             0x1080
#define CTX_FLAGS          0x1088
#define CTX_FS             0x1090
#define CTX_GS             0x1098
#define OFF_WHERE          0x10a8
#define OFF_LEAVE          0x10b0
#define OFF_LEAVE_ARG      0x10b8
#define OFF_RUNTIME_STACK  0x10c0
#define OFF_DISPATCH_ENTRY 0x10c8
#define OFF_ENTER_PC       0x10d0
#define OFF_NEXT           0x10d8
#define OFF_SYSCALL_GATE   0x10f0
#define OFF_PENDING        0x10f8
#define OFF_ENGINE         0x1190
#define OFF_CALL_RETURNED  (OFF_ENGINE + 8) /* of rewritten programs: moved_own.returned */

/* What C would mind of the program's flags: direction, checks of alignment. Nothing else is taken out: the
 * kernel's return from a signal leaves other flags (nesting, ID) as they are then. */
#define UNPLAIN_FLAGS 0x40400

#endif
