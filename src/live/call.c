#include "live/change.h"

#include <stdlib.h>

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
