/* Threads of the program: their blocks, their start (clone, clone3, vfork) and their end.
 *
 * All that a thread needs is one mapping, which grows at its end (base/region.h):
 *
 *     guard | private stack | guard | signal stack | vectors | block (struct run_thread, tables,
 *                                                                 counters; demand-zero)
 *
 * A thread that ends puts its block on the free list itself, while it still stands on the block's
 * stack; its last store before the exit call, with all signals blocked, clears `busy`, and only then
 * may another thread take the block. Its counts go to run_here.dead_counters.
 *
 * A child that shares memory but is a process of its own (vfork, posix_spawn) has a block too, and is
 * not counted as a thread. While the parent sleeps for it, it is the parent to the tool: same
 * number, same thread-local block, same buffers.
 */
#include <errno.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/page.h"
#include "base/log.h"
#include "base/region.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "run/worker.h"
#include INL_ARCH_HEADER(run, abi)

enum {
    GUARD = INL_PAGE,
    STACK = 1 << 20,
    SIGNAL_STACK = 128 << 10,
    FIRST_COUNTERS = 8 << 10, /* mapped from the start, */
    STEP_COUNTERS = 32 << 10, /* and as many at once later */
    CLONE3_MIN = 64,          /* CLONE_ARGS_SIZE_VER0 */
};

static uint64_t *counters_of(run_thread *t) { return (uint64_t *)((char *)t + WEAVE_COUNTERS); }

/* --- blocks --- */

/* How much of a block is mapped, so that counter `count` - 1 is. Some engines make them as code comes. */
static size_t bytes_up_to_counter(uint64_t count)
{
    uint64_t first = run_here.engine->is_native ? run_here.client.counters : FIRST_COUNTERS;
    if (count < first) count = first;
    return inl_page_up(WEAVE_COUNTERS + count * sizeof(uint64_t));
}

static void note_counter_room(run_thread *t)
{
    uint64_t bytes = t->room.at + t->room.mapped - (uint64_t)(uintptr_t)counters_of(t);
    __atomic_store_n(&t->counter_room, (uint32_t)(bytes / sizeof(uint64_t)), __ATOMIC_RELEASE);
}

bool run_counters_reach(run_thread *t, uint64_t addr)
{
    uint64_t index = (addr - (uint64_t)(uintptr_t)counters_of(t)) / sizeof(uint64_t);
    if (addr < (uint64_t)(uintptr_t)counters_of(t) || index >= WEAVE_MAX_COUNTERS) return false;
    size_t before = (size_t)((uint64_t)(uintptr_t)t - t->room.at), step = STEP_COUNTERS;
    if (!inl_room_grow(&t->room, before + bytes_up_to_counter((index / step + 1) * step)) &&
        !inl_room_grow(&t->room, before + bytes_up_to_counter(index + 1)))
        return false;
    note_counter_room(t);
    return true;
}

static bool has_counters(run_thread *t, uint32_t count)
{
    return t->counter_room >= count || run_counters_reach(t, (uint64_t)(uintptr_t)(counters_of(t) + count - 1));
}

bool run_counters_extend(uint32_t count)
{
    bool good = true;
    if (count > run_here.client.counters) run_here.client.counters = count;
    for (run_thread *t = run_here.threads; t; t = t->next) good = has_counters(t, count) && good;
    for (run_thread *t = run_here.free_threads; t; t = t->next) good = has_counters(t, count) && good;
    return good;
}

static run_thread *map_block(void)
{
    size_t vectors = inl_page_up(run_vector_room());
    size_t before = GUARD + STACK + GUARD + SIGNAL_STACK + vectors;
    inl_room room;
    if (!inl_room_take(&room, before + WEAVE_BLOCK_SIZE + run_here.engine->room,
                       before + bytes_up_to_counter(run_here.dead_counters_high)))
        return NULL;
    sys_call3(SYS_madvise, (long)room.at, (long)room.mapped, MADV_NOHUGEPAGE);
    run_own(room.at, room.size, true);
    char *at = (char *)room.at;
    sys_call3(SYS_mprotect, (long)at, GUARD, PROT_NONE);
    char *stack = at += GUARD;
    at += STACK;
    sys_call3(SYS_mprotect, (long)at, GUARD, PROT_NONE);
    char *signal_stack = at += GUARD;
    char *vector_area = at += SIGNAL_STACK;
    run_thread *t = (run_thread *)(at + vectors);
    t->room = room;
    note_counter_room(t);
    t->stack_low = stack;
    t->stack_size = STACK;
    t->signal_stack = signal_stack;
    t->signal_stack_size = SIGNAL_STACK;
    t->frame.vector_area = vector_area;
    return t;
}

static void unmap_block(run_thread *t)
{
    inl_room room = t->room;
    run_own(room.at, room.size, false);
    if (run_here.engine->room) sys_call2(SYS_munmap, (long)((char *)t + WEAVE_BLOCK_SIZE), (long)run_here.engine->room);
    inl_room_give_back(&room);
}

/* Those behind are 0. */
static uint64_t counters_used(const run_thread *t)
{
    return t->counter_room < run_here.dead_counters_high ? t->counter_room : run_here.dead_counters_high;
}

static void forget_counts(run_thread *t)
{
    uint64_t groups = (run_here.banked_high + WEAVE_BANK_GROUP - 1) / WEAVE_BANK_GROUP;
    memset(counters_of(t), 0, counters_used(t) * sizeof(uint64_t));
    memset((char *)counters_of(t) - WEAVE_BANKS_SIZE, 0, groups * WEAVE_GROUP_SIZE);
}

/* A block whose last owner has left it for good. */
static run_thread *reuse_block(void)
{
    inl_lock_take(&run_here.lock);
    run_thread **at = &run_here.free_threads;
    while (*at && __atomic_load_n(&(*at)->busy, __ATOMIC_ACQUIRE)) at = &(*at)->next;
    run_thread *t = *at;
    if (t) *at = t->next;
    inl_lock_release(&run_here.lock);
    if (!t) return NULL;
    if (t->tls && run_here.client.tls_free) run_here.client.tls_free(run_here.client.arg, t->tls);
    run_thread kept = {.stack_low = t->stack_low,
                       .stack_size = t->stack_size,
                       .signal_stack = t->signal_stack,
                       .signal_stack_size = t->signal_stack_size,
                       .room = t->room,
                       .counter_room = t->counter_room};
    kept.frame.vector_area = t->frame.vector_area;
    kept.frame.heap_cache = t->frame.heap_cache;
    memcpy(t, &kept, sizeof kept);
    memset(t->frame.vector_area, 0, run_vector_room());
    forget_counts(t);
    return t;
}

static bool dead_counters_ready(void)
{
    const size_t most = WEAVE_MAX_COUNTERS * sizeof(uint64_t);
    if (run_here.dead_counters) return true;
    if (!inl_room_take(&run_here.dead_room, most, inl_page_up(FIRST_COUNTERS * sizeof(uint64_t)))) return false;
    run_own(run_here.dead_room.at, most, true);
    run_here.dead_counters = (uint64_t *)run_here.dead_room.at;
    return true;
}

static run_thread *new_block(bool is_apart)
{
    run_thread *t = dead_counters_ready() ? reuse_block() : NULL;
    if (!t && run_here.dead_counters) t = map_block();
    if (!t) return NULL;
    t->frame.self = &t->frame;
    t->frame.thread_number = is_apart ? UINT32_MAX
                                      : __atomic_fetch_add(&run_here.next_thread_number, 1, __ATOMIC_RELAXED);
    t->runtime_stack = (uint64_t)(uintptr_t)t->stack_low + t->stack_size;
    t->frame.tool_stack = t->runtime_stack;
    t->dispatch_entry = (uint64_t)(uintptr_t)run_leave_code;
    t->syscall_gate = (uint64_t)(uintptr_t)run_here.engine->gate;
    t->where = RUN_IN_RUNTIME;
    t->leave = RUN_LEAVE_START;
    t->busy = 1;
    t->altstack.ss_flags = SS_DISABLE;
    run_vectors_begin(t);
    if (run_here.engine->thread_made) run_here.engine->thread_made(t);
    return t;
}

static bool give_tls(run_thread *t)
{
    if (!run_here.threads || !run_here.client.tls_new) { /* the first thread has the libc's own */
        t->frame.tool_tls_base = run_tls_base();
        return true;
    }
    t->tls = run_here.client.tls_new(run_here.client.arg);
    if (!t->tls) return false;
    t->frame.tool_tls_base = run_here.client.tls_base_of(run_here.client.arg, t->tls);
    return true;
}

static run_thread *new_thread(bool is_apart, inl_error *e)
{
    run_thread *t = new_block(is_apart);
    if (t && give_tls(t)) return t;
    if (t) run_thread_free(t);
    inl_fail(e, INL_ERR_NO_MEMORY, "no memory for one more thread");
    return NULL;
}

run_thread *run_thread_new(inl_error *e) { return new_thread(false, e); }
run_thread *run_thread_new_apart(inl_error *e) { return new_thread(true, e); }

void run_thread_free(run_thread *t)
{
    if (t->tls && run_here.client.tls_free) run_here.client.tls_free(run_here.client.arg, t->tls);
    run_signals_release(t->signals);
    unmap_block(t);
}

void run_thread_link(run_thread *t)
{
    if (run_here.engine->is_native) has_counters(t, run_here.client.counters); /* there are more since it was made */
    t->next = run_here.threads;
    run_here.threads = t;
    if (!t->is_vfork_child) run_here.thread_count++;
}

run_thread *run_thread_adopt(int tid, const weave_context *c, uint64_t sigmask, const stack_t *alternate, inl_error *e)
{
    run_thread *t = run_thread_new(e);
    if (!t) return NULL;
    t->tid = tid;
    t->where = RUN_IN_CODE;
    t->sigmask = sigmask;
    t->altstack = *alternate;
    t->signals = run_here.signals;
    __atomic_fetch_add(&t->signals->users, 1, __ATOMIC_RELAXED);
    run_bases_take(t, c);
    inl_lock_take(&run_here.lock);
    run_thread_link(t);
    inl_lock_release(&run_here.lock);
    return t;
}

static void unlink_locked(run_thread *t)
{
    for (run_thread **at = &run_here.threads; *at; at = &(*at)->next) {
        if (*at != t) continue;
        *at = t->next;
        return;
    }
}

/* Lock held. Its counts are kept, its block can be used again once it is not busy. */
void run_thread_retire_locked(run_thread *t)
{
    uint64_t used = counters_used(t);
    if (!inl_room_grow(&run_here.dead_room, used * sizeof(uint64_t))) {
        run_say("no memory for the counts of a thread that has ended: results lack them");
        used = run_here.dead_room.mapped / sizeof(uint64_t);
    }
    for (uint64_t i = 0; i < used; i++) run_here.dead_counters[i] += run_counter_of(t, (uint32_t)i);
    unlink_locked(t);
    t->next = run_here.free_threads;
    run_here.free_threads = t;
}

void run_threads_free(void)
{
    for (run_thread *next, *t = run_here.threads; t; t = next) {
        next = t->next;
        run_thread_free(t);
    }
    for (run_thread *next, *t = run_here.free_threads; t; t = next) {
        next = t->next;
        run_thread_free(t);
    }
    run_here.threads = run_here.free_threads = NULL;
    if (!run_here.dead_counters) return;
    run_own(run_here.dead_room.at, run_here.dead_room.size, false);
    inl_room_give_back(&run_here.dead_room);
    run_here.dead_counters = NULL;
}

/* --- counters --- */

uint64_t run_counter_sum_now(uint32_t index)
{
    bool kept = index < run_here.dead_room.mapped / sizeof(uint64_t);
    uint64_t sum = kept ? run_here.dead_counters[index] : 0;
    for (const run_thread *t = run_here.threads; t; t = t->next) sum += run_counter_of(t, index);
    return sum;
}

void run_counters_reset(void)
{
    inl_lock_take(&run_here.lock);
    if (run_here.dead_counters) memset(run_here.dead_counters, 0, run_here.dead_room.mapped);
    for (run_thread *t = run_here.threads; t; t = t->next) forget_counts(t);
    inl_lock_release(&run_here.lock);
}

/* --- the start of a thread --- */

bool run_quiet_begin(run_thread *t)
{
    run_kernel_mask_all();
    if (!t->pending.present) return true;
    run_kernel_mask_set(~RUN_FAULTS);
    return false;
}

void run_quiet_end(run_thread *t) { run_mask_apply(t); }

static bool share_signals(run_thread *child, const run_thread *t, uint64_t flags)
{
    if (flags & CLONE_SIGHAND) {
        child->signals = t->signals;
        __atomic_add_fetch(&t->signals->users, 1, __ATOMIC_RELAXED);
    } else {
        child->signals = run_signals_clone(t->signals);
    }
    return child->signals;
}

/* What the child has of its parent: everything the kernel would copy. */
static bool inherit(run_thread *child, const run_thread *t, const run_clone_args *a)
{
    child->ctx = t->ctx;
    if (a->stack) run_set_sp(&child->ctx, a->stack + a->stack_size);
    if (a->flags & CLONE_SETTLS) child->ctx.tls_base = a->tls;
    run_set_answer(&child->ctx, 0);
    run_set_clobbers(&child->ctx);
    child->frame.app_tls_base = child->ctx.tls_base;
    run_vectors_inherit(child, t);
    if (a->flags & CLONE_CHILD_CLEARTID) child->clear_tid = a->child_tid;
    child->sigmask = t->sigmask;
    child->clears_signals = a->flags & CLONE_CLEAR_SIGHAND;
    child->filters = t->filters;
    child->divert.on = false;
    child->altstack = (stack_t){.ss_flags = SS_DISABLE};
    if (a->flags & CLONE_VFORK) child->altstack = t->altstack;
    child->trapno = t->trapno;
    child->trap_err = t->trap_err;
    child->trap_addr = t->trap_addr;
    if (run_bases_inherit(child, t, a->flags)) return true;
    run_say("a thread that has its parent's thread-local storage cannot be started");
    return false;
}

static void act_as_parent(run_thread *child, const run_thread *t)
{
    child->parent_waits = true;
    child->frame.thread_number = t->frame.thread_number;
    child->frame.tool_tls_base = t->frame.tool_tls_base;
    memcpy(child->frame.buffers, t->frame.buffers, sizeof t->frame.buffers);
    child->frame.heap_cache = t->frame.heap_cache;
    child->frame.locals = t->frame.locals;
    child->client = t->client;
}

static run_thread *make_child(run_thread *t, const run_clone_args *a)
{
    run_thread *child = new_block(false);
    if (!child) return NULL;
    child->is_vfork_child = !(a->flags & CLONE_THREAD);
    bool able = inherit(child, t, a), waits = child->is_vfork_child && a->flags & CLONE_VFORK;
    if (waits) act_as_parent(child, t);
    if (able && share_signals(child, t, a->flags) && (waits || give_tls(child))) return child;
    run_thread_free(child);
    return NULL;
}

static long raw_clone(const run_clone_args *a, size_t size, run_thread *child)
{
    run_clone_args mine = *a; /* the other flags and all: a filter may know them by heart */
    mine.flags &= ~(uint64_t)(RUN_CLONE_OURS & ~CLONE_SETTLS);
    if (size) {
        mine.stack = (uint64_t)(uintptr_t)child->stack_low;
        mine.stack_size = child->stack_size;
        return run_raw_clone(SYS_clone3, (long)&mine, (long)size, 0, 0, 0, child);
    }
    long args[5] = {(long)(mine.flags | mine.exit_signal), (long)child->runtime_stack, (long)mine.parent_tid};
    args[RUN_CLONE_CHILD_TID] = (long)mine.child_tid;
    args[RUN_CLONE_TLS] = (long)mine.tls;
    return run_raw_clone(SYS_clone, args[0], args[1], args[2], args[3], args[4], child);
}

/* The vfork child has exec'ed or ended; what it did for the tool is the parent's. */
static void take_back(run_thread *t, run_thread *child)
{
    memcpy(t->frame.buffers, child->frame.buffers, sizeof t->frame.buffers);
    t->frame.heap_cache = child->frame.heap_cache;
    child->frame.heap_cache = NULL;
    free(child->exec_argv);
    child->busy = 0;
    run_signals_release(child->signals);
    child->signals = NULL;
    inl_lock_take(&run_here.lock);
    run_thread_retire_locked(child);
    inl_lock_release(&run_here.lock);
}

static long start_thread(run_thread *t, const run_clone_args *a, size_t size)
{
    run_thread *child = make_child(t, a);
    if (!child) return -ENOMEM;
    if (!run_quiet_begin(t)) {
        run_thread_free(child);
        return RUN_RESTART;
    }
    bool waits = child->parent_waits, own_process = child->is_vfork_child;
    inl_lock_take(&run_here.lock);
    run_thread_link(child);
    inl_lock_release(&run_here.lock);
    long answer = raw_clone(a, size, child);
    inl_log(INL_LOG_THREAD, "clone flags %#lx -> %ld", (long)a->flags, answer);
    if (sys_failed(answer)) {
        inl_lock_take(&run_here.lock);
        unlink_locked(child);
        if (!own_process) run_here.thread_count--;
        inl_lock_release(&run_here.lock);
        run_thread_free(child);
    } else if (waits) {
        take_back(t, child);
    }
    if (own_process && !sys_failed(answer) && run_here.client.fork_parent)
        run_here.client.fork_parent(run_here.client.arg, t, (int)answer);
    run_quiet_end(t);
    return answer;
}

void run_thread_begin(run_thread *t)
{
    if (t->worker) run_worker_begin(t);
    run_signals_init_thread(t);
    if (t->clears_signals) run_signals_clear(t->signals);
    if (!t->parent_waits && run_here.client.thread_start) run_here.client.thread_start(run_here.client.arg, t);
    t->leave = RUN_LEAVE_START;
    run_mask_apply(t);
}

/* --- the calls --- */

static const uint64_t exclusive = CLONE_SIGHAND | CLONE_CLEAR_SIGHAND;

/* A structure may be one of times to come, as long as it says nothing that is not known yet. */
static long look_at_rest(uint64_t at, uint64_t size)
{
    for (uint64_t done = 0, word = 0; done < size; done += sizeof word) {
        if (!run_read(&word, at + done, size - done < sizeof word ? size - done : sizeof word)) return -EFAULT;
        if (word) return -E2BIG;
    }
    return 0;
}

/* Of one that ends where nothing can be read the kernel may see first that it is too much. What it knows, it says when
 * it is asked for what it refuses in any case. */
static long refuse_clone3(run_clone_args *a, size_t size)
{
    if (size < CLONE3_MIN) return -EFAULT;
    a->flags = exclusive;
    return sys_call2(SYS_clone3, (long)a, (long)size) == -E2BIG ? -E2BIG : -EFAULT;
}

static long read_clone3(const weave_context *c, run_clone_args *a, size_t *size)
{
    const uint64_t at = run_arg(c, 0), given = run_arg(c, 1);
    if (given > INL_PAGE) return -E2BIG;
    if (given < CLONE3_MIN) return -EINVAL;
    *size = given < sizeof *a ? given : sizeof *a;
    size_t read = *size - run_safe_copy(a, (const void *)at, *size);
    long rest = read < *size ? -EFAULT : look_at_rest(at + *size, given - *size);
    if (rest) return rest == -EFAULT ? refuse_clone3(a, read) : rest;
    if (!a->stack != !a->stack_size) return -EINVAL;
    return (a->flags & exclusive) == exclusive ? -EINVAL : 0;
}

static void read_clone(const weave_context *c, run_clone_args *a)
{
    uint64_t flags = run_arg(c, 0);
    a->flags = flags & ~(uint64_t)CSIGNAL;
    a->exit_signal = flags & CSIGNAL;
    a->stack = run_arg(c, 1);
    a->parent_tid = run_arg(c, 2); /* with CLONE_PIDFD where the descriptor goes */
    a->child_tid = run_arg(c, RUN_CLONE_CHILD_TID);
    a->tls = run_arg(c, RUN_CLONE_TLS);
}

long run_sys_clone(run_thread *t, bool is_clone3)
{
    run_clone_args a = {0};
    size_t size = 0;
    long nr = run_number(&t->ctx);
    if (is_clone3) {
        long error = read_clone3(&t->ctx, &a, &size);
        if (error) return error;
    } else if (nr == SYS_fork || nr == SYS_vfork) {
        a.flags = nr == SYS_vfork ? CLONE_VFORK | CLONE_VM : 0;
        a.exit_signal = SIGCHLD;
    } else {
        read_clone(&t->ctx, &a);
    }
    return a.flags & CLONE_VM ? start_thread(t, &a, size) : run_fork(t, &a, size);
}

/* --- the end of a thread --- */

void run_thread_exit(run_thread *t, int status)
{
    run_kernel_mask_all();
    if (run_here.engine->watch) run_here.engine->watch->thread_ends(t);
    if (t->is_vfork_child) {
        if (!t->parent_waits) {
            if (run_here.client.thread_end) run_here.client.thread_end(run_here.client.arg, t);
            inl_lock_take(&run_here.lock);
            run_thread_retire_locked(t);
            inl_lock_release(&run_here.lock);
        }
        run_exit_raw(&t->busy, SYS_exit, status);
    }
    inl_lock_take(&run_here.lock);
    bool last = --run_here.thread_count == 0;
    t->has_ended = true;
    inl_lock_release(&run_here.lock);
    if (last) {
        run_process_end(t, status, 0);
        run_exit_raw(&t->busy, run_workers_there() ? SYS_exit_group : SYS_exit, status);
    }
    inl_log(INL_LOG_THREAD, "thread ends");
    if (run_here.client.thread_end) run_here.client.thread_end(run_here.client.arg, t);
    /* The private libc's block of this thread is no longer to be used. */
    run_signals_release(t->signals);
    t->signals = NULL;
    inl_lock_take(&run_here.lock);
    run_thread_retire_locked(t);
    inl_lock_release(&run_here.lock);
    run_exit_raw(&t->busy, SYS_exit, status);
}

/* In the child of a fork (lock held): the other threads are gone, what they counted is not. */
void run_threads_after_fork(run_thread *t)
{
    for (run_thread *next, *o = run_here.threads; o; o = next) {
        next = o->next;
        if (o == t) continue;
        o->busy = 0;
        o->frame.heap_cache = NULL; /* it may have been at it */
        run_thread_retire_locked(o);
    }
    run_workers_after_fork();
    for (run_thread *o = run_here.free_threads; o; o = o->next) o->busy = 0;
    run_here.thread_count = 1;
    t->is_vfork_child = t->parent_waits = false;
}
