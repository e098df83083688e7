/* The vsyscall page: three system calls of old times at fixed addresses, which static programs of those days call.
 * There is nothing to read there: the kernel notices who comes, makes the call and returns to where he came from. What
 * it does is done here.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/page.h"
#include "jit/core.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

#define OLD_CALLS 0xffffffffff600000ull
enum { APART = 1024 };

static void fail(run_thread *t)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSEGV;
    info.si_code = SI_KERNEL;
    run_signal_force(t, &info);
}

bool jit_old_call(run_thread *t)
{
    static const int numbers[] = {SYS_gettimeofday, SYS_time, SYS_getcpu};
    weave_context before = t->ctx;
    uint64_t offset = before.pc - OLD_CALLS, caller;
    if (offset >= INL_PAGE || !(jit_memory_prot(before.pc) & PROT_EXEC)) return false;
    if (offset % APART || offset / APART >= 3 || !run_read(&caller, run_sp(&before), sizeof caller)) {
        fail(t);
        return true;
    }
    t->ctx.gpr[RUN_RAX] = (uint64_t)numbers[offset / APART];
    t->ctx.pc = caller;
    t->leave = RUN_LEAVE_SYSCALL;
    t->leave_arg = before.pc;
    run_syscall(t);
    bool done = t->ctx.pc != before.pc; /* otherwise a signal comes first */
    uint64_t answer = t->ctx.gpr[RUN_RAX];
    t->ctx = before;
    if (!done) return true;
    if ((long)answer == -EFAULT) {
        fail(t);
        return true;
    }
    t->ctx.gpr[RUN_RAX] = answer;
    t->ctx.pc = caller;
    run_set_sp(&t->ctx, run_sp(&before) + sizeof caller);
    return true;
}
