/* Processes. Images, procedures and threads belong to one; what names no process means the present one, in which the
 * tool itself is. (While a program is rewritten the present one is the program that is written, which does not run.) */
#ifndef INLAY_PROCESS_H
#define INLAY_PROCESS_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

inlay_process *inlay_process_self(void);
int inlay_process_pid(const inlay_process *);
const char *inlay_process_program(const inlay_process *); /* its name */

inlay_image *inlay_process_image_first(inlay_process *);
inlay_image *inlay_process_image_at(inlay_process *, uint64_t address); /* NULL: none */
inlay_proc *inlay_process_proc_at(inlay_process *, uint64_t address);   /* NULL: none covers it */
inlay_process *inlay_image_process(const inlay_image *);

/* Threads that run now, in no order; NULL at the end, and behind one that has ended meanwhile. */
inlay_thread *inlay_process_thread_first(inlay_process *);
inlay_thread *inlay_process_thread_next(inlay_process *, const inlay_thread *);
inlay_process *inlay_thread_process(const inlay_thread *);

/* The engine shows the code of [low, high) anew, when it runs again: callbacks of blocks and instructions, which insert
 * or do not. What is in there leaves what it was before. False, with a message, where code is shown once only (a
 * rewritten program). From anywhere but callbacks that are shown code. */
bool inlay_process_show_again(inlay_process *, uint64_t low, uint64_t high);

#ifdef __cplusplus
}
#endif

#endif
