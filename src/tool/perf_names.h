/* Names of events, as perf_event_open(2) has them: for tools, and for the command, which looks before it starts one. */
#ifndef INL_TOOL_PERF_NAMES_H
#define INL_TOOL_PERF_NAMES_H

#include <inlay/perf.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PERF_NAME = 64 };

typedef struct perf_asked {
    char name[PERF_NAME]; /* as it was written */
    uint32_t type, group; /* events of one number are counted together */
    uint64_t config, config1, config2;
    bool no_user, no_kernel, no_hypervisor;
} perf_asked;

/* How many there are; 0: `why` tells what is wrong. */
unsigned perf_names_read(const char *list, perf_asked out[INLAY_PERF_MOST], char *why, size_t size);
/* Is a word (without modifiers) an event that is known here? */
bool perf_names_knows(const char *word, size_t length);

#endif
