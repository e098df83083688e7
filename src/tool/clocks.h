/* The clocks of the tool's C library and the vdso. */
#ifndef INL_TOOL_CLOCKS_H
#define INL_TOOL_CLOCKS_H

#include <stdint.h>

/* Where it lies; *high 0: there is none. */
void clocks_vdso(uint64_t *low, uint64_t *high);
/* It is about to go (run_client.vdso_goes). */
void clocks_without_vdso(void *arg);

#endif
