/* Logging, chosen at run time by a mask of domains (INLAY_LOG=cache,signal,... or --log=...).
 * Costs one load and test where it is off. Writes go to a descriptor with write(2) in one piece, so
 * that lines of several threads do not mix; usable in a signal handler. */
#ifndef INL_BASE_LOG_H
#define INL_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum inl_log_domain {
    INL_LOG_INJECT,
    INL_LOG_IMAGE,
    INL_LOG_TRANSLATE,
    INL_LOG_CACHE,
    INL_LOG_SYSCALL,
    INL_LOG_SIGNAL,
    INL_LOG_THREAD,
    INL_LOG_DOMAINS
} inl_log_domain;

extern uint32_t inl_log_mask;
extern int inl_log_fd; /* 2 unless moved out of the program's way */

/* Switches on "cache,signal" or "all"; false, with nothing changed, when a name is unknown. */
bool inl_log_enable(const char *domains);
void inl_log_list(FILE *out); /* name and help of each domain, for --help */
void inl_log_write(inl_log_domain d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define inl_log(d, ...)                                                                                                \
    do {                                                                                                               \
        if (__builtin_expect(inl_log_mask >> (d)&1, 0)) inl_log_write((d), __VA_ARGS__);                               \
    } while (0)

#endif
