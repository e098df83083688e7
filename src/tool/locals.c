/* Data of each thread for the tool (local.h): one piece for all that main asked for, which the thread's block points to
 * and woven code finds there. What belongs to a thread that has ended is given back, or used again by the next one.
 *
 * No thread is without: one for which memory cannot be had shares a spare piece, which is made in advance, with others
 * of its kind, and it is said. */
#include "tool/state.h"
#include "base/page.h"

#include <inlay/local.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct inlay_local {
    size_t offset;
};

enum { ALIGN = 64, MAPPED = 64 << 10 }; /* larger pieces are mappings: what is not touched costs nothing */

static tool_locals *state(void) { return &tool_now->locals; }

inlay_local *inlay_local_new(size_t bytes)
{
    tool_locals *s = state();
    inlay_local *l = s->closed ? NULL : tool_alloc(sizeof *l);
    if (l && bytes <= SIZE_MAX / 4 - s->size) {
        l->offset = s->size;
        s->size += (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        return l;
    }
    tool_say_limited("no data for threads: %s", s->closed ? "main makes it, before inlay_start" : "out of memory");
    return NULL;
}

inlay_expr inlay_local_address(const inlay_local *l)
{
    if (!l) tool_mistake("inlay_local_address of NULL: inlay_local_new makes it, in main");
    inlay_expr s = l ? tool_snippet_of((snippet){.kind = SNIPPET_THREAD_DATA}) : NULL;
    if (!s) return NULL;
    return l->offset ? inlay_binary(INLAY_ADD, s, inlay_const(l->offset)) : s;
}

void *inlay_local_of(const inlay_local *l, const inlay_thread *t)
{
    char *all = t ? ((const run_thread *)t)->frame.locals : NULL;
    return all && l ? all + l->offset : NULL;
}

void *inlay_local_now(const inlay_local *l)
{
    const run_thread *t = tool_here.owner ? tool_here.owner : run_here.threads ? run_self() : NULL;
    return t ? inlay_local_of(l, (const inlay_thread *)t) : NULL;
}

/* --- a thread's piece --- */

static void *take(size_t size)
{
    if (size < MAPPED) return aligned_alloc(ALIGN, size);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void give_back(void *p, size_t size)
{
    if (p == state()->spare) return;
    if (size < MAPPED) free(p);
    else munmap(p, size);
}

bool tool_locals_begin(void)
{
    tool_locals *s = state();
    s->closed = true;
    if (!s->size || s->spare) return true;
    s->spare = take(s->size);
    return s->spare;
}

void tool_locals_start(run_thread *t)
{
    tool_locals *s = state();
    if (!s->size || t->frame.locals) return;
    tool_thread *own = tool_thread_of(t);
    void *p = own ? take(s->size) : NULL;
    if (p && s->size < MAPPED) memset(p, 0, s->size);
    if (!p) tool_say_limited("out of memory: thread %d shares the tool's data with others", t->tid);
    t->frame.locals = p ? p : s->spare;
    if (own) own->locals = p;
}

void tool_locals_end(tool_thread *own)
{
    if (own->owner) own->owner->frame.locals = NULL;
    if (own->locals) give_back(own->locals, state()->size);
    own->locals = NULL;
}
