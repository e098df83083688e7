/* The kernel's frame for a handler, made what it would be natively, and on its return what the moved code
 * needs. The handler sees original addresses and the program's own registers and flags, and may change them.
 *
 * A frame that tells where to go on has a mark in the context's reserved words, which the kernel leaves alone:
 *
 *     cookie ^ address of the frame | new address | original address | what is kept, 0: nothing
 *                                   | the instruction's new place | in front of its snippets?
 *
 * Where something waits in the thread's slots, the frame moves down to make room for what is kept of them:
 *
 *     sp: frame, as shown | kept | the kernel's own frame | vector state
 *
 * It also moves when the kernel used Inlay's alternate stack and the program has none: below what the program
 * has on its stack, with its vector state. A handler that never returns leaves nothing behind but its stack.
 *
 * rt_sigreturn comes through the gate. Where the handler left the address alone the thread goes on exactly where
 * it was, junk included, with what the handler changed in the registers and slots; where it is another address
 * of code that has moved, at the new place, before its snippets. */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "moved/private.h"
#include "moved/x86_64/frames.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigframe.h"

/* clang-format off */
enum {
    LEGACY = 512, SW_RESERVED = 464, FP_MAGIC = 0x46505853,
    MARK = 0, MARK_NEW, MARK_OLD, MARK_KEPT, MARK_PLACE, MARK_BEFORE,
};
/* clang-format on */

typedef struct kept { /* of interrupted code, in the thread's frame and in registers of the weaver's */
    uint64_t words[(offsetof(weave_frame, tool_tls_base) - offsetof(weave_frame, slot)) / 8];
    uint8_t elements[128];
    uint64_t gpr[16], flags, resume;
    weave_parked state;
} kept;
_Static_assert(sizeof(kept) + sizeof(run_frame) + 64 <= MOVED_FRAME_RESERVE, "see gate.S");

static uint64_t mark_of(uint64_t at)
{
    static uint64_t cookie;
    if (!cookie) {
        uint64_t random = (uint64_t)(uintptr_t)&cookie;
        sys_call3(SYS_getrandom, (long)&random, sizeof random, 0);
        cookie = random | 1;
    }
    return cookie ^ at;
}

/* --- on the way to the handler --- */

static void show_registers(run_frame *f, const weave_context *c, uint64_t pc)
{
    for (int r = 0; r < 16; r++) f->mc.gregs[run_frame_place((unsigned)r)] = (greg_t)c->gpr[r];
    f->mc.gregs[REG_EFL] = (greg_t)c->flags;
    f->mc.gregs[REG_RIP] = (greg_t)pc;
}

/* While the program has no alternate stack it sees none. The kernel takes one that disarms itself away for any
 * handler. */
static void hide_stack(run_thread *t, run_frame *f)
{
    if (t->altstack.ss_flags & (int)SS_AUTODISARM) t->altstack = (stack_t){.ss_flags = SS_DISABLE};
    if (f->stack.ss_sp == t->signal_stack) f->stack = (stack_t){.ss_flags = SS_DISABLE};
}

static bool is_on_our_stack(const run_thread *t, uint64_t sp)
{
    return sp - (uint64_t)(uintptr_t)t->signal_stack < t->signal_stack_size;
}

static void keep(const run_thread *t, const run_frame *f, const moved_where *at, kept *k)
{
    memcpy(k->words, t->frame.slot, sizeof k->words);
    memcpy(k->elements, t->frame.element_mask, sizeof k->elements);
    for (int r = 0; r < 16; r++) k->gpr[r] = (uint64_t)f->mc.gregs[run_frame_place((unsigned)r)];
    k->flags = (uint64_t)f->mc.gregs[REG_EFL];
    k->resume = t->ctx.pc;
    k->state = at->state;
}

static size_t vector_bytes(const uint8_t *state)
{
    uint32_t magic, size;
    memcpy(&magic, state + SW_RESERVED, 4);
    memcpy(&size, state + SW_RESERVED + 4, 4);
    return magic == FP_MAGIC ? size : LEGACY;
}

/* Further down, or onto the program's own stack. 0: there is no room. */
static uint64_t move_down(run_frame f, uint64_t from, const kept *k, bool to_own_stack)
{
    uint64_t low = from;
    if (to_own_stack) low = (uint64_t)f.mc.gregs[REG_RSP] - RUN_RED_ZONE;
    if (to_own_stack && f.mc.fpregs) {
        size_t n = vector_bytes((const uint8_t *)f.mc.fpregs);
        low = (low - n) & ~63ull;
        if (!run_write(low, f.mc.fpregs, n)) return 0;
        f.mc.fpregs = (fpregset_t)low;
    }
    if (k) {
        low = (low - sizeof *k) & ~15ull;
        if (!run_write(low, k, sizeof *k)) return 0;
        f.mc.__reserved1[MARK_KEPT] = low;
    }
    low = ((low - sizeof f - 8) & ~15ull) + 8;
    if (f.mc.__reserved1[MARK]) f.mc.__reserved1[MARK] = mark_of(low);
    return run_write(low, &f, sizeof f) ? low : 0;
}

uint64_t moved_frame_show(run_thread *t, uint64_t sp, const moved_where *at, const weave_context *c)
{
    run_frame *f = (run_frame *)sp;
    kept k;
    uint64_t pc = (uint64_t)f->mc.gregs[REG_RIP];
    bool keeps = at->kind == MOVED_KEPT, astray = is_on_our_stack(t, sp);
    hide_stack(t, f);
    memset(f->mc.__reserved1, 0, sizeof f->mc.__reserved1);
    if (at->kind != MOVED_PLAIN) {
        siginfo_t *info = (siginfo_t *)f->info;
        if (keeps) keep(t, f, at, &k);
        if (at->is_fault && (uint64_t)(uintptr_t)info->si_addr == pc) info->si_addr = (void *)(uintptr_t)at->pc;
        show_registers(f, c, at->pc);
        f->mc.__reserved1[MARK] = mark_of(sp);
        f->mc.__reserved1[MARK_NEW] = pc;
        f->mc.__reserved1[MARK_OLD] = at->pc;
        f->mc.__reserved1[MARK_PLACE] = at->place;
        f->mc.__reserved1[MARK_BEFORE] = at->before;
    }
    return keeps || astray ? move_down(*f, sp, keeps ? &k : NULL, astray) : sp;
}

/* --- and back --- */

/* Every slot holds what its register does: right for whatever the code at hand believes. */
static void fill_slots(run_thread *t, const run_frame *f)
{
    for (int r = 0; r < 16; r++) t->frame.slot[r] = (uint64_t)f->mc.gregs[run_frame_place((unsigned)r)];
    t->frame.flags = run_flags_packed((uint64_t)f->mc.gregs[REG_EFL]);
}

static void put_back(run_thread *t, run_frame *f, const kept *k)
{
    greg_t *g = f->mc.gregs;
    bool moved = moved_at(f->mc.__reserved1[MARK_NEW]);
    memcpy(t->frame.slot, k->words, sizeof k->words);
    memcpy(t->frame.element_mask, k->elements, sizeof k->elements);
    t->ctx.pc = k->resume;
    if (moved) fill_slots(t, f);
    unsigned ours = (k->state.spilled & ~WEAVE_AHEAD) | k->state.junk;
    for (int r = 0; r < 16; r++)
        if (ours >> r & 1) g[run_frame_place((unsigned)r)] = (greg_t)k->gpr[r];
    if (k->state.spilled & WEAVE_AHEAD) g[REG_RSI] += (greg_t)t->frame.app_gs_base;
    if (k->state.flags_saved)
        g[REG_EFL] = (greg_t)(((uint64_t)g[REG_EFL] & ~(uint64_t)RUN_ARITHMETIC) | (k->flags & RUN_ARITHMETIC));
}

static void go_back(run_thread *t, run_frame *f, uint64_t at)
{
    unsigned long long *mark = f->mc.__reserved1;
    uint64_t pc = (uint64_t)f->mc.gregs[REG_RIP], to;
    kept k;
    if (mark[MARK] == mark_of(at) && mark[MARK_OLD] == pc) {
        f->mc.gregs[REG_RIP] = (greg_t)mark[MARK_NEW];
        if (mark[MARK_PLACE]) moved_enter_run(t, mark[MARK_PLACE], mark[MARK_BEFORE]);
        if (!mark[MARK_KEPT]) fill_slots(t, f);
        else if (run_read(&k, mark[MARK_KEPT], sizeof k)) put_back(t, f, &k);
    } else if ((to = moved_to(pc)) != 0) {
        f->mc.gregs[REG_RIP] = (greg_t)to;
        moved_enter_run(t, to, true);
        fill_slots(t, f);
    }
}

/* The alternate stack is what the frame says, but never none. */
static void take_stack(run_thread *t, run_frame *f)
{
    stack_t *s = &f->stack;
    int mode = s->ss_flags & ~(int)SS_AUTODISARM;
    if (!run_altstack_active(t, (uint64_t)f->mc.gregs[REG_RSP])) {
        if (mode == SS_DISABLE) t->altstack = (stack_t){.ss_flags = SS_DISABLE};
        else if ((mode == 0 || mode == SS_ONSTACK) && s->ss_size >= 2048) t->altstack = *s;
    }
    if (!t->altstack.ss_size) *s = (stack_t){.ss_sp = t->signal_stack, .ss_size = t->signal_stack_size};
}

void moved_sigreturn(run_thread *t)
{
    uint64_t at = run_sp(&t->ctx) - 8;
    run_frame f;
    if (run_read(&f, at, offsetof(run_frame, info))) {
        go_back(t, &f, at);
        take_stack(t, &f);
        run_write(at, &f, offsetof(run_frame, info));
    }
    t->where = RUN_IN_CODE;
    run_sigreturn_now(at + 8, t->ctx.tls_base);
}

/* Code of the usual form does not if it is still whole. */
bool moved_returns_by_gate(uint64_t restorer)
{
    static const uint8_t short_form[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05},
                         long_form[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
    uint8_t code[sizeof long_form];
    for (int jumps = 0; jumps < 4; jumps++) {
        int32_t distance;
        if (!run_read(code, restorer, sizeof code)) return false;
        if (code[0] != 0xe9 && code[0] != 0xeb) break;
        memcpy(&distance, code + 1, sizeof distance);
        restorer += code[0] == 0xe9 ? 5 + (uint64_t)(int64_t)distance : 2 + (uint64_t)(int8_t)code[1];
    }
    return memcmp(code, short_form, sizeof short_form) && memcmp(code, long_form, sizeof long_form);
}
