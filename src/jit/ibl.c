/* Indirect branches: from an application address to a landing (see x86_64/glue.c), in two steps.
 *
 *   first    each thread's own table, 65536 landings by the low 16 bits of the target. Translated code
 *            jumps through it at once; the landing checks the whole address. Empty entries hold the miss
 *            routine. No lock, no hash, no comparison on the way.
 *   second   one table of the process, {address, landing} with open addressing. The miss routine looks
 *            there without a lock and fills the first.
 *
 * Readers of the second table run while a writer changes it: a pair's landing is stored before its
 * address, pairs are never taken out (a removed one has landing 0), a grown table is a new one, and the
 * old ones are kept (together they are smaller than the new one).
 *
 * The entry of an address that a call of the tool's returns to (watched) leads to the dispatcher, whatever the target.
 *
 * A thread's own table becomes inaccessible while a signal waits for it (jit_ibl_block): at any moment while the thread
 * is in the cache, so that no other touches it then. Who drops a fragment makes its landing one that nobody passes. A
 * flush blocks the tables of all threads that are in the cache and marks them stale, and each is emptied when the
 * thread unblocks it, which happens under the process's lock: the miss routine may have found a landing before the
 * flush and store it behind it, and code with paired calls (paired.c) writes landings of its own there. The thread
 * could go on in new code, make a system call, during which the old is unmapped, and return to it.
 */
#include "base/ahead.h"
#include "base/region.h"
#include "base/sys.h"
#include "jit/core.h"
#include "run/kernel.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { ENTRIES = JIT_ENTRIES, FIRST_SIZE = 4096 };

typedef struct pair {
    uint64_t app, landing;
} pair;
typedef struct jit_table2 {
    uint64_t mask, count;
    pair pairs[];
} jit_table2;
_Static_assert(offsetof(jit_table2, pairs) == 16, "dispatch.S knows it");

static uint64_t *entry_of(run_thread *t, uint64_t app)
{
    return (uint64_t *)((uint8_t *)t + WEAVE_IBL) + (app & (ENTRIES - 1));
}

static jit_table2 *table_new(uint64_t size)
{
    size_t bytes = sizeof(jit_table2) + size * sizeof(pair);
    long p = sys_call(SYS_mmap, (long)inl_region_take(bytes), (long)bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(p)) return NULL;
    run_own_locked((uint64_t)p, (uint64_t)p + bytes, true);
    if (bytes > 64 << 10) inl_pages_want((uint64_t)p, bytes, true); /* hashing touches all of it */
    jit_table2 *t = (jit_table2 *)p;
    t->mask = size - 1;
    return t;
}

/* Where the search for `app` begins, as in dispatch.S. Neighbours stay neighbours; code that lies alike in many
 * mappings (a JIT compiler's) does not begin at one place. */
static uint64_t begin_of(const jit_table2 *t, uint64_t app)
{
    uint64_t mapping = (app >> 16) * (uint64_t)JIT_TABLE2_FACTOR >> JIT_TABLE2_SHIFT;
    return (app ^ app >> 4 ^ mapping) & t->mask;
}

/* The pair of `app`, or the empty one where it belongs. */
static pair *find(jit_table2 *t, uint64_t app)
{
    uint64_t i = begin_of(t, app);
    while (t->pairs[i].app && t->pairs[i].app != app) i = (i + 1) & t->mask;
    return &t->pairs[i];
}

void jit_ibl_expect(uint64_t app)
{
    const jit_table2 *t = jit.second[0];
    __builtin_prefetch(&t->pairs[begin_of(t, app)]);
}

static void put(jit_table2 *t, uint64_t app, uint64_t landing)
{
    pair *p = find(t, app);
    __atomic_store_n(&p->landing, landing, __ATOMIC_RELEASE);
    if (p->app) return;
    t->count++;
    __atomic_store_n(&p->app, app, __ATOMIC_RELEASE);
}

static void grow(unsigned version)
{
    const jit_table2 *old = jit.second[version];
    jit_table2 *t = table_new((old->mask + 1) * 4);
    if (!t) return; /* still works while there is an empty pair */
    for (uint64_t i = 0; i <= old->mask; i++)
        if (old->pairs[i].landing) put(t, old->pairs[i].app, old->pairs[i].landing);
    jit.second[version] = t;
    for (run_thread *u = run_here.threads; u; u = u->next)
        if (jit_of(u)->version == version) __atomic_store_n(&jit_of(u)->ibl_table2, (uint64_t)t, __ATOMIC_RELEASE);
}

bool jit_ibl_init(void)
{
    jit.miss = (uint64_t)(jit.options.stats ? jit_ibl_miss_counted : jit_ibl_miss);
    jit.second[0] = table_new(FIRST_SIZE);
    return jit.second[0] != NULL;
}

void jit_ibl_add(jit_fragment *f)
{
    if (!f->app) return; /* 0 marks an empty pair */
    if (jit.second[f->version]->count * 2 > jit.second[f->version]->mask) grow(f->version);
    if (jit.second[f->version]->count < jit.second[f->version]->mask) put(jit.second[f->version], f->app, f->landing);
}

void jit_ibl_enter(run_thread *t, const jit_fragment *f)
{
    jit_of(t)->ibl_table2 = (uint64_t)jit.second[f->version]; /* it may have grown before the thread was in the list */
    if (*entry_of(t, f->app) != (uint64_t)jit_ibl_watched) *entry_of(t, f->app) = f->landing;
}

void jit_ibl_watch(run_thread *t, uint64_t app, bool on)
{
    t->where = RUN_IN_RUNTIME; /* nobody blocks the table now */
    inl_lock_take(&run_here.lock);
    jit_paired_end(); /* which may block it */
    if (jit_of(t)->ibl_blocked) jit_ibl_unblock(t);
    *entry_of(t, app) = on ? (uint64_t)jit_ibl_watched : jit.miss;
    inl_lock_release(&run_here.lock);
}

bool jit_ibl_same_entry(uint64_t a, uint64_t b) { return (a & (ENTRIES - 1)) == (b & (ENTRIES - 1)); }

/* Tables of other threads may become inaccessible at any moment, and this thread may have faults blocked: so what they
 * hold of the fragment stays there. Its landing sends whoever comes back to the miss routine, also one who has found it
 * in the second table just now. */
void jit_ibl_remove(jit_fragment *f)
{
    pair *p = find(jit.second[f->version], f->app);
    if (p->app && p->landing == f->landing) __atomic_store_n(&p->landing, 0, __ATOMIC_RELEASE);
    jit_spoil_landing(jit_write_view(f->arena, f->landing), f->app);
}

/* What is watched stays so. */
static bool is_kept(uint64_t entry) { return entry == (uint64_t)jit_ibl_watched; }

static void fill(run_thread *t, bool keeps)
{
    jit_paired_empty(t);
    uint64_t *entries = entry_of(t, 0), miss = jit.miss;
    for (unsigned i = 0; i < ENTRIES; i++)
        if (!keeps || !is_kept(entries[i])) entries[i] = miss;
}

/* Only entries in use are written, so that tables of idle threads stay shared with nothing. */
static void empty(run_thread *u)
{
    uint64_t page[512], miss = jit.miss;
    for (unsigned i = 0; i < ENTRIES; i += 512) {
        bool dirty = false;
        if (jit_of(u)->ibl_blocked) goto stale;
        if (run_safe_copy(page, entry_of(u, i), sizeof page)) goto stale;
        for (unsigned k = 0; k < 512; k++) {
            if (is_kept(page[k])) continue;
            dirty |= page[k] != miss;
            page[k] = miss;
        }
        if (dirty && run_safe_copy(entry_of(u, i), page, sizeof page)) goto stale;
    }
    if (!jit_of(u)->ibl_blocked) jit_paired_empty(u);
    else jit_of(u)->ibl_stale = true;
    return;
stale:
    jit_of(u)->ibl_stale = true;
}

void jit_ibl_empty(run_thread *t) { empty(t); }

void jit_ibl_clear(void)
{
    for (unsigned v = 0; v < RUN_VERSIONS; v++) {
        if (!jit.second[v]) continue;
        memset(jit.second[v]->pairs, 0, (jit.second[v]->mask + 1) * sizeof(pair));
        jit.second[v]->count = 0;
    }
    for (run_thread *u = run_here.threads; u; u = u->next) {
        if (__atomic_load_n(&jit_of(u)->epoch, __ATOMIC_ACQUIRE)) jit_ibl_block(u);
        empty(u);
    }
}

/* Landings of one version only are in a thread's own table. */
bool jit_ibl_take_version(run_thread *t)
{
    unsigned wanted = jit_of(t)->wanted;
    if (!jit.second[wanted]) jit.second[wanted] = table_new(FIRST_SIZE);
    if (!jit.second[wanted]) return false;
    jit_of(t)->version = wanted;
    jit_of(t)->ibl_table2 = (uint64_t)jit.second[wanted];
    empty(t);
    return true;
}

void jit_ibl_end(void)
{
    for (unsigned v = 0; v < RUN_VERSIONS; v++) {
        if (!jit.second[v]) continue;
        size_t bytes = sizeof(jit_table2) + (jit.second[v]->mask + 1) * sizeof(pair);
        run_own_locked((uint64_t)jit.second[v], (uint64_t)jit.second[v] + bytes, false);
        sys_call2(SYS_munmap, (long)jit.second[v], (long)bytes);
        jit.second[v] = NULL;
    }
}

void jit_ibl_init_thread(run_thread *t)
{
    /* The block may be that of a thread that was in the cache, with its table blocked, when another forked this
     * process. */
    sys_call3(SYS_mprotect, (long)entry_of(t, 0), ENTRIES * sizeof(uint64_t), PROT_READ | PROT_WRITE);
    inl_pages_want((uint64_t)entry_of(t, 0), ENTRIES * sizeof(uint64_t), true);
    fill(t, false);
    jit_of(t)->ibl_table2 = (uint64_t)jit.second[0];
    jit_of(t)->ibl_miss = jit.miss;
    t->dispatch_entry = (uint64_t)run_leave_code;
}

void jit_ibl_block(run_thread *t)
{
    __atomic_store_n(&jit_of(t)->ibl_blocked, true, __ATOMIC_SEQ_CST); /* first: the thread may be in the cache */
    sys_call3(SYS_mprotect, (long)entry_of(t, 0), ENTRIES * sizeof(uint64_t), PROT_NONE);
    jit_paired_protect(t, PROT_NONE);
}

void jit_ibl_unblock(run_thread *t)
{
    sys_call3(SYS_mprotect, (long)entry_of(t, 0), ENTRIES * sizeof(uint64_t), PROT_READ | PROT_WRITE);
    jit_paired_protect(t, PROT_READ | PROT_WRITE);
    jit_of(t)->ibl_blocked = false;
    if (!jit_of(t)->ibl_stale) return;
    jit_of(t)->ibl_stale = false;
    fill(t, true);
}
