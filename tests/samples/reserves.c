/* Reserves a terabyte and a half in large pieces: each can be protected, used, cut and moved, wherever the kernel puts
 * it. `reserves eight`: eight terabytes, which are whole after a line of input (a tool has come and gone meanwhile). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "eight")) return is_kept();
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
