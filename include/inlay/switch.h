/* Code that is switched off and on again while the program runs, without stopping it: for samples, and for what is
 * traced on demand.
 *
 *     inlay_switch *s = inlay_switch_new(false);
 *     inlay_insert(inlay_proc_entry(p), inlay_switched(s, inlay_call(enter)));
 *     ...
 *     inlay_switch_set(s, true);          from now on it is executed
 *
 * In a process that a mutator changes (process.h) a switch is one byte in the new code at each of its places, the
 * displacement of a jump. A write of one byte is never seen in part, so a thread that comes by executes the old jump or
 * the new one, as processors' makers have it for code that others execute meanwhile; there, and where the engine shows
 * code as it is met or has written a program, the switch itself is looked at. Switched off, a place costs a nanosecond
 * or less. */
#ifndef INLAY_SWITCH_H
#define INLAY_SWITCH_H

#include <inlay/snippet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_switch inlay_switch; /* for ever */

/* NULL: memory is used up. */
inlay_switch *inlay_switch_new(bool on);
/* `code`, executed while the switch is on; it has no value. Any number of places, in several processes, can have one
 * switch, and one snippet several. NULL where `code` is. */
inlay_expr inlay_switched(inlay_switch *, inlay_expr code);
/* From any thread of the mutator that makes no other call meanwhile, and, in a tool, from anywhere. Threads that are in
 * the code just then run it to its end; one that has fetched the old jump already comes to the new one the next time.
 * What is not committed yet begins as the switch stands then. False: a process could not be written to
 * (inlay_process_error), all others are as asked for. */
bool inlay_switch_set(inlay_switch *, bool on);
bool inlay_switch_is_on(const inlay_switch *);

#ifdef __cplusplus
}
#endif

#endif
