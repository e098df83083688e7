/* calltrace: system calls with their names, arguments and answers; of paths the text.
 *
 *     openat(-100, "/etc/passwd", 0x80000, 0, 0, 0) = 3
 *
 * A call that does not come back (exit_group) has no answer. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 6, PATH = 256 };

/* Which argument of a call is a path. */
static const struct {
    const char *name;
    unsigned argument;
} paths[] = {{"open", 0},   {"openat", 1},     {"access", 0},     {"stat", 0},     {"lstat", 0},    {"newfstatat", 1},
             {"execve", 0}, {"readlink", 0},   {"readlinkat", 1}, {"unlink", 0},   {"unlinkat", 1}, {"chdir", 0},
             {"mkdir", 0},  {"faccessat2", 1}, {"statx", 1},      {"faccessat", 1}};

static inlay_local *lines; /* what a thread has begun to say */
static uint64_t only = UINT64_MAX;
static const char *wanted;

static int path_of(const char *name)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (!strcmp(paths[i].name, name)) return (int)paths[i].argument;
    return -1;
}

static bool is_wanted(const inlay_syscall *s) { return only == UINT64_MAX || only == (uint64_t)s->number; }

/* In one piece, whatever other threads say meanwhile. */
static void put(char *line, const char *end)
{
    strcat(line, end);
    inlay_write(line, strlen(line));
    line[0] = 0;
}

static void entry(inlay_thread *t, inlay_syscall *s, void *arg)
{
    (void)arg;
    char *line = inlay_local_of(lines, t), text[PATH], number[24];
    const char *name = inlay_syscall_name(s->number);
    if (!is_wanted(s)) return;
    if (!name) snprintf(number, sizeof number, "syscall_%ld", s->number);
    int at = sprintf(line, "%s(", name ? name : number), path = name ? path_of(name) : -1;
    for (int i = 0; i < SHOWN; i++) {
        bool readable = i == path && inlay_memory_string(text, (uint64_t)s->args[i], sizeof text) >= 0;
        const char *comma = i ? ", " : "";
        long v = s->args[i] >> 8 == 0xffffff ? (int)s->args[i] : s->args[i]; /* AT_FDCWD and its like */
        if (readable) at += sprintf(line + at, "%s\"%s\"", comma, text);
        else at += sprintf(line + at, v >= -100 && v < 10000 ? "%s%ld" : "%s%#lx", comma, v);
    }
    strcat(line, ")");
    if (s->number == inlay_syscall_number("exit_group") || s->number == inlay_syscall_number("exit")) put(line, "\n");
}

static void leave(inlay_thread *t, inlay_syscall *s, void *arg)
{
    (void)arg;
    char *line = inlay_local_of(lines, t), end[64];
    if (!line[0]) return; /* it began before the tool did */
    bool failed = s->result < 0 && s->result > -4096;
    if (failed) snprintf(end, sizeof end, " = %ld (%s)\n", s->result, strerror((int)-s->result));
    else snprintf(end, sizeof end, s->result < 1 << 20 ? " = %ld\n" : " = %#lx\n", s->result);
    put(line, end);
}

int main(int argc, char **argv)
{
    inlay_option_string(&wanted, "call", 'c', "only this system call");
    inlay_init(&argc, &argv, "system calls: names, arguments, answers");
    if (wanted) only = (uint64_t)inlay_syscall_number(wanted);
    lines = inlay_local_new(PATH + 512);
    inlay_on_syscall_entry(entry, NULL);
    inlay_on_syscall_exit(leave, NULL);
    return inlay_start();
}
