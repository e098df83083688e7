/* Names of events that the tool does not know itself, translated before it is started into numbers that it takes
 * (NAME=TYPE/CONFIG/CONFIG1/CONFIG2): those of the kernel's devices, libpfm4's and PAPI's. */
#ifndef INL_CLI_EVENTS_H
#define INL_CLI_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_DEVICES "/sys/bus/event_source/devices"

/* As perf_event_open(2) wants it. */
typedef struct events_code {
    uint32_t type;
    uint64_t config[3];
    char modifiers[4]; /* of u, k, h: only what these do; "" */
} events_code;

/* A list as --event takes it, with what is known here made numbers; false: `why`. */
bool events_translate(const char *list, const char *devices, char *out, size_t size, char why[512]);

/* "cpu/event=0x3c,umask=1/u", or the name of an event that a device has. 0: it is none such, -1: it is wrong, and why.
 */
int events_of_device(const char *word, const char *devices, events_code *out, char why[512]);

/* What libpfm4 and PAPI say, asked by a program of its own (events_ask.c, which loads them). */
bool events_of_library(const char *word, events_code *out, char why[512]);

#endif
