/* Sequences of a load-exclusive and its store-exclusive: a stop between them clears the monitor, and the store fails
 * for ever. They are run in one go, to breakpoints at each of their exits:
 *
 *         ldaxr  x2, [x0]     begin: the stepper stands here
 *         cmp    x2, x3
 *         b.ne   out          an exit; more of them may lead elsewhere
 *         stlxr  w4, x1, [x0] end
 *         cbnz   w4, begin    ordinary steps again
 *
 * What has been executed follows from the exit, as long as every exit has a target of its own and no branch stays
 * inside; other sequences are refused. An interrupt or a page fault between makes the store fail just so: then the
 * registers are put back, and the sequence is run again as though nothing had been, so that the counts are those of an
 * undisturbed run and the same every time. Single-threaded programs see no other failure. A load-exclusive with no
 * store behind it on the straight way is stepped. */
#include "stepper.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { MAX_EXITS = 4, BREAKPOINT = 0xd4200000 /* brk #0 */ };

typedef struct exit_of {
    uint64_t from, to; /* executed last; stopped at */
    uint32_t kept;     /* what the breakpoint lies on */
} exit_of;

typedef struct sequence {
    uint64_t begin, end;
    uint32_t store; /* what stands at `end` */
    exit_of exits[MAX_EXITS];
    int n;
} sequence;

/* Of any size, or a pair: size:2 001000 0 L pair:1 ...; a pair of less than 32 bits is compare and swap. */
static bool exclusive(uint32_t w)
{
    bool pair = w >> 21 & 1;
    return (w & 0x3f800000) == 0x08000000 && (!pair || w >> 31);
}

static bool begins(uint32_t w) { return exclusive(w) && (w >> 22 & 1); }
static bool ends(uint32_t w) { return exclusive(w) && !(w >> 22 & 1); }

static bool read_word(pid_t pid, uint64_t at, uint32_t *w)
{
    struct iovec to = {w, sizeof *w}, from = {(void *)at, sizeof *w};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof *w;
}

static bool write_word(pid_t pid, uint64_t at, uint32_t w)
{
    uint64_t whole = at & ~7ull;
    errno = 0;
    long old = ptrace(PTRACE_PEEKTEXT, pid, whole, NULL);
    if (errno) return false;
    memcpy((char *)&old + (at - whole), &w, sizeof w);
    return ptrace(PTRACE_POKETEXT, pid, whole, old) == 0;
}

/* Where a conditional branch at `pc` leads. */
static uint64_t target_of(uint32_t w, uint64_t pc)
{
    bool tests_bit = (w & 0x7e000000) == 0x36000000;
    int64_t words = tests_bit ? (int32_t)(w << 13) >> 18 : (int32_t)(w << 8) >> 13;
    return pc + (uint64_t)words * 4;
}

static bool add_exit(sequence *s, uint64_t from, uint64_t to)
{
    for (int i = 0; i < s->n; i++)
        if (s->exits[i].to == to) return false;
    if (s->n == MAX_EXITS) return false;
    s->exits[s->n++] = (exit_of){.from = from, .to = to};
    return true;
}

/* Exits to where nothing else of the sequence is. */
static bool clear(const sequence *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->exits[i].to >= s->begin && s->exits[i].to <= s->end) return false;
    return true;
}

static step_way find(pid_t pid, uint64_t pc, sequence *s)
{
    uint32_t w;
    *s = (sequence){.begin = pc};
    if (!read_word(pid, pc, &w) || !begins(w)) return STEP_ALONE;
    bool told_apart = true;
    for (uint64_t at = pc + 4; at < pc + 4 * STEP_TOGETHER; at += 4) {
        unsigned length;
        if (!read_word(pid, at, &w) || begins(w)) return STEP_ALONE;
        if (ends(w)) {
            s->end = at;
            s->store = w;
            return add_exit(s, at, at + 4) && told_apart && clear(s) ? STEP_RUN : STEP_UNKNOWN;
        }
        step_kind kind = step_flow((const uint8_t *)&w, sizeof w, &length);
        if (kind == STEP_CONDITIONAL) told_apart = add_exit(s, at, target_of(w, at)) && told_apart;
        else if (kind != STEP_PLAIN) return STEP_ALONE;
    }
    return STEP_ALONE;
}

static bool put_breakpoints(pid_t pid, sequence *s)
{
    for (int i = 0; i < s->n; i++) {
        exit_of *e = &s->exits[i];
        if (!read_word(pid, e->to, &e->kept) || !write_word(pid, e->to, BREAKPOINT)) return false;
    }
    return true;
}

/* Also of a process that has ended, which is no matter. */
static void take_breakpoints(pid_t pid, const sequence *s)
{
    for (int i = 0; i < s->n; i++) write_word(pid, s->exits[i].to, s->exits[i].kept);
}

/* The last instruction that was executed before `now`; 0: none. */
static uint64_t last_before(const sequence *s, uint64_t now)
{
    for (int i = 0; i < s->n; i++)
        if (s->exits[i].to == now) return s->exits[i].from;
    return now > s->begin ? now - 4 : 0; /* a signal in the middle */
}

static bool registers(pid_t pid, int request, struct user_regs_struct *regs)
{
    struct iovec all = {regs, sizeof *regs};
    return ptrace(request, pid, (void *)NT_PRSTATUS, &all) == 0;
}

/* It stands behind the store, which was not done: an interrupt came between. */
static bool failed(const sequence *s, int status, const struct user_regs_struct *regs)
{
    unsigned told = s->store >> 16 & 31; /* the register that says so */
    return status >> 8 == SIGTRAP && regs->pc == s->end + 4 && told < 31 && (uint32_t)regs->regs[told] != 0;
}

/* As often as it takes; false: ptrace failed. `now`: the registers at the stop, nothing but 0 in a process that ended.
 */
static bool run_through(pid_t pid, const sequence *s, int *status, struct user_regs_struct *now)
{
    struct user_regs_struct before;
    if (!registers(pid, PTRACE_GETREGSET, &before)) return false;
    do {
        if (!registers(pid, PTRACE_SETREGSET, &before) || ptrace(PTRACE_CONT, pid, NULL, 0L) != 0) return false;
        if (waitpid(pid, status, 0) != pid) return false;
        *now = (struct user_regs_struct){0};
        if (WIFSTOPPED(*status) && !registers(pid, PTRACE_GETREGSET, now)) return false;
    } while (failed(s, *status, now));
    return true;
}

step_way step_together(pid_t pid, uint64_t pc, step_run *run)
{
    sequence s;
    step_way way = find(pid, pc, &s);
    if (way != STEP_RUN) return way;
    struct user_regs_struct now;
    if (!put_breakpoints(pid, &s) || !run_through(pid, &s, &run->status, &now)) return STEP_UNKNOWN;
    take_breakpoints(pid, &s);
    uint64_t last = last_before(&s, now.pc);
    run->n = 0;
    for (uint64_t at = pc; at <= last && run->n < STEP_TOGETHER; at += 4) run->at[run->n++] = at;
    return STEP_RUN;
}
