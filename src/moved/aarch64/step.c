/* Single steps on AArch64, whose programs have no trap flag. The instruction is executed elsewhere: a copy of it, with
 * a breakpoint behind it, in a page of the thread's own (in its block, where engines have tables: this one has none);
 * what depends on its place is carried out on the registers first, and nothing but the breakpoint is executed.
 *
 *     copy | brk: behind it | brk: its branch was taken | ... | a literal that it loads
 *
 * A reservation does not survive a trap: what is between an exclusive load and its store is copied as one. The page is
 * never writable while it can be executed.
 *
 * The first step is not always made by a signal's handler: while an analysis routine runs, woven code is asked to stop
 * when it returns (weave_frame.stops), by a breakpoint of its own. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/page.h"
#include "base/sys.h"
#include "isa/aarch64/move.h"
#include "moved/private.h"
#include "moved/text.h"
#include "run/aarch64/abi.h"

enum { INSN = 4, MOST = 16, LITERAL = 128, BRK = 0xd4200000, SVC = 0xd4000001, STOP = BRK | WEAVE_STOP << 5 };

static uint64_t page_of(const run_thread *t) { return (uint64_t)(uintptr_t)t + WEAVE_IBL; }

typedef struct copy {
    isa_insn in; /* the first */
    uint32_t words[MOST + 2];
    unsigned count; /* of copied instructions */
    uint64_t next, taken;
    const void *literal;
} copy;

static bool decode(uint64_t pc, isa_insn *in)
{
    isa_result r = isa_aarch64.decode((const uint8_t *)pc, INSN, pc, in);
    return r == ISA_OK || r == ISA_UNKNOWN;
}

/* --- what depends on its place --- */

static void jump(mcontext_t *mc, copy *c, uint64_t to, bool links)
{
    if (links) mc->regs[RUN_X30] = c->in.addr + INSN;
    c->next = to;
    c->count = 0;
}

static uint64_t register_of(const mcontext_t *mc, unsigned r) { return r < RUN_SP ? mc->regs[r] : 0; }

static bool copy_branch(mcontext_t *mc, copy *c)
{
    uint32_t word = a64_word(&c->in);
    uint64_t to = register_of(mc, word >> 5 & 31);
    switch (c->in.flow) {
    case ISA_FLOW_JUMP:
    case ISA_FLOW_CALL: jump(mc, c, c->in.target, c->in.flow == ISA_FLOW_CALL); return true;
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND:
    case ISA_FLOW_RETURN: /* br, blr, ret: none with a signature in it */
        if ((word & 0xff9ffc1f) != 0xd61f0000) return false;
        jump(mc, c, to, c->in.flow == ISA_FLOW_CALL_IND);
        return true;
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG: c->taken = c->in.target; return a64_retarget(&c->words[0], 0, 2 * INSN);
    default: return false;
    }
}

static bool is_address(uint32_t word) { return (word & 0x1f000000) == 0x10000000; } /* adr, adrp */
static bool is_literal(uint32_t word) { return (word & 0x3b000000) == 0x18000000; } /* ldr, ldrsw, prfm */

static uint64_t address(const isa_insn *in)
{
    uint32_t word = a64_word(in);
    int64_t distance = (int64_t)((uint64_t)(word >> 5 & 0x7ffff) << 45) >> 43 | (word >> 29 & 3);
    return a64_is_page(in) ? (in->addr & ~4095ull) + (uint64_t)distance * 4096 : in->addr + (uint64_t)distance;
}

static void copy_relative(mcontext_t *mc, copy *c)
{
    uint32_t word = a64_word(&c->in);
    if (is_address(word)) {
        if ((word & 31) < RUN_SP) mc->regs[word & 31] = address(&c->in);
        jump(mc, c, c->in.addr + INSN, false);
    } else if (is_literal(word)) {
        c->literal = (const void *)(uintptr_t)(c->in.addr + (uint64_t)((int64_t)((uint64_t)word << 40) >> 45) * 4);
        c->words[0] = (word & ~(0x7ffffu << 5)) | LITERAL / INSN << 5;
    }
}

/* --- the copy --- */

/* Up to the store that belongs to it, with nothing between them that depends on its place. */
static bool copy_exclusive(copy *c)
{
    isa_insn in;
    do {
        uint64_t pc = c->in.addr + INSN * c->count;
        if (c->count == MOST || !decode(pc, &in) || in.flow != ISA_FLOW_NEXT) return false;
        c->words[c->count++] = a64_word(&in);
        if (is_address(a64_word(&in)) || is_literal(a64_word(&in))) return false;
    } while (!(in.bits & ISA_BIT_EXCLUSIVE_STORE));
    c->next = c->in.addr + INSN * c->count;
    return true;
}

static bool make_copy(mcontext_t *mc, copy *c)
{
    if (!decode(mc->pc, &c->in)) return false;
    c->words[0] = a64_word(&c->in);
    c->count = 1;
    c->next = mc->pc + INSN;
    if (c->in.bits & ISA_BIT_EXCLUSIVE_LOAD) {
        c->count = 0;
        return copy_exclusive(c);
    }
    if (c->in.flow != ISA_FLOW_NEXT) return copy_branch(mc, c);
    copy_relative(mc, c);
    return true;
}

static bool put_copy(const run_thread *t, copy *c)
{
    uint64_t page = page_of(t);
    c->words[c->count] = c->words[c->count + 1] = BRK;
    moved_text text;
    if (!moved_text_open(&text, page, page + INL_PAGE)) return false;
    bool good = moved_text_put(&text, page, c->words, sizeof c->words);
    if (c->literal) good = moved_text_put(&text, page + LITERAL, c->literal, 16) && good;
    return moved_text_close(&text) && good;
}

bool moved_uc_step(run_thread *t, void *uc, bool on)
{
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    moved_own *own = moved_of(t);
    copy c = {.literal = NULL};
    if (!on) return true; /* moved_step_ended has taken the thread out of the page */
    uint64_t from = mc->pc;
    if (!make_copy(mc, &c) || !put_copy(t, &c)) return false;
    own->step = (moved_step){.from = from, .next = c.next, .taken = c.taken, .count = c.count};
    mc->pc = page_of(t);
    return true;
}

/* In the page: back to where the instruction is, or to where it has led. Is it done? */
static bool leave_page(const run_thread *t, mcontext_t *mc, uint64_t offset)
{
    const moved_step *s = &moved_of(t)->step;
    bool done = offset >= INSN * s->count;
    if (!done) mc->pc = s->from + offset;
    else mc->pc = offset > INSN * s->count ? s->taken : s->next;
    return done;
}

moved_stepped moved_step_ended(run_thread *t, siginfo_t *info, void *uc)
{
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    bool trapped = info->si_signo == SIGTRAP && info->si_code > 0;
    uint64_t offset = mc->pc - page_of(t);
    if (offset < LITERAL) return leave_page(t, mc, offset) && trapped ? MOVED_STEP_ENDED : MOVED_STEP_CUT;
    if (!trapped || !moved_at(mc->pc) || *(const uint32_t *)mc->pc != STOP) return MOVED_NO_STEP;
    t->frame.stops = 0;
    mc->pc += INSN;
    return MOVED_STEP_ENDED;
}

void moved_stop_after_routine(run_thread *t) { t->frame.stops = 1; }

/* Programs cannot make any. */
bool moved_is_step(const siginfo_t *info)
{
    (void)info;
    return false;
}

bool moved_uc_steps(const void *uc)
{
    (void)uc;
    return false;
}

bool moved_sets_flags(uint64_t pc)
{
    (void)pc;
    return false;
}

/* One instruction takes the place of one: there are no springboards. */
uint64_t moved_jumps_to(uint64_t pc)
{
    (void)pc;
    return 0;
}

bool moved_is_syscall(uint64_t pc) { return *(const uint32_t *)pc == SVC; }

unsigned moved_fault_back(const siginfo_t *info, const void *uc)
{
    (void)uc;
    return info->si_signo == SIGSYS ? RUN_SYSCALL_BYTES : 0;
}
