/* Inserts an addition at the entries of so many procedures of a process, in one commit: for bench/live.py. Prints how
 * many, and how many seconds it took from the attach to the commit's end. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    if (argc != 3) return 2;
    double began = now();
    inlay_process *p = inlay_process_attach(atoi(argv[1]));
    long *word = inlay_alloc(sizeof *word);
    int wanted = atoi(argv[2]), count = 0;
    if (!p || !word) return 1;
    for (inlay_image *i = inlay_process_image_first(p); i && count < wanted; i = inlay_image_next(i))
        for (inlay_proc *proc = inlay_image_proc_first(i); proc && count < wanted; proc = inlay_proc_next(proc)) {
            inlay_expr add = inlay_atomic_add(inlay_pointer(word), inlay_const(1), 8);
            count += inlay_insert(inlay_proc_entry(proc), add) != NULL;
        }
    if (!inlay_process_commit(p)) return fprintf(stderr, "%s\n", inlay_process_error()), 1;
    printf("%d %.4f\n", count, now() - began);
    return !inlay_process_let_go(p);
}
