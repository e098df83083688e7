/* The kernel's frame for a handler, made what it would be natively, and on its return what the moved code
 * needs. The handler sees original addresses and the program's own registers and flags, and may change them.
 *
 * A frame that tells where to go on has a mark in words of the context that the kernel leaves alone:
 *
 *     cookie ^ address of the frame | new address | original address | what is kept, 0: nothing
 *                                   | the instruction's new place | in front of its snippets?
 *
 * The kernel's is on a stack of Inlay's, and is copied to where it would have put it: below what the program has on
 * its stack, or onto its alternate one. Where something waits in the thread's slots, what is kept of them lies behind
 * the copy; if an alternate stack has no room for that too, it is kept in the thread's own memory, where the last few
 * are. The handler is entered by the kernel's own one, which sets registers and mask in one (deliver.c).
 *
 * A thread whose alternate stack was set unseen has frames on its own stack: they move down there, to make room (how,
 * <isa>/frames.c says). A handler that never returns leaves nothing behind but its stack.
 *
 * rt_sigreturn comes through the gate. Where the handler left the address alone the thread goes on exactly where
 * it was, junk included, with what the handler changed in the registers and slots; where it is another address
 * of code that has moved, at the new place, before its snippets. */
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "moved/private.h"
#include INL_ARCH_HEADER(run, abi)
#include INL_ARCH_HEADER(run, sigframe)

enum { MARK = 0, MARK_NEW, MARK_OLD, MARK_KEPT, MARK_PLACE, MARK_BEFORE, MARK_WORDS };

typedef struct kept { /* of interrupted code, in the thread's frame and in registers of the weaver's */
    uint64_t words[(offsetof(weave_frame, tool_tls_base) - offsetof(weave_frame, slot)) / 8];
    uint8_t more[MOVED_KEPT_MORE];
    uint64_t gpr[sizeof((weave_context *)0)->gpr / 8], flags, resume;
    weave_parked state;
    bool is_known; /* else it is in the midst of a snippet: registers are that one's, and the slots the program's */
} kept;
_Static_assert(sizeof(kept) + MOVED_FRAME_MOVED <= MOVED_FRAME_RESERVE, "see gate.S");

/* Of several threads that ask for it first, all get the same. */
uint64_t moved_cookie(void)
{
    static _Atomic uint64_t cookie;
    uint64_t now = cookie, random = (uint64_t)(uintptr_t)&cookie;
    if (now) return now;
    sys_call3(SYS_getrandom, (long)&random, sizeof random, 0);
    return atomic_compare_exchange_strong(&cookie, &now, random | 1) ? random | 1 : now;
}

static uint64_t mark_of(uint64_t at) { return moved_cookie() ^ at; }

/* --- on the way to the handler --- */

/* An alternate stack that disarms itself is away for any handler. */
static void show_stack(run_thread *t, run_frame *f, bool ours)
{
    if (ours) f->stack = t->altstack;
    else t->altstack = f->stack;
    if (t->altstack.ss_flags & (int)SS_AUTODISARM) t->altstack = (stack_t){.ss_flags = SS_DISABLE};
}

bool moved_frame_is_ours(const run_thread *t, uint64_t sp)
{
    return sp - (uint64_t)(uintptr_t)t->signal_stack < t->signal_stack_size;
}

/* `c`: as the kernel has found them. */
static void keep(const run_thread *t, const weave_context *c, const moved_where *at, kept *k)
{
    memcpy(k->words, t->frame.slot, sizeof k->words);
    moved_keep_more(&t->frame, k->more);
    memcpy(k->gpr, c->gpr, sizeof k->gpr);
    k->flags = c->flags;
    k->resume = t->ctx.pc;
    k->state = at->state;
    k->is_known = at->known;
}

/* Some are enough: in so small a stack there is not room for two frames. */
static uint64_t keep_apart(run_thread *t, const kept *k)
{
    enum { SPARE = 8 };
    kept *all = t->signal_stack; /* its low end */
    all += moved_of(t)->spared++ % SPARE;
    *all = *k;
    return (uint64_t)(uintptr_t)all;
}

static uint64_t move_frame(run_thread *t, uint64_t sp, moved_way way, const kept *k)
{
    uint64_t kept_at = 0, to;
    way.room = k ? sizeof *k : 0;
    to = moved_frame_move(sp, &way, &kept_at);
    bool apart = !to && k && way.least;
    if (apart) {
        way.room = 0;
        to = moved_frame_move(sp, &way, &kept_at);
        kept_at = keep_apart(t, k);
    }
    if (!to || (k && !apart && !run_write(kept_at, k, sizeof *k))) return 0;
    uint64_t *mark = moved_frame_marks((run_frame *)to);
    if (k) mark[MARK_KEPT] = kept_at;
    if (mark[MARK]) mark[MARK] = mark_of(to);
    return to;
}

/* Where none can be made (0), frame and thread are as before: another signal is to be shown in it. */
uint64_t moved_frame_show(run_thread *t, uint64_t sp, const run_action *a, const moved_where *at,
                          const weave_context *c)
{
    run_frame *f = (run_frame *)sp;
    uint64_t *mark = moved_frame_marks(f);
    moved_way way = {0};
    kept k;
    weave_context found;
    stack_t altstack = t->altstack;
    bool keeps = at->kind == MOVED_KEPT, ours = moved_frame_is_ours(t, sp), bounded = false;
    run_uc_context(&f->flags, t, 0, &found);
    if (ours) way.below = run_altstack_top(t, a, run_sp(c), &bounded);
    if (bounded) way.least = (uint64_t)(uintptr_t)t->altstack.ss_sp + 1;
    show_stack(t, f, ours);
    memset(mark, 0, MARK_WORDS * sizeof *mark);
    if (at->kind != MOVED_PLAIN) {
        siginfo_t *info = (siginfo_t *)f->info;
        if (keeps) keep(t, &found, at, &k);
        if (at->is_fault && (uint64_t)(uintptr_t)info->si_addr == found.pc) info->si_addr = (void *)(uintptr_t)at->pc;
        moved_frame_set(f, c);
        mark[MARK] = mark_of(sp);
        mark[MARK_NEW] = found.pc;
        mark[MARK_OLD] = at->pc;
        mark[MARK_PLACE] = at->place;
        mark[MARK_BEFORE] = at->before;
    }
    uint64_t to = keeps || ours ? move_frame(t, sp, way, keeps ? &k : NULL) : sp;
    if (!to) {
        moved_frame_set(f, &found);
        t->altstack = altstack;
    }
    return to;
}

/* --- and back --- */

/* Every slot holds what its register does: right for whatever the code at hand believes. */
void moved_fill_slots(run_thread *t, const weave_context *c)
{
    memcpy(t->frame.slot, c->gpr, sizeof t->frame.slot);
    t->frame.flags = run_flags_packed(c->flags);
}

static void put_back(run_thread *t, weave_context *c, const kept *k, bool moved)
{
    memcpy(t->frame.slot, k->words, sizeof k->words);
    moved_put_back_more(&t->frame, k->more);
    t->ctx.pc = k->resume;
    if (moved && k->is_known) moved_fill_slots(t, c);
    isa_regs ours = moved_parked_alone(k->state.spilled) | k->state.junk;
    for (unsigned r = 0; r < sizeof k->gpr / sizeof *k->gpr; r++)
        if (ours >> r & 1) c->gpr[r] = k->gpr[r];
    moved_park_otherwise(t, c, k->state.spilled);
    if (k->state.flags_saved) c->flags = run_flags_unpacked(c->flags, run_flags_packed(k->flags));
}

static void go_back(run_thread *t, run_frame *f, uint64_t at)
{
    const uint64_t *mark = moved_frame_marks(f);
    weave_context c;
    real_addr to;
    kept k;
    run_uc_context(&f->flags, t, 0, &c);
    if (mark[MARK] == mark_of(at) && mark[MARK_OLD] == c.pc) {
        c.pc = mark[MARK_NEW];
        if (mark[MARK_PLACE]) moved_enter_run(t, mark[MARK_PLACE], mark[MARK_BEFORE]);
        if (!mark[MARK_KEPT]) moved_fill_slots(t, &c);
        else if (run_read(&k, mark[MARK_KEPT], sizeof k)) put_back(t, &c, &k, moved_at(c.pc));
    } else if ((to = moved_onward((real_addr){c.pc})).at != 0) {
        c.pc = to.at;
        moved_enter_run(t, to.at, true);
        moved_fill_slots(t, &c);
    }
    moved_frame_set(f, &c);
}

/* The program's alternate stack is what the frame says, the kernel's Inlay's. */
static void take_stack(run_thread *t, run_frame *f)
{
    weave_context c;
    run_uc_context(&f->flags, t, 0, &c);
    run_altstack_take(t, &f->stack, run_sp(&c));
    f->stack = run_altstack_own(t);
}

void moved_sigreturn(run_thread *t)
{
    uint64_t at = run_sp(&t->ctx) - RUN_HANDLER_POPS;
    run_frame f;
    if (run_read(&f, at, MOVED_FRAME_HEAD)) {
        go_back(t, &f, at);
        take_stack(t, &f);
        run_write(at, &f, MOVED_FRAME_HEAD);
    }
    t->where = RUN_IN_CODE;
    run_sigreturn_now(at + RUN_HANDLER_POPS, t->ctx.tls_base);
}
