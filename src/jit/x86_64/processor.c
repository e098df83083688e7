#include "jit/core.h"

#include <cpuid.h>
#include <stdio.h>

/* Without what differs from one of its processors to the next: leaf 1 holds the number of the one that was asked. */
void jit_processor(char *out, size_t size)
{
    static const struct {
        unsigned leaf, sub, b;
    } leaves[] = {{0, 0, ~0u}, {1, 0, 0}, {7, 0, ~0u}, {7, 1, ~0u}, {0xd, 1, 0}, {0x80000001, 0, ~0u}};
    size_t at = 0;
    *out = 0;
    for (unsigned i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        unsigned a, b, c, d;
        if (!__get_cpuid_count(leaves[i].leaf, leaves[i].sub, &a, &b, &c, &d)) continue;
        int n = snprintf(out + at, size - at, "%x:%x.%x.%x.%x ", leaves[i].leaf, a, b & leaves[i].b, c, d);
        if (n < 0 || (size_t)n >= size - at) return;
        at += (size_t)n;
    }
}
