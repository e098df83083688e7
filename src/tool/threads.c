/* Threads: the public handle is the engine's own; what the tool part keeps for one hangs on it, and
 * in a list of tool_now->process->threads. */
#include "tool/state.h"
#include "tool/wrap.h"
#include INL_ARCH_HEADER(run, abi)

unsigned inlay_thread_number(const inlay_thread *t)
{
    return t ? (unsigned)((const run_thread *)t)->frame.thread_number : 0;
}

/* NULL: it is none of the program's (main's, the instrumentor's, a mutator's, a worker). */
static run_thread *thread_now(void)
{
    run_thread *t = run_here.threads ? run_self() : NULL;
    return t && !t->worker ? t : NULL;
}

unsigned inlay_thread_number_now(void)
{
    const run_thread *t = thread_now();
    return t ? (unsigned)t->frame.thread_number : 0;
}

int inlay_thread_tid(const inlay_thread *t) { return t ? ((const run_thread *)t)->tid : 0; }

uint64_t inlay_cycles_now(void) { return run_cycles(); }
uint64_t inlay_thread_own_cycles(const inlay_thread *t) { return t ? ((const run_thread *)t)->frame.own_cycles : 0; }

uint64_t inlay_own_cycles_now(void)
{
    const run_thread *t = thread_now();
    return t ? t->frame.own_cycles : 0;
}

void inlay_own_cycles_add(uint64_t cycles)
{
    run_thread *t = thread_now();
    if (t && !t->no_cycles) t->frame.own_cycles += cycles;
}

static tool_thread *reuse_locked(run_thread *t)
{
    tool_thread *own = tool_now->process->threads;
    while (own && own->owner) own = own->next;
    if (own) own->owner = t;
    return own;
}

tool_thread *tool_thread_of(run_thread *t)
{
    if (t->client) return t->client;
    inl_lock_take(&tool_now->locks.small);
    tool_thread *own = reuse_locked(t);
    inl_lock_release(&tool_now->locks.small);
    if (own) return t->client = own;
    own = tool_alloc(sizeof *own);
    if (!own) return NULL;
    inl_lock_take(&tool_now->locks.small);
    own->owner = t;
    own->next = tool_now->process->threads;
    tool_now->process->threads = own;
    inl_lock_release(&tool_now->locks.small);
    return t->client = own;
}

static void release(tool_thread *own) { *own = (tool_thread){.next = own->next, .stacks = own->stacks}; }

void tool_thread_end(run_thread *t)
{
    tool_thread *own = t->client;
    if (!own) return;
    t->client = NULL;
    tool_locals_end(own);
    tool_wrap_stacks_end(t, own->stacks);
    inl_lock_take(&tool_now->locks.small);
    release(own);
    inl_lock_release(&tool_now->locks.small);
}

void tool_threads_fork_child(run_thread *survivor)
{
    tool_here.holds_lock = false;
    for (tool_thread *own = tool_now->process->threads; own; own = own->next) {
        if (!own->owner || own->owner == survivor) continue;
        tool_locks_give_back(own, survivor->client);
        own->owner = NULL; /* its block is gone */
        tool_locals_end(own);
        tool_wrap_stacks_end(NULL, own->stacks);
        release(own);
    }
}
