/* The first line of what a program prints. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child. */
static void become(char *const argv[], bool quiet, int out)
{
    int nowhere = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    bool good = dup2(out, STDOUT_FILENO) >= 0 && (!quiet || dup2(nowhere, STDERR_FILENO) >= 0);
    if (good) execvp(argv[0], argv);
    _exit(127);
}

bool cli_answer(char *const argv[], bool quiet, char *line, size_t size)
{
    int ends[2];
    size_t n = 0;
    ssize_t got;
    line[0] = 0;
    if (pipe2(ends, O_CLOEXEC)) return false;
    pid_t child = fork();
    if (child == 0) become(argv, quiet, ends[1]);
    close(ends[1]);
    while (child > 0 && n < size - 1 && (got = read(ends[0], line + n, size - 1 - n)) > 0) n += (size_t)got;
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    return n > 0;
}
