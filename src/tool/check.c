/* What must hold of the tool's own structures, walked under --debug: handles, insertions, threads, the carried heap. */
#include "tool/code.h"
#include "base/check.h"
#include "run/thread.h"

enum { EVERY = 64 }; /* runs that are shown */

static void check_list(const weave_list *l, uint64_t at)
{
    const weave_insert *last = NULL;
    for (const weave_insert *i = l->first; i; i = i->next) {
        INL_CHECK(i->code, "an insertion at %#lx has no code", (long)at);
        last = i;
    }
    INL_CHECK(last == l->last, "insertions at %#lx do not end with the last one", (long)at);
}

static void check_code(const tool_code *c)
{
    size_t at = 0;
    uint64_t key, value;
    while (inl_map_next(&c->inserts, &at, &key, &value)) {
        const weave_insn *i = (const weave_insn *)(uintptr_t)value;
        INL_CHECK(i->in.addr == key, "an insertion for %#lx is kept for %#lx", (long)i->in.addr, (long)key);
        INL_CHECK(i->run->view && &i->run->insns[i->index] == i, "the instruction at %#lx is not in its view",
                  (long)key);
        check_list(&i->before, key);
        check_list(&i->after, key);
        check_list(&i->taken, key);
        check_list(&i->run->blocks[i->block].anywhere, key);
    }
}

static void check_image(const inlay_image *i)
{
    uint64_t low = i->low;
    for (size_t k = 0; i->made && k < i->proc_count; k++) {
        const inlay_proc *p = i->made[k];
        if (!p) continue;
        INL_CHECK(p->image == i && p->index == k, "procedure %s is not in its place", p->name);
        INL_CHECK(p->low >= low && p->low <= p->high, "procedure %s lies at %#lx, the one before at %#lx", p->name,
                  (long)p->low, (long)low);
        low = p->low;
    }
    if (i->code) check_code(i->code);
}

static void check_heap(const tool_memory *m)
{
    const tool_heap_root *h = m->heap;
    if (!h) return;
    INL_CHECK((uint64_t)(uintptr_t)h < h->next && h->next <= m->mapped, "the carried heap goes to %#lx, mapped to %#lx",
              (long)h->next, (long)m->mapped);
    for (int k = 0; k < ROOTS; k++)
        INL_CHECK(!h->roots[k] || tool_heap_holds(h->roots[k]), "root %d leads out of the carried heap", k);
}

void tool_check(void)
{
    const inlay_process *p = tool_now->process;
    for (const module *m = run_here.modules ? module_first(run_here.modules) : NULL; m; m = m->next)
        if (m->user) check_image(m->user);
    for (const tool_thread *t = p->threads; t; t = t->next) {
        INL_CHECK(!t->owner || t->owner->client == t, "a thread's handle is another's");
        INL_CHECK(t->held_count <= TOOL_HELD_LOCKS, "a thread holds %u locks", t->held_count);
    }
    check_heap(&tool_now->memory);
}

void tool_check_sometimes(void)
{
    if (inl_debug && tool_now->checks++ % EVERY == 0) tool_check();
}
