#include "jit/kept_file.h"
#include "base/ahead.h"
#include "base/log.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sum.h"
#include "base/sys.h"
#include "base/vec.h"
#include "run/kernel.h"
#include "weave/weave.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

typedef struct slot { /* all zero: free */
    uint32_t app;     /* low half of the entry's address, the kind of entry included */
    uint32_t at;      /* of its group, in 8 bytes */
    uint32_t size;    /* of that, likewise */
    uint32_t index;   /* in it */
} slot;

enum { KEY_MOST = 64 << 10 };

/* --- entries --- */

size_t kept_entry_lay(void *memory, kept_entry *out)
{
    uint8_t *at = memory;
    const kept_head *h = memory;
    out->head = h;
    at += sizeof *h;
#define PART(name, count) out->name = (void *)at, at += (count) * sizeof *out->name
    PART(exits, h->exits);
    PART(consts, h->consts);
    PART(fixups, h->fixups);
    PART(extents, h->extents + h->looks);
    PART(blocks, h->blocks);
    PART(named, h->named);
    PART(faults, h->faults);
    PART(counts, h->counts);
    PART(weights, h->weights);
    PART(source, (size_t)h->source_size);
    PART(map, (size_t)h->map_size);
    PART(code, (size_t)h->code_size);
#undef PART
    return ((size_t)(at - (uint8_t *)memory) + 7) & ~(size_t)7;
}

/* Its sizes are, one by one, so small that their sum does not wrap. */
static bool is_whole(const kept_head *h, size_t room, kept_entry *out)
{
    const uint32_t most = KEPT_ENTRY;
    if (room < sizeof *h || h->size > most || h->size > room || h->size % 8) return false;
    if (h->code_size > most || h->map_size > most || h->source_size > most) return false;
    if (h->cold_at > h->code_size || h->phase > 7 || !h->extents || !h->blocks || !h->map_size) return false;
    return kept_entry_lay((void *)(uintptr_t)h, out) == h->size;
}

static const kept_head *entry_at(const kept_group *g, uint64_t at) { return (const kept_head *)((const char *)g + at); }

bool kept_group_entry(const kept_group *g, unsigned index, kept_entry *out)
{
    uint64_t at = index < g->count ? g->at[index] * 8ull : 0;
    if (at < sizeof *g || at > g->size || !is_whole(entry_at(g, at), g->size - at, out)) return false;
    for (unsigned i = 0; i < out->head->exits; i++)
        if (out->exits[i].to > g->count) return false;
    return true;
}

static uint64_t group_sum(const kept_group *g)
{
    return inl_sum((const char *)g + sizeof g->sum, g->size - sizeof g->sum, 3);
}

static uint64_t key_of(uint64_t app, bool continues) { return app ^ (uint64_t)continues << 31; }

/* Each line of 64 bytes of code has its 16 slots, one behind the other: what follows each other is near in the file. */
static uint64_t home_of(uint64_t key) { return ((key >> 6) * 0x9e3779b97f4a7c15u >> 32 << 4) + (key >> 2 & 15); }

/* --- reading --- */

static bool copy(void *to, uint64_t from, size_t size)
{
    return !run_safe_copy(to, (const void *)(uintptr_t)from, size);
}

/* Where groups begin. */
static uint64_t first_at(uint32_t key_size) { return sizeof(kept_file_head) + ((key_size + 7u) & ~7u); }

static bool is_own_file(int fd, uint64_t *size)
{
    struct stat st;
    if (sys_failed(sys_call4(SYS_newfstatat, fd, (long)"", (long)&st, AT_EMPTY_PATH))) return false;
    bool own = S_ISREG(st.st_mode) && !(st.st_mode & 077) && (long)st.st_uid == sys_call0(SYS_geteuid);
    *size = (uint64_t)st.st_size;
    return own && *size >= sizeof(kept_file_head) && *size <= KEPT_LIMIT;
}

/* `key_room`: at the key in the file, to be compared without trust in the file's being there. */
static bool has_key(const kept_map *m, const kept_file_head *h, const char *key)
{
    char text[512];
    size_t n = strlen(key);
    kept_file_head sealed = *h;
    if (h->key_size != n) return false;
    for (size_t done = 0; done < n; done += sizeof text) {
        size_t part = n - done < sizeof text ? n - done : sizeof text;
        if (!copy(text, m->at + sizeof *h + done, part) || memcmp(text, key + done, part) != 0) return false;
    }
    sealed.sum = 0;
    return h->sum == inl_sum(key, n, inl_sum(&sealed, sizeof sealed, 4));
}

static bool is_good(kept_map *m, const char *key)
{
    kept_file_head h;
    if (!copy(&h, m->at, sizeof h) || memcmp(h.magic, KEPT_MAGIC, sizeof KEPT_MAGIC - 1) != 0 || h.size != m->size)
        return false;
    if (h.key_size > KEY_MOST || !h.slots || h.slots & (h.slots - 1) || h.entries > h.slots / 2) return false;
    if (h.slots_at < first_at(h.key_size) || h.slots_at > h.size || h.slots_at % 8) return false;
    if ((uint64_t)h.slots * sizeof(slot) != h.size - h.slots_at || !has_key(m, &h, key)) return false;
    m->slots = h.slots;
    m->table = m->at + h.slots_at;
    m->first = m->at + first_at(h.key_size);
    m->entries = h.entries;
    return true;
}

bool kept_open(kept_map *m, int folder, const char *key)
{
    char name[KEPT_NAME];
    uint64_t size;
    *m = (kept_map){0};
    kept_name(key, name);
    long fd = sys_call4(SYS_openat, folder, (long)name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (sys_failed(fd)) return false;
    if (is_own_file((int)fd, &size)) {
        long at = sys_call(SYS_mmap, (long)inl_region_take(size), (long)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (!sys_failed(at)) *m = (kept_map){.at = (uint64_t)at, .size = size};
    }
    sys_call1(SYS_close, fd);
    if (m->at && is_good(m, key)) return true;
    if (m->at) inl_log(INL_LOG_CACHE, "file %s of kept translations is not used: it is damaged", name);
    kept_close(m);
    return false;
}

void kept_close(kept_map *m)
{
    if (m->at) sys_call2(SYS_munmap, (long)m->at, (long)m->size);
    *m = (kept_map){0};
}

static uint64_t slot_at(const kept_map *m, uint32_t k) { return m->table + (k & (m->slots - 1)) * sizeof(slot); }

/* What is copied out cannot change any more. */
static bool copy_group(kept_group *to, uint64_t from, uint64_t size)
{
    if (size < sizeof *to || size > KEPT_GROUP || !copy(to, from, size)) return false;
    return to->size == size && to->count && to->count <= KEPT_TOGETHER && to->sum == group_sum(to);
}

/* Groups are wanted here and there, and in the end most of them. */
static void expect(kept_map *m, uint64_t at)
{
    uint64_t piece = at / KEPT_AHEAD, from = piece * KEPT_AHEAD;
    if (m->ready[piece / 64] >> piece % 64 & 1) return;
    m->ready[piece / 64] |= 1ull << piece % 64;
    inl_pages_want(m->at + from, m->size - from < KEPT_AHEAD ? m->size - from : KEPT_AHEAD, false);
}

bool kept_find(kept_map *m, uint64_t app, bool continues, void *memory, uint32_t *tried, unsigned *index)
{
    uint64_t key = key_of(app, continues);
    if (!m->at) return false;
    for (uint32_t k = (uint32_t)home_of((uint32_t)key); *tried < m->slots;) {
        slot s;
        kept_entry e;
        if (!copy(&s, slot_at(m, k + (*tried)++), sizeof s) || !s.at) break;
        uint64_t at = s.at * 8ull, size = s.size * 8ull;
        if (s.app != (uint32_t)key || at >= m->size || at + size > m->size) continue;
        expect(m, at);
        if (!copy_group(memory, m->at + at, size)) continue;
        if (!kept_group_entry(memory, s.index, &e) || e.head->app != app || e.head->continues != continues) continue;
        *index = s.index;
        return true;
    }
    return false;
}

/* --- writing --- */

typedef struct writer {
    int fd;
    bool failed;
    uint64_t at, most;
    size_t have;
    uint8_t bytes[64 << 10];
    /* the group in the making, and one of the old file's */
    uint64_t group[KEPT_GROUP / 8], old[KEPT_GROUP / 8];
    INL_VEC(slot) slots; /* of the entries so far, in their order */
} writer;

static void flush(writer *w)
{
    for (size_t done = 0; done < w->have && !w->failed;) {
        long n = sys_call3(SYS_write, w->fd, (long)(w->bytes + done), (long)(w->have - done));
        if (n > 0) done += (size_t)n;
        else w->failed = true;
    }
    w->have = 0;
}

static void put(writer *w, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    w->at += size;
    w->failed |= w->at > w->most;
    while (size && !w->failed) {
        size_t n = sizeof w->bytes - w->have < size ? sizeof w->bytes - w->have : size;
        memcpy(w->bytes + w->have, p, n);
        w->have += n;
        p += n;
        size -= n;
        if (w->have == sizeof w->bytes) flush(w);
    }
}

/* Which entry of the group that is, and 1. */
static uint32_t entry_of(const kept_group *g, uint64_t app, bool continues)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const kept_head *h = entry_at(g, g->at[i] * 8ull);
        if (h->app == app && h->continues == continues) return i + 1;
    }
    return 0;
}

/* The exit behind the end of a run that was cut leads to what goes on: the last one that is not out of line. */
static bool goes_on(const kept_entry *e, unsigned exit)
{
    unsigned end = e->head->exits;
    while (end && e->exits[end - 1].rel32_at >= e->head->cold_at) end--;
    return e->head->cut && exit + 1 == end;
}

static void link_entries(kept_group *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        kept_entry e;
        kept_entry_lay((void *)(uintptr_t)entry_at(g, g->at[i] * 8ull), &e);
        for (unsigned k = 0; k < e.head->exits; k++) e.exits[k].to = entry_of(g, e.exits[k].target, goes_on(&e, k));
    }
}

static void end_group(writer *w)
{
    kept_group *g = (kept_group *)w->group;
    for (uint32_t i = 0; i < g->count; i++) {
        const kept_head *h = entry_at(g, g->at[i] * 8ull);
        slot s = {(uint32_t)key_of(h->app, h->continues), (uint32_t)(w->at / 8), g->size / 8, i};
        if (!inl_vec_push(&w->slots, s)) w->failed = true;
    }
    link_entries(g);
    g->sum = group_sum(g);
    if (g->count) put(w, g, g->size);
    memset(g, 0, sizeof *g);
    g->size = sizeof *g;
}

static void add_entry(writer *w, const kept_head *h)
{
    kept_group *g = (kept_group *)w->group;
    if (g->count == KEPT_TOGETHER || g->size + h->size > KEPT_GROUP) end_group(w);
    uint64_t table = (w->slots.count + KEPT_TOGETHER) * 4 * sizeof(slot);
    if (w->at + g->size + h->size + table > KEPT_LIMIT) return;
    memcpy((char *)g + g->size, h, h->size);
    g->at[g->count++] = g->size / 8;
    g->size += h->size;
}

/* A group of the old file's that is damaged ends the walk: where the next one begins is not known. */
static void add_old(writer *w, const kept_map *old)
{
    kept_group *g = (kept_group *)w->old;
    kept_entry e;
    for (uint64_t at = old->first; old->at && at < old->table; at += g->size) {
        if (!copy(g, at, sizeof *g) || g->size > old->table - at || !copy_group(g, at, g->size)) return;
        for (unsigned i = 0; i < g->count; i++)
            if (kept_group_entry(g, i, &e)) add_entry(w, e.head);
    }
}

static void put_slots(writer *w, uint32_t slots)
{
    slot *table = calloc(slots, sizeof *table);
    w->failed |= !table;
    for (size_t i = 0; table && i < w->slots.count; i++) {
        uint32_t k = (uint32_t)home_of(w->slots.items[i].app) & (slots - 1);
        while (table[k].at) k = (k + 1) & (slots - 1);
        table[k] = w->slots.items[i];
    }
    if (table) put(w, table, slots * sizeof *table);
    free(table);
}

/* The header comes last, over zeros. */
static bool put_header(writer *w, kept_file_head *h, const char *key)
{
    memcpy(h->magic, KEPT_MAGIC, sizeof KEPT_MAGIC - 1);
    h->size = w->at;
    h->sum = inl_sum(key, h->key_size, inl_sum(h, sizeof *h, 4));
    return sys_call4(SYS_pwrite64, w->fd, (long)h, sizeof *h, 0) == sizeof *h;
}

static bool write_all(writer *w, const kept_map *old, const uint8_t *fresh, size_t fresh_size, const char *key)
{
    static const uint64_t zero;
    kept_file_head h = {.key_size = (uint32_t)strlen(key), .slots = 64};
    put(w, &h, sizeof h);
    put(w, key, h.key_size);
    put(w, &zero, -h.key_size & 7);
    ((kept_group *)w->group)->size = sizeof(kept_group);
    add_old(w, old);
    for (size_t at = 0; at < fresh_size; at += ((const kept_head *)(fresh + at))->size)
        add_entry(w, (const kept_head *)(fresh + at));
    end_group(w);
    h.entries = (uint32_t)w->slots.count;
    h.slots_at = w->at;
    while (h.slots < h.entries * 2) h.slots *= 2;
    put_slots(w, h.slots);
    flush(w);
    return !w->failed && put_header(w, &h, key);
}

/* A write beyond the limit would end the process by a signal. */
static uint64_t may_write(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    sys_call4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);
    return limit.rlim_cur;
}

static bool write_to(writer *w, const kept_map *old, const uint8_t *fresh, size_t fresh_size, int folder,
                     const char *key)
{
    char name[KEPT_NAME], own[KEPT_NAME + 16];
    kept_name(key, name);
    snprintf(own, sizeof own, "%s.%ld", name, sys_call0(SYS_getpid));
    sys_call3(SYS_unlinkat, folder, (long)own, 0); /* of one that was killed and had this number */
    long fd = sys_call4(SYS_openat, folder, (long)own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (sys_failed(fd)) return false;
    w->fd = (int)fd;
    bool done = write_all(w, old, fresh, fresh_size, key);
    sys_call1(SYS_close, fd);
    done = done && !sys_failed(sys_call4(SYS_renameat, folder, (long)own, folder, (long)name));
    if (!done) sys_call3(SYS_unlinkat, folder, (long)own, 0);
    return done;
}

bool kept_write(const kept_map *old, const uint8_t *fresh, size_t fresh_size, int folder, const char *key, long user)
{
    if (sys_call0(SYS_geteuid) != user) return false;
    writer *w = (writer *)(uintptr_t)inl_region_map(0, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    if (!w) return false;
    w->most = may_write();
    bool done = write_to(w, old, fresh, fresh_size, folder, key);
    inl_vec_free(&w->slots);
    sys_call2(SYS_munmap, (long)w, sizeof *w);
    return done;
}
