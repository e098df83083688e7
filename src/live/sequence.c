/* A thread that is stopped in a restartable sequence (rseq) was preempted there: the kernel would have it go on at the
 * sequence's abort handler. It looks only when the thread goes on, by where the thread stands then; one that was put
 * elsewhere meanwhile it takes for one that has left its sequence by itself, and which goes on with it later, on
 * another processor perhaps. So what the kernel would do is done as soon as the thread is held. */
#include "live/remote.h"
#include "base/arch.h"

#include INL_ARCH_HEADER(weave, frame)

#include <sys/ptrace.h>

enum { POINTER_AT = 8 }; /* in the thread's area: of the sequence's descriptor */

typedef struct descriptor { /* the kernel's struct rseq_cs */
    uint32_t version, flags;
    uint64_t start, length, abort;
} descriptor;

bool remote_sequences(const remote *r, remote_rseq *out)
{
    *out = (remote_rseq){0};
    return ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->pid, sizeof *out, out) > 0 && out->area;
}

void remote_leave_sequence(remote *r)
{
    const uint64_t none = 0;
    uint64_t at = 0;
    remote_rseq known;
    descriptor d;
    weave_context c;
    inl_error ignored;
    if (!remote_sequences(r, &known)) return;
    if (remote_read(r, known.area + POINTER_AT, &at, sizeof at, &ignored) != INL_OK || !at) return;
    if (remote_read(r, at, &d, sizeof d, &ignored) != INL_OK) return;
    remote_context(r, &c);
    if (c.pc - d.start >= d.length) return;
    c.pc = d.abort;
    remote_set_context(r, &c);
    remote_write(r, known.area + POINTER_AT, &none, sizeof none, &ignored);
}
