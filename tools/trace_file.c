/* The recorder's file (docs/trace-format.md).
 *
 * Each thread has a window: a chunk of the file that is mapped, where its records are written. A full one is written to
 * the file's end, by a system call (which costs a tenth of what faults on as many pages of a mapped file do), and used
 * again. So nothing needs to be closed: what a process that is killed has not written to the end is in its windows, up
 * to where zeros begin. A window has the number (`sequence`) of the chunk that it will be; should both be in the file,
 * the window has been written already.
 *
 * Where the file cannot grow, records are lost, and counted. With --last=MB the oldest chunk's place is used again. */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(inlay_trace_chunk) == 64 && sizeof(inlay_trace_record) == 16, "the format on disk");

/* A thread that has filled its first window so many times gets a large one, if there are not many such: a system call's
 * price is for four times as many records then. */
enum { WINDOW = 64 << 10, LARGE = 256 << 10, LARGE_AFTER = 16, LARGE_MOST = 64, PACKED = 128 << 10 };
enum { NOTES = 64 << 10, SPARE = 4096, MB = 1 << 20, AHEAD = 4 << 20 };
enum { ASIDE = 4 }; /* handlers within handlers */

typedef struct full_window {
    inlay_trace_chunk *window; /* NULL: none */
    size_t count;
} full_window;

typedef struct thread_piece {
    inlay_trace_chunk *window; /* NULL: it has none, or writes to `spare` */
    full_window aside[ASIDE];  /* but for a gap (set_aside) */
    void *parents;             /* memory where the parent's window was at the fork; NULL: none */
    size_t parents_bytes;
    unsigned filled; /* so many times */
    uint64_t lost;
    _Alignas(16) char spare[SPARE];
    uint32_t packed[PACKED / sizeof(uint32_t)];
} thread_piece;

/* Of this process's file. */
static struct {
    inlay_mutex lock;
    int file;
    uint64_t size, sequence, lost, again;
    uint64_t ahead;                       /* there is disk up to here */
    inlay_trace_chunk *free, *free_large; /* windows not in use; each begins with the next one's address */
    unsigned large;
    inlay_trace_chunk *notes;
    uint32_t notes_used;
    inlay_trace_clock clock;
    int (*file_now)(void); /* where the descriptor is not ours alone */
    uint64_t *places;      /* --last: of chunks, the oldest first, from `first` on */
    size_t ring, first, count;
} here = {.file = -1};
static inlay_local *pieces;

bool trace_file_prepare(void) { return (pieces = inlay_local_new(sizeof(thread_piece))) != NULL; }

/* --- room in the file --- */

static int file_now(void) { return here.file >= 0 && here.file_now ? here.file_now() : here.file; }

static bool may_grow(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

static uint64_t whole(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/* So many fill a fourth of it, in whole pages, when all are packed in the short form. */
static size_t records_of(const inlay_trace_chunk *window)
{
    return (window->bytes / 4 - sizeof *window) / sizeof(uint32_t);
}

static void begin_chunk_locked(inlay_trace_chunk *c)
{
    trace_pair(here.clock, &c->time, &c->monotonic);
    c->sequence = here.sequence++;
}

/* A chunk that stays mapped. Its blocks are there before it is written to: a full disk shows here, and not as a signal
 * in the program. */
static inlay_trace_chunk *map_locked(uint32_t bytes)
{
    int file = file_now();
    here.size = whole(here.size, INLAY_TRACE_PAGE);
    if (file < 0 || !may_grow(here.size + bytes)) return NULL;
    if (fallocate(file, 0, (off_t)here.size, bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || ftruncate(file, (off_t)(here.size + bytes)) != 0))
        return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)here.size);
    if (p == MAP_FAILED) return NULL;
    here.size += bytes;
    inlay_trace_chunk *c = p;
    c->kind = INLAY_TRACE_FREE;
    c->bytes = bytes;
    begin_chunk_locked(c);
    __atomic_store_n(&c->magic, INLAY_TRACE_MAGIC, __ATOMIC_RELEASE);
    return c;
}

/* The file system finds room for many pages at once sooner than for each write's. */
static void find_room_locked(uint64_t end)
{
    if (end <= here.ahead) return;
    here.ahead = end + AHEAD;
    if (may_grow(here.ahead))
        (void)!fallocate(file_now(), FALLOC_FL_KEEP_SIZE, (off_t)here.size, (off_t)(here.ahead - here.size));
}

/* What is left of that: only a file that does not grow at once is cut. */
static void give_room_back(void)
{
    inlay_lock(&here.lock);
    for (int i = 0; i < 2 && here.ahead; i++) (void)!ftruncate(file_now(), (off_t)here.size);
    here.ahead = 0;
    inlay_unlock(&here.lock);
}

/* Where a chunk that is written goes; *again: over an older one. */
static bool place(uint64_t bytes, uint64_t *at, bool *again)
{
    inlay_lock(&here.lock);
    *again = here.ring && here.count == here.ring && bytes == WINDOW;
    bool good = *again || may_grow(here.size + bytes);
    if (*again) {
        *at = here.places[here.first];
        here.first = (here.first + 1) % here.ring;
    } else if (good) {
        if (bytes % INLAY_TRACE_PAGE == 0) here.size = whole(here.size, INLAY_TRACE_PAGE);
        if (bytes > WINDOW / 2) find_room_locked(here.size + bytes);
        *at = here.size;
        here.size += bytes;
        if (here.ring && bytes == WINDOW) here.places[here.count++] = *at;
    }
    inlay_unlock(&here.lock);
    return good;
}

/* The file does not grow by what was not written. */
static void give_place_back(uint64_t at, uint64_t bytes)
{
    inlay_lock(&here.lock);
    if (here.size == at + bytes && !here.ring) here.size = at;
    inlay_unlock(&here.lock);
}

/* What there was room for alone is made a chunk with nothing in it. */
static bool write_all(uint64_t at, const inlay_trace_chunk *head, const void *records, size_t bytes)
{
    struct iovec v[2] = {{(void *)head, sizeof *head}, {(void *)records, bytes}};
    inlay_trace_chunk none = *head;
    ssize_t n;
    do n = pwritev(file_now(), v, 2, (off_t)at);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)(sizeof *head + bytes)) return true;
    none.kind = INLAY_TRACE_FREE;
    none.used = 0;
    if (n > 0) (void)!pwrite(file_now(), &none, sizeof none, (off_t)at);
    return false;
}

/* An older chunk is marked as free while it is written over. */
static bool write_out(thread_piece *t, const inlay_trace_chunk *window, uint32_t used)
{
    const void *records = window + 1;
    inlay_trace_chunk head = *window;
    uint64_t at;
    bool again;
    size_t room = used < sizeof t->packed ? used : sizeof t->packed; /* stacks that take turns pack badly */
    size_t packed = here.ring ? 0 : trace_pack(t->packed, room, records, used / sizeof(inlay_trace_record));
    if (packed) { /* --last needs places of one size */
        head.kind = INLAY_TRACE_PACKED;
        records = t->packed;
        used = (uint32_t)packed;
    }
    size_t squeezed = packed ? trace_squeeze(t->packed, packed, &records) : 0;
    if (squeezed) {
        head.kind = INLAY_TRACE_ZSTD;
        used = (uint32_t)squeezed;
    } else if (packed) {
        records = t->packed;
    }
    bool pages = here.ring || used > LARGE / 8; /* what is long is written sooner where it begins at a page */
    head.bytes = (uint32_t)whole(sizeof head + used, pages ? INLAY_TRACE_PAGE : INLAY_TRACE_STEP);
    head.used = used;
    if (!place(head.bytes, &at, &again)) return false;
    head.again = __atomic_add_fetch(&here.again, again, __ATOMIC_RELAXED);
    if (!again) {
        bool written = write_all(at, &head, records, used);
        if (!written) give_place_back(at, head.bytes);
        return written;
    }
    head.kind = INLAY_TRACE_FREE;
    bool good = write_all(at, &head, records, used);
    head.kind = INLAY_TRACE_EVENTS;
    return write_all(at, &head, NULL, 0) && good;
}

/* --- records --- */

static void count_lost(thread_piece *t, size_t count)
{
    t->lost += count;
    __atomic_fetch_add(&here.lost, count, __ATOMIC_RELAXED);
}

/* The number comes last: until it is another one, the window counts as what has been written. */
static void use_again(inlay_trace_chunk *window, size_t used, uint64_t lost)
{
    memset(window + 1, 0, used);
    window->lost = lost;
    inlay_lock(&here.lock);
    begin_chunk_locked(window);
    inlay_unlock(&here.lock);
}

static void give_window(inlay_trace_chunk *window)
{
    inlay_lock(&here.lock);
    inlay_trace_chunk **list = window->bytes == LARGE ? &here.free_large : &here.free;
    window->kind = INLAY_TRACE_FREE;
    *(inlay_trace_chunk **)(window + 1) = *list;
    *list = window;
    inlay_unlock(&here.lock);
}

/* A record whose place has been taken, and that is not there. */
static bool has_gap(const inlay_trace_chunk *window, size_t count)
{
    const inlay_trace_record *r = (const inlay_trace_record *)(window + 1);
    size_t i = 0;
    while (i < count && __atomic_load_n(&r[i].what, __ATOMIC_RELAXED)) i++;
    return i < count;
}

/* A signal's handler that has come in between a record's place being taken and its being written may fill the window:
 * what it has interrupted is written to it yet. Whoever finds no place leaves the window to the reader as it is. */
static void set_aside(thread_piece *t, size_t count)
{
    size_t i = 0;
    while (i < ASIDE && t->aside[i].window) i++;
    if (i < ASIDE) t->aside[i] = (full_window){t->window, count};
    t->window = NULL;
}

/* Those that have no gap any more, or with it where nothing of the thread is to come. */
static void put_aside_away(thread_piece *t, bool all)
{
    for (size_t i = 0; i < ASIDE; i++) {
        full_window w = t->aside[i];
        size_t used = w.count * sizeof(inlay_trace_record);
        if (!w.window || (!all && has_gap(w.window, w.count))) continue;
        t->aside[i].window = NULL;
        if (!write_out(t, w.window, (uint32_t)used)) count_lost(t, w.count);
        use_again(w.window, used, t->lost);
        give_window(w.window);
    }
}

static void put_away(thread_piece *t, size_t count, bool ends)
{
    size_t used = count * sizeof(inlay_trace_record);
    put_aside_away(t, ends);
    if (!ends && t->window && has_gap(t->window, count)) {
        set_aside(t, count);
        return;
    }
    if (!t->window || (used && !write_out(t, t->window, (uint32_t)used))) count_lost(t, count);
    if (t->window) use_again(t->window, used, t->lost);
}

/* NULL: there is none of this size. */
static inlay_trace_chunk *window_locked(uint32_t bytes)
{
    inlay_trace_chunk **list = bytes == LARGE ? &here.free_large : &here.free, *w = *list;
    if (w) {
        *list = *(inlay_trace_chunk **)(w + 1);
        begin_chunk_locked(w);
    } else if (bytes != LARGE || here.large < LARGE_MOST) {
        w = map_locked(bytes);
        here.large += w && bytes == LARGE;
    }
    return w;
}

static void take_window(thread_piece *t, unsigned thread)
{
    inlay_lock(&here.lock);
    inlay_trace_chunk *w = t->filled >= LARGE_AFTER && !here.ring ? window_locked(LARGE) : NULL;
    if (!w) w = window_locked(WINDOW);
    inlay_unlock(&here.lock);
    t->window = w;
    if (!w) return;
    *(inlay_trace_chunk **)(w + 1) = NULL;
    w->thread = thread;
    w->tid = (uint32_t)gettid();
    w->lost = t->lost;
    w->kind = INLAY_TRACE_EVENTS;
}

void *trace_file_next(void *filled, size_t count, unsigned thread, size_t *room, void *arg)
{
    (void)arg;
    thread_piece *t = inlay_local_now(pieces);
    if (!t) return NULL;
    if (filled) put_away(t, count, !room);
    t->filled += filled && room;
    if (t->window && (!room || t->filled == LARGE_AFTER)) {
        give_window(t->window);
        t->window = NULL;
    }
    if (!room) return NULL;
    if (!t->window) take_window(t, thread);
    *room = t->window ? records_of(t->window) : SPARE / sizeof(inlay_trace_record);
    return t->window ? (void *)(t->window + 1) : t->spare;
}

uint64_t trace_file_lost(void) { return here.lost; }

/* --- notes --- */

static bool renew_notes_locked(void)
{
    if (here.notes) {
        here.notes->used = here.notes_used;
        munmap(here.notes, NOTES);
    }
    here.notes_used = 0;
    here.notes = map_locked(NOTES);
    if (here.notes) here.notes->kind = INLAY_TRACE_NOTES;
    return here.notes != NULL;
}

/* Two texts, of which the second may be NULL; the first is cut where it is longer than anybody's name. The kind comes
 * last: a note without one is not there. */
static void note(const inlay_trace_note *n, const char *text, const char *more)
{
    enum { MOST = 8192 };
    size_t first = text ? strnlen(text, MOST) : 0, second = more ? strnlen(more, MOST) : 0;
    uint32_t bytes = (uint32_t)(sizeof *n + first + second + 2 + 7) & ~7u;
    inlay_lock(&here.lock);
    bool room = here.notes && here.notes_used + bytes <= NOTES - sizeof(inlay_trace_chunk);
    if (here.file >= 0 && (room || renew_notes_locked())) {
        inlay_trace_note *to = (inlay_trace_note *)((char *)(here.notes + 1) + here.notes_used);
        *to = *n;
        to->kind = 0;
        to->bytes = bytes;
        memcpy(to->text, text ? text : "", first);
        memcpy(to->text + first + 1, more ? more : "", second);
        __atomic_store_n(&to->kind, n->kind, __ATOMIC_RELEASE);
        here.notes_used += bytes;
    }
    inlay_unlock(&here.lock);
}

void trace_note_image(const trace_image *i)
{
    note(&(inlay_trace_note){INLAY_TRACE_IMAGE, 0, i->id, i->is_main, i->low, i->high, i->bias}, i->path, NULL);
}

void trace_note_proc(const trace_proc *p)
{
    uint64_t how = (uint64_t)p->how | (p->is_trigger ? INLAY_TRACE_TRIGGER : 0);
    note(&(inlay_trace_note){INLAY_TRACE_PROC, 0, p->number, p->image, p->address, p->size, how}, p->name, p->why);
    if (p->types) note(&(inlay_trace_note){INLAY_TRACE_TYPES, 0, p->number, 0, 0, 0, 0}, p->types, NULL);
}

void trace_note_thread(inlay_trace_note_kind kind, unsigned thread, int tid)
{
    note(&(inlay_trace_note){kind, 0, thread, (uint32_t)tid, trace_now(here.clock), 0, 0}, NULL, NULL);
}

void trace_note_count(const trace_proc *p, uint64_t calls)
{
    note(&(inlay_trace_note){INLAY_TRACE_COUNT, 0, p->number, 0, calls, 0, 0}, NULL, NULL);
}

void trace_note_end(int status)
{
    uint64_t now = trace_now(here.clock);
    uint32_t lost = here.lost < UINT32_MAX ? (uint32_t)here.lost : UINT32_MAX;
    note(
        &(inlay_trace_note){INLAY_TRACE_END, 0, lost, (uint32_t)status, now, trace_monotonic(), inlay_own_cycles_now()},
        NULL, NULL);
    give_room_back();
}

void trace_note_view(const trace_settings *s)
{
    uint64_t fewer = s->thin ? s->thin | (uint64_t)1 << 63 : s->every;
    note(&(inlay_trace_note){INLAY_TRACE_VIEW, 0, 0, 0, s->threshold, s->depth, fewer}, NULL, NULL);
}

void trace_note_event(unsigned event, unsigned how, const trace_cost *c, const char *name, const char *why)
{
    note(&(inlay_trace_note){INLAY_TRACE_EVENT, 0, event, how, c->counts, c->ticks, 0}, name, why);
}

void trace_note_event_total(unsigned thread, unsigned event, uint64_t value, uint64_t enabled, uint64_t running)
{
    note(&(inlay_trace_note){INLAY_TRACE_EVENT_TOTAL, 0, thread, event, value, enabled, running}, NULL, NULL);
}

/* --- a process --- */

static uint64_t realtime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool put_session(void)
{
    const char *program = inlay_program();
    size_t length = strnlen(program, 2048);
    inlay_trace_chunk *c = map_locked(INLAY_TRACE_PAGE);
    if (!c) return false;
    inlay_trace_session *s = (inlay_trace_session *)(c + 1);
    *s = (inlay_trace_session){.version = INLAY_TRACE_VERSION,
                               .clock = here.clock,
                               .frequency = trace_frequency(here.clock),
                               .overhead = trace_overhead(here.clock),
                               .pid = inlay_pid(),
                               .parent = getppid()};
    s->realtime = realtime();
    trace_pair(here.clock, &s->time, &s->monotonic);
    memcpy(s->program, program, length);
    c->used = (uint32_t)(sizeof *s + length + 1);
    c->kind = INLAY_TRACE_SESSION;
    munmap(c, INLAY_TRACE_PAGE);
    return true;
}

static bool open_file(void)
{
    struct stat st;
    int fd = fileno(inlay_out()), flags = fcntl(fd, F_GETFL, 0);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || flags < 0 || (flags & O_ACCMODE) != O_RDWR) {
        inlay_warn("nothing is recorded: a trace is written to a file, which must be there to be read too; -o FILE "
                   "names it (rewriting: --result=FILE; a rewritten program: INLAY_OUT=FILE)");
        return false;
    }
    fcntl(fd, F_SETFL, (flags & ~O_APPEND)); /* places are chosen here */
    here.file = fd;
    here.size = whole((uint64_t)st.st_size, INLAY_TRACE_PAGE);
    return true;
}

static bool make_ring(uint64_t last)
{
    here.ring = last ? last * MB / WINDOW : 0;
    if (here.ring && !here.places) here.places = inlay_alloc(here.ring * sizeof *here.places);
    if (!here.ring || here.places) return true;
    inlay_warn("nothing is recorded: out of memory");
    return false;
}

bool trace_file_begin(const trace_settings *settings, const trace_found *found)
{
    here.clock = settings->clock;
    here.file_now = settings->file;
    if (!open_file() || !make_ring(settings->last)) return false;
    if (!put_session()) {
        inlay_warn("nothing is recorded: the file cannot be written: %s", strerror(errno));
        here.file = -1;
        return false;
    }
    trace_note_view(settings);
    for (const trace_image *i = found->images; i; i = i->next) trace_note_image(i);
    for (const trace_proc *p = found->procs; p; p = p->next) trace_note_proc(p);
    return true;
}

/* What is mapped is the parent's file. Who forks in a handler may have interrupted a record (set_aside), which is
 * written into other memory then. */
static void leave_to_parent(thread_piece *t)
{
    void *old = t->parents, *now = NULL;
    size_t old_bytes = t->parents_bytes, bytes = t->window ? t->window->bytes : 0;
    for (size_t i = 0; i <= ASIDE; i++) {
        inlay_trace_chunk *w = i < ASIDE ? t->aside[i].window : t->window;
        if (w) now = mmap(w, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    if (bytes && old) munmap(old, old_bytes);
    *t = (thread_piece){.parents = bytes ? now : old, .parents_bytes = bytes ? bytes : old_bytes};
}

void trace_file_forked(void)
{
    thread_piece *t = pieces ? inlay_local_now(pieces) : NULL;
    if (t) leave_to_parent(t);
    if (here.notes) munmap(here.notes, NOTES);
    here.lock.word = 0; /* a thread that is not here may have held it */
    here.notes = here.free = here.free_large = NULL;
    here.notes_used = here.large = 0;
    here.file = -1;
    here.size = here.sequence = here.lost = here.again = here.ahead = 0;
    here.first = here.count = 0;
}
