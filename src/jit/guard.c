/* Code that may change: pages that hold translated code and that somebody could write to.
 *
 *     guarded   the page is read-only. A write to it faults; then its translations are dropped and it is
 *               writable again, until code from it is translated anew.
 *     checked   the page stays as it is. Each fragment with code from it compares that code with what it was
 *               made from whenever it is entered (x86_64/glue.c), and ends behind an instruction that writes to
 *               memory (translate.c). A page comes to this
 *                 - after many writes to it while it was guarded: data and code that lie together, as the stack
 *                   of a program whose nested functions have trampolines there;
 *                 - when the code that runs writes to its own page;
 *                 - when a call that another thread is in may write there;
 *                 - when an area of rseq is there, which the kernel writes to at any time;
 *                 - when it is a stack that grows, by pages like its lowest one;
 *                 - when the memory is shared: somebody may write to it at another address, or in another process;
 *                 - when it cannot be protected: it is sealed (mseal), or there may be no more mappings;
 *                 - always, once the kernel may write at any time (io_uring, asynchronous I/O).
 *
 * The kernel's own writes to a guarded page would fail. So before a call is made, the pages that it may write
 * to (writes.c) are writable again. While no page is guarded the gate does not ask; while one is, it makes only
 * calls that write nothing.
 *
 * The table is of fixed size and signal handlers read it without a lock; its entries are single words,
 * changed under the process's lock.
 */
#include "base/page.h"
#include "base/log.h"
#include "base/sys.h"
#include "jit/core.h"
#include "run/kernel.h"
#include "run/writes.h"
#include INL_ARCH_HEADER(run, abi)

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    WRITTEN = 8,
    CHECKED = 16,
    ONE_WRITE = 32,
    WRITES = 0xfe0,
    MANY = 48 * ONE_WRITE,
};

/* An entry of the table: page address | protection that the program believes in, 0: not guarded | WRITTEN: made
 * writable by a handler that could not drop the translations | CHECKED | how often it was written to. 0 is empty. */

static uint64_t page_of(uint64_t entry) { return inl_page_down(entry); }
static int prot_of(uint64_t entry) { return (int)(entry & 7); }

static uint64_t *entry_of(uint64_t page)
{
    uint64_t i = (page >> 12 ^ page >> 26) & (JIT_GUARDS - 1);
    for (;; i = (i + 1) & (JIT_GUARDS - 1)) {
        uint64_t e = __atomic_load_n(&jit.guards.table[i], __ATOMIC_ACQUIRE);
        if (!e || page_of(e) == page) return &jit.guards.table[i];
    }
}

static bool protect(uint64_t page, int prot) { return !sys_call3(SYS_mprotect, (long)page, INL_PAGE, prot); }

static void unguard(uint64_t *e, bool restore)
{
    int prot = prot_of(*e);
    if (!prot) return;
    if (*e & WRITTEN) jit.guards.written--;
    if (restore) protect(page_of(*e), prot);
    __atomic_store_n(e, page_of(*e) | (*e & (CHECKED | WRITES)), __ATOMIC_RELEASE);
    if (--jit.guards.guarded) return;
    jit.guards.low = UINT64_MAX;
    jit.guards.high = 0;
    run_syscalls_guard(false);
}

static void drop_page(uint64_t page) { jit_drop_range(page, page + INL_PAGE); }

static void unguard_all(void)
{
    for (unsigned i = 0; i < JIT_GUARDS && jit.guards.guarded; i++) {
        if (!prot_of(jit.guards.table[i])) continue;
        drop_page(page_of(jit.guards.table[i]));
        unguard(&jit.guards.table[i], true);
    }
}

void jit_guards_end(void) { unguard_all(); }

/* The page has been written to while it was guarded, which it is no longer. */
static void count_write(uint64_t *e)
{
    jit.stats.writes++;
    if ((*e & WRITES) < WRITES) *e += ONE_WRITE;
    if ((*e & WRITES) >= MANY) *e |= CHECKED;
}

/* The entry of `page`; half of the table stays empty. */
static uint64_t *make_entry(uint64_t page)
{
    uint64_t *e = entry_of(page);
    if (*e || ++jit.guards.used <= JIT_GUARDS / 2) return e;
    unguard_all();
    memset(jit.guards.table, 0, sizeof jit.guards.table);
    jit.guards.used = 1;
    return entry_of(page);
}

static bool holds(void *page, uint64_t low, uint64_t high)
{
    uint64_t at = *(const uint64_t *)page;
    return low < at + INL_PAGE && high > at;
}

/* Another thread is in a call that may write to the page. The gate makes a call known before it looks whether
 * pages are guarded; between our store that tells it and here lies a system call. */
static bool is_being_written(uint64_t page)
{
    uint64_t args[6];
    for (const run_thread *t = run_here.threads; t; t = t->next) {
        if (t == run_self() || !__atomic_load_n(&jit_of(t)->in_gate, __ATOMIC_SEQ_CST)) continue;
        if (writes_of_call(run_call_made(t, args), args, holds, &page)) return true;
    }
    return false;
}

void jit_guard_keys(void) { jit.guards.keys_used = true; }

bool jit_guard(uint64_t page, int prot, bool never)
{
    if (jit.guards.always_checked || never || jit.options.stress & JIT_STRESS_CHECK) return false;
    if (jit_sections_area_on(page)) return false;
    uint64_t *e = make_entry(page);
    if (prot_of(*e)) return true;
    if (*e & CHECKED && !jit.guards.keys_used) return false;
    __atomic_store_n(e, page | (*e & WRITES) | (uint64_t)prot, __ATOMIC_SEQ_CST);
    if (!jit.guards.guarded++) run_syscalls_guard(true);
    if (page < jit.guards.low) jit.guards.low = page;
    if (page + INL_PAGE > jit.guards.high) jit.guards.high = page + INL_PAGE;
    bool good = protect(page, prot & ~PROT_WRITE);
    if (good && (!run_here.threads || !run_here.threads->next || !is_being_written(page))) return true;
    unguard(e, good);
    *e |= CHECKED;
    return false;
}

void jit_unguard_range(uint64_t low, uint64_t high)
{
    if (!jit.guards.used) return;
    if ((high - low) / INL_PAGE > JIT_GUARDS) {
        for (unsigned i = 0; i < JIT_GUARDS; i++) {
            if (jit.guards.table[i] < low || jit.guards.table[i] >= high) continue;
            unguard(&jit.guards.table[i], false);
            jit.guards.table[i] = page_of(jit.guards.table[i]);
        }
        return;
    }
    for (uint64_t page = page_of(low); page < high; page += INL_PAGE) {
        uint64_t *e = entry_of(page);
        unguard(e, false);
        *e = page_of(*e);
    }
}

/* --- writes of the program --- */

void jit_memory_take_writes(void)
{
    for (unsigned i = 0; i < JIT_GUARDS && jit.guards.written; i++) {
        if (!(jit.guards.table[i] & WRITTEN)) continue;
        drop_page(page_of(jit.guards.table[i]));
        unguard(&jit.guards.table[i], false);
        count_write(&jit.guards.table[i]);
    }
}

/* This thread may hold the lock: the page is writable at once, the rest is done before the thread runs
 * translated code again. */
static bool note_write(uint64_t page)
{
    uint64_t *e = entry_of(page);
    int prot = prot_of(*e);
    if (!prot) return false;
    if (!(__atomic_fetch_or(e, WRITTEN, __ATOMIC_SEQ_CST) & WRITTEN))
        __atomic_add_fetch(&jit.guards.written, 1, __ATOMIC_SEQ_CST);
    protect(page, prot);
    return true;
}

static bool take_write(uint64_t page)
{
    uint64_t *e = entry_of(page);
    if (prot_of(*e)) {
        inl_log(INL_LOG_CACHE, "write to translated page %#llx", (unsigned long long)page);
        drop_page(page);
        unguard(e, true);
        count_write(e);
        return true;
    }
    if (!*e || !(jit_memory_prot(page) & PROT_WRITE)) return false;
    protect(page, jit_memory_prot(page)); /* another thread was here a moment ago */
    return true;
}

bool jit_memory_write_fault(uint64_t addr)
{
    const run_thread *t = run_self();
    uint64_t page = page_of(addr);
    if (t->where == RUN_IN_RUNTIME || t->frame.in_tool) return note_write(page);
    inl_lock_take(&run_here.lock);
    bool ours = take_write(page);
    inl_lock_release(&run_here.lock);
    return ours;
}

void jit_guard_own_write(uint64_t addr)
{
    uint64_t *e = entry_of(page_of(addr));
    if (*e) __atomic_fetch_or(e, CHECKED, __ATOMIC_SEQ_CST);
}

/* --- writes of the kernel --- */

static void give_back(uint64_t *e, bool for_good)
{
    if (!prot_of(*e)) return;
    inl_log(INL_LOG_CACHE, "a call may write to translated page %#llx", (unsigned long long)page_of(*e));
    drop_page(page_of(*e));
    unguard(e, true);
    count_write(e);
    if (for_good) *e |= CHECKED;
}

/* The pages of a range are writable again; `for_good` points to whether they stay so. */
static bool make_writable(void *for_good, uint64_t low, uint64_t high)
{
    bool stay = *(const bool *)for_good;
    if (low < jit.guards.low) low = jit.guards.low;
    if (high > jit.guards.high) high = jit.guards.high;
    if (low >= high) return false;
    if ((high - low) / INL_PAGE <= JIT_GUARDS) {
        for (uint64_t page = page_of(low); page < high; page += INL_PAGE) give_back(entry_of(page), stay);
        return false;
    }
    for (unsigned i = 0; i < JIT_GUARDS; i++)
        if (jit.guards.table[i] >= page_of(low) && jit.guards.table[i] < high) give_back(&jit.guards.table[i], stay);
    return false;
}

void jit_guards_lift(uint64_t low, uint64_t high)
{
    bool for_good = false;
    make_writable(&for_good, low, high);
}

void jit_guard_no_more(void)
{
    inl_lock_take(&run_here.lock);
    unguard_all();
    jit.guards.always_checked = true;
    inl_lock_release(&run_here.lock);
}

/* The call is made known first: who guards a page meanwhile looks at it (is_being_written). */
void jit_guard_call(run_thread *t, const weave_context *c)
{
    bool for_good = false;
    uint64_t args[6];
    run_call_keep(t, c);
    __atomic_store_n(&jit_of(t)->in_gate, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&jit.guards.guarded, __ATOMIC_SEQ_CST)) return;
    long nr = run_call_made(t, args);
    inl_lock_take(&run_here.lock);
    writes_of_call(nr, args, make_writable, &for_good);
    inl_lock_release(&run_here.lock);
}

void jit_guard_call_end(run_thread *t, long answer)
{
    uint64_t args[6];
    long nr = run_call_made(t, args);
    __atomic_store_n(&jit_of(t)->in_gate, 0, __ATOMIC_RELEASE);
    if (writes_later(nr) && !sys_failed(answer)) jit_guard_no_more();
}

/* The kernel's struct robust_list_head. */
typedef struct robust_head {
    uint64_t next;
    int64_t offset;
    uint64_t pending;
} robust_head;

/* Held mutexes are marked; a list that is longer the kernel does not follow either. */
static void free_robust(uint64_t head, bool *for_good)
{
    enum { LONGEST = 2048 };
    robust_head h;
    if (!head || !run_read(&h, head, sizeof h)) return;
    uint64_t at = h.next & ~1ull;
    for (unsigned i = 0; i < LONGEST && at && at != head; i++) {
        make_writable(for_good, at + (uint64_t)h.offset, at + (uint64_t)h.offset + 4);
        if (!run_read(&at, at, sizeof at)) return;
        at &= ~1ull;
    }
    if (h.pending) make_writable(for_good, h.pending + (uint64_t)h.offset, h.pending + (uint64_t)h.offset + 4);
}

void jit_guard_thread_end(const run_thread *t)
{
    bool for_good = true;
    if (!jit.guards.guarded) return;
    inl_lock_take(&run_here.lock);
    if (t->clear_tid) make_writable(&for_good, t->clear_tid, t->clear_tid + 4);
    free_robust(t->robust, &for_good);
    inl_lock_release(&run_here.lock);
}
