/* What is rare about recording: a thread's first record, a procedure's, a full window, the beginning, a fork. */
#include "record/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__thread record_thread record_me;
bool record_is_quick;

/* Of this process. */
static struct {
    inlay_mutex lock; /* of what is found */
    trace_found found;
    uint32_t images, threads;
    uint32_t old;            /* images up to this one were found before something was unloaded, */
    unsigned long long gone; /* of which so many have been */
    bool tried, good;        /* to begin */
    uint64_t before, behind; /* what is done before the first look at the clock takes, and behind the last one */
    uint64_t around;         /* likewise where signals are not blocked */
    uint64_t whole;          /* and with a look at the clock and what is stored */
    bool keyless, stays;     /* stays: this is a library that is not unmapped */
    pthread_key_t key;
} here;

static record_settings asked = {.clock = RECORD_CYCLES};
static trace_settings settings = {.is_own = true, .file = record_output_now};

/* --- signals stay away --- */

static void block(uint64_t *before)
{
    uint64_t all = ~0ull;
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)before, sizeof all);
}

static void unblock(const uint64_t *before)
{
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)before, 0, sizeof *before);
}

/* --- ThreadSanitizer --- */

/* A program that is made with it has its memset, clock_gettime and the like, which look at what they write. It knows
 * neither of the locks here nor that memory and stacks of a thread that has ended are another's, and would tell of
 * races that are none, with a status to match. */
extern void unwatched_begins(void) __asm__("__tsan_ignore_thread_begin") __attribute__((weak));
extern void unwatched_ends(void) __asm__("__tsan_ignore_thread_end") __attribute__((weak));

static void look_away(void)
{
    if (unwatched_begins && unwatched_ends) unwatched_begins();
}

static void look_again(void)
{
    if (unwatched_begins && unwatched_ends) unwatched_ends();
}

/* --- windows --- */

static bool has_routines(void) { return trace_routine_is_there(false) || trace_routine_is_there(true); }

/* Where the way that is short does not do: then it has no room ever, and each entry and exit that is recorded comes
 * here. */
static bool all_come(void) { return has_routines() || trace_events_count() || asked.clock != RECORD_CYCLES; }

/* Another process may share the thread's data (clone with CLONE_VM alone) and be on the short way: what it takes
 * meanwhile is no room. */
static void take_window(record_thread *t, size_t filled)
{
    char *const no_room = (char *)INTPTR_MAX;
    size_t room = 0;
    bool all = all_come();
    __atomic_store_n(&t->next, NULL, __ATOMIC_RELEASE);
    if (!all) __atomic_store_n(&t->end, NULL, __ATOMIC_RELEASE);
    if (!all) __atomic_store_n(&t->cursor, no_room, __ATOMIC_RELEASE);
    t->begin = trace_file_next(t->begin, filled, t->number, &room, NULL);
    t->limit = t->begin ? t->begin + room * sizeof(inlay_trace_record) : NULL;
    __atomic_store_n(&t->next, t->begin, __ATOMIC_RELEASE);
    if (all) return;
    __atomic_store_n(&t->end, t->limit, __ATOMIC_RELEASE);
    __atomic_store_n(&t->cursor, t->begin, __ATOMIC_RELEASE);
}

static size_t filled(const record_thread *t)
{
    const char *last = all_come() ? t->next : t->cursor < t->end ? t->cursor : t->end;
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
    look_away();
    trace_file_next(t->begin, filled(t), t->number, NULL, NULL);
    trace_events_thread_ends(t->number);
    trace_note_thread(INLAY_TRACE_THREAD_ENDS, t->number, gettid());
    record_table_give(t);
    record_stack_give();
    record_locals_give();
    t->begin = t->cursor = t->end = t->next = t->limit = NULL;
    t->reads = false;
    t->ended = t->number;
    t->number = 0;
    look_again();
    t->inside = false;
    unblock(&before);
}

/* A program that is linked statically is without keys where it has no other threads, and must not get them from here:
 * libraries take their being there as a sign that all of pthreads is (libgcc's gthr), and call what is not. */
#pragma weak pthread_key_create
#pragma weak pthread_key_delete
#pragma weak pthread_setspecific
static bool has_keys(void) { return pthread_key_create && pthread_key_delete && pthread_setspecific; }

static bool make_key(void)
{
    here.keyless = !has_keys();
    return here.keyless || pthread_key_create(&here.key, thread_ends) == 0;
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
    bool stays; /* it is never unloaded */
} search;

static bool is_never_unloaded(const ElfW(Dyn) * d)
{
    for (; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_FLAGS_1) return d->d_un.d_val & DF_1_NODELETE;
    return false;
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    search *s = arg;
    bool holds = false;
    (void)size;
    s->low = UINT64_MAX;
    s->high = 0;
    s->stays = false;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_DYNAMIC) s->stays |= is_never_unloaded((const ElfW(Dyn) *)(uintptr_t)at);
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

typedef struct record_image {
    trace_image traced;
    bool stays;
} record_image;

static record_image *image_of(uint64_t addr)
{
    forget_gone();
    for (trace_image *i = here.found.images; i && i->id > here.old; i = i->next)
        if (addr - i->low < i->high - i->low) return (record_image *)i;
    search s = {.addr = addr};
    record_image *i = record_memory(sizeof *i);
    if (!i || !dl_iterate_phdr(look, &s)) return NULL;
    bool is_main = !s.name || !*s.name;
    const char *path = is_main ? inlay_program() : s.name;
    char *copy = copy_of(path);
    i->traced = (trace_image){.next = here.found.images,
                              .path = copy ? copy : "?",
                              .id = ++here.images,
                              .is_main = is_main,
                              .low = s.low,
                              .high = s.high,
                              .bias = s.bias};
    i->stays = is_main || s.stays || (uint64_t)(uintptr_t)&thread_ends - s.low < s.high - s.low;
    here.found.images = &i->traced;
    if (here.good) trace_note_image(&i->traced);
    return i;
}

/* Where the main thread's stack begins: nothing else is given memory there, since the kernel keeps a gap of 128 MB
 * below its top. */
static uint64_t main_stack(void)
{
    enum { MOST = 64 << 20 };
    uint64_t top = getauxval(AT_EXECFN);
    return top > MOST ? top - MOST : RECORD_NO_STACK;
}

/* Its code may count by itself, or ask which calls to record. */
static void begin_proc(record_proc *p, bool stays)
{
    record_tells *t = p->tells;
    p->stays = stays;
    bool kept = record_proc_keep(p);
    if (asked.off) {
        t->open = 0;
        t->left = INT64_MAX;
        __atomic_store_n(&t->low, 0, __ATOMIC_RELEASE);
    } else if (kept && (record_chooses(&asked) || t->flags & RECORD_ENTRIES)) {
        record_choose_proc(p, main_stack());
    }
    if (!t->number) __atomic_store_n(&t->number, p->traced.number, __ATOMIC_RELEASE);
}

static void number(record_tells *t)
{
    inlay_lock(&here.lock);
    record_proc *p = t->number ? NULL : record_memory(sizeof *p);
    uint64_t addr = (uint64_t)(uintptr_t)&t->code + (uint64_t)t->code;
    const record_image *image = p ? image_of(addr) : NULL;
    char *name = image ? copy_of((const char *)t + t->name) : NULL; /* a plug-in's may be gone at a fork */
    if (name) {
        p->tells = t;
        p->traced = (trace_proc){.name = name,
                                 .address = addr,
                                 .size = t->size,
                                 .image = image->traced.id,
                                 .number = ++here.found.count,
                                 .how = INLAY_TRACE_DONE};
        p->traced.told = (inlay_trace_proc){name, image->traced.path, addr, t->size, p->traced.number, NULL};
        if (!here.found.end) here.found.end = &here.found.procs;
        *here.found.end = &p->traced;
        here.found.end = &p->traced.next;
        if (here.good) trace_note_proc(&p->traced);
        begin_proc(p, image->stays);
    }
    inlay_unlock(&here.lock);
}

/* --- the process --- */

/* Of those that may have been called more often than is recorded. */
static void note_calls(void)
{
    for (trace_proc *p = here.found.procs; p; p = p->next)
        if (((record_proc *)p)->chosen) trace_note_count(p, record_choose_calls((record_proc *)p));
}

static bool has_counted(void)
{
    for (trace_proc *p = here.found.procs; p; p = p->next)
        if (((record_proc *)p)->chosen && record_choose_calls((record_proc *)p)) return true;
    return false;
}

static void begin(void);

/* A child of fork that has counted alone has no file yet. */
static void end(int wait_status)
{
    record_thread *t = &record_me;
    bool before = t->inside;
    t->inside = true;
    look_away();
    if (!here.tried && has_counted()) begin();
    if (here.good) note_calls();
    if (here.good) trace_events_end();
    if (here.good) trace_note_end(wait_status);
    uint64_t lost = here.good ? trace_file_lost() : 0;
    if (lost) inlay_warn("%llu records found no room in the file and are lost", (unsigned long long)lost);
    look_again();
    t->inside = before;
}

static void process_ends(int status, void *arg)
{
    (void)arg;
    end(W_EXITCODE(status & 255, 0));
}

/* Calls of destructors, which run behind what is called at the end: this one is the last of them. */
__attribute__((destructor(101))) static void process_has_ended(void)
{
    bool before = record_me.inside;
    record_me.inside = true;
    look_away();
    if (here.good) note_calls();
    look_again();
    record_me.inside = before;
}

/* The child's own file begins with its first record. */
static void forked(void)
{
    record_thread *t = &record_me;
    look_away();
    record_memory_forked();
    record_choose_forked();
    record_stack_forked();
    if (here.good) trace_file_forked();
    if (here.good) trace_events_forked();
    for (trace_proc *p = here.found.procs; p; p = p->next)
        if (((record_proc *)p)->chosen) record_choose_anew((record_proc *)p);
    record_output_close();
    t->begin = t->cursor = t->end = t->next = t->limit = NULL;
    t->number = t->ended = 0;
    t->reads = false;
    t->inside = here.tried = here.good = false;
    here.lock.word = 0;
    look_again();
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
    void *(*load)(const char *, int) = library && dlsym ? (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen")
                                                        : NULL;
    here.stays = load && load(s.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Of a library that may go: called when it is unmapped, too. Then nobody may call it any more, and no status is told.
 */
static void library_ends(void)
{
    if (!here.keyless) pthread_key_delete(here.key);
    here.keyless = true;
    end(INLAY_TRACE_STATUS_UNKNOWN);
}

static void call_at_end(void)
{
    search s = {.addr = (uint64_t)(uintptr_t)&thread_ends};
    if (!here.stays && dl_iterate_phdr(look, &s) && s.name && *s.name) atexit(library_ends);
    else on_exit(process_ends, NULL);
}

const char *record_output_name(void) { return asked.file; }

extern const char defaults[] __asm__(RECORD_DEFAULTS) __attribute__((weak));

static bool read_settings(void)
{
    char why[RECORD_PATH + 256];
    const char *out = getenv("INLAY_OUT"), *text = getenv("INLAY_TRACE");
    if (getauxval(AT_SECURE)) text = NULL;
    const char *volatile made = defaults;
    bool good = !made || record_settings_read(&asked, made, why, sizeof why);
    if (good && out && *out) snprintf(asked.file, sizeof asked.file, "%s", out);
    bool counted = asked.clock == RECORD_COUNTS;
    if (good && text) good = record_settings_read(&asked, text, why, sizeof why);
    if (good && counted && asked.clock != RECORD_COUNTS) {
        good = false;
        snprintf(why, sizeof why,
                 "the program's objects were made with --clock=none: their calls can be counted alone");
    }
    if (!good) inlay_warn("nothing is recorded: INLAY_TRACE: %s", why);
    settings.clock = (inlay_trace_clock)asked.clock;
    settings.last = asked.last;
    settings.every = asked.every;
    settings.thin = asked.thin;
    settings.depth = asked.depth;
    settings.threshold = asked.threshold;
    settings.events = asked.events[0] ? asked.events : NULL;
    record_choose_begin(&asked);
    asked.off |= !good;
    return !asked.off;
}

static bool routines_agree(void)
{
    if (!has_routines() || asked.clock != RECORD_COUNTS) return true;
    inlay_warn("nothing is recorded: INLAY_TRACE: counts: the program has routines of its own at entries and exits "
               "(inlay/trace.h), which calls that are counted alone do not come to");
    return false;
}

static void both_ways(void)
{
    uint64_t before;
    block(&before);
    unblock(&before);
}

static void looks(void)
{
    uint64_t when = trace_raw(settings.clock);
    __asm__ volatile("" ::"r"(when));
}

/* The least of several rounds, since others may run meanwhile. */
static uint64_t time_of(void (*one)(void))
{
    enum { ROUNDS = 9, TIMES = 16 };
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begun = trace_raw(settings.clock);
        for (int i = 0; i < TIMES; i++) one();
        uint64_t took = (trace_raw(settings.clock) - begun) / TIMES;
        if (took < least) least = took;
    }
    return least;
}

/* Signals that came meanwhile are delivered when they may come again, so the clock cannot be read behind that, nor in
 * front of all that is saved. */
static void measure(void)
{
    here.around = time_of(record_around_quick);
    here.before = time_of(both_ways) / 2;
    here.behind = time_of(record_around) + here.before;
    here.whole = here.around + time_of(looks);
}

static bool prepare(void)
{
    if (!trace_routine_agrees() || !read_settings() || !routines_agree() || !make_key() || !trace_file_prepare() ||
        !trace_events_prepare(&settings))
        return false;
    pthread_atfork(before_fork, after_fork, forked);
    call_at_end();
    measure();
    return true;
}

static void begin(void)
{
    static bool asked_for, prepared;
    inlay_lock(&here.lock);
    if (!here.tried) {
        if (!asked_for) prepared = prepare();
        asked_for = true;
        here.good = prepared && record_output_open(asked.file) >= 0 && trace_file_begin(&settings, &here.found);
        if (here.good) trace_routine_begin();
        if (here.good) trace_events_begin();
        asked.off |= !here.good;
        record_is_quick = here.good && all_come() && asked.clock != RECORD_COUNTS && !has_routines();
        here.tried = true;
    }
    inlay_unlock(&here.lock);
}

/* --- a record --- */

/* Room for one, as it is taken on the short way; NULL: there is none. */
static inlay_trace_record *take_room(char **next, char *const *end)
{
    char *at = __atomic_load_n(next, __ATOMIC_RELAXED);
    while (at < *end && !__atomic_compare_exchange_n(next, &at, at + sizeof(inlay_trace_record), false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return at < *end ? (inlay_trace_record *)at : NULL;
}

static void put(record_thread *t, uint64_t when, uint32_t stack, uint32_t what)
{
    bool all = all_come();
    char **next = all ? &t->next : &t->cursor, **end = all ? &t->limit : &t->end;
    inlay_trace_record *r = take_room(next, end);
    if (!r) take_window(t, filled(t));
    if (!r) r = take_room(next, end);
    if (!r) return;
    r->when = when;
    r->stack = stack;
    r->what = what;
}

/* The user's routine, and what it stores. */
static void call_routine(record_thread *t, uint32_t number, bool leaves, uint64_t sp, const uint64_t *saved)
{
    const uint64_t arguments[] = {saved[1], saved[2], saved[3], saved[4], saved[-1], saved[-2]};
    record_proc *p = record_proc_of(number);
    if (trace_routine_is_there(leaves) && p)
        trace_routine_call(leaves,
                           &(inlay_trace_at){&p->traced.told, sp, leaves ? NULL : arguments, t->values, t->number});
    for (unsigned k = 0; k < trace_routine_values(); k++)
        put(t, t->values[k], k | 'e' << 8 | sizeof(uint64_t) << 16, INLAY_TRACE_VALUE);
}

static void put_step(record_thread *t, uint32_t number, bool leaves, uint64_t sp, uint64_t when)
{
    put(t, when << 16 | (sp >> 32 & 0xffff), (uint32_t)sp, number << 1 | leaves);
}

static void put_counters(record_thread *t)
{
    unsigned count = trace_events_count(), first = trace_events_first();
    if (!count) return;
    trace_events_read(t->counted);
    t->reads = true;
    for (unsigned k = 0; k < count; k++)
        put(t, t->counted[k], (first + k) | 'e' << 8 | sizeof(uint64_t) << 16, INLAY_TRACE_VALUE);
}

/* An entry or exit that is recorded. */
static void put_all(record_thread *t, uint32_t number, bool leaves, uint64_t sp, const uint64_t *saved, uint64_t begun)
{
    if (has_routines()) call_routine(t, number, leaves, sp, saved);
    put_counters(t);
    put_step(t, number, leaves, sp, begun - t->own);
}

/* Where all is ready signals need not be blocked, which takes longer than the rest: room is taken as one, and a handler
 * that comes in between, and records, has what was read before read again. What it takes is not ours, then. False:
 * nothing is done. */
static bool put_quickly(const record_tells *tells, unsigned how, uint64_t sp)
{
    record_thread *t = &record_me;
    unsigned count = trace_events_count(), first = trace_events_first();
    uint64_t begun, own, values[INLAY_PERF_MOST];
    bool asks = tells->number & RECORD_SOME && !(how & RECORD_CHOSEN), again = false;
    if (!here.good || t->inside || !t->number || !tells->number || asks || (count && !t->reads)) return false;
    char *next = __atomic_load_n(&t->next, __ATOMIC_RELAXED);
    for (;; again = true) {
        own = __atomic_load_n(&t->own, __ATOMIC_RELAXED);
        begun = trace_raw(settings.clock);
        const char *limit = __atomic_load_n(&t->limit, __ATOMIC_RELAXED);
        if (!next || next > limit || (size_t)(limit - next) < (count + 1) * sizeof(inlay_trace_record)) return false;
        if (count) trace_events_read(values);
        char *behind = next + (count + 1) * sizeof(inlay_trace_record);
        if (__atomic_compare_exchange_n(&t->next, &next, behind, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
    }
    inlay_trace_record *r = (inlay_trace_record *)next;
    for (unsigned k = 0; k < count; k++, r++)
        *r = (inlay_trace_record){values[k], (first + k) | 'e' << 8 | sizeof(uint64_t) << 16,
                                  (uint32_t)INLAY_TRACE_VALUE};
    uint64_t when = begun - own;
    *r = (inlay_trace_record){when << 16 | (sp >> 32 & 0xffff), (uint32_t)sp,
                              (tells->number & ~(uint32_t)RECORD_SOME) << 1 | (how & RECORD_LEAVES)};
    uint64_t took = count && !again ? trace_raw(settings.clock) - begun + here.around : here.whole;
    __atomic_fetch_add(&t->own, took, __ATOMIC_RELAXED);
    return true;
}

/* The C library's calls for counters may change errno. */
bool record_quickly(const record_tells *tells, unsigned how, uint64_t sp)
{
    int cause = errno;
    bool done = put_quickly(tells, how, sp);
    errno = cause;
    return done;
}

/* Calls that are counted alone, the user's routines are told of, too. */
void record_slow(record_tells *tells, unsigned how, uint64_t sp, const uint64_t *saved)
{
    record_thread *t = &record_me;
    int cause = errno;
    look_away();
    if (!here.tried) begin();
    uint64_t begun = trace_raw(settings.clock) - here.before;
    if (here.good && !t->number) thread_begins(t);
    if ((here.good || asked.off) && !tells->number) number(tells);
    bool leaves = how & RECORD_LEAVES, good = here.good && tells->number;
    if (good && tells->number & RECORD_SOME && !(how & RECORD_CHOSEN))
        good = record_choose_slowly(tells, leaves, sp, true);
    if (good) put_all(t, tells->number & ~(uint32_t)RECORD_SOME, leaves, sp, saved, begun);
    t->own += trace_raw(settings.clock) - begun + here.behind;
    look_again();
    errno = cause;
}
