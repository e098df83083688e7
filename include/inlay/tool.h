/* A tool's life.
 *
 *     int main(int argc, char **argv)
 *     {
 *         inlay_init(&argc, &argv, "counts instructions");
 *         inlay_on_insn(each_insn, NULL);
 *         inlay_on_exit(report, NULL);
 *         return inlay_start();
 *     }
 *
 * A tool is one static program. Run by a person (or by `inlay run`), inlay_init plays the launcher:
 * it reads the options, starts the program with this same file mapped into it, and does not return.
 * Inside the program, main runs a second time with the same arguments; there inlay_init returns, and
 * inlay_start runs the program under the tool and never returns.
 * The tool has its own C library, heap, stdio and descriptors; it shares none with the program.
 */
#ifndef INLAY_TOOL_H
#define INLAY_TOOL_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads options, prints --help, launches. Options of the tool (option.h) are declared before.
 * `help` is one line about what the tool does. */
void inlay_init(int *argc, char ***argv, const char *help);
/* Runs the program. Never returns; the return type lets main end with it. */
int inlay_start(void);

/* Memory that analysis code may use, zeroed; never freed. NULL when there is none. */
void *inlay_alloc(size_t bytes);
/* The record of `size` zeroed bytes kept for an application address (or any other key), the same one
 * whenever the same key is asked for: code is instrumented anew when it is translated again. All keys of a tool are in
 * one table. */
void *inlay_record(uint64_t key, size_t size);
/* Calls `each` for every record in ascending order of key. */
void inlay_records(void (*each)(uint64_t key, void *record, void *arg), void *arg);

/* A plain lock for analysis routines that share data between threads. Zero-initialised is free. A child of fork finds
 * free what threads that it does not have held; for that a thread may hold eight of them at a time. */
typedef struct inlay_mutex {
    uint32_t word;
} inlay_mutex;
void inlay_lock(inlay_mutex *);
void inlay_unlock(inlay_mutex *);

/* The tool leaves the process, under the JIT engine: soon all threads are at boundaries of the program's instructions,
 * exit callbacks are called (with status 0), and the program goes on natively from there, with its own code, registers,
 * masks and handlers; nothing of Inlay's stays. From callbacks and analysis routines, which go on for the moment.
 * False, and a line of warning: it cannot be here (other engines; a program that was loaded without ptrace). Where a
 * thread does not come out of the tool's code or a system call within some seconds the tool stays, which is said. */
bool inlay_detach(void);

/* The program ends here, with this status, as if it had called exit_group: reports are written, nothing else of the
 * program runs. For analysis routines (who has seen enough, or may not let the program go on); locks must have been
 * given back. In a callback of system calls, `call->number = inlay_syscall_number("exit_group")` does it. */
void inlay_end(int status) __attribute__((noreturn));

/* The name of the program and its process id. */
const char *inlay_program(void);
int inlay_pid(void);
/* Prints a warning line of the tool to where Inlay's own messages go. */
void inlay_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

const char *inlay_version(void);

#ifdef __cplusplus
}
#endif

#endif
