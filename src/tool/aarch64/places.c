/* Addresses of Linux on AArch64, where it has 48 bits of them. */
#include "tool/tool.h"

/* The zone lies between the lowest address that the kernel maps libraries at (1 TB of randomness below the stack) and
 * what sanitizers take for themselves. */
const tool_address_places tool_places = {
    .program = 0xaaaaaaaaa000,
    .libraries = 0xffff00000000,
    .zone_low = 0xfe8000000000,
    .zone_random = 1ull << 37,
    .zone_size = 1ull << 38,
    .zone_least = 0xc00000000000,
};
