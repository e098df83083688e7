/* The program execs another: the tool's file is executed instead, as a launcher for it, with the
 * options of the first launcher:
 *
 *     TOOL --inlay-exec-path=PATH --inlay-fds=A,B,C,D,E,F OPTIONS -- ARGV...
 *
 * What the kernel would refuse is left to it, so that the program sees the natural error; what cannot
 * carry a tool runs natively, with a notice. */
#include "tool/state.h"

#include "base/log.h"
#include "moved/moved.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tool_exec_remember(int argc, char **argv, int program)
{
    (void)argc;
    tool_command *first = &tool_now->command;
    first->argv = argv;
    first->options_end = program;
    if (program > 1 && !strcmp(argv[program - 1], "--")) first->options_end--;
}

/* --- the report of a process that goes on without the tool --- */

/* A child of vfork has none of its own: the counts are its parent's. */
void tool_exec_report(run_thread *t)
{
    tool_buffers_flush(t);
    if (t->is_vfork_child) return;
    tool_buffers_flush_others(t);
    tool_output_flush();
    int out = tool_handoff_data.fds.out;
    tool_now->size_before = out < 0 ? -1 : lseek(out, 0, SEEK_END);
    tool_sums_add();
    tool_derive_report(true);
    TOOL_CALL(ON_EXIT, void (*)(int, void *), 0);
    tool_derive_report(false);
    tool_output_flush();
    fflush(NULL);
}

void tool_exec_failed(run_thread *t)
{
    int out = tool_handoff_data.fds.out;
    if (out < 0 || t->is_vfork_child) return;
    if (tool_now->size_before < 0) tool_now->size_before = 0; /* opened for this report */
    if (ftruncate(out, tool_now->size_before) != 0) inl_log(INL_LOG_INJECT, "the output stays as it is");
}

/* --- the launcher's command line --- */

static bool is_internal(const char *option) { return !strncmp(option, "--inlay-", 8); }

/* A list of strings in one block. */
typedef struct list {
    char **items, *text; /* NULL while only the sizes are added up */
    size_t count, size;
} list;

static void add(list *l, const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (l->text) {
        l->items[l->count] = l->text;
        memcpy(l->text, a, n);
        memcpy(l->text + n, b, m + 1);
        l->text += n + m + 1;
    } else {
        l->size += n + m + 1;
    }
    l->count++;
}

/* Those of this process, or what a callback has chosen. */
static void add_options(list *l, const tool_command *first)
{
    char **chosen = tool_here.exec_options;
    if (chosen && tool_now->options.output_given) add(l, "--output=", tool_now->options.output_given);
    for (; chosen && *chosen; chosen++) add(l, *chosen, "");
    for (int i = 1; !tool_here.exec_options && i < first->options_end; i++)
        if (!is_internal(first->argv[i])) add(l, first->argv[i], "");
}

static void fill(list *l, const char *path, const char *fds, char *const *argv)
{
    const tool_command *first = &tool_now->command;
    char began[48], gdb[64];
    result_tell_beginning(began, sizeof began);
    l->count = 0;
    add(l, first->argv[0], "");
    add(l, "--inlay-exec-path=", path);
    add(l, "--inlay-fds=", fds);
    add(l, "--inlay-began=", began);
    if (tool_jit_gdb_state(gdb, sizeof gdb)) add(l, "--inlay-gdb=", gdb);
    if (moved_began_here()) add(l, "--engine=live", "");
    add_options(l, first);
    if (tool_now->options.no_ptrace) add(l, "--no-ptrace", "");
    add(l, "--", "");
    for (; argv && *argv; argv++) add(l, *argv, "");
}

static char **build(const char *path, const char *fds, char *const *argv)
{
    list l = {0};
    fill(&l, path, fds, argv);
    size_t vector = (l.count + 1) * sizeof(char *), text = l.size;
    l.items = calloc(1, vector + text);
    if (!l.items) return NULL;
    l.text = (char *)l.items + vector;
    fill(&l, path, fds, argv);
    return l.items;
}

bool inlay_exec_options(const char *const *options)
{
    list l = {0};
    if (tool_here.doing != ON_EXEC + 1) {
        tool_say_limited("inlay_exec_options is for callbacks of exec");
        return false;
    }
    for (const char *const *o = options; *o; o++) add(&l, *o, "");
    size_t vector = (l.count + 1) * sizeof(char *);
    char **block = calloc(1, vector + l.size);
    if (!block) return false;
    l = (list){.items = block, .text = (char *)block + vector};
    for (const char *const *o = options; *o; o++) add(&l, *o, "");
    free(tool_here.exec_options);
    tool_here.exec_options = block;
    return true;
}

static void keep_across_exec(int fd)
{
    if (fd >= 0) fcntl(fd, F_SETFD, 0);
}

/* "/dev/fd/7" and the like, which the first of the two execs closes. */
static bool names_closing(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (unsigned i = 0; i < 2; i++)
        if (!strncmp(path, folders[i], strlen(folders[i]))) return fcntl(atoi(path + strlen(folders[i])), F_GETFD) != 0;
    return false;
}

/* Who patches the program looks for it there by its number. */
static bool proc_counts_as_we_do(void)
{
    char number[24];
    ssize_t n = readlink("/proc/self", number, sizeof number - 1);
    number[n > 0 ? n : 0] = 0;
    return atol(number) == getpid();
}

bool tool_exec_plan(const char *path, char *const *argv, bool is_other, run_exec_plan *plan)
{
    inl_error e = {0};
    if (tool_handoff_data.fds.tool < 0) {
        tool_say("%s runs without the tool, whose file cannot be read here", path);
        return false;
    }
    program_kind kind = program_check(path, &e);
    if (kind == PROGRAM_REFUSED) return false;
    if (kind == PROGRAM_FOREIGN) {
        tool_say("%s; it runs without the tool", e.text);
        return false;
    }
    if (access("/proc/self/maps", R_OK) != 0) {
        tool_say("%s: there is no /proc here; it runs without the tool", path);
        return false;
    }
    if (moved_began_here() && !proc_counts_as_we_do()) {
        tool_say("%s: /proc is of another namespace of processes; it runs without the tool", path);
        return false;
    }
    const tool_fds *f = &tool_handoff_data.fds;
    int out = is_other ? -1 : f->out;
    char fds[80], held[32];
    if (names_closing(path)) {
        int fd = open(path, O_PATH);
        int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD, 200);
        if (fd >= 0) close(fd);
        if (high < 0) return false;
        snprintf(held, sizeof held, "/proc/self/fd/%d", high);
        path = held;
    }
    int gdb = is_other ? -1 : f->gdb;
    snprintf(fds, sizeof fds, "%d,%d,%d,%d,%d,%d", f->tool, f->err, out, f->out_dir, f->shared, gdb);
    plan->argv = build(path, fds, argv);
    if (!plan->argv) return false;
    plan->fd = f->tool;
    keep_across_exec(f->tool);
    keep_across_exec(f->err);
    keep_across_exec(out);
    keep_across_exec(f->out_dir);
    keep_across_exec(f->shared);
    keep_across_exec(gdb);
    return true;
}
