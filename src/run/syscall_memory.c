/* System calls that change the address space. Each is made under the process's lock, so that what the
 * engine knows of memory and what is true change together. The program can neither replace nor
 * unmap nor protect what is Inlay's: such parts of a range are left out. Where its code runs natively nobody watches
 * memory, and only calls come here that concern what is Inlay's (run_memory_concerns).
 *
 * The vdso is the program's, who may unmap it or move it, but the tool's C library reads clocks there.
 */
#include "run/kernel.h"

#include <errno.h>
#include <linux/mman.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/page.h"
#include "base/log.h"
#include "base/map.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#define MADV_GUARD_REMOVE  103
#endif
#ifndef SYS_mseal
#define SYS_mseal 462 /* Linux 6.10 */
#endif

static const run_watch *watch(void) { return run_here.engine->watch; }

static void forget_advice(uint64_t low, uint64_t high)
{
    if (run_here.not_copied.count) inl_ranges_cut(&run_here.not_copied, low, high);
    if (run_here.wiped.count) inl_ranges_cut(&run_here.wiped, low, high);
}

static void tell_mapped(uint64_t addr, uint64_t size, int prot, int flags, int fd, uint64_t offset)
{
    if (!watch()) return;
    forget_advice(addr, addr + size);
    watch()->mapped(addr, size, prot, flags, fd, offset);
}

static void tell_unmapped(uint64_t addr, uint64_t size)
{
    if (!watch()) return;
    forget_advice(addr, addr + size);
    watch()->unmapped(addr, size);
}

/* In front of the vdso lie the pages that it reads. */
static bool has_vdso(uint64_t low, uint64_t size)
{
    enum { READ = 16 * INL_PAGE };
    const run_client *c = &run_here.client;
    return c->vdso_high && low < c->vdso_high && low + size > c->vdso_low - READ;
}

/* Before it does. */
static void may_lose_vdso(uint64_t low, uint64_t size)
{
    run_client *c = &run_here.client;
    if (!has_vdso(low, size) || !c->vdso_goes) return;
    inl_log(INL_LOG_SYSCALL, "the vdso goes: the tool's clocks are the kernel's");
    c->vdso_high = 0;
    c->vdso_goes(c->arg);
}

static long pass_now(const weave_context *c)
{
    return sys_call(run_number(c), (long)run_arg(c, 0), (long)run_arg(c, 1), (long)run_arg(c, 2), (long)run_arg(c, 3),
                    (long)run_arg(c, 4), (long)run_arg(c, 5));
}

static bool overlaps_ours(uint64_t low, uint64_t size) { return low + size > low && run_is_ours(low, low + size); }

/* For memory that is to be there and nowhere else. */
static bool is_taken(uint64_t low, uint64_t size)
{
    if (!overlaps_ours(low, size)) return false;
    if (watch()) watch()->gives_way(low, low + size);
    return overlaps_ours(low, size);
}

/* A mapping over what is ours. Said once: the program may do without. */
static long refuse(uint64_t low, uint64_t size)
{
    static const char format[] =
        "the program wants memory at 0x%lx (0x%lx bytes), where Inlay has its own; it gets none";
    if (!run_here.memory_refused) run_say(format, (long)low, (long)size);
    run_here.memory_refused = true;
    return -ENOMEM;
}

/* Calls `nr(addr, size, a, b)` for the parts of a range that are not ours. */
static long on_own_parts(long nr, uint64_t low, uint64_t high, long a, long b)
{
    uint64_t next;
    for (uint64_t at = run_ours_ends(low, high, &next); at < high; at = run_ours_ends(next, high, &next)) {
        long answer = sys_call4(nr, (long)at, (long)(next - at), a, b);
        if (answer) return answer;
    }
    return 0;
}

static long on_range(const weave_context *c)
{
    uint64_t low = run_arg(c, 0), size = inl_page_up(run_arg(c, 1));
    if (low & (INL_PAGE - 1) || !overlaps_ours(low, size)) return pass_now(c);
    inl_log(INL_LOG_SYSCALL, "call %ld on [%#lx, +%#lx) keeps off Inlay's own memory", run_number(c), (long)low,
            (long)size);
    return on_own_parts(run_number(c), low, low + size, (long)run_arg(c, 2), (long)run_arg(c, 3));
}

/* With the personality READ_IMPLIES_EXEC, which is a thread's own, what is mapped to be read can be executed. */
static int with_implied(int prot)
{
    if (!run_here.may_imply_exec || !(prot & PROT_READ)) return prot;
    long personality = sys_call1(SYS_personality, -1l);
    return !sys_failed(personality) && personality & READ_IMPLIES_EXEC ? prot | PROT_EXEC : prot;
}

static long do_personality(run_thread *t, weave_context *c)
{
    if ((uint32_t)run_arg(c, 0) != UINT32_MAX && run_arg(c, 0) & READ_IMPLIES_EXEC) run_here.may_imply_exec = true;
    return run_pass(t, c);
}

void run_memory_begin(void)
{
    long personality = sys_call1(SYS_personality, -1l);
    run_here.may_imply_exec = !sys_failed(personality) && personality & READ_IMPLIES_EXEC;
}

/* --- where the kernel has chosen --- */

/* Room below what is ours there. Of the tool's region Inlay has mapped a little so far, and the kernel knows of no
 * more: a large mapping gets what is left of it, where the program could neither protect nor unmap it. 0: there is
 * none. */
static uint64_t other_room(uint64_t low, uint64_t size)
{
    enum { FASTER = 8 };              /* the further down, the larger are the steps: by an eighth of themselves */
    const uint64_t unit = 1ull << 30; /* of the largest pages */
    uint64_t at = run_ours_begins(low, low + size), step = (size + unit - 1) & -unit;
    for (; at > step + unit; step += step / FASTER) {
        at = (at - step) & -unit;
        if (overlaps_ours(at, size)) continue;
        long p = sys_call(SYS_mmap, (long)at, (long)size, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == (long)at) return at;
        if (!sys_failed(p)) sys_call2(SYS_munmap, p, (long)size); /* before Linux 4.17 it is a hint */
    }
    return 0;
}

static long map_elsewhere(const weave_context *c, uint64_t chosen)
{
    uint64_t size = inl_page_up(run_arg(c, 1));
    sys_call2(SYS_munmap, (long)chosen, (long)size);
    if (run_arg(c, 3) & MAP_FIXED_NOREPLACE) return -EEXIST; /* there or nowhere */
    uint64_t at = other_room(chosen, size);
    if (!at) return refuse(chosen, size);
    inl_log(INL_LOG_SYSCALL, "mmap of %#lx bytes goes to %#lx, not into the tool's region", (long)size, (long)at);
    long answer = sys_call(SYS_mmap, (long)at, (long)run_arg(c, 1), (long)run_arg(c, 2),
                           (long)(run_arg(c, 3) | MAP_FIXED), (long)run_arg(c, 4), (long)run_arg(c, 5));
    if (sys_failed(answer)) sys_call2(SYS_munmap, (long)at, (long)size);
    return answer;
}

/* What has been moved there moves on; it stays where there is no other room. */
static long move_elsewhere(uint64_t chosen, uint64_t size)
{
    uint64_t at = other_room(chosen, size);
    if (!at) return (long)chosen;
    long answer = sys_call(SYS_mremap, (long)chosen, (long)size, (long)size, MREMAP_MAYMOVE | MREMAP_FIXED, (long)at,
                           0);
    return sys_failed(answer) ? (long)chosen : answer;
}

static long do_mmap(run_thread *t, weave_context *c)
{
    (void)t;
    uint64_t addr = run_arg(c, 0), size = run_arg(c, 1);
    int prot = with_implied((int)run_arg(c, 2)), flags = (int)run_arg(c, 3);
    bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE), replaces = fixed && !(flags & MAP_FIXED_NOREPLACE);
    inl_lock_take(&run_here.lock);
    long answer;
    if (replaces) may_lose_vdso(addr, inl_page_up(size));
    if (fixed && is_taken(addr, inl_page_up(size)) && replaces) {
        answer = refuse(addr, size);
    } else {
        answer = pass_now(c);
        if (!sys_failed(answer) && overlaps_ours((uint64_t)answer, inl_page_up(size)))
            answer = map_elsewhere(c, (uint64_t)answer);
        if (!sys_failed(answer))
            tell_mapped((uint64_t)answer, inl_page_up(size), prot, flags, (int)run_arg(c, 4), run_arg(c, 5));
    }
    inl_lock_release(&run_here.lock);
    return answer;
}

static long do_munmap(run_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&run_here.lock);
    may_lose_vdso(run_arg(c, 0), inl_page_up(run_arg(c, 1)));
    long answer = on_range(c);
    if (!answer) tell_unmapped(run_arg(c, 0), inl_page_up(run_arg(c, 1)));
    inl_lock_release(&run_here.lock);
    return answer;
}

static long do_mprotect(run_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&run_here.lock);
    if (run_arg(c, 2) & PROT_GROWSDOWN) watch()->moves(0, run_arg(c, 0)); /* the stack is one mapping */
    long answer = on_range(c);
    if (!answer) watch()->protected(run_arg(c, 0), inl_page_up(run_arg(c, 1)), with_implied((int)run_arg(c, 2)));
    if (!answer && run_number(c) == SYS_pkey_mprotect && (int)run_arg(c, 3) > 0) watch()->keys_used();
    inl_lock_release(&run_here.lock);
    return answer;
}

/* The pages are given back: zeros, or what a file has, are there afterwards; or nothing is any more. (What the kernel
 * may do with MADV_FREE it does later, and unseen; MADV_REMOVE is of shared memory.) */
static bool gives_back(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_GUARD_INSTALL ||
           advice == MADV_GUARD_REMOVE;
}

/* What a child of fork will have of it. */
static void keep_advice(inl_range r, int advice)
{
    if (advice == MADV_DONTFORK) inl_ranges_put(&run_here.not_copied, r);
    else if (advice == MADV_DOFORK) inl_ranges_cut(&run_here.not_copied, r.low, r.high);
    else if (advice == MADV_WIPEONFORK) inl_ranges_put(&run_here.wiped, r);
    else if (advice == MADV_KEEPONFORK) inl_ranges_cut(&run_here.wiped, r.low, r.high);
}

void run_memory_fork_child(void)
{
    inl_ranges *lost = &run_here.not_copied, *wiped = &run_here.wiped;
    for (size_t left = lost->count; left && lost->count; left--) {
        inl_range r = lost->items[0];
        tell_unmapped(r.low, r.high - r.low);
    }
    for (size_t k = 0; k < wiped->count; k++) watch()->changed(wiped->items[k].low, wiped->items[k].high);
}

static bool is_in(const inl_ranges *all, uint64_t addr)
{
    size_t k = inl_ranges_behind(all, addr);
    return k < all->count && all->items[k].low <= addr;
}

static long do_madvise(run_thread *t, weave_context *c)
{
    (void)t;
    uint64_t low = run_arg(c, 0), size = inl_page_up(run_arg(c, 1));
    inl_lock_take(&run_here.lock);
    bool ours = overlaps_ours(low, size);
    inl_lock_release(&run_here.lock);
    long answer = ours ? on_range(c) : pass_now(c);
    if (!watch()) return answer;
    int advice = (int)run_arg(c, 2);
    inl_lock_take(&run_here.lock);
    /* A call that has failed may have done a part. */
    if (gives_back(advice)) watch()->changed(low, low + size);
    if (!answer) keep_advice((inl_range){low, low + size, 0}, advice);
    inl_lock_release(&run_here.lock);
    return answer;
}

/* Of this process, or of another: what is dropped without need is translated anew. */
static long do_process_madvise(run_thread *t, weave_context *c)
{
    enum { MOST = 1024 }; /* the kernel's */
    struct iovec v;
    long answer = run_pass(t, c);
    if (!watch() || !gives_back((int)run_arg(c, 3))) return answer;
    inl_lock_take(&run_here.lock);
    for (uint64_t k = 0; k < run_arg(c, 2) && k < MOST && run_read(&v, run_arg(c, 1) + k * sizeof v, sizeof v); k++)
        watch()->changed((uint64_t)v.iov_base, (uint64_t)v.iov_base + inl_page_up(v.iov_len));
    inl_lock_release(&run_here.lock);
    return answer;
}

static long do_mremap(run_thread *t, weave_context *c)
{
    (void)t;
    uint64_t old = run_arg(c, 0), old_size = inl_page_up(run_arg(c, 1)), size = inl_page_up(run_arg(c, 2));
    int flags = (int)run_arg(c, 3);
    inl_lock_take(&run_here.lock);
    long answer = -EFAULT;
    if (flags & MREMAP_FIXED && is_taken(run_arg(c, 4), size)) {
        answer = refuse(run_arg(c, 4), size);
    } else if (!overlaps_ours(old, old_size)) {
        int prot = watch() ? watch()->prot(old) : 0;
        int kind = watch() && watch()->is_shared(old) ? MAP_SHARED : MAP_PRIVATE;
        if (flags & MREMAP_MAYMOVE) may_lose_vdso(old, old_size);
        if (flags & MREMAP_FIXED) may_lose_vdso(run_arg(c, 4), size);
        if (watch()) watch()->moves(old, old + old_size);
        answer = pass_now(c);
        if (!sys_failed(answer) && overlaps_ours((uint64_t)answer, size))
            answer = move_elsewhere((uint64_t)answer, size);
        if (!sys_failed(answer)) {
            bool copied = !is_in(&run_here.not_copied, old), kept = !is_in(&run_here.wiped, old);
            if (old_size && !(flags & MREMAP_DONTUNMAP)) tell_unmapped(old, old_size);
            else if (old_size && watch()) watch()->changed(old, old + old_size);
            tell_mapped((uint64_t)answer, size, prot, kind | MAP_ANONYMOUS, -1, 0);
            const inl_range new = {(uint64_t)answer, (uint64_t)answer + size, 0};
            if (!copied) keep_advice(new, MADV_DONTFORK);
            if (!kept) keep_advice(new, MADV_WIPEONFORK);
        }
    }
    inl_lock_release(&run_here.lock);
    return answer;
}

/* --- the program break --- */

/* Loaded without ptrace, the process's break belongs to the tool's own file. The program's lies where
 * its loader said, and grows as long as nothing is in the way. */

bool run_is_break(uint64_t low, uint64_t high)
{
    return run_here.start.brk_emulated && low >= run_here.start.brk_emulated && high <= inl_page_up(run_here.brk_now);
}

static uint64_t emulated_break(uint64_t wanted)
{
    if (!run_here.brk_now) run_here.brk_now = run_here.start.brk_emulated;
    uint64_t top = inl_page_up(run_here.brk_now), new_top = inl_page_up(wanted);
    if (wanted < run_here.start.brk_emulated) return run_here.brk_now;
    if (new_top > top) {
        long p = sys_call(SYS_mmap, (long)top, (long)(new_top - top), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p != (long)top) {
            if (!sys_failed(p)) sys_call2(SYS_munmap, p, (long)(new_top - top));
            return run_here.brk_now;
        }
    } else if (new_top < top) {
        sys_call2(SYS_munmap, (long)new_top, (long)(top - new_top));
    }
    return run_here.brk_now = wanted;
}

static long do_brk(run_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&run_here.lock);
    uint64_t answer = run_here.start.brk_emulated ? emulated_break(run_arg(c, 0)) : (uint64_t)pass_now(c);
    uint64_t top = inl_page_up(answer);
    if (run_here.brk_known && top > run_here.brk_known)
        watch()->mapped(run_here.brk_known, top - run_here.brk_known, with_implied(PROT_READ | PROT_WRITE),
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (run_here.brk_known && top < run_here.brk_known) watch()->unmapped(top, run_here.brk_known - top);
    run_here.brk_known = top;
    inl_lock_release(&run_here.lock);
    return (long)answer;
}

/* --- System V shared memory --- */

static long do_shmat(run_thread *t, weave_context *c)
{
    (void)t;
    struct shmid_ds ds = {0};
    int flags = (int)run_arg(c, 2);
    inl_lock_take(&run_here.lock);
    long answer = sys_call3(SYS_shmctl, (long)run_arg(c, 0), IPC_STAT, (long)&ds);
    uint64_t size = inl_page_up(ds.shm_segsz);
    if (!answer && flags & SHM_REMAP && is_taken(run_arg(c, 1), size)) {
        answer = -EINVAL;
    } else {
        answer = pass_now(c);
        if (!sys_failed(answer) && size) {
            int prot = PROT_READ | (flags & SHM_RDONLY ? 0 : PROT_WRITE) | (flags & SHM_EXEC ? PROT_EXEC : 0);
            inl_map_put(&run_here.attached, (uint64_t)answer, size);
            watch()->mapped((uint64_t)answer, size, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        }
    }
    inl_lock_release(&run_here.lock);
    return answer;
}

static long do_shmdt(run_thread *t, weave_context *c)
{
    (void)t;
    uint64_t size;
    inl_lock_take(&run_here.lock);
    long answer = pass_now(c);
    if (!answer && inl_map_get(&run_here.attached, run_arg(c, 0), &size)) {
        watch()->unmapped(run_arg(c, 0), size);
        inl_map_remove(&run_here.attached, run_arg(c, 0));
    }
    inl_lock_release(&run_here.lock);
    return answer;
}

static long do_remap_file_pages(run_thread *t, weave_context *c)
{
    (void)t;
    uint64_t low = run_arg(c, 0), size = inl_page_up(run_arg(c, 1));
    inl_lock_take(&run_here.lock);
    long answer = overlaps_ours(low, size) ? -EINVAL : pass_now(c);
    if (!answer) watch()->changed(low, low + size);
    inl_lock_release(&run_here.lock);
    return answer;
}

/* Nobody changes its protection any more: it is the program's own then, as for each call of which it is not known what
 * it writes (writes.c). */
static long do_mseal(run_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&run_here.lock);
    bool ours = overlaps_ours(run_arg(c, 0), inl_page_up(run_arg(c, 1)));
    long answer = ours ? -ENOMEM : pass_now(c); /* as where nothing is mapped */
    inl_lock_release(&run_here.lock);
    return answer;
}

/* Whoever reads a page that is missing waits for a thread of the program's. */
static long do_userfaultfd(run_thread *t, weave_context *c)
{
    (void)t;
    long answer = pass_now(c);
    inl_lock_take(&run_here.lock);
    if (!sys_failed(answer)) watch()->pages_late();
    inl_lock_release(&run_here.lock);
    return answer;
}

const run_syscall_row run_memory_syscalls[] = {
    {SYS_mmap, "mmap", do_mmap},
    {SYS_munmap, "munmap", do_munmap},
    {SYS_mprotect, "mprotect", do_mprotect},
    {SYS_pkey_mprotect, "pkey_mprotect", do_mprotect},
    {SYS_madvise, "madvise", do_madvise},
    {SYS_process_madvise, "process_madvise", do_process_madvise},
    {SYS_mremap, "mremap", do_mremap},
    {SYS_brk, "brk", do_brk},
    {SYS_personality, "personality", do_personality},
    {SYS_shmat, "shmat", do_shmat},
    {SYS_shmdt, "shmdt", do_shmdt},
    {SYS_mseal, "mseal", do_mseal},
    {SYS_remap_file_pages, "remap_file_pages", do_remap_file_pages},
    {SYS_userfaultfd, "userfaultfd", do_userfaultfd},
    {0, NULL, NULL},
};

/* --- where nobody watches --- */

static bool concerns(uint64_t low, uint64_t size)
{
    size = inl_page_up(size);
    return overlaps_ours(low, size) || has_vdso(low, size);
}

bool run_memory_concerns(const weave_context *c)
{
    uint64_t low = run_arg(c, 0), size = run_arg(c, 1), flags = run_arg(c, 3);
    switch (run_number(c)) {
    case SYS_mmap: return flags & MAP_FIXED && !(flags & MAP_FIXED_NOREPLACE) && concerns(low, size);
    case SYS_munmap: return concerns(low, size);
    case SYS_mremap: return concerns(low, size) || (flags & MREMAP_FIXED && concerns(run_arg(c, 4), run_arg(c, 2)));
    default: return false;
    }
}

long run_memory_call(run_thread *t, weave_context *c)
{
    for (const run_syscall_row *row = run_memory_syscalls; row->run; row++)
        if (row->nr == run_number(c)) return row->run(t, c);
    return -ENOSYS;
}
