/* Where memory is accessed: what all records of one place share is here once, and a record has its number. */
#ifndef MEMTRACE_SITES_H
#define MEMTRACE_SITES_H

#include <stdbool.h>
#include <stdint.h>

enum { SITE_READ = 1, SITE_WRITE = 2 };

typedef struct site {
    uint64_t pc;
    uint16_t size; /* 0: it varies */
    uint8_t kind;
    uint32_t next; /* with the same hash; 0: none */
} site;

/* From main, always at the same place of it. False: no memory. */
bool sites_begin(void);
/* The same number whenever the same is asked for: code is instrumented anew. 0: there are too many. */
uint32_t site_number(const site *wanted);
/* From 1 on, up to sites_count(). */
const site *site_at(uint32_t number);
uint32_t sites_count(void);

#endif
