#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t asked_to_end;
static int unwritten; /* the errno with which the result could not be written; 0: it could */

bool command_flush(void)
{
    bool good = !fflush(stdout) && !ferror(stdout);
    if (!good && !unwritten) unwritten = errno;
    return good;
}

void command_say(const live_command *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    command_flush();
    fprintf(stderr, "inlay %s: ", c->name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

void command_fail(const live_command *c, const char *what)
{
    command_say(c, "%s: %s", what, inlay_process_error());
    if (c->process && !c->pid) inlay_process_terminate(c->process);
    else if (c->process && !inlay_process_take_out(c->process) && inlay_process_is_running(c->process))
        command_say(c, "what has been put into process %d stays there; inlay detach %d takes it out", c->pid, c->pid);
    exit(LIVE_FAILED);
}

/* --- arguments --- */

static void wrong(const live_command *c, const char *fmt, const char *what)
{
    command_say(c, fmt, what);
    fputs(c->usage, stderr);
    exit(LIVE_USAGE);
}

/* The value of argv[*at], where that is `name`, `name VALUE` or `name=VALUE`. */
static const char *value_of(const live_command *c, char **argv, int *at, const char *name)
{
    size_t n = strlen(name);
    if (strncmp(argv[*at], name, n) != 0) return NULL;
    if (argv[*at][n] == '=') return argv[*at] + n + 1;
    if (argv[*at][n]) return NULL;
    if (!argv[*at + 1]) wrong(c, "%s lacks its value", name);
    return argv[++*at];
}

uint64_t command_number(const live_command *c, const char *option, const char *text)
{
    char *end, what[160];
    uint64_t number = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end) return number;
    snprintf(what, sizeof what, "%s %.100s", option, text);
    wrong(c, "%s: not a number", what);
    return 0;
}

static int number_of(const live_command *c, const char *text)
{
    char *end;
    long pid = strtol(text, &end, 10);
    if (*end || pid <= 0 || pid > 0x7fffffff) wrong(c, "%s is not the number of a process", text);
    return (int)pid;
}

static bool own_option(const live_command *c, char **argv, int *at)
{
    for (const live_option *o = c->options; o && o->name; o++) {
        const char *value = NULL;
        if (o->flag && !strcmp(argv[*at], o->name)) return *o->flag = true;
        if (o->value && (value = value_of(c, argv, at, o->name))) {
            *o->value = value;
            return true;
        }
    }
    return false;
}

static void common_option(live_command *c, char **argv, int *at)
{
    const char *value;
    char *end;
    if (!strcmp(argv[*at], "--help")) {
        fputs(c->usage, stdout);
        exit(LIVE_OK);
    }
    if ((value = value_of(c, argv, at, "-p"))) {
        c->pid = number_of(c, value);
    } else if (c->by_thread && (value = value_of(c, argv, at, "--thread"))) {
        c->thread = number_of(c, value);
    } else if (!strcmp(argv[*at], "--children")) {
        c->children = true;
    } else if ((value = value_of(c, argv, at, "--for"))) {
        c->seconds = strtod(value, &end);
        if (*end || !(c->seconds > 0)) wrong(c, "%s is not a number of seconds", value);
    } else if ((value = value_of(c, argv, at, "--format"))) {
        c->json = !strcmp(value, "json");
        if (!c->json && strcmp(value, "text")) wrong(c, "the format is text or json, not %s", value);
    } else if ((value = value_of(c, argv, at, "-o"))) {
        c->program_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (freopen(value, "we", stdout)) return;
        command_say(c, "cannot write %s: %s", value, strerror(errno));
        exit(LIVE_FAILED);
    } else {
        wrong(c, "option %s is not known", argv[*at]);
    }
}

static void read_arguments(live_command *c, int argc, char **argv)
{
    int at = 1;
    c->words = calloc((size_t)argc + 1, sizeof *c->words);
    if (!c->words) exit(LIVE_FAILED);
    for (; at < argc && strcmp(argv[at], "--"); at++) {
        if (argv[at][0] != '-' || !argv[at][1]) c->words[c->word_count++] = argv[at];
        else if (!own_option(c, argv, &at)) common_option(c, argv, &at);
    }
    if (at < argc) c->program = argv + at + 1;
    if (c->program && !*c->program) wrong(c, "no program stands behind %s", "--");
    if (c->process_first && !c->pid && !c->program && c->word_count) {
        c->pid = number_of(c, c->words[0]);
        c->words++, c->word_count--;
    }
    if (c->thread && !c->pid) wrong(c, "%s", "--thread names a thread of a process that runs (-p)");
    if (c->thread && c->children)
        wrong(c, "%s", "--thread is for one thread, of the process alone: not with --children");
    if (!c->pid == !c->program) wrong(c, "%s", c->pid ? "a process and a program are named" : "no process is named");
    if (c->word_count < c->least) wrong(c, "%s", "something is missing");
    if (c->most && c->word_count > c->most) wrong(c, "'%s' is too much", c->words[c->most]);
}

static void on_end(int signo)
{
    (void)signo;
    asked_to_end = 1;
}

static void handle_signals(const live_command *c)
{
    /* The wait is a poll, which ends all the same; what is being written is not cut. */
    struct sigaction end = {.sa_handler = on_end, .sa_flags = SA_RESTART}, ignore = {.sa_handler = SIG_IGN};
    /* The terminal's are the program's: the command ends when that has. */
    sigaction(SIGINT, c->program ? &ignore : &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL); /* who does not read on does not keep the code from being taken out */
}

void command_begin(live_command *c, int argc, char **argv)
{
    read_arguments(c, argc, argv);
    inlay_json_one_line();
    if (c->pid) c->process = inlay_process_attach(c->pid);
    const int fds[] = {STDIN_FILENO, c->program_out > 0 ? c->program_out : STDOUT_FILENO, STDERR_FILENO};
    if (!c->pid) c->process = inlay_process_create(c->program[0], (const char *const *)c->program, NULL, fds);
    if (!c->process) command_fail(c, c->pid ? "cannot attach" : "cannot start it");
    if (c->thread && (c->thread_number = inlay_process_thread_number(c->process, c->thread)) < 0)
        command_fail(c, "there can be no code for one thread");
    handle_signals(c);
}

inlay_expr command_for_thread(const live_command *c, inlay_expr code)
{
    return c->thread ? inlay_on_thread(c->thread_number, code) : code;
}

/* --- programs that are followed --- */

static live_one *one_of(live_command *c, const inlay_process *p)
{
    for (unsigned k = 0; k < c->one_count; k++)
        if (c->ones[k].process == p) return &c->ones[k];
    c->ones = realloc(c->ones, (c->one_count + 1) * sizeof *c->ones);
    if (!c->ones) exit(LIVE_FAILED);
    c->ones[c->one_count] = (live_one){.process = (inlay_process *)p};
    return &c->ones[c->one_count++];
}

static void forget(live_command *c, inlay_process *p)
{
    live_one *o = one_of(c, p);
    c->ended(p);
    free(o->inserted);
    *o = c->ones[--c->one_count];
    if (!inlay_process_take_out(p)) inlay_process_let_go(p);
}

/* What has ended, or is another program, is heard of until none of its children has what it had. */
static void forget_past(live_command *c)
{
    for (unsigned k = c->one_count; k-- > 0;)
        if (c->ones[k].is_past && !inlay_process_children(c->ones[k].process, NULL, 0)) forget(c, c->ones[k].process);
}

static void begin(live_command *c, inlay_process *p)
{
    inlay_process *now = c->process;
    one_of(c, p);
    c->process = p;
    bool good = inlay_process_watch(p, c->kinds | INLAY_EVENTS(EXEC) | INLAY_EVENTS(EXIT)) &&
                inlay_process_share_with_children(p, true) && inlay_process_follow(p, true);
    if (good) c->begins();
    good = good && inlay_process_commit(p);
    if (good && c->is_in) c->is_in();
    if (!good && inlay_process_is_running(p))
        command_say(c, "process %d: %s", inlay_process_pid(p), inlay_process_error());
    inlay_process_continue(p);
    c->process = now;
}

/* What the process was before; NULL: it has been none of these. */
static live_one *former(const live_command *c, const inlay_process *p)
{
    for (live_one *o = c->ones; o < c->ones + c->one_count; o++)
        if (o->process != p && !o->is_past && inlay_process_pid(o->process) == inlay_process_pid(p)) return o;
    return NULL;
}

static void note_begin(const inlay_event *e, void *arg)
{
    live_command *c = arg;
    if (!e->process) command_say(c, "%s is not followed: %s", e->name, inlay_process_error());
    if (!e->process) return;
    live_one *was = former(c, e->process);
    if (was) was->is_past = true;
    if (was && was->process == c->process) c->process = e->process;
    begin(c, e->process);
    forget_past(c);
}

static void note_end(const inlay_event *e, void *arg)
{
    live_command *c = arg;
    if (e->process != c->process) one_of(c, e->process)->is_past = true;
}

static void note_exec(const inlay_event *e, void *arg)
{
    live_command *c = arg;
    if (e->process != c->process) {
        one_of(c, e->process)->is_past = true;
        return;
    }
    snprintf(c->executed, sizeof c->executed, "%s", e->name ? e->name : "another program");
    command_say(c, "process %d has executed %s: what follows is of before", inlay_process_pid(c->process), c->executed);
}

void command_commit(live_command *c)
{
    if (!inlay_process_watch(c->process, c->kinds | INLAY_EVENTS(EXEC))) command_fail(c, "cannot watch");
    inlay_on_event(INLAY_EVENTS(EXEC), note_exec, c);
    if (c->children && !inlay_process_share_with_children(c->process, true)) command_fail(c, "children cannot be had");
    one_of(c, c->process);
    if (c->children && c->begins && !inlay_process_follow(c->process, true)) command_fail(c, "children cannot be had");
    inlay_on_event(INLAY_EVENTS(BEGIN), note_begin, c);
    inlay_on_event(INLAY_EVENTS(EXIT), note_end, c);
    if (!inlay_process_commit(c->process)) command_fail(c, "cannot insert");
    if (c->is_in) c->is_in();
    if (c->program && !inlay_process_continue(c->process)) command_fail(c, "cannot let it run");
}

void command_note(live_command *c, inlay_insertion *i, const inlay_proc *proc)
{
    live_one *o = one_of(c, c->process);
    unsigned n = o->count;
    if (!(n & (n - 1))) o->inserted = realloc(o->inserted, (n ? n * 2 : 1) * sizeof *o->inserted);
    if (!o->inserted) exit(LIVE_FAILED);
    o->inserted[o->count++] = (live_inserted){i, proc};
}

/* Insertions in one procedure follow each other. */
unsigned command_refused(const live_command *c)
{
    enum { MOST_SAID = 3 };
    unsigned count = 0, said = 0;
    const inlay_proc *last = NULL;
    const live_one *o = c->ones;
    while (o->process != c->process) o++;
    for (const live_inserted *i = o->inserted; i < o->inserted + o->count; i++) {
        const char *why = i->proc ? inlay_proc_refused(i->proc) : NULL;
        count += why != NULL;
        if (!why || i->proc == last || said++ >= MOST_SAID) continue;
        last = i->proc;
        command_say(c, "nothing can be put into %s (%s): %s", inlay_proc_display_name(last),
                    inlay_image_name(inlay_proc_image(last)), why);
    }
    return count;
}

bool command_insert(live_command *c, inlay_point *at, inlay_expr code)
{
    inlay_insertion *i = inlay_insert(at, code);
    if (i) command_note(c, i, NULL);
    return i;
}

/* False: it could not be taken out. */
static bool remove_from(live_command *c, live_one *o)
{
    for (unsigned k = 0; k < o->count; k++) inlay_remove(o->inserted[k].insertion);
    bool any = o->count && !o->is_past && !(o->process == c->process && *c->executed);
    o->count = 0;
    return !any || !inlay_process_is_running(o->process) || inlay_process_commit(o->process) ||
           !inlay_process_is_running(o->process);
}

void command_remove(live_command *c)
{
    for (unsigned k = 0; k < c->one_count; k++) {
        live_one *o = &c->ones[k];
        if (remove_from(c, o)) continue;
        if (o->process == c->process) command_fail(c, "cannot take it out");
        command_say(c, "cannot take it out of process %d: %s", inlay_process_pid(o->process), inlay_process_error());
    }
}

/* --- the wait --- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_to_end(const live_command *c) { return asked_to_end || (c->seconds > 0 && now() >= c->ends_at); }

bool command_next(const live_command *c, inlay_event *e) { return !is_to_end(c) && inlay_event_next(e, 0); }

static bool take_events(const live_command *c)
{
    enum { BEAT = 1000 }; /* there may be no end of them */
    inlay_event e;
    for (unsigned many = 0; many < BEAT && command_next(c, &e); many++) {}
    return true;
}

/* What executes programs all the time would have more and more of them followed. */
static void follow_no_more(const live_command *c)
{
    for (unsigned k = 0; c->children && k < c->one_count; k++)
        if (!c->ones[k].is_past) inlay_process_follow(c->ones[k].process, false);
}

void command_wait(live_command *c, bool (*each)(void *arg), void *arg)
{
    struct pollfd events = {.fd = inlay_events_descriptor(), .events = POLLIN};
    for (c->ends_at = now() + c->seconds; !is_to_end(c); poll(&events, 1, 100)) {
        c->has_ended = !inlay_process_is_running(c->process);
        if ((each ? !each(arg) : !take_events(c)) || c->has_ended || (*c->executed && !c->program)) break;
        forget_past(c);
    }
    follow_no_more(c);
}

/* Ends as the program did. */
static void end_as(int status)
{
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    exit(WEXITSTATUS(status));
}

/* False: new code stays, which leads back to the old, and the process goes on. */
static bool leave(live_command *c, inlay_process *p)
{
    if (inlay_process_take_out(p)) return true;
    bool runs = inlay_process_is_running(p);
    if (runs)
        command_say(c, "not all could be taken out of process %d: %s", inlay_process_pid(p), inlay_process_error());
    if (p == c->process) c->process = NULL;
    if (!inlay_process_let_go(p) && runs) command_fail(c, "cannot let go");
    return !runs;
}

static bool leave_others(live_command *c)
{
    bool all = true;
    for (unsigned k = 0; k < c->one_count; k++)
        if (c->ones[k].process != c->process) all = leave(c, c->ones[k].process) && all;
    return all;
}

int command_end(live_command *c, int status)
{
    if (!command_flush()) {
        command_say(c, "cannot write the result: %s", strerror(unwritten));
        if (c->pid) status = LIVE_FAILED;
    }
    command_remove(c);
    bool all = leave_others(c), runs = inlay_process_is_running(c->process);
    int its = inlay_process_status(c->process);
    if (runs && c->program && inlay_process_is_stopped(c->process)) inlay_process_terminate(c->process);
    else if (runs && *c->executed) inlay_process_let_go(c->process);
    else if (runs) all = leave(c, c->process) && all;
    if (!all && c->pid) status = LIVE_FAILED;
    if (!runs && c->program && status == LIVE_OK && its >= 0) end_as(its);
    return status;
}

/* --- procedures --- */

static bool is_pattern(const char *name) { return *name == '/' || strpbrk(name, "*?["); }

static unsigned each_in_image(live_command *c, inlay_image *i, const char *name, void (*each)(inlay_proc *, void *),
                              void *arg)
{
    inlay_proc *one = is_pattern(name) ? NULL : inlay_image_proc_named(i, name);
    if (one) each(one, arg);
    int count = one ? 1 : inlay_image_procs_matching(i, name, each, arg);
    if (count < 0) exit(command_end(c, LIVE_USAGE)); /* how it is wrong has been said */
    return (unsigned)count;
}

unsigned command_each_proc(live_command *c, const char *name, void (*each)(inlay_proc *, void *), void *arg)
{
    unsigned count = 0;
    const char *colon = strchr(name, ':');
    char image[256] = "*";
    if (*name != '/' && colon && colon > name && colon[1] != ':') {
        snprintf(image, sizeof image, "%.*s", (int)(colon - name), name);
        name = colon + 1;
    }
    for (inlay_image *i = inlay_process_image_first(c->process); i; i = inlay_image_next(i))
        if (!fnmatch(image, inlay_image_name(i), 0)) count += each_in_image(c, i, name, each, arg);
    return count;
}

const char *command_nearly(const live_command *c, const char *name)
{
    static char text[300];
    char near_ones[240], bare[128];
    const char *colon = strchr(name, ':');
    if (colon && colon[1] != ':' && strstr(name, ".so")) name = colon + 1; /* IMAGE:NAME */
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":"), name);    /* NAME:KIND */
    inlay_process_procs_near(c->process, bare, near_ones, sizeof near_ones);
    snprintf(text, sizeof text, "%s%s", *near_ones ? "; near it are " : "", near_ones);
    return text;
}
