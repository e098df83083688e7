/* The launcher, with the null tool of this build: what the program sees of its own process must be
 * what it sees natively, and what cannot be started must be told in one line. Everything is done twice:
 * with ptrace and without. */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char tools[PATH_MAX], tool[PATH_MAX + 8];
static bool without_ptrace;

typedef struct outcome {
    int status;
    pid_t pid;
    char out[8192], err[2048];
} outcome;

static void read_all(int fd, char *to, size_t size)
{
    size_t n = 0;
    ssize_t got;
    while (n + 1 < size && (got = read(fd, to + n, size - 1 - n)) > 0) n += (size_t)got;
    to[n] = 0;
    close(fd);
}

/* Short outputs only: standard error is read after standard output. */
static void run(char *const argv[], outcome *o)
{
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    o->pid = fork();
    if (o->pid == 0) {
        alarm(60);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execvp(argv[0], argv);
        _exit(99);
    }
    close(out[1]);
    close(err[1]);
    read_all(out[0], o->out, sizeof o->out);
    read_all(err[0], o->err, sizeof o->err);
    assert_int_equal(waitpid(o->pid, &o->status, 0), o->pid);
}

static void under(const char *which, outcome *o, char *const argv[])
{
    char path[PATH_MAX + 16], *full[32];
    int n = 0;
    snprintf(path, sizeof path, "%s/%s", tools, which);
    full[n++] = path;
    if (without_ptrace) full[n++] = "--no-ptrace";
    while (*argv) full[n++] = *argv++;
    full[n] = NULL;
    run(full, o);
}

#define RUN(o, ...)       run((char *[]){__VA_ARGS__, NULL}, o)
#define NULL_TOOL(o, ...) under("null", o, (char *[]){__VA_ARGS__, NULL})

static void refuses(int status, const char *text, char *const argv[])
{
    outcome o;
    under("null", &o, argv);
    assert_true(WIFEXITED(o.status));
    if (WEXITSTATUS(o.status) != status || !strstr(o.err, text))
        fail_msg("status %d instead of %d, '%s' instead of '%s'", WEXITSTATUS(o.status), status, o.err, text);
    assert_string_equal(o.out, "");
}
#define REFUSES(status, text, ...) refuses(status, text, (char *[]){__VA_ARGS__, NULL})

static void wrong_use(void **state)
{
    (void)state;
    REFUSES(2, "no program named", "--");
    REFUSES(2, "unknown option '--nonsense'", "--nonsense", "ls");
    REFUSES(2, "lacks its value", "-o");
    REFUSES(2, "is not one of text, json", "--format=verse", "ls");
    REFUSES(2, "unknown domain", "--log=nonsense", "ls");
    REFUSES(1, "not found", "no-such-program");
    REFUSES(1, "is a directory", "/tmp");
    REFUSES(1, "not executable", "/etc/passwd");
    REFUSES(1, "cannot write", "-o", "/nonexistent/out", "ls");
}

static void status_and_death(void **state)
{
    (void)state;
    outcome o;
    NULL_TOOL(&o, "sh", "-c", "exit 7");
    assert_true(WIFEXITED(o.status) && WEXITSTATUS(o.status) == 7);
    NULL_TOOL(&o, "sh", "-c", "kill -TERM $$");
    assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGTERM);
    NULL_TOOL(&o, "true");
    assert_int_equal(o.status, 0);
    assert_string_equal(o.err, "");
}

/* Runs a shell command natively and under the tool; the outputs must be equal. */
static void same(const char *command)
{
    outcome native, mine;
    RUN(&native, "/bin/sh", "-c", (char *)command);
    NULL_TOOL(&mine, "/bin/sh", "-c", (char *)command);
    assert_int_equal(mine.status, native.status);
    assert_string_equal(mine.out, native.out);
    assert_string_equal(mine.err, native.err);
}

static void process_looks_native(void **state)
{
    (void)state;
    outcome o;
    char expected[64];
    NULL_TOOL(&o, "/bin/sh", "-c", "echo $$ $PPID");
    snprintf(expected, sizeof expected, "%d %d\n", (int)o.pid, (int)getpid());
    assert_string_equal(o.out, expected);
    same("readlink /proc/self/exe");
    same("ls /proc/self/fd | wc -l");
    same("grep -E '^(Name|TracerPid|Threads|Sig|Shd|NoNewPrivs|Seccomp):' /proc/self/status");
    same("set -- $(cat /proc/$$/task/$$/children); echo $#");
    same("env | grep -v '^_=' | sort");
    same("trap '' INT USR1; grep SigIgn /proc/self/status");
    if (!without_ptrace) same("tr '\\0' '\\n' < /proc/self/cmdline");
}

static void pipes_end(void **state)
{
    (void)state;
    outcome o;
    NULL_TOOL(&o, "sh", "-c", "yes | head -2; seq 5 | wc -l");
    assert_string_equal(o.out, "y\ny\n5\n");
    same("exec >&-; cat /dev/null");
}

static void first_argument_is_kept(void **state)
{
    (void)state;
    outcome o;
    NULL_TOOL(&o, "bash", "-c", "exec -a strange sh -c 'echo $0'");
    assert_string_equal(o.out, "strange\n");
}

static unsigned count_reports(const char *folder, const char *needle)
{
    char command[512];
    snprintf(command, sizeof command, "cat %s/r* | grep -c '%s'", folder, needle);
    FILE *f = popen(command, "r");
    unsigned n = 0;
    assert_true(f && fscanf(f, "%u", &n) == 1);
    pclose(f);
    return n;
}

static void one_report_a_process(void **state)
{
    (void)state;
    char folder[] = "/tmp/inlay-launch-XXXXXX", file[64], command[128];
    outcome o;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/r", folder);
    under("inscount", &o, (char *[]){"-o", file, "sh", "-c", "(true); cd /; /bin/true; echo done", NULL});
    assert_string_equal(o.out, "done\n");
    assert_string_equal(o.err, "");
    assert_int_equal(count_reports(folder, "^sh: [0-9]* instructions"), 2);
    assert_int_equal(count_reports(folder, "^true: [0-9]* instructions"), 1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static int find_tools(void **state)
{
    (void)state;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return -1;
    self[n] = 0;
    if ((size_t)snprintf(tools, sizeof tools, "%s/../../tools", dirname(self)) >= sizeof tools) return -1;
    snprintf(tool, sizeof tool, "%s/null", tools);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_use), cmocka_unit_test(status_and_death),       cmocka_unit_test(process_looks_native),
        cmocka_unit_test(pipes_end), cmocka_unit_test(first_argument_is_kept), cmocka_unit_test(one_report_a_process),
    };
    if (find_tools(NULL) != 0 || access(tool, X_OK) != 0) {
        puts("the tools are not built here");
        return 77; /* skipped */
    }
    int failed = cmocka_run_group_tests_name("with ptrace", tests, NULL, NULL);
    without_ptrace = true;
    return failed + cmocka_run_group_tests_name("without ptrace", tests, NULL, NULL);
}
