#include "live/change.h"

#include <stdlib.h>
#include <string.h>

inl_status live_call_tool(live_process *p, uint64_t routine, uint64_t stack, inl_error *e)
{
    remote *r = &p->threads.items[0];
    void *vectors = NULL;
    size_t size = 0;
    uint64_t sp;
    remote_call_frame frame = {.pc = routine};
    inl_status s = remote_vectors(r, &vectors, &size, e);
    if (s == INL_OK) s = remote_put_frame(r, &frame, stack & ~15ull, &sp, e);
    if (s == INL_OK) {
        s = live_works(p, true, e);
        if (s == INL_OK) s = remote_run_call(r, &frame, sp, 0, NULL, e);
        if (s == INL_OK) s = live_works(p, false, e);
        inl_status back = r->gone ? s : remote_set_vectors(r, vectors, size, e);
        if (s == INL_OK) s = back;
    }
    free(vectors);
    return s;
}

bool live_call_pass(live_call *c, bool real, uint64_t bits)
{
    unsigned room = real ? sizeof c->reals / sizeof *c->reals : sizeof c->ints / sizeof *c->ints;
    unsigned *count = real ? &c->real_count : &c->int_count;
    if (*count < room) (real ? c->reals : c->ints)[(*count)++] = bits;
    else if (c->word_count < REMOTE_WORDS) c->words[c->word_count++] = bits;
    else return false;
    return true;
}

/* Below what the interrupted procedure may have there. */
static inl_status run(live_process *p, remote *r, live_call *c, const void *vectors, size_t size, inl_error *e)
{
    enum { BELOW = 1024 };
    uint64_t sp, top = (remote_registers_sp(&r->regs) - c->below - BELOW) & ~15ull;
    remote_call_frame frame = {.pc = c->pc, .back = p->syscall_at, .count = c->int_count, .reals = c->real_count};
    void *mine = malloc(size), *after = NULL;
    frame.faults_end = c->faults_end;
    memcpy(frame.args, c->ints, sizeof frame.args);
    memcpy(frame.words, c->words, sizeof frame.words);
    frame.word_count = c->word_count;
    if (!mine) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    memcpy(mine, vectors, size);
    for (unsigned n = 0; n < c->real_count; n++) remote_vectors_set_real(mine, n, c->reals[n]);
    inl_status s = remote_set_vectors(r, mine, size, e);
    free(mine);
    if (s == INL_OK) s = remote_put_frame(r, &frame, top, &sp, e);
    if (s == INL_OK) s = remote_run_call(r, &frame, sp, c->patience, c->results, e);
    if (s == INL_OK) s = remote_vectors(r, &after, &size, e);
    for (unsigned n = 0; n < 2 && s == INL_OK; n++) c->real_results[n] = remote_vectors_real(after, n);
    free(after);
    return s;
}

inl_status live_call_program(live_process *p, remote *r, live_call *c, inl_error *e)
{
    void *vectors = NULL;
    size_t size = 0;
    inl_status s = remote_vectors(r, &vectors, &size, e);
    if (s == INL_OK) {
        s = live_calls(p, r, true, e);
        if (s == INL_OK) s = run(p, r, c, vectors, size, e);
        if (!r->gone) live_calls(p, r, false, &(inl_error){0});
        inl_status back = r->gone ? s : remote_set_vectors(r, vectors, size, s == INL_OK ? e : NULL);
        if (s == INL_OK) s = back;
    }
    free(vectors);
    return s;
}
