/* Under `--debug`: is the engine's state what it should be? The process's lock is held. */
#include "base/check.h"
#include "base/page.h"
#include "jit/core.h"

static void check_arena(const jit_arena *a)
{
    INL_CHECK(a->code_at <= a->stub_at && a->stub_at <= a->size,
              "arena at %#llx: code up to %zu, stubs from %zu of %zu", (unsigned long long)a->exec, a->code_at,
              a->stub_at, a->size);
    for (uint32_t i = 1; i < a->code_count; i++)
        INL_CHECK(a->code[i - 1].at < a->code[i].at, "arena at %#llx: code pieces %u and %u",
                  (unsigned long long)a->exec, i - 1, i);
    for (uint32_t i = 1; i < a->stub_count; i++)
        INL_CHECK(a->stubs[i - 1].at >= a->stubs[i].at, "arena at %#llx: stubs %u and %u", (unsigned long long)a->exec,
                  i - 1, i);
}

static bool is_incoming(const jit_fragment *f, const jit_exit *e)
{
    for (const jit_exit *o = f->incoming; o; o = o->next_in)
        if (o == e) return true;
    return false;
}

static void check_fragment(const jit_fragment *f)
{
    uint64_t app = f->app, from = f->exec - f->start_to_exec - f->arena->exec;
    INL_CHECK(!f->dropped, "fragment of %#llx has been dropped and can be found", (unsigned long long)app);
    INL_CHECK(from + f->size <= f->arena->code_at, "fragment of %#llx runs out of its arena", (unsigned long long)app);
    INL_CHECK(f->app_low <= app && app < f->app_high, "fragment of %#llx covers [%#llx, %#llx)",
              (unsigned long long)app, (unsigned long long)f->app_low, (unsigned long long)f->app_high);
    for (uint32_t i = 0; i < f->exit_count; i++) {
        const jit_exit *e = &f->exits[i];
        INL_CHECK(e->from == f, "exit %u of fragment %#llx is another's", i, (unsigned long long)app);
        if (!e->to) continue;
        INL_CHECK(!e->to->dropped && e->to->app == e->target, "exit %u of fragment %#llx to %#llx leads to %#llx", i,
                  (unsigned long long)app, (unsigned long long)e->target, (unsigned long long)e->to->app);
        INL_CHECK(is_incoming(e->to, e), "fragment of %#llx does not know that %#llx leads to it",
                  (unsigned long long)e->target, (unsigned long long)app);
    }
}

static void check_guards(void)
{
    uint32_t guarded = 0;
    for (unsigned i = 0; i < JIT_GUARDS; i++) {
        uint64_t entry = jit.guards.table[i], page = inl_page_down(entry);
        if (!(entry & 7)) continue;
        guarded++;
        INL_CHECK(page >= jit.guards.low && page < jit.guards.high,
                  "page %#llx is guarded, and is not between %#llx and %#llx", (unsigned long long)page,
                  (unsigned long long)jit.guards.low, (unsigned long long)jit.guards.high);
    }
    INL_CHECK(guarded == jit.guards.guarded, "%u pages are guarded, and %u counted", guarded, jit.guards.guarded);
}

static void check_threads(void)
{
    uint32_t threads = 0;
    for (const run_thread *t = run_here.threads; t; t = t->next) threads += !t->is_vfork_child && !t->has_ended;
    INL_CHECK(threads == run_here.thread_count, "%u threads live, and %u are counted", threads, run_here.thread_count);
}

void jit_check(void)
{
    size_t at = 0;
    uint64_t value;
    for (const jit_arena *a = jit.arenas; a; a = a->next) check_arena(a);
    while (inl_map_next(&jit.by_app, &at, NULL, &value)) check_fragment((const jit_fragment *)value);
    inl_ranges_check(&jit.memory.regions);
    check_guards();
    check_threads();
}
