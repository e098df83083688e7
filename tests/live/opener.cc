// Opens libraries and closes them as the lines of its standard input say, and tells what they answer.
#include <dlfcn.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void *opened[4];
static char rest[64];

template <typename F> static F *find(int which, const char *name)
{
    void *at = opened[which] ? dlsym(opened[which], name) : nullptr;
    if (!at) {
        printf("nothing called %s\n", name);
        exit(2);
    }
    return reinterpret_cast<F *>(at);
}

static int get(void)
{
    char line[64];
    return fgets(line, sizeof line, stdin) ? atoi(line) : -1;
}

static int close_it(int which)
{
    int status = dlclose(opened[which]);
    opened[which] = nullptr;
    return status;
}

static int child(int which, int n)
{
    int status = 0, pid = fork();
    if (!pid) {
        if (!opened[which]) opened[which] = dlopen(rest, RTLD_NOW);
        _exit(find<int(int)>(which, "library_work")(n) & 63);
    }
    waitpid(pid, &status, 0);
    return status >> 8;
}

static int throws(int which, int n)
{
    try {
        find<void(int)>(which, "library_throws")(n);
    } catch (const std::exception &e) {
        return (int)strlen(e.what());
    }
    return 0;
}

/* What may no longer open its own memory by its file, whoever runs it. */
static int drop(void)
{
    int refused = geteuid() == 0 && setuid(65534);
    return prctl(PR_SET_DUMPABLE, 0) || refused;
}

static int obey(const char *what, int which, int n)
{
    if (!strcmp(what, "open")) return (opened[which] = dlopen(rest, n ? RTLD_NOW : RTLD_LAZY)) != nullptr;
    if (!strcmp(what, "close")) return close_it(which);
    if (!strcmp(what, "work")) return find<int(int)>(which, "library_work")(n);
    if (!strcmp(what, "thread")) return find<int(int)>(which, "library_thread")(n);
    if (!strcmp(what, "reads")) return find<int(int (*)(void))>(which, "library_reads")(get);
    if (!strcmp(what, "drop")) return drop();
    if (!strcmp(what, "throw")) return throws(which, n);
    return !strcmp(what, "fork") ? child(which, n) : -1;
}

int main(void)
{
    char line[256], what[16];
    int which, n;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "%15s %d %d %63s", what, &which, &n, rest) >= 3) printf("%s %d\n", what, obey(what, which, n));
    return 6;
}
