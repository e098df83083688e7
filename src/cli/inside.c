/* inlay detach, report, ps: tools in processes that run.
 *
 *     detach PID [-o FILE]   the tool's report, and it is taken out; so is what a mutator has left
 *     report PID [-o FILE]   the report now; the tool stays
 *     ps                     which processes have a tool inside, who put it there, and when
 *
 * A report is printed here. The last one goes to the file that was named when the tool was put in (-o), if one was. */
#include "cli/cli.h"

#include "live/change.h"
#include "live/live.h"
#include "move/live.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct wanted {
    pid_t pid;
    live_wish wish;
    const char *output;
    int out;
} wanted;

static const char *const names[] = {[LIVE_REPORT] = "report", [LIVE_LEAVE] = "detach"};

static inl_status ask(void *arg, void *answer, inl_error *e)
{
    (void)answer;
    const wanted *w = arg;
    return live_ask(w->pid, w->wish, w->out, NULL, e);
}

static void usage(FILE *to, live_wish wish)
{
    fprintf(to, "usage: inlay %s [-o FILE] PID\n", names[wish]);
    if (wish == LIVE_LEAVE)
        fputs("Takes out of a process what inlay attach has put into it, or a mutator (inlay count, break, tee,\n"
              "snippet) that has ended without taking it out. A tool's report goes to FILE, or to the file that was\n"
              "named then, or to standard output. One that runs a program (inlay run) leaves it likewise; its report\n"
              "goes where that command was told.\n",
              to);
    else fputs("The report of the tool in process PID, as of now, to FILE or standard output. The tool stays.\n", to);
}

static int wrong(live_wish wish, const char *what, const char *why)
{
    cli_say("%s: %s%s", names[wish], what, why);
    usage(stderr, wish);
    return EXIT_USAGE;
}

/* 0: go on. */
static int read_arguments(int argc, char **argv, wanted *w)
{
    const char *process = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            usage(stdout, w->wish);
            exit(EXIT_OK);
        }
        if (!strcmp(argv[i], "-o") && i + 1 < argc) w->output = argv[++i];
        else if (*argv[i] == '-') return wrong(w->wish, argv[i], " is no option, or lacks its value");
        else if (process) return wrong(w->wish, argv[i], " is too much: one process at a time");
        else process = argv[i];
    }
    if (!process) return wrong(w->wish, "no process is named", "");
    char *end = NULL;
    long pid = isdigit((unsigned char)*process) ? strtol(process, &end, 10) : 0;
    if (pid <= 0 || pid > INT_MAX || *end) return wrong(w->wish, process, " is not the number of a process");
    w->pid = (pid_t)pid;
    return 0;
}

/* Where its report goes, should nothing be said here. */
static inl_status look(wanted *w, live_told *told, inl_error *e)
{
    inl_status s = live_record_read(w->pid, told, e);
    if (s != INL_OK) return s;
    bool to_file = !w->output && w->wish == LIVE_LEAVE && told->record->has_output;
    w->out = to_file ? -1 : STDOUT_FILENO;
    if (!w->output) return INL_OK;
    w->out = open(w->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return w->out >= 0 ? INL_OK : inl_fail(e, INL_ERR_ACCESS, "cannot write %s: %s", w->output, strerror(errno));
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool runs_jit(const live_told *told)
{
    return told->record->started == MOVE_TOLD_RUNS_JIT || told->record->started == MOVE_TOLD_LEAVES_JIT;
}

/* It was started, or put in, under the JIT engine, whose last report goes where that was told. */
static inl_status ask_jit(const wanted *w, const live_told *told, inl_error *e)
{
    if (w->wish == LIVE_REPORT) return live_ask_jit_report(w->pid, w->out, e);
    if (!w->output) return live_ask_jit(w->pid, told, e);
    return inl_fail(
        e, INL_ERR_UNSUPPORTED,
        "the tool in process %d runs it under the JIT engine: its last report goes where inlay run was told "
        "(-o); inlay report has one now",
        w->pid);
}

static int ask_for(int argc, char **argv, live_wish wish)
{
    wanted w = {.wish = wish};
    live_told told = {0};
    inl_error e = {0};
    int wrong = read_arguments(argc, argv, &w);
    if (wrong) return wrong;
    inl_status s = look(&w, &told, &e);
    if (s == INL_OK && runs_jit(&told)) s = ask_jit(&w, &told, &e);
    else if (s == INL_OK) s = live_apart(w.pid, ask, &w, NULL, 0, &e);
    if (s != INL_OK) cli_say("%s: %s", names[wish], e.text);
    else if (wish == LIVE_LEAVE) cli_say("%s has left process %d", last_part(told.tool), w.pid);
    live_told_free(&told);
    return s == INL_OK ? EXIT_OK : EXIT_FAILED;
}

int cli_detach(int argc, char **argv) { return ask_for(argc, argv, LIVE_LEAVE); }
int cli_report(int argc, char **argv) { return ask_for(argc, argv, LIVE_REPORT); }

/* --- ps --- */

/* Of the file alone: a static program has no other sources of names. */
static void put_user(uint64_t user)
{
    FILE *f = fopen("/etc/passwd", "re");
    const struct passwd *p = NULL;
    while (f && (p = fgetpwent(f)) && p->pw_uid != user) {}
    if (p) printf("%-10s ", p->pw_name);
    else printf("%-10llu ", (unsigned long long)user);
    if (f) fclose(f);
}

static void put_time(uint64_t seconds)
{
    time_t at = (time_t)seconds;
    char text[32] = "?";
    struct tm local;
    if (localtime_r(&at, &local)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    printf("%-19s  ", text);
}

static void put_program(pid_t pid)
{
    char path[32], name[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t n = readlink(path, name, sizeof name - 1);
    name[n > 0 ? n : 0] = 0;
    printf("%-16s ", last_part(name));
}

static void put_tool(const live_told *told)
{
    char who[128];
    live_holder_say(told, who, sizeof who);
    printf("%s%s%s", last_part(told->tool), *told->options ? " " : "", told->options);
    if (told->record->is_mutators) printf("%s", who + strlen(last_part(told->tool)));
    putchar('\n');
}

static int is_number(const struct dirent *d) { return isdigit((unsigned char)d->d_name[0]); }
static int by_number(const struct dirent **a, const struct dirent **b)
{
    return atoi((*a)->d_name) - atoi((*b)->d_name);
}

int cli_ps(int argc, char **argv)
{
    if (argc > 1) {
        bool help = argc == 2 && !strcmp(argv[1], "--help");
        fputs("usage: inlay ps\nProcesses with a tool inside that inlay attach or inlay run has put there, or code of "
              "a mutator "
              "(inlay count,\n"
              "break, tee, snippet), as far as you may look at them: the process, who did it, when, the program, the "
              "tool\n"
              "and its options; of mutators their process, and whether it has ended. inlay detach takes out what is "
              "left.\n",
              help ? stdout : stderr);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    struct dirent **list;
    int n = scandir("/proc", &list, is_number, by_number);
    if (n < 0) {
        cli_say("ps: cannot read /proc: %s", strerror(errno));
        return EXIT_FAILED;
    }
    printf("%7s  %-10s %-19s  %-16s %s\n", "PID", "BY", "SINCE", "PROGRAM", "TOOL");
    for (int i = 0; i < n; i++) {
        live_told told;
        inl_error e;
        pid_t pid = atoi(list[i]->d_name);
        free(list[i]);
        if (live_record_read(pid, &told, &e) != INL_OK) continue;
        printf("%7d  ", pid);
        put_user(told.record->user);
        put_time(told.record->seconds);
        put_program(pid);
        put_tool(&told);
        live_told_free(&told);
    }
    free(list);
    return EXIT_OK;
}
