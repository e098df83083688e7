/* A routine of the mutator's own that is executed once, in the process, by a thread of choice: the mutator's file is
 * there, at the same addresses, and the thread is sent into it as into a procedure of the program's
 * (live_call_program). There it goes to its private stack, as where a snippet calls a routine (moved_on_behalf).
 *
 *     mutator, process held            process, the thread
 *       writes the question
 *                                        answer_routine     on the program's stack
 *                                          call_routine     on the private one, with the tool's thread pointer
 *       reads the answer
 *
 * A fault in it, or ten seconds, end it: the thread is the program's again, as it was. */
#include "tool/mutator.h"

#include "moved/moved.h"

#include <stddef.h>
#include <string.h>

enum { PATIENCE = 10 };

/* --- in the process --- */

typedef uint64_t routine(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double,
                         double, double, double, double, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t);
typedef double real_routine(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double,
                            double, double, double, double, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            uint64_t, uint64_t);

static double as_real(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* What is more than it takes it does not look at: integers, vectors and the stack are counted apart. */
static void call_routine(void *arg)
{
    mutator_routine *q = arg;
    const uint64_t *i = q->ints;
    double d[MUTATOR_REALS];
    for (unsigned k = 0; k < MUTATOR_REALS; k++) d[k] = as_real(q->reals[k]);
    if (q->is_real) {
        double answer = ((real_routine *)q->fn)(i[0], i[1], i[2], i[3], i[4], i[5], d[0], d[1], d[2], d[3], d[4], d[5],
                                                d[6], d[7], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13]);
        memcpy(&q->answer, &answer, sizeof answer);
        return;
    }
    q->answer = ((routine *)q->fn)(i[0], i[1], i[2], i[3], i[4], i[5], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7],
                                   i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13]);
}

static void answer_routine(void) { moved_on_behalf(call_routine, (void *)MUTATOR_ASKED_AT); }

/* --- here --- */

/* What a thread's block tells of where it is, and what hangs on that: as it was. */
static void put_place(remote *r, uint64_t at, const run_thread *was)
{
    static const struct {
        size_t from, to;
    } parts[] = {{0, offsetof(run_thread, next)},
                 {offsetof(run_thread, stack_low), offsetof(run_thread, signal_stack)},
                 {offsetof(run_thread, calls), offsetof(run_thread, fault)}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        remote_write(r, at + parts[i].from, (const char *)was + parts[i].from, parts[i].to - parts[i].from,
                     &(inl_error){0});
}

inl_status mutator_call(mutatee *m, remote *r, live_call *c, inl_error *e)
{
    run_thread was;
    uint64_t at = mutator_thread_block(m, r->pid, &was);
    bool loads_wait = m->loads_wait;
    m->loads_wait = false; /* it would be for who waits for the call */
    mutator_tell_kinds(m);
    inl_status s = live_call_program(&m->live, r, c, e);
    m->loads_wait = loads_wait;
    mutator_tell_kinds(m);
    if (s != INL_OK && at && !r->gone) put_place(r, at, &was); /* left in its midst: it is not there any more */
    return s;
}

inl_status mutator_call_routine(mutatee *m, remote *r, mutator_routine *q, inl_error *e)
{
    live_call c = {.pc = (uint64_t)(uintptr_t)answer_routine, .patience = PATIENCE, .faults_end = true};
    run_thread block;
    if (!mutator_thread_block(m, r->pid, &block))
        return inl_fail(e, INL_ERR_NOT_FOUND, "thread %d of process %d has only begun, or ends", r->pid, m->live.pid);
    inl_status s = remote_write(r, MUTATOR_ASKED_AT, q, sizeof *q, e);
    if (s == INL_OK) s = mutator_call(m, r, &c, e);
    return s == INL_OK ? remote_read(r, MUTATOR_ASKED_AT, q, sizeof *q, e) : s;
}
