/* The chunks of a file, sorted into sessions, threads and procedures. */
#include "trace/reader.h"
#include "image/image.h"

#include <inlay/perf.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PROCS = 1 << 24, HEAD = sizeof(inlay_trace_chunk) };

typedef struct reading {
    trace_file *f;
    trace_session *s; /* the present one; NULL: none has begun */
    bool no_memory;
} reading;

/* --- text --- */

/* At most `room` bytes from `at`; NULL: it does not end there. */
static const char *text_at(const char *at, size_t room) { return memchr(at, 0, room) ? at : NULL; }

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *shown_name(reading *r, const char *name)
{
    char plain[4096];
    if (image_demangle(name, plain, sizeof plain) == name) return name;
    char *copy = inl_arena_alloc(&r->f->arena, strlen(plain) + 1);
    return copy ? strcpy(copy, plain) : name;
}

/* --- what is numbered --- */

static trace_thread *thread_of(reading *r, uint32_t number)
{
    trace_session *s = r->s;
    uint64_t at;
    if (inl_map_get(&s->thread_numbers, number, &at)) return &s->threads.items[at];
    bool good = inl_vec_push(&s->threads, (trace_thread){.number = number}) &&
                inl_map_put(&s->thread_numbers, number, s->threads.count - 1);
    if (!good) r->no_memory = true;
    return good ? &s->threads.items[s->threads.count - 1] : NULL;
}

static trace_image *image_of(reading *r, uint32_t number)
{
    uint64_t at;
    if (inl_map_get(&r->s->image_numbers, number, &at)) return (trace_image *)(uintptr_t)at;
    trace_image *i = inl_arena_alloc(&r->f->arena, sizeof *i);
    if (!i || !inl_map_put(&r->s->image_numbers, number, (uintptr_t)i)) {
        r->no_memory = true;
        return NULL;
    }
    *i = (trace_image){.path = "?", .name = "?"};
    return i;
}

/* Numbers are given out one by one, and a note is at least its own size long: no more than the file can hold. */
static trace_proc *proc_of(reading *r, uint32_t number)
{
    uint64_t most = r->f->size / sizeof(inlay_trace_note);
    if (!number || number > MOST_PROCS || number > most) return NULL;
    while (r->s->procs.count < number) {
        if (inl_vec_push(&r->s->procs, (trace_proc){.name = "?", .shown = "?"})) continue;
        r->no_memory = true;
        return NULL;
    }
    return &r->s->procs.items[number - 1];
}

/* --- notes --- */

static bool take_proc(reading *r, const inlay_trace_note *n, const char *name, const char *why)
{
    trace_proc *p = proc_of(r, n->number);
    uint64_t how = n->c & INLAY_TRACE_HOW;
    if (!p || how > INLAY_TRACE_REFUSED) return false;
    const trace_image *image = image_of(r, n->more);
    const char *types = p->types;
    *p = (trace_proc){.name = name, .shown = shown_name(r, name), .why = why, .image = image, .count = p->count};
    p->types = types;
    p->address = n->a;
    p->size = n->b;
    p->how = (inlay_trace_how)how;
    p->known = true;
    p->is_trigger = n->c & INLAY_TRACE_TRIGGER;
    r->s->has_triggers |= p->is_trigger;
    return true;
}

static bool take_image(reading *r, const inlay_trace_note *n, const char *path)
{
    trace_image *i = image_of(r, n->number);
    if (i) *i = (trace_image){path, last_part(path), n->a, n->b, n->c};
    return i != NULL;
}

static void see_time(trace_session *s, uint64_t time)
{
    if (time > s->last) s->last = time;
}

static void see_pair(trace_session *s, uint64_t time, uint64_t monotonic)
{
    if (time <= s->pair_time || monotonic <= s->pair_monotonic) return;
    s->pair_time = time;
    s->pair_monotonic = monotonic;
}

static bool take_end(trace_session *s, const inlay_trace_note *n)
{
    s->has_ended = true;
    s->status = (int)n->more;
    s->own = n->c;
    s->lost = n->number;
    see_time(s, n->a);
    return true;
}

static bool take_thread(reading *r, const inlay_trace_note *n)
{
    trace_thread *t = thread_of(r, n->number);
    if (!t) return false;
    if (!t->tid) t->tid = n->more;
    if (n->kind == INLAY_TRACE_THREAD_BEGINS) t->begins = n->a;
    else t->ends = n->a;
    see_time(r->s, n->a);
    return true;
}

static bool take_view(trace_session *s, const inlay_trace_note *n)
{
    const uint64_t thins = (uint64_t)1 << 63;
    s->threshold = n->a;
    s->depth = n->b < UINT32_MAX ? n->b : UINT32_MAX;
    s->every = n->c & thins ? 0 : n->c;
    s->thin = n->c & thins ? n->c & ~thins : 0;
    return true;
}

static bool take_event(trace_session *s, const inlay_trace_note *n, const char *name, const char *why)
{
    if (n->number >= INLAY_TRACE_EVENTS_MOST || n->number > s->event_count ||
        (n->more > INLAY_PERF_USAGE && n->more != INLAY_TRACE_BY_ROUTINE))
        return false;
    s->events[n->number] = (trace_event){.name = name, .why = why, .how = n->more, .overhead = n->a};
    if (n->number == s->event_count) s->event_count++;
    if (n->number == 0) s->overhead += n->b; /* all are read together */
    return true;
}

static bool take_event_total(reading *r, const inlay_trace_note *n)
{
    trace_thread *t = n->more < r->s->event_count ? thread_of(r, n->number) : NULL;
    if (!t) return false;
    t->counted[n->more] = n->a;
    r->s->events[n->more].enabled += n->b;
    r->s->events[n->more].running += n->c;
    return true;
}

static bool take_note(reading *r, const inlay_trace_note *n)
{
    size_t room = n->bytes - sizeof *n;
    const char *text = text_at(n->text, room);
    if (!text) return false;
    const char *second = text + strlen(text) + 1;
    const char *more = second < n->text + room ? text_at(second, (size_t)(n->text + room - second)) : NULL;
    if (more && !*more) more = NULL;
    trace_proc *p;
    switch (n->kind) {
    case INLAY_TRACE_IMAGE: return take_image(r, n, text);
    case INLAY_TRACE_PROC: return take_proc(r, n, text, more);
    case INLAY_TRACE_THREAD_BEGINS:
    case INLAY_TRACE_THREAD_ENDS: return take_thread(r, n);
    case INLAY_TRACE_COUNT:
        p = proc_of(r, n->number);
        if (p) p->count = n->a;
        return p != NULL;
    case INLAY_TRACE_TYPES:
        p = proc_of(r, n->number);
        if (p) p->types = text;
        return p != NULL;
    case INLAY_TRACE_END: return take_end(r->s, n);
    case INLAY_TRACE_VIEW: return take_view(r->s, n);
    case INLAY_TRACE_EVENT: return take_event(r->s, n, text, more);
    case INLAY_TRACE_EVENT_TOTAL: return take_event_total(r, n);
    default: return true; /* a later version's */
    }
}

static void take_notes(reading *r, const inlay_trace_chunk *c, size_t room)
{
    const uint8_t *at = (const uint8_t *)(c + 1);
    if (c->used && c->used < room) room = c->used;
    while (room >= sizeof(inlay_trace_note)) {
        const inlay_trace_note *n = (const inlay_trace_note *)at;
        if (!n->kind) return;
        if (n->bytes < sizeof *n || n->bytes > room || n->bytes % 8) {
            r->f->senseless++;
            return;
        }
        if (!take_note(r, n)) r->f->senseless++;
        at += n->bytes;
        room -= n->bytes;
    }
}

/* --- records --- */

static bool count_squeezed(const void *from, size_t bytes, size_t *count)
{
    size_t size;
    void *packed = trace_inflate(from, bytes, &size);
    if (packed) *count = trace_unpack(packed, size, NULL);
    free(packed);
    return packed != NULL;
}

/* Of a window's, with those in between that were never written: a handler had come, and did not return. */
static size_t count_written(const inlay_trace_record *records, size_t count)
{
    while (count && !records[count - 1].what) count--;
    return count;
}

static void take_records(reading *r, const inlay_trace_chunk *c, size_t room)
{
    const inlay_trace_record *records = (const inlay_trace_record *)(c + 1);
    size_t count = 0, most = (c->used && c->used < room ? c->used : room) / sizeof *records;
    bool squeezed = c->kind == INLAY_TRACE_ZSTD, packed = squeezed || c->kind == INLAY_TRACE_PACKED;
    size_t bytes = c->used && c->used < room ? c->used : room;
    if (squeezed && !count_squeezed(records, bytes, &count)) {
        r->f->senseless++;
        return;
    }
    if (packed && !squeezed) count = c->used ? trace_unpack(records, bytes, NULL) : 0;
    else if (c->used && !packed) count = most;
    else if (!packed) count = count_written(records, most);
    trace_thread *t = thread_of(r, c->thread);
    if (!t) return;
    t->tid = c->tid;
    if (c->lost > t->lost) t->lost = c->lost;
    if (c->again > r->s->overwritten) r->s->overwritten = c->again;
    trace_piece piece = {packed ? NULL : records,
                         squeezed,
                         packed ? (const void *)records : NULL,
                         bytes,
                         count,
                         c->sequence,
                         c->time,
                         c->lost,
                         !c->used};
    if (count && !inl_vec_push(&t->pieces, piece)) r->no_memory = true;
    see_pair(r->s, c->time, c->monotonic);
}

static bool take_session(reading *r, const inlay_trace_chunk *c, size_t room, inl_error *e)
{
    const inlay_trace_session *s = (const inlay_trace_session *)(c + 1);
    const char *program = room > sizeof *s ? text_at(s->program, room - sizeof *s) : NULL;
    if (!program) {
        r->f->senseless++;
        return true;
    }
    if (s->version != INLAY_TRACE_VERSION) {
        inl_fail(e, INL_ERR_UNSUPPORTED, "%s is of version %u of the format; this reads version %d", r->f->path,
                 s->version, INLAY_TRACE_VERSION);
        return false;
    }
    if (s->clock > INLAY_TRACE_MONOTONIC || !s->frequency) {
        inl_fail(e, INL_ERR_FORMAT, "%s is damaged: its clock is not known", r->f->path);
        return false;
    }
    trace_session made = {.program = program, .clock = (inlay_trace_clock)s->clock, .pid = s->pid, .parent = s->parent};
    made.frequency = s->frequency;
    made.overhead = s->overhead;
    made.time = made.pair_time = s->time;
    made.monotonic = made.pair_monotonic = s->monotonic;
    made.realtime = s->realtime;
    if (!inl_vec_push(&r->f->sessions, made)) r->no_memory = true;
    else r->s = &r->f->sessions.items[r->f->sessions.count - 1];
    return true;
}

/* --- chunks --- */

static bool makes_sense(const inlay_trace_chunk *c, size_t left)
{
    return c->bytes >= INLAY_TRACE_STEP && c->bytes % INLAY_TRACE_STEP == 0 && c->used <= c->bytes - HEAD &&
           (c->bytes <= left || HEAD + (size_t)c->used <= left);
}

/* Where no chunk begins, the next place is looked at: one that was being written may be missing. */
static bool take_chunks(reading *r, inl_error *e)
{
    size_t at = 0;
    while (r->f->size - at >= HEAD && !r->no_memory) {
        const inlay_trace_chunk *c = (const inlay_trace_chunk *)(r->f->bytes + at);
        size_t left = r->f->size - at;
        bool good = c->magic == INLAY_TRACE_MAGIC && makes_sense(c, left);
        if (c->magic == INLAY_TRACE_MAGIC && !good) r->f->senseless++;
        size_t whole = good ? c->bytes : INLAY_TRACE_STEP, room = (whole < left ? whole : left) - HEAD;
        if (good && c->kind == INLAY_TRACE_SESSION && !take_session(r, c, room, e)) return false;
        bool has_records = c->kind == INLAY_TRACE_EVENTS || c->kind == INLAY_TRACE_PACKED ||
                           c->kind == INLAY_TRACE_ZSTD;
        if (good && r->s && has_records) take_records(r, c, room);
        if (good && r->s && c->kind == INLAY_TRACE_NOTES) take_notes(r, c, room);
        if (whole >= left) break;
        at += whole;
    }
    return true;
}

/* --- at the end --- */

static int by_sequence(const void *a, const void *b)
{
    const trace_piece *x = a, *y = b;
    if (x->sequence != y->sequence) return x->sequence < y->sequence ? -1 : 1;
    return (int)x->is_window - (int)y->is_window;
}

/* A window that was written to the file and not yet used again is there twice. */
static void sort_pieces(trace_thread *t)
{
    if (!t->pieces.count) return;
    qsort(t->pieces.items, t->pieces.count, sizeof *t->pieces.items, by_sequence);
    size_t n = 0;
    for (size_t i = 0; i < t->pieces.count; i++) {
        trace_piece p = t->pieces.items[i];
        if (n && t->pieces.items[n - 1].sequence == p.sequence) continue;
        t->pieces.items[n++] = p;
        t->records += p.count;
    }
    t->pieces.count = n;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = ((const trace_thread *)a)->number, y = ((const trace_thread *)b)->number;
    return x < y ? -1 : x > y;
}

/* The frequency over the whole time is better than that of the start's millisecond. */
static void measure(trace_session *s)
{
    uint64_t ns = s->pair_monotonic - s->monotonic, ticks = s->pair_time - s->time;
    if (s->clock != INLAY_TRACE_CYCLES || ns < 20 * 1000 * 1000 || !ticks) return;
    double found = (double)ticks * 1e9 / (double)ns, told = (double)s->frequency;
    if (found < told * 0.95 || found > told * 1.05) return; /* the pairs lack what was spent in Inlay */
    s->frequency = (uint64_t)found;
    s->measured = (double)ns / 1e9;
}

static bool is_counted(const inlay_trace_record *r)
{
    return r->what == (uint32_t)INLAY_TRACE_VALUE && (r->stack >> 8 & 0xff) == 'e';
}

static void see_steps(trace_session *s, const trace_piece *p, trace_unpacked *room)
{
    enum { SHORT = 1024 };
    const inlay_trace_record *records = trace_piece_records(p, room);
    if (!records) return;
    const inlay_trace_record *enters = p->count ? records : NULL;
    for (size_t i = 1; i < p->count; i++) {
        const inlay_trace_record *leaves = &records[i];
        if (is_counted(leaves)) continue;
        uint32_t number = leaves->what >> 1;
        uint64_t step = (leaves->when >> 16) - (enters->when >> 16);
        bool follows = leaves->what == enters->what + 1;
        enters = leaves;
        if (!follows || !(leaves->what & 1) || step >= SHORT) continue;
        if (!number || number > s->procs.count) continue;
        s->procs.items[number - 1].steps++;
        s->procs.items[number - 1].step_sum += step;
    }
}

/* Between the entry and the exit of a procedure that does next to nothing is what a record costs, and no more: on
 * average, since clocks may go in larger steps. */
static void limit_overhead(trace_session *s)
{
    enum { ENOUGH = 100 };
    trace_unpacked room = {0};
    for (size_t i = 0; i < s->threads.count; i++)
        for (size_t k = 0; k < s->threads.items[i].pieces.count; k++)
            see_steps(s, &s->threads.items[i].pieces.items[k], &room);
    inl_vec_free(&room);
    for (size_t i = 0; i < s->procs.count; i++) {
        const trace_proc *p = &s->procs.items[i];
        if (p->steps < ENOUGH) continue;
        uint64_t mean = p->step_sum * 1000 / p->steps;
        if (mean < s->overhead) s->overhead = mean;
    }
}

static void finish(trace_session *s)
{
    for (size_t i = 0; i < s->threads.count; i++) sort_pieces(&s->threads.items[i]);
    if (s->threads.count) qsort(s->threads.items, s->threads.count, sizeof *s->threads.items, by_number);
    measure(s);
    limit_overhead(s);
}

/* --- the whole --- */

inl_status trace_read(const void *bytes, size_t size, const char *path, trace_file *f, inl_error *e)
{
    *f = (trace_file){.path = path, .bytes = bytes, .size = size};
    reading r = {.f = f};
    const inlay_trace_chunk *first = bytes;
    if (size < INLAY_TRACE_PAGE || first->magic != INLAY_TRACE_MAGIC)
        return inl_fail(e, INL_ERR_FORMAT, "%s is not a recording of inlay trace", path);
    bool good = take_chunks(&r, e);
    for (size_t i = 0; i < f->sessions.count; i++) finish(&f->sessions.items[i]);
    if (r.no_memory) inl_fail(e, INL_ERR_NO_MEMORY, "out of memory for %s", path);
    else if (good && !f->sessions.count) inl_fail(e, INL_ERR_FORMAT, "%s is damaged: no program begins in it", path);
    else if (good) return INL_OK;
    trace_close(f);
    return e ? e->code : INL_ERR_FORMAT;
}

/* What is nowhere on the disk is not looked at: a page of it may want room that there is none for, where it lies in
 * memory alone (tmpfs). */
static bool read_around_holes(int fd, char *to, off_t size)
{
    for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < size;) {
        off_t end = lseek(fd, at, SEEK_HOLE);
        ssize_t n = 0;
        for (; end > at; at += n)
            if ((n = pread(fd, to + at, (size_t)((end < size ? end : size) - at), at)) <= 0) break;
        if (n <= 0) return n == 0;
    }
    return true;
}

static void *contents(int fd, const struct stat *st)
{
    size_t size = (size_t)st->st_size;
    if (st->st_blocks * 512 >= st->st_size) return mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || read_around_holes(fd, p, st->st_size)) return p;
    munmap(p, size);
    return MAP_FAILED;
}

inl_status trace_open(const char *path, trace_file *f, inl_error *e)
{
    struct stat st;
    *f = (trace_file){.path = path};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is told, and not waited for */
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0) close(fd);
        return inl_fail(e, INL_ERR_ACCESS, "cannot read %s: %s", path, strerror(errno));
    }
    size_t size = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
    void *p = size ? contents(fd, &st) : MAP_FAILED;
    int cause = errno;
    close(fd);
    if (!size)
        return inl_fail(e, INL_ERR_FORMAT, "%s is not a recording of inlay trace: it is empty, or no file", path);
    if (p == MAP_FAILED) return inl_fail(e, INL_ERR_SYSTEM, "cannot read %s: %s", path, strerror(cause));
    inl_status s = trace_read(p, size, path, f, e);
    if (s == INL_OK) f->is_mapped = true;
    else munmap(p, size);
    return s;
}

static void swap_sessions(trace_file *f, size_t with)
{
    trace_session first = f->sessions.items[0];
    f->sessions.items[0] = f->sessions.items[with];
    f->sessions.items[with] = first;
}

bool trace_choose(trace_file *f, uint64_t number)
{
    if (f->chosen) {
        f->sessions.count = f->all;
        swap_sessions(f, f->chosen - 1);
        f->chosen = 0;
    }
    if (!number) return true;
    if (number > f->sessions.count) return false;
    f->chosen = (size_t)number;
    f->all = f->sessions.count;
    swap_sessions(f, f->chosen - 1);
    f->sessions.count = 1;
    return true;
}

void trace_close(trace_file *f)
{
    trace_choose(f, 0);
    for (size_t i = 0; i < f->sessions.count; i++) {
        trace_session *s = &f->sessions.items[i];
        for (size_t k = 0; k < s->threads.count; k++) inl_vec_free(&s->threads.items[k].pieces);
        inl_vec_free(&s->threads);
        inl_vec_free(&s->procs);
        inl_map_free(&s->image_numbers);
        inl_map_free(&s->thread_numbers);
    }
    inl_vec_free(&f->sessions);
    inl_arena_free(&f->arena);
    if (f->is_mapped) munmap((void *)f->bytes, f->size);
}

double trace_ns(const trace_session *s, uint64_t ticks) { return (double)ticks * 1e9 / (double)s->frequency; }
