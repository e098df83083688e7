#include "live/change.h"

#include <stdlib.h>

enum { SPARE = 256 }; /* below a thread's stack pointer: what code may use there without saying so */

inl_status live_call_tool(live_process *p, uint64_t routine, uint64_t stack, inl_error *e)
{
    remote *r = &p->threads.items[0];
    void *vectors = NULL;
    size_t size = 0;
    uint64_t sp;
    remote_call_frame frame = {.pc = routine, .back = p->syscall_at};
    inl_status s = remote_vectors(r, &vectors, &size, e);
    if (s == INL_OK) s = remote_put_frame(r, &frame, stack & ~15ull, &sp, e);
    if (s == INL_OK) {
        s = remote_run_call(r, &frame, sp, 0, NULL, e);
        inl_status back = r->gone ? s : remote_set_vectors(r, vectors, size, e);
        if (s == INL_OK) s = back;
    }
    free(vectors);
    return s;
}

inl_status live_call(remote *r, uint64_t procedure, const uint64_t *args, unsigned count, unsigned patience,
                     uint64_t *result, inl_error *e)
{
    void *vectors = NULL;
    size_t size = 0;
    uint64_t sp;
    remote_call_frame frame = {.pc = procedure, .back = r->code_at, .count = count};
    if (count > LIVE_MOST_ARGS)
        return inl_fail(e, INL_ERR_USAGE, "a procedure of the process is called with at most %d arguments",
                        LIVE_MOST_ARGS);
    for (unsigned i = 0; i < count; i++) frame.args[i] = args[i];
    inl_status s = remote_vectors(r, &vectors, &size, e);
    uint64_t top = (remote_registers_sp(&r->regs) - SPARE) & ~63ull;
    if (s == INL_OK) s = remote_put_frame(r, &frame, top, &sp, e);
    if (s == INL_OK) {
        s = remote_run_call(r, &frame, sp, patience, result, e);
        inl_status back = r->gone ? s : remote_set_vectors(r, vectors, size, e);
        if (s == INL_OK) s = back;
    }
    free(vectors);
    return s;
}
