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

/* Of whoever has the counters (perf_host.c for tools, src/record for programs of instrumented objects): descriptors
 * that the program does not meet, and what the thread may ask of the kernel. */
int perf_fd_hide(int fd); /* moved to another number; -errno: it is left as it is */
void perf_fd_close(int fd);
bool perf_fd_is_there(int fd); /* and has not become another file */
bool perf_may(long nr);        /* a system call */

#endif
