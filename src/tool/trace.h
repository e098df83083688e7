/* Where a thread of the tool's stands: up its stack, by the tool's own unwind table as it lies in memory.
 *
 * Asked when the tool has crashed: takes no memory and no lock, makes no assumption about the stack, and needs neither
 * the tool's file nor thread-local storage. */
#ifndef INL_TOOL_TRACE_H
#define INL_TOOL_TRACE_H

#include "image/file.h"

typedef struct trace_registers {
    uint64_t pc, value[IMAGE_SAVED_REGS]; /* by DWARF's numbers */
} trace_registers;

/* The places in the tool's own image, as offsets from its begin: where the thread stands, then the return addresses,
 * up to the first frame that is somebody else's. How many. */
unsigned trace_walk(trace_registers *, uint32_t *places, unsigned room);
/* Is an address in the tool's image? */
bool trace_is_own(uint64_t address);

/* --- <isa>/trace.c --- */
void trace_of_context(const void *uc, trace_registers *);
/* A jump has led to where there is no code: to where its caller would be returned to; false: it cannot be told. */
bool trace_leave_nowhere(trace_registers *);
extern const unsigned trace_stack, trace_return; /* numbers of the stack pointer and of the return address */

/* trace.c: bytes of this process, which may not be there. */
bool trace_read(void *to, uint64_t from, size_t size);

#endif
