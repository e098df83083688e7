/* Programs that confine themselves (seccomp): their filters, and what Inlay may do beside them. */
#ifndef INL_RUN_CONFINE_H
#define INL_RUN_CONFINE_H

#include "run/bpf.h"
#include "run/kernel.h"

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* si_code of SIGSYS */
#endif

typedef struct run_filter run_filter;

typedef enum run_verdict {
    RUN_CALL_GOES,
    RUN_CALL_REFUSED, /* an error, or SIGSYS: the kernel sees to it when the call is made as it stands */
    RUN_CALL_KILLS,   /* run_confine_kill */
} run_verdict;
/* What this thread's filters say of the call in `c`; ctx.pc is behind it. */
run_verdict run_confine_ask(const run_thread *t, const weave_context *c);
bool run_confine_lets(const run_thread *t, long nr); /* a call by its number alone */
/* A call without which no tool could work in a program that this thread execs; NULL: they all go. */
const char *run_confine_bars_tool(const run_thread *t);
/* May memory that has been written to become executable: here and now, by calls of Inlay's; and by the program's own,
 * or those of a program that this thread execs? */
bool run_may_make_code(void);
bool run_confine_lets_make_code(const run_thread *t);
/* The call in ctx kills the thread or the process: the tool's end first. */
void run_confine_kill(run_thread *t) __attribute__((noreturn));

bool run_confine_is_strict(const run_thread *t); /* by its newest filter */

/* prctl(PR_SET_SECCOMP) and seccomp(2) */
long run_confine_prctl(run_thread *t, const weave_context *c);
long run_confine_seccomp(run_thread *t, weave_context *c);

/* `pc` is behind a system call instruction of Inlay's which makes calls for the program. */
bool run_is_program_call(uint64_t pc);

/* A call of Inlay's or of the tool's own that a filter, which was there before them, has trapped: it fails. */
bool run_own_call_failed(int signo, const siginfo_t *info, void *uc);

#endif
