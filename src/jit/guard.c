/* Guarded pages: pages that the program could write to and whose code is translated.
 *
 * A guarded page is read-only. A write to it faults; then its translations are dropped and it is
 * writable again, until code from it is translated anew. The kernel's own writes into such a page fail
 * with EFAULT: the dispatcher then makes all pages writable and repeats the call.
 *
 * Shared memory can be mapped twice, and the program may write through one mapping what it runs through
 * the other. So all writable mappings of a shared page of code in this process are guarded with it, and
 * when a new one appears, translations of shared pages are dropped. Writes by other processes are not
 * noticed.
 *
 * The table is of fixed size and signal handlers read it without a lock; its entries are single words,
 * changed under jit's lock.
 */
#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "jit/core.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PAGE = 4096, TABLE_SIZE = 1 << 14, WRITTEN = 8 };

/* Page address | protection that the program believes in | WRITTEN: made writable by a handler that could
 * not drop the translations. 0 is empty; an entry that is done with keeps its address, protection 0. */
static uint64_t table[TABLE_SIZE];
static uint32_t guarded, used;
uint32_t jit_memory_written; /* entries marked WRITTEN */

typedef struct alias {
    uint64_t page, code; /* what is written to `page` shows in `code` */
} alias;
static INL_VEC(alias) aliases;
static inl_map shared_code; /* shared pages of code whose aliases are guarded now */

static uint64_t page_of(uint64_t entry) { return entry & ~(uint64_t)(PAGE - 1); }
static int prot_of(uint64_t entry) { return (int)(entry & 7); }

static uint64_t *entry_of(uint64_t page)
{
    uint64_t i = (page >> 12 ^ page >> 26) & (TABLE_SIZE - 1);
    for (;; i = (i + 1) & (TABLE_SIZE - 1)) {
        uint64_t e = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
        if (!e || page_of(e) == page) return &table[i];
    }
}

static void protect(uint64_t page, int prot)
{
    sys_call3(SYS_mprotect, (long)page, PAGE, prot);
}

static void unguard(uint64_t *e, bool restore)
{
    int prot = prot_of(*e);
    if (!prot) return;
    if (*e & WRITTEN) jit_memory_written--;
    if (restore) protect(page_of(*e), prot);
    __atomic_store_n(e, page_of(*e), __ATOMIC_RELEASE);
    guarded--;
}

/* What was translated from `page`, seen there or elsewhere. */
static void drop_page(uint64_t page)
{
    jit_drop_range(page, page + PAGE);
    for (size_t i = 0; i < aliases.count; i++) {
        if (aliases.items[i].page != page) continue;
        uint64_t code = aliases.items[i].code;
        jit_drop_range(code, code + PAGE);
        inl_map_remove(&shared_code, code);
    }
}

bool jit_memory_unguard_all(void)
{
    if (!guarded) return false;
    for (unsigned i = 0; i < TABLE_SIZE; i++) {
        if (!prot_of(table[i])) continue;
        drop_page(page_of(table[i]));
        unguard(&table[i], true);
    }
    return true;
}

void jit_guard(uint64_t page, int prot)
{
    uint64_t *e = entry_of(page);
    if (prot_of(*e)) return;
    if (!*e && ++used > TABLE_SIZE / 2) {
        jit_memory_unguard_all();
        memset(table, 0, sizeof table);
        used = 1;
        e = entry_of(page);
    }
    __atomic_store_n(e, page | (uint64_t)prot, __ATOMIC_RELEASE);
    guarded++;
    protect(page, prot & ~PROT_WRITE);
}

void jit_unguard_range(uint64_t low, uint64_t high)
{
    if (!guarded) return;
    if ((high - low) / PAGE > TABLE_SIZE) {
        for (unsigned i = 0; i < TABLE_SIZE; i++)
            if (table[i] >= low && table[i] < high) unguard(&table[i], false);
        return;
    }
    for (uint64_t page = page_of(low); page < high; page += PAGE) unguard(entry_of(page), false);
}

/* --- writes --- */

void jit_memory_take_writes(void)
{
    for (unsigned i = 0; i < TABLE_SIZE && jit_memory_written; i++) {
        if (!(table[i] & WRITTEN)) continue;
        drop_page(page_of(table[i]));
        unguard(&table[i], false);
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
        __atomic_add_fetch(&jit_memory_written, 1, __ATOMIC_SEQ_CST);
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
        return true;
    }
    if (!*e || !(jit_memory_prot(page) & PROT_WRITE)) return false;
    protect(page, jit_memory_prot(page)); /* another thread was here a moment ago */
    return true;
}

bool jit_memory_write_fault(uint64_t addr)
{
    const jit_thread *t = jit_self();
    uint64_t page = page_of(addr);
    if (t->where == JIT_IN_RUNTIME || t->frame.in_tool) return note_write(page);
    inl_lock_take(&jit.lock);
    bool ours = take_write(page);
    inl_lock_release(&jit.lock);
    return ours;
}

/* --- shared memory --- */

typedef struct search {
    uint64_t page;
    bool found;
    uint64_t device, inode, offset; /* what the page shows */
} search;

static void find_page(const jit_maps_line *m, void *arg)
{
    search *s = arg;
    if (s->page < m->low || s->page >= m->high || !m->shared) return;
    *s = (search){s->page, true, m->device, m->inode, m->offset + (s->page - m->low)};
}

static void add_alias(uint64_t page, uint64_t code)
{
    for (size_t i = 0; i < aliases.count; i++)
        if (aliases.items[i].page == page && aliases.items[i].code == code) return;
    (void)!inl_vec_push(&aliases, (alias){page, code});
}

static void guard_alias(const jit_maps_line *m, void *arg)
{
    const search *s = arg;
    if (!m->shared || m->device != s->device || m->inode != s->inode) return;
    if (s->offset < m->offset || s->offset >= m->offset + (m->high - m->low)) return;
    uint64_t page = m->low + (s->offset - m->offset);
    bool known = prot_of(*entry_of(page));
    if (page == s->page || !((m->prot & PROT_WRITE) || known)) return;
    add_alias(page, s->page);
    if (!known) jit_guard(page, m->prot);
}

void jit_guard_aliases(uint64_t page)
{
    search s = {.page = page};
    if (inl_map_get(&shared_code, page, NULL)) return;
    jit_memory_each_line(find_page, &s);
    if (s.found) jit_memory_each_line(guard_alias, &s);
    inl_map_put(&shared_code, page, 1);
}

void jit_guard_new_alias(void)
{
    size_t at = 0;
    uint64_t page;
    if (!shared_code.count) return;
    while (inl_map_next(&shared_code, &at, &page, NULL)) jit_drop_range(page, page + PAGE);
    inl_map_clear(&shared_code);
    aliases.count = 0;
}
