/* What instrumented objects and the recorder that they are linked with know of each other. */
#ifndef INL_RECORD_TELLS_H
#define INL_RECORD_TELLS_H

#include <stdint.h>

/* Called at entries and exits; change nothing. The names say what is missing where linkers do not find them: programs
 * are linked with libraries that somebody else has made of instrumented objects, and without the recorder.
 *
 * The instruction behind the call is a nop whose displacement (4 bytes, 3 behind its beginning) is the distance from
 * there to the procedure's record_tells. In front of the call stands what the procedure's record_tells says of calls
 * that are not recorded:
 *
 *     entry:  if (stack pointer >= low && --left >= 0) go on; call RECORD_ENTER
 *     exit:   if (open == 0) go on; call RECORD_LEAVE
 *
 * So the recorder, which each procedure's first call meets, can have calls counted at the cost of a few instructions,
 * or recorded. `low` says which stack counts in `left`: one that a single thread has. */
#define RECORD_ENTER "__inlay_trace_entry_needs_libinlay_trace"
#define RECORD_LEAVE "__inlay_trace_exit_needs_libinlay_trace"

/* All names of the recorder's, as version scripts say it. */
#define RECORD_NAMES "__inlay_trace_*"

/* The same where flags may be handed over, and what lies below the stack pointer: nothing of this stands in front of
 * the call, and it is done behind it, where flags are kept. The stack pointer is 128 bytes lower than at the entry or
 * exit. */
#define RECORD_ENTER_KEEPING "__inlay_trace_keeping_entry_needs_libinlay_trace"
#define RECORD_LEAVE_KEEPING "__inlay_trace_keeping_exit_needs_libinlay_trace"

/* A text, NULL where no object has one: settings that INLAY_TRACE may change (settings.h). */
#define RECORD_DEFAULTS "__inlay_trace_defaults"

typedef struct record_tells {
    uint64_t low; /* at first RECORD_NO_STACK */
    int64_t left;
    uint32_t open;   /* 0: no call of it is being recorded. At first 1 */
    uint32_t number; /* that the recorder gave it, 0: not yet */
    uint32_t size;   /* of its code */
    int32_t name;    /* from the beginning of this to its name, which ends with a zero byte */
    int64_t code;    /* distance from here to it */
    uint32_t flags, spare;
} record_tells;

#define RECORD_NO_STACK UINT64_MAX
enum {
    RECORD_ENTRIES = 1,            /* flags: of its exits nothing is told, so it can be counted alone */
    RECORD_SOME = (int)(1u << 31), /* number: not each call is recorded, which record_choose decides */
};

#endif
