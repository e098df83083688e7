/* How a tool goes wrong: wrong_at(PLACE) does in the way that the environment says, BLAME=PLACE:WAY. blame.py knows
 * what is to be said of it; it finds the lines by their marks. */
#include <assert.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int zero;

static int sink(volatile char *p) { return p[0] + p[4095]; }

static int deeper(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return deeper(n + 1) + sink(room); /* mark: overflow */
}

static __attribute__((noinline)) void go_wrong(void)
{
    const char *way = strchr(getenv("BLAME"), ':') + 1;
    if (!strcmp(way, "null")) *(volatile int *)16 = 1; /* mark: null */
    if (!strcmp(way, "abort")) abort();                /* mark: abort */
    if (!strcmp(way, "exit")) exit(3);                 /* mark: exit */
    if (!strcmp(way, "zero")) exit(0);                 /* mark: zero */
    if (!strcmp(way, "loop"))
        for (;;) zero = 0; /* mark: loop */
    if (!strcmp(way, "early")) kill(getpid(), SIGTERM);
    if (!strcmp(way, "overflow")) deeper(0);
    if (!strcmp(way, "assert")) assert(zero);                         /* mark: assert */
    if (!strcmp(way, "divide")) zero = 1000 / zero;                   /* mark: divide */
    if (!strcmp(way, "library")) zero = (int)strlen(NULL + zero);     /* mark: library */
    if (!strcmp(way, "nowhere")) ((void (*)(void))(uintptr_t)zero)(); /* mark: nowhere */
}

static void wrong_at(const char *place)
{
    const char *blame = getenv("BLAME");
    size_t n = strlen(place);
    if (blame && !strncmp(blame, place, n) && blame[n] == ':') go_wrong();
}
