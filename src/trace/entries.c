/* Each entry and each exit of a thread as its records have them, in their order: what a single-stepper would tell.
 *
 * Pictures of calls (calls.h) nest them by time; here a coroutine's frames stay open while others run, and it is told
 * of each frame how it ended: by an exit of its own, or left by an exception, longjmp, the thread's end; or that it had
 * not when the recording did. */
#include "trace/out.h"
#include "trace/replay.h"

#include <inttypes.h>

typedef struct telling {
    FILE *f;
    const trace_session *s;
    bool json;
    uint64_t most, told; /* 0: all */
} telling;

static void put(telling *t, const char *event, const char *sign, const inlay_frame *frame, uint64_t now)
{
    const trace_proc *p = &t->s->procs.items[frame->proc - 1];
    if (t->told++ >= t->most && t->most) return;
    if (t->json) {
        fprintf(t->f, "%s\n    {\"ns\": %" PRIu64 ", \"event\": \"%s\", \"depth\": %" PRIu64 ", \"name\": ",
                t->told > 1 ? "," : "", now, event, frame->user - 1);
        trace_put_string(t->f, trace_name(p));
        fputs(", \"symbol\": ", t->f);
        trace_put_string(t->f, p->name);
        fprintf(t->f, ", \"file_address\": %" PRIu64 "}", trace_file_address(p));
    } else {
        trace_put_time(t->f, 14, (double)now);
        fprintf(t->f, "  %*s%s %s\n", (int)(frame->user < 60 ? frame->user - 1 : 59) * 2, "", sign, trace_name(p));
    }
}

/* A frame's `user` is its depth, from 1. */
static void entered(trace_replay *r, inlay_frame *frame, uint64_t now)
{
    const inlay_frame *below = inlay_frames_below(&r->frames, frame);
    frame->user = below ? below->user + 1 : 1;
    put(r->arg, "enter", ">", frame, now);
}

static void closed(trace_replay *r, const inlay_frame *frame, uint64_t now, bool kept)
{
    (void)kept;
    if (!frame->user) return;
    if (r->returns) put(r->arg, "leave", "<", frame, now);
    else if (r->over) put(r->arg, "open", "o", frame, now);
    else put(r->arg, "left", "x", frame, now);
}

static inl_status put_thread(telling *t, const trace_thread *of, const trace_view *v, inl_error *e)
{
    trace_replay r = {.s = t->s, .t = of, .raw = v->raw, .filter = &v->filter, .arg = t};
    r.entered = entered;
    r.closed = closed;
    t->told = 0;
    if (t->json) fprintf(t->f, "{\"program\": ");
    if (t->json) trace_put_string(t->f, t->s->program);
    if (t->json)
        fprintf(t->f, ", \"pid\": %d, \"thread\": %u, \"tid\": %u, \"entries\": [", t->s->pid, of->number, of->tid);
    else
        fprintf(t->f,
                "%s, process %d, thread %u (%u)\n\n%14s  entered >, left < (x: without an exit of its own, o: open at "
                "the end)\n",
                t->s->program, t->s->pid, of->number, of->tid, "at");
    inl_status st = trace_replay_run(&r, e);
    if (t->json) fputs("]}", t->f);
    else if (t->most && t->told > t->most)
        fprintf(t->f, "  ... %" PRIu64 " more (--top=0 shows all)\n", t->told - t->most);
    return st;
}

inl_status trace_put_entries(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = INL_OK;
    bool any = false;
    if (v->json) fputs("[", f);
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        telling t = {f, &file->sessions.items[i], v->json, v->top, 0};
        st = trace_refuse_counts(t.s, e);
        for (size_t k = 0; k < t.s->threads.count && st == INL_OK; k++) {
            if (any) fputs(v->json ? ",\n" : "\n", f);
            any = true;
            st = put_thread(&t, &t.s->threads.items[k], v, e);
        }
    }
    if (v->json) fputs("]\n", f);
    return st;
}
