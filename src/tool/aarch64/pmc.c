/* The cycle counter is number 31; the others are chosen by PMSELR_EL0, which the kernel opens together with them. */
#include "tool/perf.h"

uint64_t perf_pmc_read(uint32_t counter)
{
    enum { CYCLES = 31 };
    uint64_t value;
    if (counter == CYCLES) {
        __asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
        return value;
    }
    __asm__ volatile("msr pmselr_el0, %1\n\tisb\n\tmrs %0, pmxevcntr_el0" : "=r"(value) : "r"((uint64_t)counter));
    return value;
}
