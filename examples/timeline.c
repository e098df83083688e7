/* timeline: how many instructions the program has executed, every so many milliseconds. A thread of the tool's own looks at a
 * counter, which costs the program nothing but the counting.
 *
 *     inlay cc -O2 examples/timeline.c -o timeline
 *     inlay run ./timeline --every=20 -o series -- gzip -k file
 *
 * A line a sample: milliseconds since the begin, instructions since the line before. The last one is what was left at the
 * end; a forked child has a file of its own. */
#include <inlay.h>

#include <stdio.h>
#include <time.h>

static uint64_t every = 10, begin, seen;
static inlay_counter instructions;

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void line(void)
{
    uint64_t sum = inlay_counter_sum(&instructions);
    fprintf(inlay_out(), "%llu %llu\n", (unsigned long long)(nanoseconds() - begin) / 1000000,
            (unsigned long long)(sum - seen));
    seen = sum;
}

/* To be there at times that do not depend on how long it takes. */
static void sample(void *arg)
{
    (void)arg;
    uint64_t step = every * 1000000, next = nanoseconds() + step;
    for (uint64_t now; inlay_worker_sleep(next > (now = nanoseconds()) ? next - now : 0);)
        if (nanoseconds() >= next) {
            line();
            next += step;
        }
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    inlay_insert(inlay_block_entry(b), inlay_count(&instructions, inlay_block_insn_count(b)));
}

/* The counters begin anew there, and no worker is there. */
static void forked(void *arg)
{
    (void)arg;
    seen = 0;
    begin = nanoseconds();
    inlay_worker_start("timeline", sample, NULL);
}

static void last(int status, void *arg)
{
    (void)status, (void)arg;
    line();
}

int main(int argc, char **argv)
{
    inlay_option_uint(&every, "every", 0, "milliseconds from line to line (default 10)");
    inlay_init(&argc, &argv, "counts instructions by time");
    if (!every) inlay_option_refuse("--every=0: at least 1");
    begin = nanoseconds();
    inlay_on_block(each_block, NULL);
    inlay_on_fork_child(forked, NULL);
    inlay_on_exit(last, NULL);
    inlay_worker_start("timeline", sample, NULL);
    return inlay_start();
}
