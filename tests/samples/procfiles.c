/* The process's own maps and smaps, opened in each of the ways there are: they say the same, name no
 * file that the program does not know, and hold no mapping that is writable and executable. And the auxiliary vector as
 * the file has it, which is that on the stack; and the command line under titles that are written over it. What is kept
 * open and read again from its beginning says what is so by then. */
#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[1 << 20], first[1 << 16], ranges[1 << 16];

static long load(int fd)
{
    size_t size = 0;
    if (fd < 0) return -1;
    for (ssize_t n; (n = read(fd, text + size, sizeof text - 1 - size)) > 0;) size += (size_t)n;
    text[size] = 0;
    close(fd);
    return (long)size;
}

/* "low-high" of each mapping into `ranges`; smaps has lines that begin with capitals in between. */
static void list_ranges(void)
{
    size_t at = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line >= 'A' && *line <= 'Z') continue;
        size_t n = strcspn(line, " ");
        if (at + n + 2 > sizeof ranges) exit(1);
        memcpy(ranges + at, line, n);
        ranges[at + n] = '\n';
        at += n + 1;
    }
    ranges[at] = 0;
}

static void compare(const char *way, int fd)
{
    if (load(fd) <= 0) {
        printf("%s: nothing\n", way);
        return;
    }
    list_ranges();
    printf("%s: %s\n", way, strcmp(ranges, first) ? "differs" : "the same");
}

static int open_by_how(int folder, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

static void list_names(void)
{
    char known[32][64];
    int count = 0, both = 0;
    load(open("/proc/self/maps", O_RDONLY));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *slash = strrchr(line, '/'), *name = slash ? slash + 1 : strchr(line, '[');
        both += strstr(line, " rwx") != NULL;
        int k = 0;
        while (name && k < count && strcmp(known[k], name)) k++;
        if (!name || k < count || count == 32) continue;
        snprintf(known[count++], 64, "%s", name);
        if (slash) printf("file %s\n", name);
    }
    printf("writable and executable %d\n", both);
}

/* Each mapping's counts, none of which is more than its size, in smaps' columns. */
static void check_counts(void)
{
    unsigned long low = 0, high = 0, number, keys = 0, first_keys = 0;
    int wrong = 0, more = 0, odd = 0, uneven = 0;
    load(open("/proc/self/smaps", O_RDONLY));
    for (char *line = strtok(text, "\n"), key[64]; line; line = strtok(NULL, "\n")) {
        if (*line < 'A' || *line > 'Z') {
            if (sscanf(line, "%lx-%lx", &low, &high) != 2) odd++;
            if (first_keys && keys != first_keys) uneven++;
            if (!first_keys) first_keys = keys;
            keys = 0;
            continue;
        }
        keys++;
        if (!strstr(line, " kB")) continue;
        if (sscanf(line, "%63[^:]: %lu", key, &number) != 2 || strlen(line) != 27) odd++;
        else if (!strcmp(key, "Size")) wrong += number != (high - low) >> 10;
        else if (!strstr(key, "PageSize")) more += number > (high - low) >> 10;
    }
    printf("counts: wrong %d, too much %d, odd %d, uneven %d\n", wrong, more, odd, uneven);
}

static void check_vector(void)
{
    extern char **environ;
    char **e = environ;
    while (*e) e++;
    const Elf64_auxv_t *there = (const void *)(e + 1);
    size_t n = 0, size = (size_t)load(open("/proc/self/auxv", O_RDONLY));
    while (there[n].a_type != AT_NULL) n++;
    n = (n + 1) * sizeof *there;
    printf("vector %d\n", size >= n && memcmp(text, there, n) == 0);
}

/* One longer than the arguments, which ends in the environment, and one that is shorter. */
static void check_titles(char *arguments)
{
    long length = (long)strlen(arguments);
    memset(arguments, 't', (size_t)length + 3);
    arguments[length + 3] = 0;
    long size = load(open("/proc/self/cmdline", O_RDONLY));
    printf("long title %d\n", size == length + 4 && !strcmp(text, arguments));
    memset(arguments, 0, (size_t)length + 1);
    *arguments = 's';
    size = load(open("/proc/self/cmdline", O_RDONLY));
    printf("short title %d\n", size == length + 1 && !strcmp(text, "s"));
}

static long number_in(int fd, const char *name, int base)
{
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, name);
    return line ? strtol(line + strlen(name), NULL, base) : -1;
}

static int is_mapped(int fd, uintptr_t at)
{
    char range[32];
    size_t size = 0;
    struct iovec part;
    lseek(fd, 0, SEEK_SET);
    for (ssize_t n = 1; n > 0; size += (size_t)n) {
        part = (struct iovec){text + size, sizeof text - 1 - size};
        n = readv(fd, &part, 1);
        if (n < 0) return -1;
    }
    text[size] = 0;
    snprintf(range, sizeof range, "%lx-", (long)at);
    return strstr(text, range) != NULL;
}

static void read_again(void)
{
    enum { ROOM = 4096, HELD = 1 << (SIGUSR2 - 1) };
    sigset_t set;
    int status = open("/proc/self/status", O_RDONLY), maps = open("/proc/self/maps", O_RDONLY), other;
    char *page = mmap(NULL, 3 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + ROOM, ROOM, PROT_READ);
    printf("held %d, mapped %d", (number_in(status, "SigBlk:", 16) & HELD) != 0,
           is_mapped(maps, (uintptr_t)page + ROOM));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    munmap(page, 3 * ROOM);
    printf(", then %d %d", (number_in(status, "SigBlk:", 16) & HELD) != 0, is_mapped(maps, (uintptr_t)page + ROOM));
    fflush(stdout);
    pid_t parent = getpid(), child = fork();
    if (child == 0) _exit(number_in(status, "\nPid:", 10) == parent);
    waitpid(child, &other, 0);
    printf(", a child reads of its parent %d", WEXITSTATUS(other));
    close(status);
    other = open("/proc/self/comm", O_RDONLY);
    printf(", of another file %zd\n", read(other, text, 5));
    close(other);
    close(maps);
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[64];
    setvbuf(stdout, NULL, _IOLBF, 4096);
    list_names();
    load(open("/proc/self/maps", O_RDONLY));
    list_ranges();
    strcpy(first, ranges);
    int folder = open("/proc/self", O_RDONLY | O_DIRECTORY), proc = open("/proc", O_PATH | O_DIRECTORY);
    int maps = open("/proc/self/maps", O_RDONLY);
    printf("can be written to %d\n", fcntl(maps, F_GETFL) & O_ACCMODE || write(maps, "", 1) >= 0);
    compare("again", maps);
    compare("thread-self", open("/proc/thread-self/maps", O_RDONLY));
    compare("from /proc/self", openat(folder, "maps", O_RDONLY));
    compare("from /proc", openat(proc, "self/maps", O_RDONLY));
    compare("roundabout", open("/proc/../proc/self/task/../maps", O_RDONLY));
    snprintf(path, sizeof path, "/proc/%d/task/%d/maps", getpid(), getpid());
    compare("by numbers", open(path, O_RDONLY));
    compare("openat2", open_by_how(folder, "maps"));
    compare("smaps", open("/proc/self/smaps", O_RDONLY));
    compare("smaps from /proc/self", openat(folder, "smaps", O_RDONLY));
    check_counts();
    check_vector();
    read_again();
    if (chdir("/proc/self") == 0) compare("working folder", open("maps", O_RDONLY));
    printf("no such file %d\n", openat(folder, "nonesuch/maps", O_RDONLY));
    check_titles(argv[0]);
    return 0;
}
