/* What is rare about recording: a thread's first record, a procedure's, a full window, the beginning, a fork. */
#define _GNU_SOURCE
#include "record/recorder.h"
#include "../tools/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__thread record_thread record_me;

/* Of this process. */
static struct {
    inlay_mutex lock; /* of what is found */
    trace_found found;
    uint32_t images, threads;
    uint32_t old;            /* images up to this one were found before something was unloaded, */
    unsigned long long gone; /* of which so many have been */
    bool tried, good;        /* to begin */
    bool keyless;
    pthread_key_t key;
} here;

static const trace_settings settings = {.clock = INLAY_TRACE_CYCLES, .file = record_output_now};

/* --- signals stay away --- */

static void block(uint64_t *before)
{
    uint64_t all = ~0ull;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, before, sizeof all);
}

static void unblock(const uint64_t *before) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before); }

/* --- windows --- */

/* Where the user has routines, the way that is short has no room ever, and each entry and exit comes here. */
static bool has_routines(void) { return trace_routine_is_there(false) || trace_routine_is_there(true); }

static void take_window(record_thread *t, size_t filled)
{
    size_t room = 0;
    t->begin = trace_file_next(t->begin, filled, t->number, &room, NULL);
    t->next = t->begin;
    t->limit = t->begin ? t->begin + room * sizeof(inlay_trace_record) : NULL;
    if (has_routines()) return;
    t->end = t->limit;
    __atomic_store_n(&t->cursor, t->begin, __ATOMIC_RELEASE);
}

static size_t filled(const record_thread *t)
{
    const char *last = has_routines() ? t->next : t->cursor < t->end ? t->cursor : t->end;
    return t->begin ? (size_t)(last - t->begin) / sizeof(inlay_trace_record) : 0;
}

/* Destructors of other keys may record again, under the same number, and then this one runs again. */
static void thread_ends(void *arg)
{
    record_thread *t = &record_me;
    uint64_t before;
    (void)arg;
    block(&before);
    t->inside = true;
    trace_file_next(t->begin, filled(t), t->number, NULL, NULL);
    trace_note_thread(INLAY_TRACE_THREAD_ENDS, t->number, gettid());
    t->begin = t->cursor = t->end = t->next = t->limit = NULL;
    t->ended = t->number;
    t->number = 0;
    t->inside = false;
    unblock(&before);
}

static void thread_begins(record_thread *t)
{
    bool again = t->ended != 0;
    t->number = again ? t->ended : __atomic_add_fetch(&here.threads, 1, __ATOMIC_RELAXED);
    t->ended = 0;
    if (!here.keyless) pthread_setspecific(here.key, t);
    if (!again) trace_note_thread(INLAY_TRACE_THREAD_BEGINS, t->number, gettid());
}

/* --- procedures --- */

typedef struct search {
    uint64_t addr, low, high, bias;
    const char *name;
} search;

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    search *s = arg;
    bool holds = false;
    (void)size;
    s->low = UINT64_MAX;
    s->high = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD) continue;
        holds |= s->addr - at < p->p_memsz;
        if (at < s->low) s->low = at;
        if (at + p->p_memsz > s->high) s->high = at + p->p_memsz;
    }
    s->bias = info->dlpi_addr;
    s->name = info->dlpi_name;
    return holds;
}

static char *copy_of(const char *text)
{
    char *copy = record_memory(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static int look_gone(struct dl_phdr_info *info, size_t size, void *arg)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(unsigned long long *)arg = info->dlpi_subs;
    return 1;
}

/* Where an image was that has been unloaded since, another one may be. */
static void forget_gone(void)
{
    unsigned long long gone = 0;
    dl_iterate_phdr(look_gone, &gone);
    if (gone != here.gone) here.old = here.images;
    here.gone = gone;
}

static trace_image *image_of(uint64_t addr)
{
    forget_gone();
    for (trace_image *i = here.found.images; i && i->id > here.old; i = i->next)
        if (addr - i->low < i->high - i->low) return i;
    search s = {.addr = addr};
    trace_image *i = record_memory(sizeof *i);
    if (!i || !dl_iterate_phdr(look, &s)) return NULL;
    bool is_main = !s.name || !*s.name;
    const char *path = is_main ? inlay_program() : s.name;
    char *copy = copy_of(path);
    *i = (trace_image){.next = here.found.images,
                       .path = copy ? copy : "?",
                       .id = ++here.images,
                       .is_main = is_main,
                       .low = s.low,
                       .high = s.high,
                       .bias = s.bias};
    here.found.images = i;
    if (here.good) trace_note_image(i);
    return i;
}

/* By their numbers, for the user's routines. */
static trace_proc **place_of(uint32_t number)
{
    enum { PIECE = 1024, PIECES = 4096 };
    static trace_proc **pieces[PIECES];
    uint32_t at = number / PIECE;
    if (at >= PIECES) return NULL;
    if (!pieces[at]) pieces[at] = record_memory(PIECE * sizeof **pieces);
    return pieces[at] ? &pieces[at][number % PIECE] : NULL;
}

static void note_told(trace_proc *p, const trace_image *image)
{
    trace_proc **place = has_routines() ? place_of(p->number) : NULL;
    p->told = (inlay_trace_proc){p->name, image->path, p->address, p->size, p->number, NULL};
    if (place) __atomic_store_n(place, p, __ATOMIC_RELEASE);
}

static void number(record_tells *t)
{
    inlay_lock(&here.lock);
    trace_proc *p = t->number ? NULL : record_memory(sizeof *p);
    uint64_t addr = (uint64_t)(uintptr_t)&t->code + (uint64_t)t->code;
    const trace_image *image = p ? image_of(addr) : NULL;
    char *name = image ? copy_of((const char *)t + t->name) : NULL; /* a plug-in's may be gone at a fork */
    if (name) {
        *p = (trace_proc){.name = name,
                          .address = addr,
                          .size = t->size,
                          .image = image->id,
                          .number = ++here.found.count,
                          .how = INLAY_TRACE_DONE};
        if (!here.found.end) here.found.end = &here.found.procs;
        *here.found.end = p;
        here.found.end = &p->next;
        if (here.good) trace_note_proc(p);
        note_told(p, image);
        __atomic_store_n(&t->number, p->number, __ATOMIC_RELEASE);
    }
    inlay_unlock(&here.lock);
}

/* --- the process --- */

static void process_ends(int status, void *arg)
{
    record_thread *t = &record_me;
    (void)arg;
    bool before = t->inside;
    t->inside = true;
    if (here.good) trace_note_end(W_EXITCODE(status & 255, 0));
    t->inside = before;
}

/* The child's own file begins with its first record. */
static void forked(void)
{
    record_thread *t = &record_me;
    record_memory_forked();
    if (here.good) trace_file_forked();
    record_output_close();
    t->begin = t->cursor = t->end = t->next = t->limit = NULL;
    t->number = t->ended = 0;
    t->inside = here.tried = here.good = false;
    here.lock.word = 0;
}

static void before_fork(void)
{
    record_me.inside = true;
    inlay_lock(&here.lock);
}

static void after_fork(void)
{
    inlay_unlock(&here.lock);
    record_me.inside = false;
}

/* A library stays loaded: threads have their records' place in it. This is called while it is being loaded, when the
 * dynamic linker is this thread's. A program that is linked statically need not have dlsym, and linkers warn of its
 * dlopen.
 */
extern __typeof(dlsym) dlsym __attribute__((weak));
__attribute__((constructor)) static void stay(void)
{
    search s = {.addr = (uint64_t)(uintptr_t)&thread_ends};
    bool library = dl_iterate_phdr(look, &s) && s.name && *s.name;
    void *(*open)(const char *, int) = library && dlsym ? (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen")
                                                        : NULL;
    if (open) open(s.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Called when the library that this is a part of is unmapped, too: then nobody may call it any more. */
static void library_ends(void)
{
    here.keyless = true;
    pthread_key_delete(here.key);
    process_ends(0, NULL);
}

static void call_at_end(void)
{
    search s = {.addr = (uint64_t)(uintptr_t)&thread_ends};
    if (dl_iterate_phdr(look, &s) && s.name && *s.name) atexit(library_ends);
    else on_exit(process_ends, NULL);
}

static void begin(void)
{
    static bool prepared;
    inlay_lock(&here.lock);
    if (!here.tried) {
        if (!prepared && trace_routine_agrees() && pthread_key_create(&here.key, thread_ends) == 0 &&
            trace_file_prepare()) {
            prepared = true;
            pthread_atfork(before_fork, after_fork, forked);
            call_at_end();
        }
        here.good = prepared && record_output_open() >= 0 && trace_file_begin(&settings, &here.found);
        if (here.good) trace_routine_begin();
        here.tried = true;
    }
    inlay_unlock(&here.lock);
}

/* --- a record --- */

static void put(record_thread *t, uint64_t when, uint32_t stack, uint32_t what)
{
    bool all = has_routines();
    if (all ? t->next >= t->limit : t->cursor >= t->end) take_window(t, filled(t));
    char **next = all ? &t->next : &t->cursor;
    if (!*next) return;
    inlay_trace_record *r = (inlay_trace_record *)*next;
    *next += sizeof *r;
    r->when = when;
    r->stack = stack;
    r->what = what;
}

/* The user's routine, and what it stores. */
static void call_routine(record_thread *t, uint32_t number, bool leaves, uint64_t sp, const uint64_t *saved)
{
    const uint64_t arguments[] = {saved[1], saved[2], saved[3], saved[4], saved[-1], saved[-2]};
    trace_proc **place = place_of(number);
    if (trace_routine_is_there(leaves) && place && *place)
        trace_routine_call(leaves,
                           &(inlay_trace_at){&(*place)->told, sp, leaves ? NULL : arguments, t->values, t->number});
    for (unsigned k = 0; k < trace_routine_values(); k++)
        put(t, t->values[k], k | 'e' << 8 | sizeof(uint64_t) << 16, INLAY_TRACE_VALUE);
}

static void put_step(record_thread *t, uint32_t number, bool leaves, uint64_t sp, uint64_t when)
{
    put(t, when << 16 | (sp >> 32 & 0xffff), (uint32_t)sp, number << 1 | leaves);
}

void record_slow(record_tells *tells, unsigned leaves, uint64_t sp, const uint64_t *saved)
{
    record_thread *t = &record_me;
    int cause = errno;
    uint64_t before, begun = inlay_cycles_now();
    if (t->inside) return;
    block(&before);
    t->inside = true;
    if (!here.tried) begin();
    if (here.good && !t->number) thread_begins(t);
    if (here.good && !tells->number) number(tells);
    bool good = here.good && tells->number;
    if (good && has_routines()) call_routine(t, tells->number, leaves, sp, saved);
    if (good) put_step(t, tells->number, leaves, sp, begun - t->own);
    t->inside = false;
    t->own += inlay_cycles_now() - begun;
    unblock(&before);
    errno = cause;
}
