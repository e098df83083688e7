/* System calls that change the address space. Each is made under jit's lock, so that what the
 * translator knows of memory and what is true change together. The program can neither replace nor
 * unmap nor protect what is Inlay's: such parts of a range are left out.
 */
#include "jit/kernel.h"

#include <errno.h>
#include <linux/mman.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/map.h"
#include "base/sys.h"
#include "jit/x86_64/abi.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
enum { PAGE = 4096 };

static uint64_t page_up(uint64_t n) { return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1); }

static long pass_now(const weave_context *c)
{
    return sys_call(jit_number(c), (long)jit_arg(c, 0), (long)jit_arg(c, 1), (long)jit_arg(c, 2), (long)jit_arg(c, 3),
                    (long)jit_arg(c, 4), (long)jit_arg(c, 5));
}

static bool overlaps_ours(uint64_t low, uint64_t size)
{
    return low + size > low && jit_memory_is_ours(low, low + size);
}

/* Calls `nr(addr, size, a, b)` for the parts of a range that are not ours. */
static long on_own_parts(long nr, uint64_t low, uint64_t high, long a, long b)
{
    if (!jit_memory_is_ours(low, high)) return sys_call4(nr, (long)low, (long)(high - low), a, b);
    if (high - low <= PAGE) return 0;
    uint64_t middle = low + (high - low) / PAGE / 2 * PAGE;
    long answer = on_own_parts(nr, low, middle, a, b);
    return answer ? answer : on_own_parts(nr, middle, high, a, b);
}

static long on_range(const weave_context *c)
{
    uint64_t low = jit_arg(c, 0), size = page_up(jit_arg(c, 1));
    if (low & (PAGE - 1) || !overlaps_ours(low, size)) return pass_now(c);
    inl_log(INL_LOG_SYSCALL, "call %ld on [%#lx, +%#lx) keeps off Inlay's own memory", jit_number(c), (long)low,
            (long)size);
    return on_own_parts(jit_number(c), low, low + size, (long)jit_arg(c, 2), (long)jit_arg(c, 3));
}

static long run_mmap(jit_thread *t, weave_context *c)
{
    (void)t;
    uint64_t addr = jit_arg(c, 0), size = jit_arg(c, 1);
    int prot = (int)jit_arg(c, 2), flags = (int)jit_arg(c, 3);
    bool replaces = flags & MAP_FIXED && !(flags & MAP_FIXED_NOREPLACE);
    inl_lock_take(&jit.lock);
    long answer;
    if (replaces && overlaps_ours(addr, page_up(size))) {
        inl_log(INL_LOG_SYSCALL, "mmap at %#lx size %#lx would replace Inlay's own memory", (long)addr, (long)size);
        answer = -ENOMEM;
    } else {
        answer = pass_now(c);
        if (!sys_failed(answer))
            jit_memory_mapped((uint64_t)answer, page_up(size), prot, flags, (int)jit_arg(c, 4), jit_arg(c, 5));
    }
    inl_lock_release(&jit.lock);
    return answer;
}

static long run_munmap(jit_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&jit.lock);
    long answer = on_range(c);
    if (!answer) jit_memory_unmapped(jit_arg(c, 0), page_up(jit_arg(c, 1)));
    inl_lock_release(&jit.lock);
    return answer;
}

static long run_mprotect(jit_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&jit.lock);
    long answer = on_range(c);
    if (!answer) jit_memory_protected(jit_arg(c, 0), page_up(jit_arg(c, 1)), (int)jit_arg(c, 2));
    if (!answer && jit_number(c) == SYS_pkey_mprotect && (int)jit_arg(c, 3) > 0) jit_guard_keys();
    inl_lock_release(&jit.lock);
    return answer;
}

static long run_madvise(jit_thread *t, weave_context *c)
{
    (void)t;
    inl_lock_take(&jit.lock);
    bool ours = overlaps_ours(jit_arg(c, 0), page_up(jit_arg(c, 1)));
    inl_lock_release(&jit.lock);
    return ours ? on_range(c) : pass_now(c);
}

static long run_mremap(jit_thread *t, weave_context *c)
{
    (void)t;
    uint64_t old = jit_arg(c, 0), old_size = page_up(jit_arg(c, 1)), size = page_up(jit_arg(c, 2));
    int flags = (int)jit_arg(c, 3);
    inl_lock_take(&jit.lock);
    long answer = -EFAULT;
    if (flags & MREMAP_FIXED && overlaps_ours(jit_arg(c, 4), size)) {
        answer = -ENOMEM;
    } else if (!overlaps_ours(old, old_size)) {
        int prot = jit_memory_prot(old);
        int kind = jit_memory_shared(old) ? MAP_SHARED : MAP_PRIVATE;
        answer = pass_now(c);
        if (!sys_failed(answer)) {
            if (old_size && !(flags & MREMAP_DONTUNMAP)) jit_memory_unmapped(old, old_size);
            jit_memory_mapped((uint64_t)answer, size, prot, kind | MAP_ANONYMOUS, -1, 0);
        }
    }
    inl_lock_release(&jit.lock);
    return answer;
}

/* --- the program break --- */

/* Loaded without ptrace, the process's break belongs to the tool's own file. The program's lies where
 * its loader said, and grows as long as nothing is in the way. */
static uint64_t now; /* the emulated one */

bool jit_is_break(uint64_t low, uint64_t high)
{
    return jit.start.brk_emulated && low >= jit.start.brk_emulated && high <= page_up(now);
}

static uint64_t emulated_break(uint64_t wanted)
{
    if (!now) now = jit.start.brk_emulated;
    uint64_t top = page_up(now), new_top = page_up(wanted);
    if (wanted < jit.start.brk_emulated) return now;
    if (new_top > top) {
        long p = sys_call(SYS_mmap, (long)top, (long)(new_top - top), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p != (long)top) {
            if (!sys_failed(p)) sys_call2(SYS_munmap, p, (long)(new_top - top));
            return now;
        }
    } else if (new_top < top) {
        sys_call2(SYS_munmap, (long)new_top, (long)(top - new_top));
    }
    return now = wanted;
}

static long run_brk(jit_thread *t, weave_context *c)
{
    (void)t;
    static uint64_t known; /* top of the break the last time */
    inl_lock_take(&jit.lock);
    uint64_t answer = jit.start.brk_emulated ? emulated_break(jit_arg(c, 0)) : (uint64_t)pass_now(c);
    uint64_t top = page_up(answer);
    if (known && top > known)
        jit_memory_mapped(known, top - known, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (known && top < known) jit_memory_unmapped(top, known - top);
    known = top;
    inl_lock_release(&jit.lock);
    return (long)answer;
}

/* --- System V shared memory --- */

static inl_map attached; /* address -> size */

static long run_shmat(jit_thread *t, weave_context *c)
{
    (void)t;
    struct shmid_ds ds = {0};
    int flags = (int)jit_arg(c, 2);
    inl_lock_take(&jit.lock);
    long answer = sys_call3(SYS_shmctl, (long)jit_arg(c, 0), IPC_STAT, (long)&ds);
    uint64_t size = page_up(ds.shm_segsz);
    if (!answer && flags & SHM_REMAP && overlaps_ours(jit_arg(c, 1), size)) {
        answer = -EINVAL;
    } else {
        answer = pass_now(c);
        if (!sys_failed(answer) && size) {
            int prot = PROT_READ | (flags & SHM_RDONLY ? 0 : PROT_WRITE) | (flags & SHM_EXEC ? PROT_EXEC : 0);
            inl_map_put(&attached, (uint64_t)answer, size);
            jit_memory_mapped((uint64_t)answer, size, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        }
    }
    inl_lock_release(&jit.lock);
    return answer;
}

static long run_shmdt(jit_thread *t, weave_context *c)
{
    (void)t;
    uint64_t size;
    inl_lock_take(&jit.lock);
    long answer = pass_now(c);
    if (!answer && inl_map_get(&attached, jit_arg(c, 0), &size)) {
        jit_memory_unmapped(jit_arg(c, 0), size);
        inl_map_remove(&attached, jit_arg(c, 0));
    }
    inl_lock_release(&jit.lock);
    return answer;
}

static long run_remap_file_pages(jit_thread *t, weave_context *c)
{
    (void)t;
    uint64_t low = jit_arg(c, 0), size = page_up(jit_arg(c, 1));
    inl_lock_take(&jit.lock);
    long answer = overlaps_ours(low, size) ? -EINVAL : pass_now(c);
    if (!answer) jit_drop_range(low, low + size);
    inl_lock_release(&jit.lock);
    return answer;
}

const jit_syscall_row jit_memory_syscalls[] = {
    {SYS_mmap, "mmap", run_mmap},
    {SYS_munmap, "munmap", run_munmap},
    {SYS_mprotect, "mprotect", run_mprotect},
    {SYS_pkey_mprotect, "pkey_mprotect", run_mprotect},
    {SYS_madvise, "madvise", run_madvise},
    {SYS_mremap, "mremap", run_mremap},
    {SYS_brk, "brk", run_brk},
    {SYS_shmat, "shmat", run_shmat},
    {SYS_shmdt, "shmdt", run_shmdt},
    {SYS_remap_file_pages, "remap_file_pages", run_remap_file_pages},
    {0, NULL, NULL},
};
