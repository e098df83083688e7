/* Inserts and removes the same again and again in a process, and answers what memory that has taken.
 *
 *     again PID[,PID...] CYCLES [anew]
 *
 * Counts at the entry and the exits of each procedure of the program, in each of its blocks and on a side of each of
 * its branches; anew: the process is let go after each cycle, and attached to the next one. One line each cycle:
 * kilobytes of this process in memory, what was counted in procedures and in blocks, and how many points there were. */
#include <inlay.h>
#include <inlay/loop.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST = 200000,
    PATIENCE = 100000
}; /* milliseconds: on a busy machine the process may not come to run for long */
static inlay_process *process;
static inlay_insertion *all[MOST];
static size_t count;
static struct sums {
    long procs, blocks, edges;
} * sums; /* shared with the process */

static void fail(const char *what)
{
    printf("no %s: %s\n", what, inlay_process_error());
    exit(1);
}

static void insert(inlay_point *p, long *to)
{
    if (!p || count == MOST) return;
    all[count] = inlay_insert(p, inlay_atomic_add(inlay_pointer(to), inlay_const(1), 8));
    if (all[count]) count++;
}

static void insert_in(inlay_proc *p)
{
    insert(inlay_proc_entry(p), &sums->procs);
    insert(inlay_proc_exit(p), &sums->procs);
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
        insert(inlay_block_entry(b), &sums->blocks);
        insert(inlay_block_anywhere(b), &sums->blocks); /* a second handle at the place, perhaps */
        for (unsigned k = 0; k < inlay_block_successor_count(b); k++)
            if (inlay_block_successor(b, k).kind == INLAY_EDGE_NOT_TAKEN) insert(inlay_edge_point(b, k), &sums->edges);
    }
}

static void attach(int pid)
{
    process = inlay_process_attach(pid);
    sums = process ? inlay_process_share(process, sizeof *sums) : NULL;
    if (!sums) fail("attach");
}

static void one_cycle(void)
{
    memset(sums, 0, sizeof *sums);
    count = 0;
    for (inlay_image *i = inlay_process_image_first(process); i; i = inlay_image_next(i))
        for (inlay_proc *p = inlay_image_is_main(i) ? inlay_image_proc_first(i) : NULL; p; p = inlay_proc_next(p))
            insert_in(p);
    if (!inlay_process_commit(process)) fail("commit");
    for (int k = 0; k < PATIENCE && !(sums->procs && sums->blocks && sums->edges); k++) usleep(1000);
    for (size_t k = 0; k < count; k++)
        if (!inlay_remove(all[k])) fail("remove");
    if (!inlay_process_commit(process)) fail("commit");
}

static long kilobytes(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1) fail("statm");
    fclose(f);
    return pages * (getpagesize() / 1024);
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    int pids[16], count_of_pids = 0, cycles = argc > 2 ? atoi(argv[2]) : 0;
    for (char *one = strtok(argv[1], ","); one && count_of_pids < 16; one = strtok(NULL, ","))
        pids[count_of_pids++] = atoi(one);
    for (int k = 0; k < cycles; k++) {
        if (!process) attach(pids[k % count_of_pids]);
        one_cycle();
        printf("%ld %ld %ld %ld %zu\n", kilobytes(), sums->procs, sums->blocks, sums->edges, count);
        if ((argc > 3 || k == cycles - 1) && !inlay_process_take_out(process)) fail("take out");
        if (argc > 3) process = NULL;
    }
    return 0;
}
