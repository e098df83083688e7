/* The launcher's part of --gdb: a process beside the program that passes bytes on between it and gdb.
 *
 *     gdb  <---- socket ---->  relay  <---- socketpair ---->  the thread of the program that has stopped
 *
 * The program reads only while it stands still; so ^C, a byte outside of all packets, is for the relay, which sends the
 * program a nudge, again and again until there is an answer. A process that has just exec'ed has no handler for that
 * yet, and would end: it is looked whether it has. When the program has gone without a word (SIGKILL) the relay says so
 * to gdb; when gdb has gone the program finds its end closed, and goes on alone.
 *
 * The relay is nobody's child that the program or its parent knows of, and ends with the first of the two.
 *
 * --gdb alone: gdb takes the launcher's place, and the program is its child, in a process group of its own: ^C is
 * gdb's, and the terminal's input too. */
#include "tool/gdb.h"
#include "base/sys.h"
#include "run/kernel.h"

#include <inlay/tool.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INTERRUPT = 3, AGAIN = 100 };
enum framing { OUTSIDE, INSIDE, FIRST_DIGIT, SECOND_DIGIT };

typedef struct relay {
    int program, listening, gdb; /* -1: not there yet */
    pid_t pid;
    enum framing from_gdb;
    int request;  /* the last ^C's number */
    bool waits;   /* for the program to stop */
    char last[4]; /* the beginning of the program's last packet */
    size_t last_size;
    enum framing from_program;
    const char *path; /* of the socket, which goes when gdb has come; NULL: none */
    char folder[32];  /* made for it, likewise */
} relay;

/* --- ^C --- */

static bool has_handler(pid_t pid)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *caught = strstr(text, "SigCgt:");
    return caught && strtoull(caught + 7, NULL, 16) & RUN_BIT(SIGSYS);
}

static void nudge(const relay *r)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSYS;
    info.si_code = RUN_NUDGE;
    info.si_value.sival_int = r->request;
    if (has_handler(r->pid)) sys_call3(SYS_rt_sigqueueinfo, r->pid, SIGSYS, (long)&info);
}

/* --- bytes --- */

static enum framing follow(enum framing f, char c)
{
    switch (f) {
    case OUTSIDE: return c == '$' ? INSIDE : OUTSIDE;
    case INSIDE: return c == '#' ? FIRST_DIGIT : INSIDE;
    case FIRST_DIGIT: return SECOND_DIGIT;
    default: return OUTSIDE;
    }
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static bool pass_to_program(relay *r)
{
    char data[4096], kept[4096];
    ssize_t n = recv(r->gdb, data, sizeof data, 0);
    size_t size = 0;
    if (n <= 0) return n < 0 && errno == EINTR;
    for (ssize_t i = 0; i < n; i++) {
        if (r->from_gdb == OUTSIDE && data[i] == INTERRUPT) {
            r->request++;
            r->waits = true;
            nudge(r);
            continue;
        }
        r->from_gdb = follow(r->from_gdb, data[i]);
        kept[size++] = data[i];
    }
    return write_all(r->program, kept, size);
}

/* Remembers how the last packet begins. */
static void look(relay *r, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        enum framing before = r->from_program;
        r->from_program = follow(before, data[i]);
        if (before == OUTSIDE && r->from_program == INSIDE) r->last_size = 0;
        else if (before == INSIDE && r->last_size < sizeof r->last) r->last[r->last_size++] = data[i];
        if (before == SECOND_DIGIT) r->waits = false;
    }
}

static bool pass_to_gdb(relay *r)
{
    char data[4096];
    ssize_t n = recv(r->program, data, sizeof data, 0);
    if (n <= 0) return n < 0 && errno == EINTR;
    look(r, data, (size_t)n);
    return r->gdb < 0 || write_all(r->gdb, data, (size_t)n);
}

static bool is_dead(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return true;
    text[n] = 0;
    const char *behind = strrchr(text, ')');
    return !behind || (behind[2] == 'Z') || behind[2] == 'X';
}

/* The program's end is closed. */
static void say_end(const relay *r)
{
    bool said = r->last_size && (r->last[0] == 'W' || r->last[0] == 'X');
    for (int i = 0; i < 100 && !said && !is_dead(r->pid); i++) usleep(10000);
    if (r->gdb >= 0 && !said && is_dead(r->pid)) write_all(r->gdb, "$X09#c1", 7);
}

static void forget_path(const relay *r)
{
    if (r->path) unlink(r->path);
    if (*r->folder) rmdir(r->folder);
}

static void accept_gdb(relay *r)
{
    int one = 1;
    r->gdb = accept4(r->listening, NULL, NULL, SOCK_CLOEXEC);
    if (r->gdb < 0) return;
    setsockopt(r->gdb, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* of others: refused */
    close(r->listening);
    r->listening = -1;
    forget_path(r);
}

static void relay_main(relay *r)
{
    for (;;) {
        struct pollfd p[2] = {{r->program, POLLIN, 0}, {r->gdb < 0 ? r->listening : r->gdb, POLLIN, 0}};
        int n = poll(p, 2, r->waits ? AGAIN : -1);
        if (n < 0 && errno != EINTR) break;
        if (n == 0 && r->waits) nudge(r);
        if (n <= 0) continue;
        if (p[0].revents && !pass_to_gdb(r)) {
            say_end(r);
            break;
        }
        if (!p[1].revents) continue;
        if (r->gdb < 0) accept_gdb(r);
        else if (!pass_to_program(r)) break;
    }
    if (r->gdb < 0) forget_path(r);
    _exit(0);
}

/* --- where gdb comes --- */

static int listen_at_path(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) tool_fail(TOOL_EXIT_FAILED, "--gdb=unix:%s: the path is too long", path);
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t before = umask(077);
    bool good = fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1) == 0;
    umask(before);
    if (!good) tool_fail(TOOL_EXIT_FAILED, "--gdb=unix:%s: cannot listen there: %s", path, strerror(errno));
    return fd;
}

/* For this machine alone: whoever comes may do what the user may. */
static int listen_at_port(const char *text)
{
    char *end;
    int one = 1;
    unsigned long port = strtoul(*text == ':' ? text + 1 : text, &end, 10);
    if (*end || port > 65535)
        tool_fail(TOOL_EXIT_USAGE, "--gdb=%s: must be a port of this machine, or unix:PATH", text);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        tool_fail(TOOL_EXIT_FAILED, "--gdb=%s: cannot listen there: %s", text, strerror(errno));
    tool_say("waiting for gdb: target remote :%u", ntohs(a.sin_port));
    return fd;
}

/* --- processes --- */

static pid_t fork_quietly(void) { return (pid_t)sys_call(SYS_clone, 0, 0, 0, 0, 0, 0); }

/* The relay is the child of a process that has ended; neither leaves a trace. */
static int start_relay(relay *r)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        tool_fail(TOOL_EXIT_FAILED, "--gdb: no way to the program: %s", strerror(errno));
    fflush(NULL);
    r->pid = getpid();
    pid_t between = fork_quietly();
    if (between == 0) {
        if (fork_quietly() != 0) _exit(0);
        setsid();
        int keep[] = {pair[0], r->listening};
        for (int fd = 0; fd < 4096; fd++)
            if (fd != keep[0] && fd != keep[1]) close(fd);
        r->program = pair[0];
        relay_main(r);
    }
    while (between > 0 && waitpid(between, NULL, __WALL) < 0 && errno == EINTR) {}
    if (between < 0) tool_fail(TOOL_EXIT_FAILED, "--gdb: cannot fork");
    close(pair[0]);
    close(r->listening);
    return pair[1];
}

static void become_gdb(const relay *r, const char *path)
{
    char target[256];
    snprintf(target, sizeof target, "target remote %s", path);
    char *argv[] = {"gdb", "-q", "-iex", "set sysroot /", "-ex", target, NULL};
    execvp("gdb", argv);
    unlink(path);
    rmdir(r->folder);
    tool_fail(TOOL_EXIT_FAILED, "cannot start gdb: %s; --gdb=PORT and --gdb=unix:PATH wait for one", strerror(errno));
}

/* Returns in the child, which becomes the program. */
static void start_gdb(relay *r)
{
    static char path[128];
    strcpy(r->folder, "/tmp/inlay-gdb-XXXXXX");
    if (!mkdtemp(r->folder)) tool_fail(TOOL_EXIT_FAILED, "--gdb: cannot make a folder in /tmp: %s", strerror(errno));
    snprintf(path, sizeof path, "%s/socket", r->folder);
    r->listening = listen_at_path(path);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) tool_fail(TOOL_EXIT_FAILED, "--gdb: cannot fork: %s", strerror(errno));
    if (child) become_gdb(r, path);
    setpgid(0, 0);
    r->path = path;
}

int gdb_launch(const char *where)
{
    relay r = {.program = -1, .listening = -1, .gdb = -1, .request = JIT_NUDGE_FIRST - 1};
    if (!*where) {
        start_gdb(&r);
    } else if (!strncmp(where, "unix:", 5)) {
        r.listening = listen_at_path(where + 5);
        r.path = where + 5;
    } else {
        r.listening = listen_at_port(where);
    }
    return start_relay(&r);
}
