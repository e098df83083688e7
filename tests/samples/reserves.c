/* Reserves a terabyte and a half in large pieces: each can be protected, used, cut and moved, wherever the kernel puts
 * it. `reserves eight`: eight terabytes, which are whole after a line of input (a tool has come and gone meanwhile).
 * `reserves beside`: the room below its own code, as those take it who translate and want their code to be near: the
 * nearest while another thread runs, more than that when it is alone. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECES = 16, MB = 1 << 20 };
static const size_t large = 100ull << 30;

static char *reserve(size_t size)
{
    char *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) exit(2);
    return p;
}

static int use(char *p)
{
    if (mprotect(p, MB, PROT_READ | PROT_WRITE)) return 1;
    p[5] = 1;
    if (munmap(p + large - MB, MB)) return 2;
    char *end = mmap(p + large - MB, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                     0);
    if (end != p + large - MB) return 3;
    end[MB - 1] = 1;
    return 0;
}

static int is_kept(void)
{
    const size_t all = 8ull << 40;
    char line[80], *p = reserve(all);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 2;
    puts(madvise(p, all, MADV_DODUMP) ? "not kept" : "kept");
    return 0;
}

/* Where this program begins, by the list of its mappings; behind the end of what is below. */
static char *first_byte(char **below)
{
    char line[4200], file[4096];
    uintptr_t low, high, last = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    ssize_t n = readlink("/proc/self/exe", file, sizeof file - 1);
    if (!maps || n <= 0) exit(2);
    file[n] = 0;
    while (fgets(line, sizeof line, maps) && sscanf(line, "%lx-%lx", &low, &high) == 2) {
        if (strstr(line, file)) break;
        last = high;
    }
    fclose(maps);
    *below = (char *)last;
    return (char *)low;
}

static unsigned take(char *low, size_t size, int flags)
{
    char *p = mmap(low, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (p != low) return 1;
    p[0] = p[size - 1] = 1;
    return munmap(p, size) != 0;
}

static atomic_int stage;

static void *busy(void *arg)
{
    for (stage = 1; stage == 1;)
        if (stage > 2) return NULL;
    return arg;
}

static unsigned take_all(char *low_end, char *high_end, size_t most)
{
    unsigned wrong = 0;
    for (size_t size = 64 * MB; size <= most && size < (size_t)(high_end - low_end); size += 64 * MB)
        wrong += take(high_end - size, size, size & 64 * MB ? MAP_FIXED : MAP_FIXED_NOREPLACE);
    return wrong;
}

static int is_beside(void)
{
    pthread_t other;
    char *below, *program = first_byte(&below);
    if (pthread_create(&other, NULL, busy, NULL)) return 2;
    while (!stage) sched_yield();
    unsigned wrong = take_all(below, program, 960ul * MB);
    stage = 2;
    pthread_join(other, NULL);
    printf("%u, %u wrong\n", wrong, take_all(below, program, 2048ul * MB));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "eight")) return is_kept();
    if (argc > 1 && !strcmp(argv[1], "beside")) return is_beside();
    char *pieces[PIECES];
    int wrong = 0, sum = 0;
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = i % 2 ? reserve(large) : mremap(reserve(MB), MB, large, MREMAP_MAYMOVE);
        if (pieces[i] == MAP_FAILED) return 2;
        wrong += use(pieces[i]);
    }
    for (int i = 0; i < PIECES; i++) sum += pieces[i][5] + pieces[i][large - 1];
    for (int i = 0; i < PIECES; i++) wrong += munmap(pieces[i], large) != 0;
    printf("%d wrong, %d\n", wrong, sum);
    return 0;
}
