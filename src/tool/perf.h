/* Counters: what their files share (inlay/perf.h). */
#ifndef INL_TOOL_PERF_H
#define INL_TOOL_PERF_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* The processor's counter, by the number that the kernel's page has, less one. */
uint64_t perf_pmc_read(uint32_t counter);

/* Of an event's page, as the kernel asks for it: again while it was being changed. False: it must be asked. */
bool perf_page_read(const struct perf_event_mmap_page *, uint64_t (*pmc)(uint32_t), uint64_t *value);

#endif
