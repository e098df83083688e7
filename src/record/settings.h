/* What is recorded: a text of words with commas between them (braces keep theirs), in INLAY_TRACE when the program
 * starts, and in its objects for when that is silent:
 *
 *     counts                         calls are counted alone
 *     clock=cycles|monotonic|none    none: the same
 *     every=N  thin=N                one call in N of each procedure; of those called more than N times fewer and fewer
 *     last=MB                        the last so many MB of records
 *     event=NAME                     a counter, too (repeatable)
 *     depth=N  threshold=TIME        what reports begin with
 *     file=PATH                      the recording
 *     off                            nothing
 */
#ifndef INL_RECORD_SETTINGS_H
#define INL_RECORD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_PATH = 4096, RECORD_EVENTS = 1024 };

typedef enum record_clock { RECORD_COUNTS, RECORD_CYCLES, RECORD_MONOTONIC } record_clock; /* as inlay_trace_clock */

typedef struct record_settings {
    record_clock clock;
    bool off;
    uint64_t every, thin, last, depth, threshold; /* 0: not asked for; MB; ns */
    char events[RECORD_EVENTS], file[RECORD_PATH];
} record_settings;

/* Changes what the text says; false: `why` tells what is wrong with it. What a text says of how much is recorded takes
 * the place of what an earlier one has said. */
bool record_settings_read(record_settings *, const char *text, char *why, size_t size);
size_t record_settings_word(const char *text); /* the length of its first word */

#endif
