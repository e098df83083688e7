/* What instrumented objects and the recorder that they are linked with know of each other. */
#ifndef INL_RECORD_TELLS_H
#define INL_RECORD_TELLS_H

#include <stdint.h>

/* Called at entries and exits; change nothing. The instruction behind the call is a nop whose displacement (4 bytes, 3
 * behind its beginning) is the distance from there to the procedure's record_tells. */
#define RECORD_ENTER "__inlay_trace_enter"
#define RECORD_LEAVE "__inlay_trace_leave"

typedef struct record_tells {
    uint32_t number; /* that the recorder gave it, 0: not yet */
    uint32_t size;   /* of its code */
    int64_t code;    /* distance from here to it */
    int32_t name;    /* from the beginning of this to its name, which ends with a zero byte */
    uint32_t spare;
} record_tells;

#endif
