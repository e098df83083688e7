/* More stacks of a thread, for routines that stand in for procedures and wait for their originals (wrap.c). The first
 * is the thread's own; when those who wait have used up one, what they call goes on at the next one's end, and comes
 * back from there. The one in use is always the thread's (run_thread.stack_low). They are kept until the thread ends;
 * one that ends within an original may still stand on one of them, and leaves them there. */
#include "tool/wrap.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "tool/state.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { MOST = 128, GUARD = 4 * INL_PAGE };

typedef struct tool_stacks {
    unsigned count; /* 0: there is the first alone, and it is not noted */
    struct {
        uint64_t low, size;
    } all[1 + MOST];
} tool_stacks;

static uint64_t low_of(const run_thread *t) { return (uint64_t)(uintptr_t)t->stack_low; }

static tool_stacks *stacks_of(run_thread *t)
{
    tool_thread *own = tool_thread_of(t);
    if (own && !own->stacks) own->stacks = tool_alloc(sizeof *own->stacks);
    return own ? own->stacks : NULL;
}

static void take(run_thread *t, const tool_stacks *s, unsigned k)
{
    t->stack_low = (void *)(uintptr_t)s->all[k].low;
    t->stack_size = s->all[k].size;
}

static bool add(tool_stacks *s, uint64_t size)
{
    uint64_t at = s->count <= MOST ? inl_region_map(0, GUARD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE) : 0;
    if (!at) return false;
    sys_call3(SYS_mprotect, (long)at, GUARD, PROT_NONE);
    run_own(at, GUARD + size, true);
    s->all[s->count].low = at + GUARD;
    s->all[s->count++].size = size;
    return true;
}

bool tool_wrap_stack_more(run_thread *t)
{
    tool_stacks *s = stacks_of(t);
    unsigned k = 0;
    if (!s) return false;
    if (!s->count) {
        s->all[0].low = low_of(t);
        s->all[0].size = t->stack_size;
        s->count = 1;
    }
    while (k < s->count && s->all[k].low != low_of(t)) k++;
    if (k + 1 >= s->count && !add(s, s->all[0].size)) return false;
    take(t, s, k + 1);
    return true;
}

void tool_wrap_stack_at(run_thread *t, uint64_t end)
{
    if (end - 1 - low_of(t) < t->stack_size) return;
    const tool_stacks *s = stacks_of(t);
    for (unsigned k = 0; s && k < s->count; k++)
        if (end - 1 - s->all[k].low < s->all[k].size) take(t, s, k);
}

/* NULL: the thread is not there any more, after a fork, which leaves their memory. */
void tool_wrap_stacks_end(run_thread *t, tool_stacks *s)
{
    if (!s || !s->count) return;
    bool free = t && s->all[0].low == low_of(t);
    for (unsigned k = 1; k < s->count && free; k++) {
        uint64_t at = s->all[k].low - GUARD, size = GUARD + s->all[k].size;
        run_own(at, size, false);
        sys_call2(SYS_munmap, (long)at, (long)size);
    }
    s->count = 0;
}
