/* Whoever holds a process may be killed at any moment, and the kernel lets its threads go on from where they stand. So
 * they stand where that is right:
 *
 *     parked      in a small area of code and frames (move/live.h, <isa>/park.S), from where each goes on by
 *                 rt_sigreturn with registers, vector state and mask of its own
 *     calls       made there by a parked thread, and so it comes back to the same place
 *     alone       the calls that make and unmake the area itself: a frame lies below the thread's own stack, and the
 *                 thread stands at a way to rt_sigreturn, put into the padding behind the vdso. At the stop in front of
 *                 that call another one is put in its place, which will come back to the same way.
 *
 * Each step (a request of ptrace, a write) leads from one such state to another. What a parked thread does for the
 * holder in code of the tool's (starting it, taking it out) goes on when the holder has died, and the other threads
 * wait for it (live_works): it must end in frames that hold what is right then. */
#include "live/live.h"
#include "base/page.h"
#include "base/sys.h"
#include "move/live.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM_BELOW = 16 << 10, SPARE = 64 }; /* for a handler in a slot; slots for threads to come */

static uint64_t stride(void) { return inl_page_up(remote_slot_size()) + ROOM_BELOW; }
static uint64_t slot_at(size_t n) { return MOVE_PARK_DATA + MOVE_PARK_DATA_SIZE + n * stride() + ROOM_BELOW; }
static uint64_t area_end(const live_process *p) { return slot_at(p->slots) - ROOM_BELOW; }

/* --- the area --- */

/* By any thread whose stack has room. */
static inl_status call_alone(live_process *p, long *answer, long nr, const long args[6], inl_error *e)
{
    inl_status s = INL_ERR_RANGE;
    if (!live_put_return(p))
        return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d has no way back from a signal's handler", p->pid);
    for (size_t i = 0; i < p->threads.count && s == INL_ERR_RANGE; i++)
        s = remote_call_alone(&p->threads.items[i], p->returns_at, answer, nr, args, e);
    live_take_return(p);
    if (s != INL_ERR_RANGE) return s;
    if (p->threads.items[0].gone) return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended", p->pid);
    return inl_fail(e, s, "no thread of process %d has room below its stack", p->pid);
}

static inl_status map_at(live_process *p, uint64_t at, uint64_t size, int prot, long *answer, inl_error *e)
{
    const long args[6] = {(long)at, (long)size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                          -1,       0};
    return call_alone(p, answer, SYS_mmap, args, e);
}

static inl_status unmap_area(live_process *p, uint64_t size, inl_error *e)
{
    long answer;
    return call_alone(p, &answer, SYS_munmap, (const long[6]){(long)MOVE_PARK_BASE, (long)size}, e);
}

/* Will somebody come back who was sent into a procedure? */
static bool any_calls(live_process *p, uint64_t end)
{
    inl_error ignored;
    for (size_t n = 0; slot_at(n) < end; n++) {
        uint64_t calls = 0, at = slot_at(n) + offsetof(move_park_slot, calls);
        if (remote_read(&p->threads.items[0], at, &calls, sizeof calls, &ignored) == INL_OK && calls) return true;
    }
    return false;
}

/* It is empty, or has the code alone. */
static bool is_begun(live_process *p)
{
    inl_error ignored;
    size_t size;
    const uint8_t *code = remote_park_code(&size);
    uint8_t *there = malloc(INL_PAGE);
    bool good = there && remote_read(&p->threads.items[0], MOVE_PARK_BASE, there, INL_PAGE, &ignored) == INL_OK;
    bool has_code = good && !memcmp(there, code, size);
    for (size_t i = has_code ? size : 0; i < INL_PAGE && good; i++) good = !there[i];
    free(there);
    return good;
}

/* What somebody who was killed has left: nobody is in it any more, or soon. */
static inl_status clear_left(live_process *p, inl_error *e)
{
    move_park old;
    inl_status s = remote_read(&p->threads.items[0], MOVE_PARK_DATA, &old, offsetof(move_park, gone), e);
    if (s == INL_OK && old.magic != MOVE_PARK_MAGIC && !(old.magic == 0 && is_begun(p)))
        return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d has something at 0x%llx, where Inlay needs room", p->pid,
                        (unsigned long long)MOVE_PARK_BASE);
    bool used = s == INL_OK && old.works;
    uint64_t end = MOVE_PARK_BASE;
    if (s == INL_OK) s = live_read_maps(p, e);
    for (size_t i = 0; i < p->mappings.count; i++)
        if (p->mappings.items[i].low == end) end = p->mappings.items[i].high;
    used = used || any_calls(p, end);
    for (size_t i = 0; i < p->threads.count; i++) {
        const struct user_regs_struct *u = &p->threads.items[i].regs;
        used = used || remote_registers_pc(u) - MOVE_PARK_BASE < end - MOVE_PARK_BASE ||
               remote_registers_sp(u) - MOVE_PARK_BASE < end - MOVE_PARK_BASE;
    }
    if (s != INL_OK) return s;
    if (!used) return unmap_area(p, end - MOVE_PARK_BASE, e);
    p->is_busy = true;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d is still at what somebody has begun who was killed", p->pid);
}

static inl_status map_area(live_process *p, inl_error *e)
{
    long answer = 0;
    p->slots = 2 * p->threads.count + SPARE;
    uint64_t size = area_end(p) - MOVE_PARK_BASE;
    inl_status s = map_at(p, MOVE_PARK_BASE, size, PROT_READ | PROT_WRITE, &answer, e);
    if (s == INL_OK && answer == -EEXIST) {
        s = clear_left(p, e);
        if (s == INL_OK) s = map_at(p, MOVE_PARK_BASE, size, PROT_READ | PROT_WRITE, &answer, e);
    }
    if (s == INL_OK && answer != (long)MOVE_PARK_BASE)
        s = inl_fail(e, INL_ERR_NO_MEMORY, "process %d has no room at 0x%llx: %s (its limits are in /proc/%d/limits)",
                     p->pid, (unsigned long long)MOVE_PARK_BASE, strerror((int)-answer), p->pid);
    return s;
}

/* A program may have given up the right to make code. */
static inl_status refuse_code(live_process *p, long answer, inl_error *e)
{
    inl_error ignored;
    unmap_area(p, area_end(p) - MOVE_PARK_BASE, &ignored);
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "process %d may not map executable memory: %s (a security module?); start it without, or under the "
                    "tool (inlay rewrite)",
                    p->pid, strerror((int)-answer));
}

/* Where nothing may become executable: memory that is so from its beginning, written to as a debugger does. */
static inl_status write_code(live_process *p, const uint8_t *code, size_t size, inl_error *e)
{
    const long args[6] = {(long)MOVE_PARK_BASE,
                          (long)(MOVE_PARK_DATA - MOVE_PARK_BASE),
                          PROT_READ | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                          -1,
                          0};
    long answer;
    inl_status s = call_alone(p, &answer, SYS_mmap, args, e);
    if (s == INL_OK && answer != (long)MOVE_PARK_BASE) return refuse_code(p, answer, e);
    return s == INL_OK ? remote_patch(&p->threads.items[0], MOVE_PARK_BASE, code, size, e) : s;
}

static inl_status make_area(live_process *p, inl_error *e)
{
    size_t size;
    const uint8_t *code = remote_park_code(&size);
    move_park park = {.magic = MOVE_PARK_MAGIC, .first = slot_at(0)};
    long answer;
    inl_status s = map_area(p, e);
    remote *r = &p->threads.items[0];
    if (s == INL_OK) s = remote_write(r, MOVE_PARK_BASE, code, size, e);
    if (s == INL_OK) s = remote_write(r, MOVE_PARK_DATA, &park, offsetof(move_park, gone), e);
    const long args[6] = {(long)MOVE_PARK_BASE, (long)(MOVE_PARK_DATA - MOVE_PARK_BASE), PROT_READ | PROT_EXEC};
    if (s == INL_OK) s = call_alone(p, &answer, SYS_mprotect, args, e);
    if (s == INL_OK && answer) s = write_code(p, code, size, e);
    if (s == INL_OK) p->has_park = true;
    return s;
}

/* --- threads --- */

inl_status live_park(live_process *p, inl_error *e)
{
    inl_status s = p->has_park ? INL_OK : make_area(p, e);
    for (size_t i = 0; i < p->threads.count && s == INL_OK; i++) {
        remote *r = &p->threads.items[i];
        if (r->is_parked) continue;
        if (!r->slot && p->slots_used == p->slots)
            return inl_fail(e, INL_ERR_SYSTEM, "process %d makes threads faster than they can be stopped", p->pid);
        r->is_first = i == 0;
        if (!r->slot) r->slot = slot_at(p->slots_used++);
        s = remote_park(r, e);
    }
    return s;
}

inl_status live_frames_tell(live_process *p, inl_error *e)
{
    inl_status s = INL_OK;
    for (size_t i = 0; i < p->threads.count && s == INL_OK; i++)
        if (p->threads.items[i].is_parked) s = remote_tell(&p->threads.items[i], e);
    return s;
}

void live_unpark(live_process *p)
{
    inl_error ignored;
    if (!p->has_park) return;
    live_works(p, false, &ignored);
    for (size_t i = 0; i < p->threads.count; i++)
        if (!p->threads.items[i].gone) remote_unpark(&p->threads.items[i], &ignored);
    unmap_area(p, area_end(p) - MOVE_PARK_BASE, &ignored);
    p->has_park = false;
    p->slots = p->slots_used = p->gone = 0;
    for (size_t i = 0; i < p->threads.count; i++) p->threads.items[i].slot = 0;
}

/* What a child has used up is its parent's who waits for it (RUSAGE_CHILDREN, times): the program would find what the
 * tool's way into it has cost. Nothing stays of one that vanishes at its end. Where the program has children of its own
 * from before its exec, which an ordinary wait would find, they must not vanish. */
static inl_status let_vanish(remote *r, inl_error *e)
{
    const uint64_t at = MOVE_PARK_DATA + offsetof(move_park, action), yes = 1;
    const struct {
        uint64_t handler, flags, restorer, mask;
    } vanishing = {.flags = SA_NOCLDWAIT};
    const long any[6] = {P_ALL, 0, 0, WEXITED | WNOHANG | WNOWAIT};
    const long change[6] = {SIGCHLD, (long)at, (long)at, sizeof vanishing.mask};
    long answer = 0;
    inl_status s = remote_call(r, &answer, SYS_waitid, any, e);
    if (s != INL_OK || answer != -ECHILD) return s;
    s = remote_write(r, at, &vanishing, sizeof vanishing, e);
    if (s == INL_OK) s = remote_call(r, &answer, SYS_rt_sigaction, change, e);
    if (s != INL_OK || answer != 0) return s;
    return remote_write(r, MOVE_PARK_DATA + offsetof(move_park, vanishes), &yes, sizeof yes, e);
}

/* A program's child whose work ends with this is still there, by its traces, until it has ended: the program goes on
 * only then. What it stands in stays, for whoever comes next to clear. */
inl_status live_leave_parent(live_process *p, inl_error *e)
{
    const uint64_t child = (uint64_t)getpid();
    remote *r = &p->threads.items[0];
    inl_status s = live_works(p, false, e);
    if (s == INL_OK) s = remote_write(r, MOVE_PARK_DATA + offsetof(move_park, child), &child, sizeof child, e);
    if (s == INL_OK) s = let_vanish(r, e);
    if (s == INL_OK) s = remote_leave_parked(r, e);
    p->threads.count = p->seized.count = 0;
    return s;
}

/* --- what the first thread does --- */

inl_status live_works(live_process *p, bool works, inl_error *e)
{
    const uint64_t words[2] = {works, works ? p->gone : 0};
    if (!p->has_park) return INL_OK;
    if (!works) p->gone = 0;
    return remote_write(&p->threads.items[0], MOVE_PARK_DATA + offsetof(move_park, works), words, sizeof words, e);
}

inl_status live_stays(live_process *p, const uint64_t *words, size_t count, inl_error *e)
{
    uint64_t at[REMOTE_WORDS_MOST], values[REMOTE_WORDS_MOST];
    remote *r = &p->threads.items[0];
    size_t n = 0;
    inl_status s = INL_OK;
    for (size_t i = 0; i < count && s == INL_OK; i++) {
        at[n] = words[i], values[n++] = 1;
        if (n < REMOTE_WORDS_MOST - 2) continue;
        s = remote_write_words(r, at, values, n, e); /* so many at a time */
        n = 0;
    }
    if (p->has_park) {
        at[n] = MOVE_PARK_DATA + offsetof(move_park, works), values[n++] = 0;
        at[n] = MOVE_PARK_DATA + offsetof(move_park, gone_count), values[n++] = 0;
    }
    p->gone = 0;
    return s == INL_OK ? remote_write_words(r, at, values, n, e) : s;
}

inl_status live_calls(live_process *p, remote *r, bool calls, inl_error *e)
{
    const uint64_t word = calls;
    if (!p->has_park) return INL_OK;
    return remote_write(r, r->slot + offsetof(move_park_slot, calls), &word, sizeof word, e);
}

inl_status live_closed(live_process *p, inl_error *e)
{
    const uint64_t none = 0;
    if (!p->has_park) return INL_OK;
    return remote_write(&p->threads.items[0], MOVE_PARK_DATA + offsetof(move_park, closes), &none, sizeof none, e);
}

inl_status live_goes(live_process *p, uint64_t low, uint64_t high, inl_error *e)
{
    const move_told_range range = {low, inl_page_up(high)};
    const uint64_t count = p->gone + 1;
    remote *r = &p->threads.items[0];
    if (!p->has_park) return INL_OK;
    if (count > MOVE_PARK_GONE_MOST) return inl_fail(e, INL_ERR_RANGE, "too many mappings");
    inl_status s = remote_write(r, MOVE_PARK_DATA + offsetof(move_park, gone) + p->gone * sizeof range, &range,
                                sizeof range, e);
    if (s == INL_OK) s = remote_write(r, MOVE_PARK_DATA + offsetof(move_park, gone_count), &count, sizeof count, e);
    if (s == INL_OK) p->gone = count;
    return s;
}

inl_status live_go_all(live_process *p, const move_told_range *ranges, const uint64_t *clears, size_t count,
                       inl_error *e)
{
    uint64_t at[LIVE_GO_MOST + 1], values[LIVE_GO_MOST + 1] = {0};
    size_t n = 0;
    remote *r = &p->threads.items[0];
    inl_status s = INL_OK;
    if (p->has_park) {
        s = remote_write(r, MOVE_PARK_DATA + offsetof(move_park, gone), ranges, count * sizeof *ranges, e);
        at[n] = MOVE_PARK_DATA + offsetof(move_park, gone_count);
        values[n++] = count;
    }
    for (size_t i = 0; i < count; i++)
        if (clears[i]) at[n++] = clears[i];
    return s == INL_OK ? remote_write_words(r, at, values, n, e) : s;
}
