/* The JIT's own of a thread's block: offsets that assembly and lowered code use, checked against jit_own in glue.c.
 * Only #defines: assembly includes this file. */
#ifndef INL_JIT_X86_64_LAYOUT_H
#define INL_JIT_X86_64_LAYOUT_H

#include "run/x86_64/offsets.h"

#define OFF_IBL_TABLE2      OFF_ENGINE
#define OFF_IBL_MISS        (OFF_ENGINE + 0x08)
#define OFF_IN_GATE         (OFF_ENGINE + 0x10)
#define OFF_SYSCALL_RESUME  (OFF_ENGINE + 0x18)
/* With jit_options.stats: */
#define OFF_KIND            (OFF_ENGINE + 0x38)
#define OFF_SCRATCH         (OFF_ENGINE + 0x40)
#define OFF_EXECUTED        (OFF_ENGINE + 0x48)
#define OFF_MISSED          (OFF_ENGINE + 0x68)
/* Restartable sequences: */
#define OFF_SEQUENCE_FIELD  (OFF_ENGINE + 0x88)
#define OFF_SEQUENCE_SELF   (OFF_ENGINE + 0x90)
#define OFF_SEQUENCE_MINUS  (OFF_ENGINE + 0x98)
#define OFF_SEQUENCE_START  (OFF_ENGINE + 0xa8)
#define OFF_SEQUENCE_LENGTH (OFF_ENGINE + 0xb0)
#define OFF_SECTION         (OFF_ENGINE + 0xc0)
#define OFF_SECTION_ARMED   (OFF_ENGINE + 0xc8)
#define OFF_SECTION_ABORT   (OFF_ENGINE + 0xd0)
#define OFF_SECTION_WHOLE   (OFF_ENGINE + 0xd8)
#define LEAVE_SECTION       10
/* Paired returns: */
#define OFF_RETURNS         (OFF_ENGINE + 0x140)
#define OFF_IBL             0x4000

/* The second-level table: a mask, then pairs of application address and landing. */
#define TABLE2_PAIRS  16
/* Where the search begins (ibl.c). */
#define TABLE2_FACTOR (-0x61c88647)
#define TABLE2_SHIFT  20

#endif
