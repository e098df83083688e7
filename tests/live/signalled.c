/* Computes the same thing twice, in memory, under a timer's signals that come every 200 microseconds; SIGTERM ends it.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { WORDS = 512 };
static uint64_t one[WORDS], two[WORDS];
static volatile sig_atomic_t ticks, ends;

static void tick(int signo) { ticks += signo == SIGALRM; }
static void end(int signo) { ends = signo; }

__attribute__((noinline)) static void work(uint64_t *at, uint64_t round)
{
    for (unsigned i = 0; i < WORDS; i++) at[i] = at[(i * 7 + round) % WORDS] * 6364136223846793005u + at[i] + round;
}

int main(void)
{
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, tick);
    signal(SIGTERM, end);
    setitimer(ITIMER_REAL, &often, NULL);
    puts("begun");
    fflush(stdout);
    for (uint64_t round = 1; !ends || ticks <= 10; round++) {
        work(one, round);
        work(two, round);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    puts(!memcmp(one, two, sizeof one) ? "the same" : "not the same");
    return 0;
}
