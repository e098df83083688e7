/* Addresses of Linux on x86-64. */
#include "tool/tool.h"

/* The zone lies between the lowest address that the kernel maps libraries at (1 TB of randomness below the stack) and
 * what sanitizers take for themselves. */
const tool_address_places tool_places = {
    .program = 0x555555554000,
    .libraries = 0x7f0000000000,
    .zone_low = 0x7e8000000000,
    .zone_random = 1ull << 37,
    .zone_size = 1ull << 38,
    .zone_least = 0x600000000000,
};
