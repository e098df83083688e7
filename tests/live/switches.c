/* A mutator that counts entries and blocks of a procedure under a switch each, and obeys lines:
 *
 *     entry on|off | blocks on|off        the switches
 *     toggle N                            blocks, N times off and on; answers nanoseconds for each
 *     again                               both are made anew, in another piece
 *     read                                answers entries, blocks */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inlay_process *process;
static inlay_proc *proc;
static inlay_switch *entry, *blocks;
static long *entries, *passed;

static void need(bool good, const char *what)
{
    if (good) return;
    printf("no %s: %s\n", what, inlay_process_error());
    exit(1);
}

static inlay_expr one_more(long *of) { return inlay_atomic_add(inlay_pointer(of), inlay_const(1), 8); }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double toggle(long times)
{
    double began = now();
    for (long k = 0; k < times; k++) need(inlay_switch_set(blocks, k & 1), "toggle");
    return (now() - began) / (double)times;
}

/* At the head of its loop, which is the hottest place. */
static void begin(int pid, const char *name)
{
    process = inlay_process_attach(pid);
    need(process, "attach");
    for (inlay_image *i = inlay_process_image_first(process); i && !proc; i = inlay_image_next(i))
        proc = inlay_image_proc_named(i, name);
    need(proc, "proc");
    entry = inlay_switch_new(false), blocks = inlay_switch_new(false);
    entries = inlay_alloc(sizeof *entries), passed = inlay_alloc(sizeof *passed);
    need(inlay_insert(inlay_proc_entry(proc), inlay_switched(entry, one_more(entries))), "insert");
    for (inlay_block *b = inlay_proc_block_first(proc); b; b = inlay_block_next(b))
        if (inlay_block_flags(b) & INLAY_BLOCK_LOOP_HEAD)
            need(inlay_insert(inlay_block_entry(b), inlay_switched(blocks, one_more(passed))), "insert");
    need(inlay_process_commit(process), "commit");
    need(!inlay_proc_refused(proc), "place");
}

static void obey(const char *word, const char *rest)
{
    double each = 0;
    if (!strcmp(word, "entry")) need(inlay_switch_set(entry, !strcmp(rest, "on")), word);
    if (!strcmp(word, "blocks")) need(inlay_switch_set(blocks, !strcmp(rest, "on")), word);
    if (!strcmp(word, "toggle")) each = toggle(atol(rest));
    if (!strcmp(word, "again"))
        need(inlay_insert(inlay_proc_exit(proc), one_more(inlay_alloc(8))) && inlay_process_commit(process), word);
    if (!strcmp(word, "read")) {
        long both[2] = {0};
        need(inlay_process_read(process, &both[0], (uintptr_t)entries, 8) == 8, word);
        need(inlay_process_read(process, &both[1], (uintptr_t)passed, 8) == 8, word);
        printf("%ld %ld\n", both[0], both[1]);
    } else {
        printf("%.1f\n", each);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[64], word[32], rest[32];
    inlay_mutator(&argc, &argv);
    begin(atoi(argv[1]), argv[2]);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%31s %31s", word, rest) >= 1) obey(word, rest);
    return 0;
}
