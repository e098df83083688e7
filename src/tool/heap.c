/* The tool's malloc, in place of the C library's.
 *
 * Analysis routines call it, perhaps at each allocation of the program, so above all it is cheap to call
 * from woven code: no thread-local storage (the FS base need not change), no vector registers, no call
 * through a pointer, so that the weaver finds out what little it changes (weave/clobber.c). It is
 * compiled with general registers only, and errno stays as it is when memory is used up. Memory comes from
 * the tool's own region (base/region.h).
 *
 *     block      [ word | what the caller has ... ]     word: 8 bytes; the caller's part is aligned to 16
 *       word < CLASSES          of that size class
 *              class | FREED    the same, free; the caller's part begins with the next free one
 *              BIG              a mapping of its own; its size is in front of the word
 *              ALIGNED | n<<8   n bytes into another block
 *
 *     cache, one for each thread:  a list of free blocks for each class
 *     store, one, under a lock:    the same; what caches give back in batches; chunks that blocks are cut
 *                                  from; big mappings that were given back
 *
 * The cache is found through the thread's frame. Until there is a second thread it is a static one: then
 * there may be no frame yet, as in the launcher. Routines are not interrupted by the program's signal
 * handlers, so a cache needs no lock. Blocks of one size never become those of another; what is larger
 * than the largest class goes back to the kernel.
 *
 * All symbols of the C library's malloc.o are defined here, or the linker would want that one too. */
#include "tool/glibc.h"
#include "tool/heap.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"
#include "run/thread.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define EXPORT      __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    FINE = 64,           /* classes of 16, 32, ... 1024 bytes, */
    CLASSES = FINE + 32, /* then four for each power of two */
    FINE_BYTES = 1024,
    COARSE_BYTES = 256 << 10,
    FREED = 0x100,
    ALIGNED = 0xfe,
    BIG = 0xff,
    BATCH_BYTES = 8192, /* what goes between a cache and the store at once, */
    BATCH_MAX = 64,     /* in so many blocks at most */
    CHUNK = 1 << 20,
    CHUNK_MAX = 64 << 20,
    CHUNK_LEAST = 64 << 10,
    KEPT = 16,             /* big mappings */
    KEPT_BYTES = 64 << 20, /* in all */
};

typedef struct block {
    struct block *next;
} block;
typedef struct list {
    block *first;
    uint32_t count, limit; /* above it some go to the store */
} list;
typedef struct heap_cache {
    list lists[CLASSES];
} heap_cache;
typedef struct big {
    size_t mapped, word;
} big; /* the caller's part follows */

/* Static: malloc names no state, and a C library calls it before there is any. */
static heap_cache first_cache;
static bool threads;

static struct {
    inl_lock lock;
    list lists[CLASSES];
    uint64_t at, end; /* the chunk */
    size_t mapped;    /* bytes, all in all */
    big *kept[KEPT];
    size_t kept_bytes;
} store;

/* --- blocks --- */

static uint64_t *word_of(void *p) { return (uint64_t *)p - 1; }

static unsigned class_of(size_t n)
{
    if (n <= FINE_BYTES - 8) return (unsigned)((n + 7) >> 4);
    uint64_t t = n + 7; /* with the word, less one */
    unsigned k = 63u - (unsigned)__builtin_clzl(t);
    return FINE + (k - 10) * 4 + (unsigned)(t >> (k - 2) & 3);
}

/* With the word. */
static size_t class_bytes(unsigned c)
{
    if (c < FINE) return (c + 1) * 16ul;
    unsigned k = 10 + (c - FINE) / 4;
    return (1ul << k) + ((c - FINE) % 4 + 1ul) * (1ul << (k - 2));
}

static unsigned batch_of(unsigned c)
{
    size_t n = BATCH_BYTES / class_bytes(c);
    return n > BATCH_MAX ? BATCH_MAX : n ? (unsigned)n : 1;
}

static void push(list *l, block *b)
{
    b->next = l->first;
    l->first = b;
    l->count++;
}

static block *pop(list *l)
{
    block *b = l->first;
    l->first = b->next;
    l->count--;
    return b;
}

/* --- memory from the kernel --- */

static void *map(size_t bytes, int prot) { return (void *)inl_region_map(0, bytes, prot, MAP_PRIVATE); }

static void make_block(list *to, uint64_t at, unsigned c)
{
    block *b = (block *)(at + 8);
    *word_of(b) = c | FREED;
    push(to, b);
}

/* What is left of a chunk becomes blocks. */
static void use_up_locked(void)
{
    while (store.end - store.at >= 16) {
        size_t left = store.end - store.at;
        unsigned c = left >= COARSE_BYTES ? CLASSES - 1 : class_of(left - 8);
        if (class_bytes(c) > left) c--;
        make_block(&store.lists[c], store.at, c);
        store.at += class_bytes(c);
    }
}

static bool new_chunk_locked(void)
{
    size_t bytes = inl_page_up(store.mapped / 8);
    if (bytes < CHUNK) bytes = CHUNK;
    if (bytes > CHUNK_MAX) bytes = CHUNK_MAX;
    use_up_locked();
    char *p = map(bytes, PROT_READ | PROT_WRITE);
    while (!p && bytes / 2 >= CHUNK_LEAST) p = map(bytes /= 2, PROT_READ | PROT_WRITE);
    if (!p) return false;
    store.mapped += bytes;
    store.at = (uint64_t)p + 8; /* so that words end at multiples of 16 */
    store.end = (uint64_t)p + bytes;
    return true;
}

/* --- caches --- */

static __attribute__((noinline)) heap_cache *make_cache(run_thread *t)
{
    const size_t bytes = ((sizeof(heap_cache) + 15) & ~15ul) + 16;
    heap_cache *made = NULL;
    inl_lock_take_inner(&store.lock);
    if (store.end - store.at >= bytes || new_chunk_locked()) {
        made = (heap_cache *)(store.at + 8); /* untouched memory: zero */
        store.at += bytes;
    }
    inl_lock_release_inner(&store.lock);
    t->frame.heap_cache = made;
    return made;
}

static heap_cache *cache(void)
{
    if (!threads) return &first_cache;
    run_thread *t = run_self();
    heap_cache *c = t->frame.heap_cache;
    return UNLIKELY(!c) ? make_cache(t) : c;
}

void heap_threads_begin(void)
{
    if (threads) return;
    for (unsigned c = 0; c < CLASSES; c++) first_cache.lists[c].limit = 0;
    run_self()->frame.heap_cache = &first_cache;
    threads = true;
}

/* A batch from the store, or cut from a chunk. */
static __attribute__((noinline)) void *refill(heap_cache *k, unsigned c)
{
    if (!k) return NULL;
    list *to = &k->lists[c], *from = &store.lists[c];
    size_t bytes = class_bytes(c);
    unsigned n = batch_of(c);
    inl_lock_take_inner(&store.lock);
    while (n && from->first) push(to, pop(from)), n--;
    if (!to->first && store.end - store.at < bytes) new_chunk_locked();
    for (; n && store.end - store.at >= bytes; n--, store.at += bytes) make_block(to, store.at, c);
    inl_lock_release_inner(&store.lock);
    if (!to->first) return NULL;
    block *b = pop(to);
    *word_of(b) = c;
    return b;
}

static void give_back(list *from, unsigned c, unsigned n)
{
    inl_lock_take_inner(&store.lock);
    while (n-- && from->first) push(&store.lists[c], pop(from));
    inl_lock_release_inner(&store.lock);
}

/* The list is longer than its limit, or has none yet. */
static __attribute__((noinline)) void overflow(list *l, unsigned c)
{
    unsigned batch = batch_of(c);
    l->limit = threads ? 2 * batch : UINT32_MAX;
    if (l->count > l->limit) give_back(l, c, batch);
}

/* --- big ones --- */

static big *big_of(void *p) { return (big *)p - 1; }

static big *take_kept(size_t bytes)
{
    unsigned best = KEPT;
    inl_lock_take_inner(&store.lock);
    for (unsigned i = 0; i < KEPT; i++) {
        const big *b = store.kept[i];
        if (!b || b->mapped < bytes || b->mapped > bytes + bytes / 4) continue;
        if (best == KEPT || b->mapped < store.kept[best]->mapped) best = i;
    }
    big *b = best < KEPT ? store.kept[best] : NULL;
    if (b) {
        store.kept[best] = NULL;
        store.kept_bytes -= b->mapped;
    }
    inl_lock_release_inner(&store.lock);
    return b;
}

static __attribute__((noinline)) void *big_alloc(size_t n, bool zeroed)
{
    if (n > (size_t)PTRDIFF_MAX) return NULL;
    size_t bytes = inl_page_up(n + sizeof(big));
    big *b = zeroed ? NULL : take_kept(bytes);
    if (!b && (b = map(bytes, PROT_READ | PROT_WRITE))) {
        b->mapped = bytes;
        __atomic_fetch_add(&store.mapped, bytes, __ATOMIC_RELAXED);
    }
    if (!b) return NULL;
    b->word = BIG;
    return b + 1;
}

static void unmap(big *b)
{
    __atomic_fetch_sub(&store.mapped, b->mapped, __ATOMIC_RELAXED);
    sys_call2(SYS_munmap, (long)b, (long)b->mapped);
}

/* Some are kept for the next time. */
static void big_free(big *b)
{
    unsigned i = 0;
    b->word = BIG | FREED;
    inl_lock_take_inner(&store.lock);
    while (i < KEPT && store.kept[i]) i++;
    bool keep = i < KEPT && b->mapped <= KEPT_BYTES / 2 && store.kept_bytes + b->mapped <= KEPT_BYTES;
    if (keep) {
        store.kept[i] = b;
        store.kept_bytes += b->mapped;
    }
    inl_lock_release_inner(&store.lock);
    if (!keep) unmap(b);
}

/* In place, or to another part of the region; NULL: neither. */
static void *big_resize(big *b, size_t n)
{
    if (n > (size_t)PTRDIFF_MAX) return NULL;
    size_t old = b->mapped, bytes = inl_page_up(n + sizeof *b);
    if (bytes == old) return b + 1;
    long r = sys_call4(SYS_mremap, (long)b, (long)old, (long)bytes, 0);
    if (sys_failed(r)) {
        void *fresh = map(bytes, PROT_NONE);
        if (!fresh) return NULL;
        r = sys_call(SYS_mremap, (long)b, (long)old, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)fresh, 0);
        if (sys_failed(r)) {
            sys_call2(SYS_munmap, (long)fresh, (long)bytes);
            return NULL;
        }
    }
    b = (big *)r;
    b->mapped = bytes;
    __atomic_fetch_add(&store.mapped, bytes - old, __ATOMIC_RELAXED);
    return b + 1;
}

/* --- contents, by words: for there are no vector registers, and string instructions would have the
 * caller care for the direction flag --- */

static void copy(void *to, const void *from, size_t bytes) /* in whole words */
{
    uint64_t *t = to;
    const uint64_t *f = from;
    for (size_t i = 0; i < (bytes + 7) / 8; i++) t[i] = f[i];
}

static void clear(void *p, size_t bytes)
{
    uint64_t *t = p;
    for (size_t i = 0; i < (bytes + 7) / 8; i++) t[i] = 0;
}

/* --- mistakes --- */

static __attribute__((noinline, noreturn)) void broken(const char *what, size_t size)
{
    sys_call3(SYS_write, inl_log_fd, (long)what, (long)size);
    __builtin_trap();
}
#define BROKEN(text) broken(text "\n", sizeof text)

/* --- where does what the caller has belong? --- */

static bool is_aligned(const void *p) { return (*word_of((void *)p) & 0xff) == ALIGNED; }

/* The caller's part of the block. */
static void *start_of(const void *p) { return (char *)p - (is_aligned(p) ? *word_of((void *)p) >> 8 & ~15ull : 0); }

static size_t usable(const void *p)
{
    char *start = start_of(p);
    uint64_t word = *word_of(start);
    size_t bytes = word < CLASSES ? class_bytes((unsigned)word) - 8
                   : word == BIG  ? big_of(start)->mapped - sizeof(big)
                                  : 0;
    return bytes ? bytes - (size_t)((const char *)p - start) : 0;
}

/* --- the family --- */

static void release(void *p);

static __attribute__((noinline)) void release_other(void *p)
{
    uint64_t *word = word_of(p);
    if (*word & FREED) BROKEN("the tool frees memory twice");
    if (is_aligned(p)) {
        *word |= FREED;
        release(start_of(p));
    } else if (*word == BIG) {
        big_free(big_of(p));
    } else {
        BROKEN("the tool frees what is not its memory");
    }
}

static void release(void *p)
{
    if (!p) return;
    uint64_t c = *word_of(p);
    if (UNLIKELY(c >= CLASSES)) {
        release_other(p);
        return;
    }
    heap_cache *k = cache();
    *word_of(p) = c | FREED;
    if (UNLIKELY(!k)) return;
    list *l = &k->lists[c];
    push(l, p);
    if (UNLIKELY(l->count > l->limit)) overflow(l, (unsigned)c);
}

static inline void *alloc(size_t n)
{
    if (UNLIKELY(n > COARSE_BYTES - 8)) return big_alloc(n, false);
    unsigned c = class_of(n);
    heap_cache *k = cache();
    if (UNLIKELY(!k || !k->lists[c].first)) return refill(k, c);
    block *b = pop(&k->lists[c]);
    *word_of(b) = c;
    return b;
}

EXPORT void *malloc(size_t n) { return alloc(n); }
EXPORT void free(void *p) { release(p); }

EXPORT void *calloc(size_t n, size_t each)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) return NULL;
    if (bytes > COARSE_BYTES - 8) return big_alloc(bytes, true);
    void *p = alloc(bytes);
    if (p) clear(p, bytes);
    return p;
}

EXPORT void *realloc(void *p, size_t n)
{
    if (!p) return alloc(n);
    if (!n) {
        release(p);
        return NULL;
    }
    size_t have = usable(p);
    if (!have) BROKEN("the tool resizes what is not its memory");
    if (n <= have && n >= have / 2) return p;
    if (*word_of(p) == BIG && n > COARSE_BYTES - 8) return big_resize(big_of(p), n);
    void *to = alloc(n);
    if (!to) return NULL;
    copy(to, p, n < have ? n : have);
    release(p);
    return to;
}

EXPORT void *memalign(size_t to, size_t n)
{
    if (to <= 16) return alloc(n);
    if (to & (to - 1)) to = 1ul << (64 - __builtin_clzl(to));
    char *start = n + to < n ? NULL : alloc(n + to);
    if (!start) return NULL;
    char *p = (char *)(((uintptr_t)start + to - 1) & -to);
    if (p != start) *word_of(p) = ALIGNED | (uint64_t)(p - start) << 8;
    return p;
}

EXPORT int posix_memalign(void **out, size_t to, size_t n)
{
    if (to < sizeof(void *) || to & (to - 1)) return EINVAL;
    void *p = memalign(to, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

EXPORT void *valloc(size_t n) { return memalign(INL_PAGE, n); }
EXPORT void *pvalloc(size_t n) { return memalign(INL_PAGE, inl_page_up(n)); }
EXPORT size_t malloc_usable_size(void *p) { return p ? usable(p) : 0; }

/* --- the rest of the C library's file --- */

EXPORT int malloc_trim(size_t pad)
{
    big *given[KEPT];
    int any = 0;
    (void)pad;
    inl_lock_take_inner(&store.lock);
    for (unsigned i = 0; i < KEPT; i++) given[i] = store.kept[i], store.kept[i] = NULL;
    store.kept_bytes = 0;
    inl_lock_release_inner(&store.lock);
    for (unsigned i = 0; i < KEPT; i++)
        if (given[i]) unmap(given[i]), any = 1;
    return any;
}

EXPORT struct mallinfo2 mallinfo2(void)
{
    return (struct mallinfo2){.arena = store.mapped, .fordblks = store.kept_bytes};
}

EXPORT struct mallinfo mallinfo(void)
{
    return (struct mallinfo){.arena = (int)store.mapped, .fordblks = (int)store.kept_bytes};
}

/* Nothing can be set, and there is nothing to tell. */
EXPORT int mallopt(int what, int value) { return (void)what, (void)value, 0; }
EXPORT void malloc_stats(void) {}
EXPORT int malloc_info(int options, FILE *to) { return (void)options, (void)to, -1; }

/* What the C library's own fork and the ends of threads call (see tls.c). */
EXPORT void __malloc_fork_lock_parent(void) { inl_lock_take_inner(&store.lock); }
EXPORT void __malloc_fork_unlock_parent(void) { inl_lock_release_inner(&store.lock); }
EXPORT void __malloc_fork_unlock_child(void) { inl_lock_reset(&store.lock); }

EXPORT void __malloc_arena_thread_freeres(void)
{
    heap_cache *k = threads ? run_self()->frame.heap_cache : NULL;
    for (unsigned c = 0; k && c < CLASSES; c++)
        if (k->lists[c].first) give_back(&k->lists[c], c, k->lists[c].count);
}

/* The same by the names that the C library's own objects use. */
#define ALSO(type, name, of, ...) EXPORT type name(__VA_ARGS__) __attribute__((alias(#of)))
ALSO(void *, aligned_alloc, memalign, size_t, size_t);
ALSO(void *, __libc_malloc, malloc, size_t);
ALSO(void, __libc_free, free, void *);
ALSO(void *, __libc_calloc, calloc, size_t, size_t);
ALSO(void *, __libc_realloc, realloc, void *, size_t);
ALSO(void *, __libc_memalign, memalign, size_t, size_t);
ALSO(void *, __libc_valloc, valloc, size_t);
ALSO(void *, __libc_pvalloc, pvalloc, size_t);
ALSO(int, __posix_memalign, posix_memalign, void **, size_t, size_t);
ALSO(int, __libc_mallopt, mallopt, int, int);
ALSO(struct mallinfo, __libc_mallinfo, mallinfo, void);
ALSO(struct mallinfo2, __libc_mallinfo2, mallinfo2, void);
