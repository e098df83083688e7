/* A thread opens a library, calls it, closes it, and has memory of its own where it was, all the time.
 *
 *   reopens LIBRARY
 *   reopens LIBRARY unmapped      is called, then unmapped behind the linker's back, which may be met in the midst of
 *                                 that; where it was left by its calls is still known, and in its place code of the
 *                                 program's own runs and is interrupted
 *   reopens LIBRARY changes       is called all the time, as the linker changes its list and, by and by, has done so */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIZE = 16 << 10, ROUNDS = 20000, PATTERN = 0x5a };
static const char *path;
static volatile int over, wrong;

/* Jumps that are written here would be found. */
static void use(unsigned char *at)
{
    unsigned char *mine = mmap(at, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mine != at) return;
    memset(at, PATTERN, SIZE);
    for (volatile int i = 0; i < ROUNDS; i++) {}
    for (int i = 0; i < SIZE; i++) wrong += at[i] != PATTERN;
    munmap(at, SIZE);
}

static void *work(void *arg)
{
    while (!over) {
        void *library = dlopen(path, RTLD_NOW);
        int (*f)(int) = library ? (int (*)(int))dlsym(library, "plugin_work") : NULL;
        struct link_map *map;
        if (!f || dlinfo(library, RTLD_DI_LINKMAP, &map) || f(9) != f(9)) {
            const char *why = dlerror();
            printf("%s\n", !f && why ? why : "the library's procedure is another");
            wrong++;
            return arg;
        }
        unsigned char *at = (unsigned char *)map->l_addr;
        dlclose(library);
        use(at);
    }
    return arg;
}

static char left[4096];
static volatile int ticks, enough;

static void tick(int signo) { enough = (ticks += signo == SIGALRM) >= 20; }

/* In code of the program's own within the library's place, whose headers are not there. */
static int interrupted(unsigned char *at)
{
    enum { PAGE = 4096 };
    static const unsigned char loop[] = {0x83, 0x3f, 0, 0x74, 0xfb, 0xc3}; /* until the word at %rdi is not 0 */
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    unsigned char *mine = mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mine != at + PAGE) return 0;
    memcpy(mine, loop, sizeof loop);
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &often, NULL);
    ((void (*)(volatile int *))mine)(&enough);
    setitimer(ITIMER_REAL, &never, NULL);
    munmap(mine, PAGE);
    return enough;
}

static int unmapped(void)
{
    char line[16];
    void *library = dlopen(path, RTLD_NOW);
    int (*f)(int) = library ? (int (*)(int))dlsym(library, "plugin_work") : NULL;
    struct link_map *map;
    if (!f || dlinfo(library, RTLD_DI_LINKMAP, &map) || !fgets(line, sizeof line, stdin)) return 1;
    f(9);
    memcpy(left, (char *)__builtin_frame_address(0) - sizeof left, sizeof left);
    munmap((void *)map->l_addr, SIZE);
    printf(interrupted((unsigned char *)map->l_addr) ? "unmapped\n" : "never interrupted\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    printf("caught\n");
    fflush(stdout);
    _exit(5);
}

static void *calls(void *work)
{
    for (int n = 1; !over; n++) wrong += ((int (*)(int))work)(n) != n;
    return work;
}

/* The linker's own, not the program's copy of it. */
static struct r_debug *state(void)
{
    const ElfW(Dyn) *d = _DYNAMIC;
    while (d->d_tag != DT_DEBUG) d++;
    return (struct r_debug *)d->d_un.d_ptr;
}

static int changes(void)
{
    char line[16];
    void *library = dlopen(path, RTLD_NOW), *f = library ? dlsym(library, "plugin_calls") : NULL;
    pthread_t t;
    if (!f) return 1;
    pthread_create(&t, NULL, calls, f);
    state()->r_state = RT_ADD;
    if (!fgets(line, sizeof line, stdin)) return 1;
    state()->r_state = RT_CONSISTENT;
    for (int i = 0; i < 5; i++) dlclose(dlopen("libm.so.6", RTLD_NOW));
    printf("changed\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    over = 1;
    pthread_join(t, NULL);
    printf(wrong ? "%d wrong\n" : "caught\n", wrong);
    return 5;
}

int main(int argc, char *argv[])
{
    char line[16];
    pthread_t t;
    if (argc < 2) return 2;
    path = argv[1];
    if (argc > 2) return strcmp(argv[2], "changes") ? unmapped() : changes();
    pthread_create(&t, NULL, work, NULL);
    if (!fgets(line, sizeof line, stdin)) return 1;
    over = 1;
    pthread_join(t, NULL);
    printf(wrong ? "%d wrong\n" : "caught\n", wrong);
    return 5;
}
