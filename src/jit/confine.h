/* Programs that confine themselves (seccomp): their filters, and what Inlay may do beside them. */
#ifndef INL_JIT_CONFINE_H
#define INL_JIT_CONFINE_H

#include "jit/bpf.h"
#include "jit/kernel.h"

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* si_code of SIGSYS */
#endif

typedef struct jit_filter jit_filter;

typedef enum jit_verdict {
    JIT_CALL_GOES,
    JIT_CALL_REFUSED, /* an error, or SIGSYS: the kernel sees to it when the call is made as it stands */
    JIT_CALL_KILLS,   /* jit_confine_kill */
} jit_verdict;
/* What this thread's filters say of the call in `c`; ctx.pc is behind it. */
jit_verdict jit_confine_ask(const jit_thread *t, const weave_context *c);
bool jit_confine_lets(const jit_thread *t, long nr); /* a call by its number alone */
/* A call without which no tool could work in a program that this thread execs; NULL: they all go. */
const char *jit_confine_bars_tool(const jit_thread *t);
/* The call in ctx kills the thread or the process: the tool's end first. */
void jit_confine_kill(jit_thread *t) __attribute__((noreturn));

bool jit_confine_is_strict(const jit_thread *t); /* by its newest filter */

/* prctl(PR_SET_SECCOMP) and seccomp(2) */
long jit_confine_prctl(jit_thread *t, const weave_context *c);
long jit_confine_seccomp(jit_thread *t, weave_context *c);

/* `pc` is behind a system call instruction of Inlay's which makes calls for the program. */
bool jit_is_program_call(uint64_t pc);

#endif
