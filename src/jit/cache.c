/* Arenas of translated code and the metadata that lives and dies with them.
 *
 * An arena is one piece of shared anonymous memory seen twice: mremap with an old size of zero makes
 * the second view, so that no descriptor is needed (the program may have used them all up, or
 * forbidden memfd_create) and no mapping is ever writable and executable. Where nothing may become executable that was
 * not (PR_SET_MDWE, the filters of service managers) it is memory of a file without a name, whose views are mapped as
 * they will be. The execute view is placed within reach of the module whose code it holds.
 *
 * Reclaiming: a flush retires all arenas and metadata chunks, stamped with the epoch that it ends. They
 * are freed when no thread can stand in them or hold a pointer to them: each thread's `epoch` says in
 * which epoch it entered the cache, 0 when it is outside; a thread in a native system call holds none.
 *
 * The tables of arenas and chunks are fixed arrays, so that a signal handler may walk them at any time.
 */
#include "base/ahead.h"
#include "base/log.h"
#include "base/region.h"
#include "base/sys.h"
#include "jit/core.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum {

    DEFAULT_ARENA = 16 << 20,
    SMALL_ARENA = 256 << 10,
    FIRST_ARENAS = 4,
    SPARE = 4 << 20,
    TINY_ARENA = 64 << 10,
    TINY_LIMIT = 256 << 10,
    CHUNK = 1 << 20,
    BYTES_PER_PIECE = 32,
    FIRST_LARGE = 2,   /* chunk */
    PLACES = 32 << 20, /* arenas' places are such a distance from each other */
    NEAREST = 128 << 20,
    LEFT_FREE = 1 << 30, /* below a module, if there is room further down */
};

#define REACH      0x78000000ll /* what an arena may be away from code it translates */
#define CHUNK_FREE 0
#define CHUNK_LIVE UINT64_MAX /* otherwise the epoch that the chunk was retired in */

static void unmap_memory(uint64_t at, size_t size)
{
    if (at) sys_call2(SYS_munmap, (long)at, (long)size);
}

/* --- placement --- */

static bool in_reach(uint64_t low, uint64_t high, uint64_t app)
{
    return app < high + REACH && app + REACH > low && (int64_t)(app - low) < REACH && (int64_t)(high - app) < REACH;
}

static bool reserve_at(uint64_t at, size_t size)
{
    uint64_t p = inl_region_map(at, size, PROT_NONE, MAP_PRIVATE | MAP_FIXED_NOREPLACE);
    if (p == at) return true;
    unmap_memory(p, size); /* kernels before 4.17 take the flag for a hint */
    return false;
}

/* The first place that is free at a distance from `from` to `to` below `base`. */
static uint64_t reserve_below(uint64_t base, size_t size, uint64_t from, uint64_t to)
{
    for (uint64_t d = from; d < to && base >= d + (1 << 20); d += PLACES)
        if (reserve_at(base - d, size)) return base - d;
    return 0;
}

/* Reserves address space near `app`. Above a program lies its heap, which must be able to grow, so
 * places below come first, and above from the far end. The nearest of those below come last: a program that translates
 * too looks in its list of mappings for room next to its own code, and has it mapped there whatever the kernel says. */
static uint64_t reserve_near(uint64_t app, size_t size)
{
    const uint64_t base = app & -(uint64_t)PLACES, high = REACH - size;
    uint64_t p = reserve_below(base, size, LEFT_FREE, high);
    if (!p) p = reserve_below(base, size, NEAREST, LEFT_FREE);
    if (p) return p;
    for (uint64_t d = high - PLACES; d >= PLACES; d -= PLACES)
        if (reserve_at(base + d, size)) return base + d;
    return inl_region_map(0, size, PROT_NONE, MAP_PRIVATE);
}

/* Both views anew; of what is at `write` the two ends are kept. */
static bool map_views_of_file(uint64_t write, uint64_t exec, size_t size, size_t low_end, size_t high_end)
{
    enum { TO_EXECUTE = 0x10 }; /* MFD_EXEC */
    int fd = (int)sys_call2(SYS_memfd_create, (long)"inlay code", MFD_CLOEXEC | TO_EXECUTE);
    if (fd == -EINVAL) fd = (int)sys_call2(SYS_memfd_create, (long)"inlay code", MFD_CLOEXEC);
    if (fd < 0) return false;
    size_t high = size - high_end;
    bool good = !sys_call2(SYS_ftruncate, fd, (long)size) &&
                sys_call4(SYS_pwrite64, fd, (long)write, (long)low_end, 0) == (long)low_end &&
                sys_call4(SYS_pwrite64, fd, (long)(write + high), (long)high_end, (long)high) == (long)high_end;
    const int how = MAP_SHARED | MAP_FIXED, prots[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC};
    for (int k = 0; k < 2 && good; k++) {
        uint64_t at = k ? exec : write;
        good = sys_call(SYS_mmap, (long)at, (long)size, prots[k], how, fd, 0) == (long)at;
    }
    sys_call1(SYS_close, fd);
    return good;
}

/* Makes shared memory at `write` visible at `exec` too, in place of what is there. */
static bool map_execute_view(uint64_t write, uint64_t exec, size_t size, size_t low_end, size_t high_end)
{
    long e = sys_call(SYS_mremap, (long)write, 0, (long)size, MREMAP_MAYMOVE | MREMAP_FIXED, (long)exec, 0);
    if (sys_failed(e)) return false;
    long refused = sys_call3(SYS_mprotect, (long)exec, (long)size, PROT_READ | PROT_EXEC);
    if (refused != -EACCES && refused != -EPERM) return !refused;
    return map_views_of_file(write, exec, size, low_end, high_end);
}

static uint64_t map_shared(size_t size) { return inl_region_map(0, size, PROT_READ | PROT_WRITE, MAP_SHARED); }

/* --- arenas --- */

static void own(const jit_arena *a, bool add)
{
    uint64_t pieces = (uint64_t)a->code;
    run_own_locked(a->exec, a->exec + a->size, add);
    run_own_locked((uint64_t)a->write, (uint64_t)a->write + a->size, add);
    run_own_locked(pieces, pieces + 2 * sizeof(jit_piece) * a->max_pieces, add);
}

static jit_arena *free_slot(void)
{
    for (uint32_t i = 0; i < JIT_MAX_ARENAS; i++)
        if (!jit.cache.arenas[i].exec) return &jit.cache.arenas[i];
    return NULL;
}

static jit_arena *arena_new(uint64_t app, size_t size, inl_error *e)
{
    jit_arena *a = free_slot();
    if (!a) {
        inl_fail(e, INL_ERR_NO_MEMORY, "more than %d code-cache arenas", JIT_MAX_ARENAS);
        return NULL;
    }
    uint32_t pieces = (uint32_t)(size / BYTES_PER_PIECE);
    uint64_t exec = reserve_near(app, size), write = map_shared(size);
    uint64_t index = inl_region_map(0, 2 * sizeof(jit_piece) * pieces, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    if (!exec || !write || !index || !map_execute_view(write, exec, size, 0, 0)) {
        unmap_memory(index, 2 * sizeof(jit_piece) * pieces);
        unmap_memory(exec, size);
        unmap_memory(write, size);
        inl_fail(e, INL_ERR_NO_MEMORY,
                 "no address space for %zu KB of code cache, or nothing may become executable here (a filter)",
                 size >> 10);
        return NULL;
    }
    *a = (jit_arena){.write = (uint8_t *)write,
                     .size = size,
                     .stub_at = size,
                     .stub_ready = size,
                     .code = (jit_piece *)index,
                     .stubs = (jit_piece *)index + pieces,
                     .max_pieces = pieces,
                     .next = jit.arenas};
    __atomic_store_n(&a->exec, exec, __ATOMIC_RELEASE); /* handlers see the arena from here on */
    jit_emit_tails(a);
    if (jit.cache.arena_high <= (uint32_t)(a - jit.cache.arenas))
        __atomic_store_n(&jit.cache.arena_high, (uint32_t)(a - jit.cache.arenas) + 1, __ATOMIC_RELEASE);
    jit.arenas = a;
    own(a, true);
    inl_log(INL_LOG_CACHE, "arena of %zu KB at %#llx for code at %#llx", size >> 10, (unsigned long long)exec,
            (unsigned long long)app);
    return a;
}

static void arena_free(jit_arena *a)
{
    uint64_t exec = a->exec;
    own(a, false);
    __atomic_store_n(&a->exec, 0, __ATOMIC_RELEASE);
    unmap_memory(exec, a->size);
    unmap_memory((uint64_t)a->write, a->size);
    unmap_memory((uint64_t)a->code, 2 * sizeof(jit_piece) * a->max_pieces);
}

jit_arena *jit_arena_of(uint64_t exec)
{
    uint32_t high = __atomic_load_n(&jit.cache.arena_high, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < high; i++) {
        uint64_t low = __atomic_load_n(&jit.cache.arenas[i].exec, __ATOMIC_ACQUIRE);
        if (low && exec - low < jit.cache.arenas[i].size) return &jit.cache.arenas[i];
    }
    return NULL;
}

bool jit_cache_contains(uint64_t addr) { return jit_arena_of(addr) != NULL; }

static size_t used(const jit_arena *a) { return a->code_at + (a->size - a->stub_at); }

size_t jit_cache_bytes(void)
{
    size_t sum = 0;
    for (const jit_arena *a = jit.arenas; a; a = a->next) sum += used(a);
    return sum;
}

void jit_cache_dropped(const jit_fragment *f) { jit.cache.dropped += f->size + f->exit_count * (size_t)JIT_STUB_BYTES; }

/* Both views, before they are written and run. */
static void want(const jit_arena *a, size_t low, size_t high)
{
    inl_pages_want((uint64_t)a->write + low, high - low, true);
    inl_pages_want(a->exec + low, high - low, false);
}

static void want_ahead(jit_arena *a)
{
    size_t step = inl_pages_ahead(used(a));
    size_t code = a->code_at + INL_PAGE, stub = a->stub_at - INL_PAGE;
    if (a->stub_at - a->code_at < 4 * step) return;
    if (code > a->code_ready) {
        want(a, a->code_at, a->code_at + step);
        a->code_ready = a->code_at + step;
    }
    if (stub < a->stub_ready) {
        want(a, a->stub_at - step, a->stub_at);
        a->stub_ready = a->stub_at - step;
    }
}

static bool has_room(const jit_arena *a, size_t room)
{
    return a->stub_at - a->code_at >= room && a->code_count + 2 < a->max_pieces && a->stub_count + 2 < a->max_pieces;
}

static jit_arena *find_arena(uint64_t app, size_t room)
{
    for (jit_arena *a = jit.arenas; a; a = a->next)
        if (has_room(a, room) && in_reach(a->exec, a->exec + a->size, app)) {
            want_ahead(a);
            return a;
        }
    return NULL;
}

static bool meta_is_low(void)
{
    uint32_t chunks_left = 0;
    for (uint32_t i = 0; i < JIT_MAX_CHUNKS && chunks_left < 2; i++)
        chunks_left += jit.cache.chunk_state[i] == CHUNK_FREE;
    return chunks_left < 2;
}

/* Most programs need little: the first arenas are small. */
static size_t next_arena_size(void)
{
    unsigned n = 0;
    for (const jit_arena *a = jit.arenas; a; a = a->next) n++;
    return n >= FIRST_ARENAS || jit.cache.arena_size / 4 < SMALL_ARENA ? jit.cache.arena_size
                                                                       : jit.cache.arena_size / 4;
}

static jit_arena *arena_as_large_as_can_be(uint64_t app, size_t size, size_t least, inl_error *e)
{
    jit_arena *a = arena_new(app, size, e);
    for (; !a && size / 2 >= SMALL_ARENA && size / 2 >= least; size /= 2) a = arena_new(app, size / 2, e);
    return a;
}

jit_arena *jit_arena_for(uint64_t app, size_t room, inl_error *e)
{
    bool tiny = jit.options.stress & JIT_STRESS_TINY_CACHE;
    size_t limit = jit.options.cache_limit ? jit.options.cache_limit : tiny ? TINY_LIMIT : 0;
    size_t size = jit.options.arena_bytes ? jit.options.arena_bytes : tiny ? TINY_ARENA : next_arena_size();
    size = inl_page_up(size);
    jit_arena *a = find_arena(app, room);
    if (a) return a;
    bool wasted = jit.cache.dropped > jit_cache_bytes() / 2; /* of code that changes all the time */
    if ((limit && jit_cache_bytes() + size > limit && jit.arenas) || meta_is_low() || wasted) jit_flush_all();
    while (size < room + JIT_TAILS_ROOM) size *= 2;
    a = arena_as_large_as_can_be(app, size, room + JIT_TAILS_ROOM, e);
    if (!a && (jit.arenas || jit.retired)) {
        if (jit.arenas) jit_flush_all();
        jit_cache_reclaim();
        a = arena_as_large_as_can_be(app, size, room + JIT_TAILS_ROOM, e);
    }
    return a;
}

/* --- metadata --- */

/* The first chunks are of ordinary pages, since most programs need no more; then two are a large one. */
static bool grow_meta(uint32_t chunk)
{
    const size_t pair = INL_HUGE_PAGE, before = jit.cache.meta.mapped, wanted = (chunk + (size_t)1) * CHUNK;
    if (wanted <= before) return true;
    if (chunk < FIRST_LARGE || before % pair || !inl_room_grow(&jit.cache.meta, before + pair))
        return inl_room_grow(&jit.cache.meta, wanted);
    inl_pages_large(jit.cache.meta.at + before, pair);
    return true;
}

static bool next_chunk(void)
{
    for (uint32_t i = 0; i < JIT_MAX_CHUNKS; i++) {
        if (jit.cache.chunk_state[i] != CHUNK_FREE) continue;
        if (!grow_meta(i)) return false;
        jit.cache.chunk_state[i] = CHUNK_LIVE;
        jit.cache.meta_chunk = i;
        jit.cache.meta_at = i ? 0 : 8; /* reference 0 is no object */
        jit.cache.meta_ready = 0;
        return true;
    }
    return false;
}

void *jit_meta_alloc(size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    if (bytes > CHUNK / 4) return NULL;
    if (jit.cache.meta_at + bytes > CHUNK && !next_chunk()) return NULL;
    uint8_t *chunk = jit.meta_base + (size_t)jit.cache.meta_chunk * CHUNK, *p = chunk + jit.cache.meta_at;
    jit.cache.meta_at += bytes;
    if (jit.cache.meta_at > jit.cache.meta_ready && jit.cache.meta_ready < CHUNK) {
        size_t step = inl_pages_ahead(jit.cache.meta_chunk * (size_t)CHUNK + jit.cache.meta_ready);
        if (step > CHUNK - jit.cache.meta_ready) step = CHUNK - jit.cache.meta_ready;
        inl_pages_want((uint64_t)chunk + jit.cache.meta_ready, step, true);
        jit.cache.meta_ready += step;
    }
    return p;
}

static void reclaim_chunks(uint64_t before)
{
    for (uint32_t i = 0; i < JIT_MAX_CHUNKS; i++) {
        if (jit.cache.chunk_state[i] == CHUNK_FREE || jit.cache.chunk_state[i] >= before) continue;
        /* Fresh pages are zero again. */
        sys_call3(SYS_madvise, (long)(jit.meta_base + (size_t)i * CHUNK), CHUNK, MADV_DONTNEED);
        jit.cache.chunk_state[i] = CHUNK_FREE;
    }
}

/* --- retirement --- */

void jit_cache_retire(void)
{
    while (jit.arenas) {
        jit_arena *a = jit.arenas;
        jit.arenas = a->next;
        a->epoch = jit.epoch;
        a->next = jit.retired;
        jit.retired = a;
    }
    for (uint32_t i = 0; i < JIT_MAX_CHUNKS; i++)
        if (jit.cache.chunk_state[i] == CHUNK_LIVE) jit.cache.chunk_state[i] = jit.epoch;
    jit.cache.meta_at = CHUNK;
    jit.cache.something_retired = true;
    jit.cache.dropped = 0;
}

/* The oldest epoch that a thread may still be in; or (back) come back to, which may take long. */
static uint64_t oldest_epoch(bool back)
{
    uint64_t oldest = jit.epoch;
    for (const run_thread *t = run_here.threads; t; t = t->next) {
        uint64_t e = __atomic_load_n(&jit_of(t)->epoch, __ATOMIC_ACQUIRE);
        bool holds = e && !__atomic_load_n(&jit_of(t)->in_gate, __ATOMIC_ACQUIRE);
        if (jit_of(t)->unlinked) return 0;
        if (holds && e < oldest) oldest = e;
        uint64_t held = back ? __atomic_load_n(&jit_of(t)->held, __ATOMIC_ACQUIRE) : 0;
        if (held && held < oldest) oldest = held;
    }
    return oldest;
}

bool jit_cache_is_held(void) { return jit.cache.something_retired && oldest_epoch(false) < jit.epoch; }

void jit_cache_reclaim(void)
{
    if (!jit.cache.something_retired) return;
    uint64_t before = oldest_epoch(true);
    for (jit_arena **link = &jit.retired; *link;) {
        jit_arena *a = *link;
        if (a->epoch < before) {
            *link = a->next;
            arena_free(a);
        } else {
            link = &a->next;
        }
    }
    reclaim_chunks(before);
    jit.cache.something_retired = jit.retired != NULL;
}

/* The program wants to have memory where it does not know of an arena: all go, and what is translated next finds other
 * places. They stay as long as somebody else is in them. */
void jit_cache_give_way(uint64_t low, uint64_t high)
{
    bool in_the_way = false;
    for (uint32_t i = 0; i < jit.cache.arena_high; i++) {
        const jit_arena *a = &jit.cache.arenas[i];
        in_the_way |= a->exec && a->exec < high && low < a->exec + a->size;
    }
    if (!in_the_way) return;
    jit_flush_all();
    jit_cache_reclaim();
}

/* What there may be of address space decides how much is taken at once. The program can lower its limit later:
 * then smaller arenas are made when larger ones cannot be had. */
static void heed_limit(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    size_t spare = SPARE;
    sys_call4(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit);
    while (jit.cache.arena_size > SMALL_ARENA && jit.cache.arena_size > limit.rlim_cur / 128) jit.cache.arena_size /= 2;
    while (spare > INL_PAGE && spare > limit.rlim_cur / 32) spare /= 2;
    inl_spare_keep(spare);
}

inl_status jit_cache_init(inl_error *e)
{
    jit.epoch = 1;
    jit.cache.arena_size = DEFAULT_ARENA;
    heed_limit();
    if (!inl_room_take(&jit.cache.meta, (size_t)JIT_MAX_CHUNKS * CHUNK, CHUNK))
        return inl_fail(e, INL_ERR_NO_MEMORY, "no memory for the code cache's tables");
    jit.meta_base = (uint8_t *)jit.cache.meta.at;
    jit.cache.meta_at = CHUNK;
    run_own_locked(jit.cache.meta.at, jit.cache.meta.at + jit.cache.meta.size, true);
    return INL_OK;
}

void jit_cache_end(void)
{
    for (uint32_t i = 0; i < jit.cache.arena_high; i++)
        if (jit.cache.arenas[i].exec) arena_free(&jit.cache.arenas[i]);
    run_own_locked(jit.cache.meta.at, jit.cache.meta.at + jit.cache.meta.size, false);
    inl_room_give_back(&jit.cache.meta);
    inl_spare_drop();
}

/* --- fork --- */

/* A child's views would go on showing the parent's memory, where the parent writes at once. So the parent
 * makes a copy of everything before it forks, and the child puts the copy in the place of its views. */
static bool copy_arena(jit_arena *a)
{
    a->fork_copy = map_shared(a->size);
    if (!a->fork_copy) return false;
    uint8_t *to = (uint8_t *)a->fork_copy;
    memcpy(to, a->write, a->code_at);
    memcpy(to + a->stub_at, a->write + a->stub_at, a->size - a->stub_at);
    return true;
}

static bool adopt_copy(jit_arena *a)
{
    long w = sys_call(SYS_mremap, (long)a->fork_copy, (long)a->size, (long)a->size, MREMAP_MAYMOVE | MREMAP_FIXED,
                      (long)a->write, 0);
    a->fork_copy = 0;
    return !sys_failed(w) && map_execute_view((uint64_t)w, a->exec, a->size, a->code_at, a->size - a->stub_at);
}

void jit_cache_fork_parent(void)
{
    for (uint32_t i = 0; i < jit.cache.arena_high; i++) {
        jit_arena *a = &jit.cache.arenas[i];
        if (a->fork_copy) sys_call2(SYS_munmap, (long)a->fork_copy, (long)a->size);
        a->fork_copy = 0;
    }
}

void jit_cache_fork_prepare(void)
{
    for (uint32_t i = 0; i < jit.cache.arena_high; i++) {
        if (!jit.cache.arenas[i].exec || copy_arena(&jit.cache.arenas[i])) continue;
        jit_cache_fork_parent();
        jit_flush_all(); /* no memory: then the child begins without translations */
        return;
    }
}

/* Nobody runs in the parent's views but its own threads. */
static void leave_views(void)
{
    jit.arenas = jit.retired = NULL;
    for (uint32_t i = 0; i < jit.cache.arena_high; i++)
        if (jit.cache.arenas[i].exec) arena_free(&jit.cache.arenas[i]);
}

void jit_cache_fork_child(void)
{
    bool copied = false;
    for (uint32_t i = 0; i < jit.cache.arena_high; i++) copied |= jit.cache.arenas[i].fork_copy != 0;
    if (!copied) leave_views();
    for (uint32_t i = 0; i < jit.cache.arena_high; i++) {
        if (!jit.cache.arenas[i].fork_copy || adopt_copy(&jit.cache.arenas[i])) continue;
        static const char text[] = "inlay: no memory for the code cache of a forked process\n";
        sys_call3(SYS_write, inl_log_fd, (long)text, sizeof text - 1);
        sys_call1(SYS_exit_group, 125);
    }
}
