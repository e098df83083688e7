/* A thread may unmap its stack, and what its thread pointer leads to, and exit with nothing but registers: musl's
 * detached threads do (__unmapself). But the ways to the gate and back push two words, and find the thread's block by a
 * word behind the thread pointer. Such a thread gets the low end of its private stack, whose other end is used when it
 * comes here: what needs more, as a signal, finds a page that is not mapped, as it would natively. And it has no thread
 * pointer of its own any more. */
#include "moved/private.h"
#include "base/page.h"
#include "base/sys.h"
#include "run/aarch64/abi.h"

#include <sys/syscall.h>

enum { PUSHED = 16, ROOM = 4 * PUSHED };

static bool is_unmapped(const weave_context *c, uint64_t at) { return at - run_arg(c, 0) < inl_page_up(run_arg(c, 1)); }

static bool loses_stack(const weave_context *c) { return is_unmapped(c, run_sp(c) - PUSHED); }

bool moved_loses_ground(const weave_context *c) { return loses_stack(c) || is_unmapped(c, c->tls_base); }

long moved_unmap_ground(run_thread *t, weave_context *c)
{
    long answer = run_memory_concerns(c) ? run_memory_call(t, c)
                                         : sys_call2(SYS_munmap, (long)run_arg(c, 0), (long)run_arg(c, 1));
    if (answer) return answer;
    if (is_unmapped(c, c->tls_base)) c->tls_base = 0;
    if (loses_stack(c)) run_set_sp(c, (uint64_t)(uintptr_t)t->stack_low + ROOM);
    return 0;
}
