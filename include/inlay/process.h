/* Processes. Images, procedures and threads belong to one; what names no process means the present one, in which the
 * tool itself is. (While a program is rewritten the present one is the program that is written, which does not run.) */
#ifndef INLAY_PROCESS_H
#define INLAY_PROCESS_H

#include <inlay/memory.h>

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

/* Instrumentation that changes while the program runs: translations go, and the tool is shown the code again where it
 * runs again, by its callbacks of blocks and instructions, which insert then what they want. Of an instruction, of a
 * procedure, an image or everything in the present process. False, with a message, where code is shown once only (a
 * rewritten program), and in callbacks that are shown code. Threads that are in such code run it to their next exit. */
bool inlay_reinstrument_insn(uint64_t address);
bool inlay_reinstrument_proc(const inlay_proc *);
bool inlay_reinstrument_image(const inlay_image *);
bool inlay_reinstrument_all(void);

/* Versions: the same code, instrumented in several ways, between which each thread goes to and fro without anything
 * being made anew. A callback that is shown code asks which one it is for. Threads, new ones too, begin in version 0:
 * what inserts nothing into that costs nothing while a thread is in it. What is inserted at procedures, and at code of
 * the static view, is in all of them.
 *
 * The calling thread (in an analysis routine, or in a callback that is not shown code) goes on in another one from its
 * next jump out of the superblock on; or at once, if the routine goes on by inlay_resume with the context that it got:
 * the point is executed once more then, in the other version. False, with a message, where there is one only. */
enum { INLAY_VERSIONS = 8 };
bool inlay_code_version_switch(unsigned version);
unsigned inlay_code_version(void); /* of what is shown; elsewhere: of the calling thread */

/* The engine shows the code of [low, high) anew, when it runs again: callbacks of blocks and instructions, which insert
 * or do not. What is in there leaves what it was before. False, with a message, where code is shown once only (a
 * rewritten program). From anywhere but callbacks that are shown code. */
bool inlay_process_show_again(inlay_process *, uint64_t low, uint64_t high);

/* --- mutators: programs that change others while these run ---
 *
 *     int main(int argc, char **argv)
 *     {
 *         inlay_mutator(&argc, &argv);
 *         inlay_process *p = inlay_process_attach(atoi(argv[1]));
 *         long *calls = inlay_alloc(sizeof *calls);
 *         inlay_proc *of = inlay_image_proc_named(inlay_process_image_first(p), argv[2]);
 *         inlay_insertion *i = inlay_insert(inlay_proc_entry(of), inlay_atomic_add(inlay_pointer(calls),
 * inlay_const(1), 8)); inlay_process_commit(p); sleep(10); inlay_process_read(p, calls, (uintptr_t)calls, sizeof
 * *calls); inlay_remove(i); inlay_process_commit(p);
 *     }
 *
 * A mutator is linked as a tool is (`inlay cc`). What snippets name, its variables, memory of inlay_alloc, its
 * routines, has a copy in each process that it changes, at the same address. A routine that a snippet calls runs in the
 * process, on the process's copies. Processes go on, instrumented as they are, when the mutator ends or is killed.
 *
 * Images, procedures, blocks and instructions of another process are asked for by the functions of image.h, proc.h,
 * code.h and point.h, beginning with one of those above. Calls that name no process and get nothing that belongs to one
 * mean the mutator itself. Handles live as long as the process's does. All calls are for one thread of the mutator.
 *
 * What fails answers false, NULL or 0, and inlay_process_error() says why. Not on AArch64 yet: attaching fails there.
 */

/* main's first call. In a process that the mutator changes main runs too, up to here. Of the descriptors 0, 1 and 2
 * those that are closed are taken, so that no file gets their numbers; they can neither be read nor written. */
void inlay_mutator(int *argc, char ***argv);
const char *inlay_process_error(void); /* of the last call that failed; until the next one does */

/* A program, started and stopped before its first instruction, its libraries' included (the dynamic linker has mapped
 * them, and has not yet relocated everything); inlay_process_continue lets it run, and until then it ends with this
 * process. It is a child of this one. `path` is looked for in PATH. NULL: this process's environment, its descriptors
 * 0, 1 and 2; what is closed of these is closed there. Rights that its file would give to it (setuid) it does not get.
 */
inlay_process *inlay_process_create(const char *path, const char *const *argv, const char *const *envp, const int *fds);
/* A process that runs: another one's handle until it is let go. It is not stopped. */
inlay_process *inlay_process_attach(int pid);
/* All threads of it stand still, held by this process, and go on. While they do, a change is made by the mutator
 * itself: who kills it in the midst of one may damage the process. */
bool inlay_process_stop(inlay_process *);
bool inlay_process_continue(inlay_process *);
bool inlay_process_is_stopped(const inlay_process *);
/* Does it still run, stopped or not? (When a call has failed since it is about to end, no.) Its status as from waitpid
 * when it has ended; -1: not known, as it is not a child of this process. */
bool inlay_process_is_running(inlay_process *);
int inlay_process_status(const inlay_process *);
/* The handle goes, with all that hangs on it: the process goes on as it is, instrumented; or is killed. */
bool inlay_process_let_go(inlay_process *);
/* Likewise, and nothing of the mutator's stays in it: when all that was inserted has been removed, by a commit, and the
 * process is not stopped. False: all is as before. */
bool inlay_process_take_out(inlay_process *);
bool inlay_process_terminate(inlay_process *);

/* What has been inserted and removed (point.h) since the last commit becomes so in the process, at all points at once,
 * in one stop, also where it is stopped anyway. Snippets at a point run in the order in which they were inserted.
 * Threads that stand in a procedure come into its new code at once, or, where the instruction has no new place, at the
 * next branch to a place that has room for a jump. What is removed runs to its end where a thread is in it just then.
 *
 * What is inserted in a library that has been unmapped waits (inlay_proc_refused), and can be removed: a commit puts it
 * in again when the library is back at the same place.
 *
 * The first commit puts the mutator's file into the process besides, once. It stays. */
bool inlay_process_commit(inlay_process *);
/* Why nothing could be inserted in a procedure, though it was asked for, or not all of it (static text); NULL: it
 * could. After a commit. */
const char *inlay_proc_refused(const inlay_proc *);

/* Memory, also of code; for that of the present process as in memory.h. How many bytes. */
size_t inlay_process_read(inlay_process *, void *to, uint64_t from, size_t bytes);
size_t inlay_process_write(inlay_process *, uint64_t to, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
