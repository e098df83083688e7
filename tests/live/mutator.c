/* A mutator that does what it is told, line by line, and answers each line with one of its own: "ok ...", or "no WHY".
 *
 *     attach PID | start OUTPUT PATH ARGS... | use N   processes are numbered from 0; the last one is in use
 *     insert POINT PROC CODE | remove N | commit       POINT: entry first exit block insn call; insertions are
 * numbered, too read NAME | names                                variables of `static` declarations in CODE why PROC |
 * stop | continue | status | pid | leave | terminate watch KIND... | poll MS | next MS                the event: kind,
 * process, tid, number, lost, name or text message PROC | break PROC                        a snippet at its entry
 * tells of it, or waits: number 7 resume                                           of the last event value THREAD TEXT
 * | load THREAD PATH             "TYPE|FORMAT|VALUE|ADDRESS"; THREAD: which of them; @NAME call THREAD PROC
 * KIND:VALUE...                   KINDs i f (float) d; the first is the result's, without value wrap PROC | restore
 * PROC                         own_more stands in for it: its value, and 1000 more threads tid:number of each share
 * PROC                                       counted at its entry in memory that both have; the value: shared
 */
#include <inlay.h>

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 1 << 17, LINE = 4096 };
static inlay_process *processes[64], *now;
static inlay_insertion *insertions[MOST];
static struct {
    const char *name;
    char *at;
    size_t size;
} variables[MOST];
static unsigned process_count, insertion_count, variable_count;

static void answer(bool good, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs(good ? "ok " : "no ", stdout);
    vprintf(fmt, args);
    putchar('\n');
    fflush(stdout);
    va_end(args);
}

static void done(bool good) { answer(good, "%s", good ? "" : inlay_process_error()); }

static inlay_proc *proc_named(const char *name)
{
    for (inlay_image *i = inlay_process_image_first(now); i; i = inlay_image_next(i)) {
        inlay_proc *p = inlay_image_proc_named(i, name);
        if (p) return p;
    }
    return NULL;
}

static void note_static(const inlay_scope_static *s, void *arg)
{
    (void)arg;
    for (unsigned k = 0; k < variable_count; k++)
        if (variables[k].at == s->at) return;
    variables[variable_count].name = s->name;
    variables[variable_count].at = s->at;
    variables[variable_count++].size = s->size;
}

static void keep(inlay_insertion *i)
{
    if (i && insertion_count < MOST) insertions[insertion_count++] = i;
}

/* At one place, or at all of a kind in the procedure. */
static void insert_at(inlay_proc *p, const char *point, inlay_expr code)
{
    if (!strcmp(point, "entry")) keep(inlay_insert(inlay_proc_entry(p), code));
    if (!strcmp(point, "first")) keep(inlay_insert_first(inlay_proc_entry(p), code));
    if (!strcmp(point, "exit")) keep(inlay_insert(inlay_proc_exit(p), code));
    for (inlay_block *b = inlay_proc_block_first(p); b && *point != 'e'; b = inlay_block_next(b)) {
        if (!strcmp(point, "block")) keep(inlay_insert(inlay_block_entry(b), code));
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i))
            if (!strcmp(point, "insn") || (!strcmp(point, "call") && inlay_insn_is_call(i)))
                keep(inlay_insert(inlay_before(i), code));
    }
}

static void insert(const char *point, const char *name, const char *text)
{
    inlay_proc *p = proc_named(name);
    inlay_scope *names = p ? inlay_scope_new(inlay_proc_image(p), inlay_proc_address(p)) : NULL;
    inlay_expr code = names ? inlay_scope_parse(names, text) : NULL;
    unsigned from = insertion_count;
    if (!p) {
        answer(false, "no procedure %s", name);
    } else if (!code) {
        answer(false, "%s", inlay_scope_error(names));
    } else {
        insert_at(p, point, code);
        inlay_scope_statics(names, note_static, NULL);
        if (insertion_count > from) answer(true, "%u %u", from, insertion_count);
        else done(false);
    }
}

static void read_variable(const char *name)
{
    for (unsigned k = variable_count; k-- > 0;) {
        if (strcmp(variables[k].name, name)) continue;
        long value = 0;
        if (inlay_process_read(now, &value, (uintptr_t)variables[k].at, variables[k].size) != variables[k].size)
            return done(false);
        return answer(true, "%ld", value);
    }
    answer(false, "no variable %s", name);
}

static void begun(inlay_process *p)
{
    if (p) processes[process_count++] = now = p;
    done(p);
}

/* Its words by spaces; its output goes to a file, its input comes from FILE.in, if there is one. */
static void start(char *path, char *rest, const char *out)
{
    const char *argv[64] = {path}, *const envp[] = {"PATH=/usr/bin:/bin", "STARTED=yes", NULL};
    unsigned n = 1;
    while (rest && n < 63) argv[n++] = strsep(&rest, " ");
    int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), in;
    char from[LINE];
    snprintf(from, sizeof from, "%s.in", out);
    in = open(access(from, R_OK) ? "/dev/null" : from, O_RDONLY | O_CLOEXEC);
    int fds[3] = {in, fd, fd};
    begun(inlay_process_create(path, argv, envp, fds));
    close(fd);
    close(in);
}

/* --- events */

static const char *const kinds[INLAY_EVENT_KINDS] = {"exit",         "signal",     "fork",   "exec",
                                                     "thread-begin", "thread-end", "loaded", "unloaded",
                                                     "message",      "break",      "begin",  "opened"};
static inlay_event event;
static unsigned called; /* by callbacks */
static volatile long *shared;

static void count_event(const inlay_event *e, void *arg) { *(unsigned *)arg += e->kind < INLAY_EVENT_KINDS; }

static void watch(char *first, char *rest)
{
    unsigned set = 0;
    for (const char *word = first; word; word = strsep(&rest, " "))
        for (unsigned k = 0; k < INLAY_EVENT_KINDS; k++)
            if (!strcmp(word, kinds[k]) || !strcmp(word, "all")) set |= 1u << k;
    if (!inlay_process_watch(now, set)) return done(false);
    inlay_on_event(set, count_event, &called);
    done(true);
}

static void tell_event(int milliseconds)
{
    if (!inlay_event_next(&event, milliseconds)) return answer(false, "nothing");
    unsigned which = 0;
    while (which < process_count && processes[which] != event.process) which++;
    int n = event.kind == INLAY_EVENT_MESSAGE ? (int)event.size : 0;
    answer(true, "%s %u %d %lld %llu %s%.*s", kinds[event.kind], which, event.tid, (long long)event.number,
           (unsigned long long)event.lost, event.name ? event.name : "", n, n ? (const char *)event.data : "");
}

static void wait_readable(int milliseconds)
{
    struct pollfd of = {.fd = inlay_events_descriptor(), .events = POLLIN};
    answer(poll(&of, 1, milliseconds) == 1, "%u", called);
}

static void tell_of(const char *name, bool waits)
{
    static const char text[] = "entered";
    inlay_proc *p = proc_named(name);
    char *there = inlay_alloc(sizeof text);
    memcpy(there, text, sizeof text);
    inlay_expr number = inlay_const(7);
    inlay_expr call = waits ? inlay_call(inlay_break_here, number, inlay_context_arg())
                            : inlay_call(inlay_message, number, inlay_pointer(there), inlay_const(7));
    unsigned from = insertion_count;
    if (p) keep(inlay_insert(inlay_proc_entry(p), call));
    answer(insertion_count > from, "%u", from);
}

static void share(const char *name)
{
    inlay_proc *p = proc_named(name);
    shared = p ? inlay_process_share(now, sizeof *shared) : NULL;
    if (!shared) return done(false);
    keep(inlay_insert(inlay_proc_entry(p), inlay_atomic_add(inlay_pointer((const void *)shared), inlay_const(1), 8)));
    done(true);
}

/* --- once --- */

static int thread_of(const char *number)
{
    inlay_process_thread all[256];
    unsigned n = inlay_process_threads(now, all, 256), k = (unsigned)atoi(number);
    return k < n ? all[k].tid : -1;
}

static void tell_threads(void)
{
    inlay_process_thread all[256];
    char line[LINE] = "";
    unsigned n = inlay_process_threads(now, all, 256);
    for (unsigned k = 0; k < n; k++) sprintf(line + strlen(line), "%d:%d ", all[k].tid, all[k].number);
    answer(true, "%s", line);
}

static void tell_value(const inlay_value *v)
{
    char text[64] = "-";
    if (v->format == 'i') snprintf(text, sizeof text, "%lld", (long long)v->i);
    if (v->format == 'u' || v->format == 'p') snprintf(text, sizeof text, "%llu", (unsigned long long)v->u);
    if (v->format == 'f') snprintf(text, sizeof text, "%.17g", v->f);
    answer(true, "%s|%c|%s|%llx", v->type, v->format ? v->format : '0', text, (unsigned long long)v->address);
}

/* --- routines that run once, in the process --- */

static long own_count;
static __thread long own_here;
static long own_sum(long a, char b, unsigned c, short d, long e, long f, long g, long h)
{
    return a + 10 * b + 100 * (long)c + 1000 * d + 10000 * e + 100000 * f + 1000000 * g + 10000000 * h;
}
static double own_mix(int a, double b, float c, long d, double e) { return a * b + c * (double)d - e; }
static float own_half(float x) { return x / 2; }
static long own_calls(void) { return ++own_count * 100 + ++own_here; }
static int own_thread(void) { return (int)syscall(SYS_gettid); }
static long own_length(const char *text) { return (long)strlen(strcpy(malloc(strlen(text) + 1), text)); }
static long own_fault(long at) { return *(long *)at; }
static void own_wait(void)
{
    while (*(volatile long *)&own_count >= 0) {}
}
static long own_process(void) { return inlay_pid(); }

static long own_more(long a, long b, long c, long d, long e, long f)
{
    own_count++;
    for (unsigned n = 0; n < 200; n++) inlay_address_real((uintptr_t)own_more); /* which has a lock of Inlay's */
    return inlay_call_original(own_more, a, b, c, d, e, f) + 1000;
}

static void wrap(const char *name, bool yes)
{
    inlay_proc *p = proc_named(name);
    if (!p) answer(false, "no procedure %s", name);
    else done(yes ? inlay_proc_wrap(p, (void (*)(void))own_more, 0) : inlay_proc_restore(p));
}

static inlay_scope *names_here(void)
{
#define GIVE(text, name) inlay_scope_routine(names, text, (void (*)(void))name)
    inlay_scope *names = inlay_scope_new(inlay_process_image_first(now), 0);
    GIVE("long own_sum(long, char, unsigned, short, long, long, long, long)", own_sum);
    GIVE("double own_mix(int, double, float, long, double)", own_mix);
    GIVE("float own_half(float)", own_half);
    GIVE("long own_calls()", own_calls);
    GIVE("int own_thread()", own_thread);
    GIVE("long own_length(char *)", own_length);
    GIVE("long own_fault(long)", own_fault);
    GIVE("void own_wait()", own_wait);
    GIVE("long own_process()", own_process);
    return names;
}

static void evaluate(const char *thread, const char *text)
{
    inlay_scope *names = names_here();
    inlay_expr code = *text == '@' ? inlay_scope_find(names, text + 1) : inlay_scope_parse(names, text);
    inlay_value v;
    if (!code) return answer(false, "%s", inlay_scope_error(names));
    if (!inlay_process_evaluate(now, thread_of(thread), code, &v)) return done(false);
    tell_value(&v);
}

/* The type, and the bytes as a number each. */
static void tell_bytes(const char *thread, const char *text)
{
    inlay_scope *names = inlay_scope_new(inlay_process_image_first(now), 0);
    inlay_expr code = inlay_scope_parse(names, text);
    unsigned char bytes[128];
    char line[4 * sizeof bytes] = "";
    inlay_value v;
    if (!code) return answer(false, "%s", inlay_scope_error(names));
    if (!inlay_process_evaluate_bytes(now, thread_of(thread), code, &v, bytes, sizeof bytes)) return done(false);
    for (size_t k = 0; k < v.size; k++) sprintf(line + strlen(line), "%x ", bytes[k]);
    answer(true, "%s|%c|%s", v.type, v.format, line);
}

/* The procedures that a thread is in, or the one that waits ("event"), the innermost last. */
static void tell_stack(const char *thread)
{
    inlay_context c;
    inlay_stack_frame frames[32];
    char line[512] = "";
    bool waits = !strcmp(thread, "event");
    if (!waits && !inlay_process_thread_context(now, thread_of(thread), &c)) return done(false);
    unsigned count = waits ? inlay_event_stack(&event, frames, 32) : inlay_process_stack(now, &c, frames, 32);
    for (unsigned k = count; k-- > 0;) {
        size_t n = strlen(line);
        snprintf(line + n, sizeof line - n, "%s ", inlay_proc_name(inlay_process_proc_at(now, frames[k].address)));
    }
    answer(true, "%s", line);
}

static void call_procedure(const char *thread, char *rest)
{
    inlay_value given[16] = {{0}}, result = {0};
    const char *name = strsep(&rest, " "), *word = strsep(&rest, " ");
    inlay_proc *p = proc_named(name);
    unsigned n = 0;
    result.format = *word == 'i' ? 'i' : 'f';
    result.size = *word == 'f' ? 4 : 8;
    while ((word = strsep(&rest, " ")) && n < 16) {
        given[n].format = *word == 'i' ? 'i' : 'f';
        given[n].size = *word == 'f' ? 4 : 8;
        if (*word == 'i') given[n++].i = atoll(word + 2);
        else given[n++].f = atof(word + 2);
    }
    if (!p) return answer(false, "no procedure %s", name);
    if (!inlay_process_call(now, thread_of(thread), inlay_proc_address(p), n, given, &result)) return done(false);
    tell_value(&result);
}

static void load(const char *thread, const char *path)
{
    uint64_t handle = inlay_process_load(now, thread_of(thread), path);
    if (handle) answer(true, "%llx", (unsigned long long)handle);
    else done(false);
}

static bool obey_once(const char *word, const char *first, char *rest)
{
    if (!strcmp(word, "value")) evaluate(first, rest);
    else if (!strcmp(word, "bytes")) tell_bytes(first, rest);
    else if (!strcmp(word, "call")) call_procedure(first, rest);
    else if (!strcmp(word, "load")) load(first, rest);
    else if (!strcmp(word, "wrap") || !strcmp(word, "restore")) wrap(first, *word == 'w');
    else if (!strcmp(word, "threads")) tell_threads();
    else if (!strcmp(word, "stack")) tell_stack(first);
    else return false;
    return true;
}

static bool obey_events(const char *word, char *first, char *rest)
{
    int number = first ? atoi(first) : 0;
    if (!strcmp(word, "watch")) watch(first, rest);
    else if (!strcmp(word, "next")) tell_event(number);
    else if (!strcmp(word, "poll")) wait_readable(number);
    else if (!strcmp(word, "message")) tell_of(first, false);
    else if (!strcmp(word, "break")) tell_of(first, true);
    else if (!strcmp(word, "resume")) done(inlay_event_resume(&event));
    else if (!strcmp(word, "loads-wait")) done(inlay_process_wait_at_load(now, number));
    else if (!strcmp(word, "share")) share(first);
    else if (!strcmp(word, "shared")) answer(true, "%ld", *shared);
    else return false;
    return true;
}

static void obey(const char *word, char *rest)
{
    char *first = strsep(&rest, " ");
    if (obey_events(word, first, rest) || obey_once(word, first, rest)) return;
    char *second = rest ? strsep(&rest, " ") : NULL;
    unsigned number = first ? (unsigned)atoi(first) : 0;
    inlay_proc *p;
    if (!strcmp(word, "attach")) begun(inlay_process_attach(atoi(first)));
    else if (!strcmp(word, "start")) start(second, rest, first);
    else if (!strcmp(word, "pid")) answer(true, "%d %s", inlay_process_pid(now), inlay_process_program(now));
    else if (!strcmp(word, "use")) done((now = processes[number]) != NULL);
    else if (!strcmp(word, "insert")) insert(first, second, rest);
    else if (!strcmp(word, "remove")) done(inlay_remove(insertions[number]));
    else if (!strcmp(word, "commit")) done(inlay_process_commit(now));
    else if (!strcmp(word, "read")) read_variable(first);
    else if (!strcmp(word, "why") && (p = proc_named(first)))
        answer(true, "%s", inlay_proc_refused(p) ? inlay_proc_refused(p) : "");
    else if (!strcmp(word, "stop")) done(inlay_process_stop(now));
    else if (!strcmp(word, "continue")) done(inlay_process_continue(now));
    else if (!strcmp(word, "status"))
        answer(true, "%s %d", inlay_process_is_running(now) ? "runs" : "ended", inlay_process_status(now));
    else if (!strcmp(word, "leave")) done(inlay_process_let_go(now));
    else if (!strcmp(word, "out")) done(inlay_process_take_out(now));
    else if (!strcmp(word, "terminate")) done(inlay_process_terminate(now));
    else answer(false, "what is %s?", word);
}

int main(int argc, char **argv)
{
    static char line[LINE];
    inlay_mutator(&argc, &argv);
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line;
        line[strcspn(line, "\n")] = 0;
        char *word = strsep(&rest, " ");
        obey(word, rest);
    }
    return 0;
}
