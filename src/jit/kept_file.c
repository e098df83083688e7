#include "jit/kept_file.h"
#include "base/log.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sum.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "weave/weave.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

typedef struct slot { /* all zero: free */
    uint32_t app;     /* low half of the entry's address, the kind of entry included */
    uint32_t at;      /* of the entry, in 8 bytes */
    uint32_t size;    /* of it, likewise */
    uint32_t unused;
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
    PART(extents, h->extents);
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

static uint64_t entry_sum(const kept_head *h)
{
    return inl_sum((const uint8_t *)h + sizeof h->sum, h->size - sizeof h->sum, 3);
}

void kept_entry_seal(void *memory)
{
    kept_head *h = memory;
    h->sum = entry_sum(h);
}

/* Its sizes are, one by one, so small that their sum does not wrap. */
static bool is_whole(const kept_head *h, kept_entry *out)
{
    const uint32_t most = KEPT_ENTRY;
    if (h->size > most || h->code_size > most || h->map_size > most || h->source_size > most) return false;
    if (h->cold_at > h->code_size || h->phase > 7 || !h->extents || !h->blocks || !h->map_size) return false;
    return kept_entry_lay((void *)(uintptr_t)h, out) == h->size && h->sum == entry_sum(h);
}

static uint64_t key_of(uint64_t app, bool continues) { return app ^ (uint64_t)continues << 31; }

/* Each line of 64 bytes of code has its 16 slots, one behind the other: what follows each other is near in the file. */
static uint64_t home_of(uint64_t key) { return ((key >> 6) * 0x9e3779b97f4a7c15u >> 32 << 4) + (key >> 2 & 15); }

static uint64_t slots_at(const kept_map *m, uint32_t key_size)
{
    return m->at + sizeof(kept_file_head) + ((key_size + 7u) & ~7u);
}

/* --- reading --- */

static bool copy(void *to, uint64_t from, size_t size)
{
    return !run_safe_copy(to, (const void *)(uintptr_t)from, size);
}

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
    if (slots_at(m, h.key_size) + (uint64_t)h.slots * sizeof(slot) > m->at + m->size || !has_key(m, &h, key))
        return false;
    m->slots = h.slots;
    m->table = slots_at(m, h.key_size);
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

void kept_expect(const kept_map *m, uint64_t app, bool continues, bool soon)
{
    enum { LINE = 64 };
    uint64_t key = key_of(app, continues), at = m->at ? slot_at(m, (uint32_t)home_of(key)) : 0;
    slot s;
    if (!at) return;
    if (soon) __builtin_prefetch((const void *)at);
    if (soon || !copy(&s, at, sizeof s) || s.app != (uint32_t)key) return;
    uint64_t entry = m->at + (uint64_t)s.at * 8, size = (uint64_t)s.size * 8;
    for (uint64_t i = 0; i < size && i < KEPT_ENTRY; i += LINE) __builtin_prefetch((const void *)(entry + i));
}

bool kept_find(const kept_map *m, uint64_t app, bool continues, void *memory, kept_entry *out)
{
    const kept_head *h = memory;
    uint64_t key = key_of(app, continues);
    if (!m->at) return false;
    for (uint32_t i = 0, k = (uint32_t)home_of(key); i < m->slots; i++, k++) {
        slot s;
        if (!copy(&s, slot_at(m, k), sizeof s) || !s.at) return false;
        uint64_t at = (uint64_t)s.at * 8, size = (uint64_t)s.size * 8;
        if (s.app != (uint32_t)key || size < sizeof *h || size > KEPT_ENTRY || at + size > m->size) continue;
        if (!copy(memory, m->at + at, size)) return false;
        if (h->size == size && h->app == app && h->continues == continues && is_whole(h, out)) return true;
    }
    return false;
}

/* --- writing --- */

typedef struct writer {
    int fd;
    bool failed;
    uint64_t at;
    size_t have;
    uint8_t bytes[64 << 10];
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
    while (size) {
        size_t n = sizeof w->bytes - w->have < size ? sizeof w->bytes - w->have : size;
        memcpy(w->bytes + w->have, p, n);
        w->have += n;
        p += n;
        size -= n;
        if (w->have == sizeof w->bytes) flush(w);
    }
}

/* A walk over entries that lie one behind the other; those of a file are looked at one by one. */
typedef struct walk {
    uint64_t at, end;
    bool trusted;
    void *room; /* KEPT_ENTRY, of one that is not */
} walk;

static const kept_head *next(walk *k)
{
    kept_entry e;
    kept_head *h = k->trusted ? (kept_head *)(uintptr_t)k->at : k->room;
    if (k->at + sizeof *h > k->end) return NULL;
    if (!k->trusted) {
        if (!copy(h, k->at, sizeof *h) || h->size < sizeof *h || h->size > KEPT_ENTRY || k->at + h->size > k->end ||
            !copy(h + 1, k->at + sizeof *h, h->size - sizeof *h) || !is_whole(h, &e))
            return NULL; /* where the next one begins is not known */
    }
    k->at += h->size;
    return h;
}

static walk old_entries(const kept_map *m, void *room)
{
    kept_file_head h;
    if (!m->at || !copy(&h, m->at, sizeof h)) return (walk){0};
    return (walk){slots_at(m, h.key_size) + (uint64_t)m->slots * sizeof(slot), m->at + m->size, false, room};
}

static void insert(slot *table, uint32_t slots, const kept_head *h, uint64_t at)
{
    uint64_t key = key_of(h->app, h->continues);
    uint32_t k = (uint32_t)home_of(key) & (slots - 1);
    while (table[k].at) k = (k + 1) & (slots - 1);
    table[k] = (slot){(uint32_t)key, (uint32_t)(at / 8), h->size / 8, 0};
}

typedef struct plan {
    const kept_map *old;
    const uint8_t *fresh;
    size_t fresh_size;
    slot *table;
    uint32_t slots, entries;
    uint64_t size;
} plan;

/* Counts the entries, or puts them in the table: `first` is where they begin. */
static void each(plan *p, void *room, uint64_t first, writer *w)
{
    walk both[2] = {old_entries(p->old, room),
                    {(uint64_t)(uintptr_t)p->fresh, (uint64_t)(uintptr_t)p->fresh + p->fresh_size, true, NULL}};
    const kept_head *h;
    p->entries = 0;
    p->size = first;
    for (unsigned i = 0; i < 2; i++) {
        while ((h = next(&both[i])) && p->size + h->size <= KEPT_LIMIT) {
            if (w) put(w, h, h->size);
            else if (p->table) insert(p->table, p->slots, h, p->size);
            p->entries++;
            p->size += h->size;
        }
    }
}

static bool write_all(plan *p, writer *w, void *room, const char *key)
{
    static const uint64_t zero;
    size_t n = strlen(key);
    uint64_t first = sizeof(kept_file_head) + ((n + 7) & ~(size_t)7) + (uint64_t)p->slots * sizeof(slot);
    uint32_t entries = p->entries;
    each(p, room, first, NULL);
    if (p->entries > entries) return false;
    kept_file_head h = {.size = p->size, .key_size = (uint32_t)n, .slots = p->slots, .entries = p->entries};
    memcpy(h.magic, KEPT_MAGIC, sizeof KEPT_MAGIC - 1);
    h.sum = inl_sum(key, n, inl_sum(&h, sizeof h, 4));
    put(w, &h, sizeof h);
    put(w, key, n);
    put(w, &zero, -n & 7);
    put(w, p->table, (size_t)p->slots * sizeof(slot));
    uint64_t size = p->size;
    each(p, room, first, w);
    flush(w);
    return !w->failed && w->at == size;
}

/* A write beyond the limit would end the process by a signal. */
static bool may_write(uint64_t size)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    sys_call4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);
    return size <= limit.rlim_cur;
}

static uint64_t memory(size_t size) { return inl_region_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE); }

static bool write_to(plan *p, writer *w, void *room, int folder, const char *key)
{
    char name[KEPT_NAME], own[KEPT_NAME + 16];
    kept_name(key, name);
    snprintf(own, sizeof own, "%s.%ld", name, sys_call0(SYS_getpid));
    sys_call3(SYS_unlinkat, folder, (long)own, 0); /* of one that was killed and had this number */
    long fd = sys_call4(SYS_openat, folder, (long)own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (sys_failed(fd)) return false;
    w->fd = (int)fd;
    bool done = write_all(p, w, room, key);
    sys_call1(SYS_close, fd);
    done = done && !sys_failed(sys_call4(SYS_renameat, folder, (long)own, folder, (long)name));
    if (!done) sys_call3(SYS_unlinkat, folder, (long)own, 0);
    return done;
}

bool kept_write(const kept_map *old, const uint8_t *fresh, size_t fresh_size, int folder, const char *key, long user)
{
    plan p = {.old = old, .fresh = fresh, .fresh_size = fresh_size};
    if (sys_call0(SYS_geteuid) != user) return false;
    uint64_t work = memory(sizeof(writer) + KEPT_ENTRY);
    if (!work) return false;
    writer *w = (writer *)(uintptr_t)work;
    void *room = w + 1;
    each(&p, room, 0, NULL);
    p.slots = 64;
    while (p.slots < p.entries * 2) p.slots *= 2;
    size_t table = p.slots * sizeof(slot);
    p.table = (slot *)(uintptr_t)memory(table);
    bool done = p.table && may_write(p.size + table + KEY_MOST + sizeof(kept_file_head)) &&
                write_to(&p, w, room, folder, key);
    if (p.table) sys_call2(SYS_munmap, (long)(uintptr_t)p.table, (long)table);
    sys_call2(SYS_munmap, (long)work, (long)(sizeof(writer) + KEPT_ENTRY));
    return done;
}
