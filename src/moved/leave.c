/* What whoever comes later asks of a tool in a process that ran already (move/live.h): all threads stand still, and the
 * first one is sent here, on a stack made for that, in the middle of whatever it was doing.
 *
 *   LOOK      what each thread's registers are in the program's own terms; is it in the tool's code?
 *   REPORT    the tool's report, now
 *   LEAVE     the last report; then old code, handlers and descriptors are as they were, and nothing of the process's
 *             leads to new code any more (back.c). Whoever asked sets the registers and unmaps.
 *
 * A look takes no lock and calls nothing of the tool's. The others are answered only when no thread is in the tool's
 * code: so nobody holds a lock. */
#include "moved/private.h"
#include "base/page.h"
#include "base/sys.h"
#include "move/live.h"
#include "moved/pieces.h"
#include "run/worker.h"
#include INL_ARCH_HEADER(run, abi)

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static move_ask *asked(void) { return (move_ask *)MOVE_ASK_BASE; }
static const move_told *record(void) { return (const move_told *)MOVE_TOLD_BASE; }

bool moved_is_new(uint64_t at)
{
    const move_told_range *ranges = (const void *)record()->ranges;
    for (uint64_t i = 0; i < record()->range_count; i++)
        if (at - ranges[i].low < ranges[i].high - ranges[i].low) return true;
    uint64_t count = moved_site_areas(&ranges);
    for (uint64_t i = 0; i < count; i++)
        if (at - ranges[i].low < ranges[i].high - ranges[i].low) return true;
    return moved_later_has(at) || moved_pieces_have(at);
}

static run_thread *block_of(uint64_t tid)
{
    for (run_thread *t = run_here.threads; t; t = t->next)
        if (t->tid == (int)tid) return t;
    return NULL;
}

/* --- where a thread stands --- */

/* In the gate, in front of a call that is to be made. */
static bool take_from_gate(run_thread *t, weave_context *c, moved_where *at)
{
    uint64_t behind, old;
    isa_regs junk;
    if (!moved_gate_asks(c->pc, c, &behind, &junk)) return false;
    if (moved_site_original(behind - 1, false, &old)) {
        c->pc = old;
        return old != 0;
    }
    moved_locate(c->pc, c, 0, false, at);
    if (!at->known || !at->place) return false;
    run_uc_unspill(t, c, at->state.spilled, at->state.flags_saved);
    c->pc = at->pc;
    return true;
}

/* In the tool's code, or in what will return to it. (A routine that waits for the procedure it stands in for holds
 * nothing meanwhile; it is in the way of a tool that leaves.) */
static bool is_within(const run_thread *t, const weave_context *c)
{
    const moved_own *own = moved_of(t);
    if (t->where != RUN_IN_CODE || t->frame.in_tool || t->pending.present || t->unaligned) return true;
    if (t->calls && (asked()->waits || !t->calls->waits)) return true;
    return own->finds && run_sp(c) < own->finds;
}

/* The registers become the program's. False: the thread is in what is not the program's. */
static bool take_out(run_thread *t, weave_context *c, moved_where *at)
{
    uint64_t old;
    *at = (moved_where){0};
    if (is_within(t, c)) return false;
    if (moved_settle_registers(t, c) == MOVED_SETTLED_TELLS) return false;
    if (moved_in_gate(c->pc)) return take_from_gate(t, c, at);
    if (moved_site_original(c->pc, true, &old)) {
        c->pc = old;
        return old != 0;
    }
    moved_locate(c->pc, c, 0, false, at);
    if (at->kind == MOVED_PLAIN) return !moved_is_new(c->pc);
    if (!at->known || !at->image) return false;
    run_uc_unspill(t, c, at->state.spilled, at->state.flags_saved);
    c->pc = at->pc;
    return !moved_is_about_to_jump(c);
}

static bool is_ours(uint64_t pc)
{
    return moved_is_new(pc) || pc - record()->tool_low < record()->tool_high - record()->tool_low;
}

static bool is_inserted(const run_thread *t, const weave_context *c) { return !is_within(t, c) && moved_at(c->pc); }

static uint64_t state_of(const weave_context *c)
{
    uint64_t sum = c->pc;
    for (unsigned r = 0; r < sizeof c->gpr / sizeof *c->gpr; r++) sum = (sum ^ c->gpr[r]) * 0x9e3779b97f4a7c15u;
    return sum;
}

/* In a call, or right behind it, that no unwinder makes: they take locks and memory, and look whether there is some. */
static bool calls_elsewhere(const move_ask_thread *as)
{
    static const uint16_t theirs[] = {SYS_futex,   SYS_mmap,      SYS_munmap,         SYS_mremap,  SYS_mprotect,
                                      SYS_madvise, SYS_brk,       SYS_rt_sigprocmask, SYS_mincore, SYS_msync,
                                      SYS_write,   SYS_read,      SYS_pipe2,          SYS_close,   SYS_openat,
                                      SYS_fstat,   SYS_newfstatat};
    for (unsigned i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (as->call == theirs[i]) return false;
    return as->call != 0;
}

/* What an unwinder reads is in the tables of new code. What earlier ones have left on a stack looks the same, but does
 * not change however long the thread runs, or while it sleeps. (One that waits for a lock in an unwinder sleeps as
 * well, until the others have run; and where there is much to do a thread may have a processor for nothing but being
 * stopped.) */
static bool unwinds(run_thread *t, const move_ask_thread *as, const weave_context *c)
{
    enum { ENOUGH = 20000000 /* ns */, ENOUGH_ASLEEP = 3, IN_HANDLER = 10 /* times as much, but for a few */ };
    bool interrupted = false;
    uint64_t seen = asked()->waits ? moved_unwinds(t, c, as->readable, as->slot, &interrupted) : 0, state = state_of(c);
    const uint64_t times = interrupted ? IN_HANDLER : 1;
    if (!seen || !t) return seen != 0;
    if (!interrupted && calls_elsewhere(as)) return false;
    moved_own *own = moved_of(t);
    if (seen != own->seen) own->ran = own->slept = 0;
    else if (as->slept) own->slept++;
    else if (state != own->state) own->ran += as->ran;
    own->seen = seen;
    own->state = state;
    return own->ran < ENOUGH * times && own->slept < ENOUGH_ASLEEP * times;
}

/* How many threads are not out. */
static uint64_t look(void)
{
    uint64_t busy = 0;
    for (uint64_t i = 0; i < asked()->thread_count; i++) {
        move_ask_thread *as = &asked()->threads[i];
        run_thread *t = block_of(as->tid);
        moved_where at;
        weave_context c = as->ctx;
        bool out = t ? take_out(t, &c, &at) : !is_ours(c.pc);
        if (out && unwinds(t, as, &c)) {
            as->busy = MOVE_BUSY_UNWINDS;
            busy++;
            continue;
        }
        as->busy = out ? MOVE_BUSY_NOT : t && is_inserted(t, &as->ctx) ? MOVE_BUSY_INSERTED : MOVE_BUSY_TOOL;
        busy += !out;
        if (!out) continue;
        as->place = t ? at.place : 0;
        as->before = at.before;
        as->ctx = c;
    }
    return busy;
}

/* Is there one that shares this memory, and is no thread of this process? */
static bool is_shared(void)
{
    for (const run_thread *t = run_here.threads; t; t = t->next) {
        bool found = false;
        for (uint64_t i = 0; i < asked()->thread_count; i++)
            found = found || asked()->threads[i].tid == (uint64_t)t->tid;
        if (!found && !t->has_ended) return true;
    }
    return false;
}

/* --- what a mutator has executed once --- */

void moved_on_behalf(void (*f)(void *), void *arg)
{
    run_thread *t = run_self();
    t->where = RUN_IN_RUNTIME;
    moved_on_tool_stack(t, f, arg);
    t->where = RUN_IN_CODE;
}

/* --- reports --- */

static void report_there(void *arg)
{
    run_thread *t = arg;
    t->where = RUN_IN_RUNTIME;
    if (moved_now.hooks.report)
        asked()->fd = moved_now.hooks.report(t, asked()->what == MOVE_ASK_LEAVE, asked()->captures);
    if (asked()->fd >= 0) ((move_park *)MOVE_PARK_DATA)->closes = (uint64_t)asked()->fd + 1;
    t->where = RUN_IN_CODE;
}

/* --- the end --- */

/* What is to be unmapped, and is not told of in the record. */
static void tell_areas(void)
{
    const move_told_range *sites;
    uint64_t n = moved_site_areas(&sites), count = n + moved_pieces_now.count;
    for (const moved_later *l = moved_later_first(); l; l = l->next) count++;
    move_told_range *all = calloc(count + 1, sizeof *all);
    if (!all) return; /* what is left leads nowhere */
    memcpy(all, sites, n * sizeof *all);
    for (const moved_later *l = moved_later_first(); l; l = l->next)
        if (l->high) all[n++] = (move_told_range){l->low, l->high};
    for (const moved_piece *p = moved_pieces_now.all, *end = p + moved_pieces_now.count; p < end; p++)
        if (p->image.text_size || p->comes) all[n++] = (move_told_range){p->low, p->high};
    asked()->area_count = n;
    asked()->areas = (uint64_t)(uintptr_t)all;
}

/* What is being copied may be in vector registers. */
static void take_vectors(move_ask_thread *as)
{
    moved_words in[2];
    unsigned n = moved_park_vectors(as->slot, in);
    for (unsigned k = 0; k < n; k++)
        for (size_t i = 0; i < in[k].count; i++) {
            uint64_t old = moved_old_word(in[k].at[i]);
            if (!old) continue;
            in[k].at[i] = old;
            as->vectors = 1;
        }
}

/* setjmp and longjmp have an address in a register as it is, disguised, and half-way between the two. */
static void take_registers(weave_context *c)
{
    const uint64_t guard = moved_pointer_guard(c->tls_base);
    for (unsigned r = 0; r < sizeof c->gpr / sizeof *c->gpr; r++) {
        const uint64_t word = c->gpr[r], old = moved_old_word(word), hidden = moved_back(moved_shown(word, guard)),
                       half = moved_back(word ^ guard);
        if (old) c->gpr[r] = old;
        else if (hidden) c->gpr[r] = moved_hidden(hidden, guard);
        else if (half) c->gpr[r] = half ^ guard;
    }
}

/* What the kernel knows of threads: registers and alternate stacks, to be set by whoever asked. */
static void hand_over(void)
{
    for (uint64_t i = 0; i < asked()->thread_count; i++) {
        move_ask_thread *as = &asked()->threads[i];
        const run_thread *t = block_of(as->tid);
        take_registers(&as->ctx);
        moved_park_settle(as->slot, &as->ctx);
        take_vectors(as);
        if (!t) continue;
        as->block = moved_block_register(t);
        as->knows_stack = 1;
        as->stack = (uint64_t)(uintptr_t)t->altstack.ss_sp;
        as->stack_flags = (uint64_t)(uint32_t)(t->altstack.ss_flags | (t->altstack.ss_size ? 0 : SS_DISABLE));
        as->stack_size = t->altstack.ss_size;
        moved_park_block(as->slot, as->block);
        moved_park_stack(as->slot, as->stack, as->stack_flags, as->stack_size);
    }
}

/* Should whoever asked have died, the process unmaps it itself. */
static void list_gone(void)
{
    move_park *park = (move_park *)MOVE_PARK_DATA;
    const move_told *r = record();
    const move_told_range *areas = (const void *)asked()->areas, *ranges = (const void *)r->ranges;
    uint64_t n = 0;
    for (uint64_t i = 0; i < asked()->area_count && n < MOVE_PARK_GONE_MOST - 2; i++) park->gone[n++] = areas[i];
    for (uint64_t i = 0; i < r->range_count && n < MOVE_PARK_GONE_MOST - 2; i++) park->gone[n++] = ranges[i];
    park->gone[n++] = (move_told_range){r->tool_low, inl_page_up(r->tool_high)};
    park->gone[n++] = (move_told_range){MOVE_LIVE_BASE, MOVE_REGION_HIGH};
    park->gone_count = n;
}

/* Counts are what has been executed, though threads stand in the middle of something. */
static void report(run_thread *t)
{
    for (uint64_t i = 0; i < asked()->thread_count; i++) {
        const move_ask_thread *as = &asked()->threads[i];
        if (as->place) moved_leave_run(block_of(as->tid), as->place, as->before);
    }
    moved_on_tool_stack(t, report_there, t);
    for (uint64_t i = 0; i < asked()->thread_count && asked()->what == MOVE_ASK_REPORT; i++) {
        const move_ask_thread *as = &asked()->threads[i];
        if (as->place) moved_enter_run(block_of(as->tid), as->place, as->before);
    }
}

static void leave(run_thread *t, const moved_memory *m)
{
    report(t);
    moved_alone_begin();
    moved_jumps_take_back(m->mem);
    asked()->refused = moved_bring_back(m, asked()->threads[0].ctx.tls_base) ? 0 : MOVE_ASK_NO_PROC;
    hand_over();
    run_signals_give_back(run_here.signals);
    moved_shown_end();
    ((move_told *)MOVE_TOLD_BASE)->started = MOVE_TOLD_LEFT;
    tell_areas();
    list_gone();
    moved_memory_close(m);
    moved_alone_end();
    run_fd_close_all((int)asked()->fd);
}

static bool is_confined(void)
{
    for (const run_thread *t = run_here.threads; t; t = t->next)
        if (t->filters) return true;
    return false;
}

static uint64_t refuses_to_begin(const run_thread *t, moved_memory *m)
{
    if (!t || is_shared()) return MOVE_ASK_SHARED;
    if (asked()->what != MOVE_ASK_LEAVE) return 0;
    if (is_confined()) return MOVE_ASK_CONFINED;
    if (asked()->lends) {
        *m = (moved_memory){(int)asked()->files[0], (int)asked()->files[1], (int)asked()->files[2]};
        return 0;
    }
    return moved_memory_open(m) ? 0 : MOVE_ASK_NO_PROC;
}

/* Threads are counted out for good only when nothing can be refused any more; the tool's own run, and end. */
static uint64_t refuses(const run_thread *t, moved_memory *m)
{
    uint64_t why = refuses_to_begin(t, m);
    if (why || asked()->what != MOVE_ASK_LEAVE || run_workers_end()) return why;
    moved_memory_close(m);
    return MOVE_ASK_WORKERS;
}

void moved_ask(void)
{
    run_thread *t = block_of(asked()->threads[0].tid);
    moved_memory m;
    asked()->fd = -1;
    moved_images_look();
    asked()->busy = look();
    if (asked()->what != MOVE_ASK_LOOK && !asked()->busy) {
        asked()->refused = refuses(t, &m);
        if (asked()->refused) return;
        if (asked()->what == MOVE_ASK_LEAVE) leave(t, &m);
        else report(t);
    }
    asked()->done = !asked()->busy || asked()->what == MOVE_ASK_LOOK;
}
