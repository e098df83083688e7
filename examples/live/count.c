/* Counts calls in a program that runs, for a while: how often each procedure named is entered.
 *
 *     inlay cc -O2 examples/live/count.c -o count
 *     ./count PID SECONDS PROC...
 *
 * A counter is a word in the process, which an instruction there adds to; nothing stops while it counts. At the end the
 * code is as it was. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct counted {
    inlay_proc *proc;
    inlay_insertion *at;
    long *calls; /* at the same address here and there */
} counted;

static int fail(const char *what)
{
    fprintf(stderr, "count: %s: %s\n", what, inlay_process_error());
    return 1;
}

static inlay_proc *find(inlay_process *p, const char *name)
{
    inlay_proc *proc = NULL;
    for (inlay_image *i = inlay_process_image_first(p); i && !proc; i = inlay_image_next(i))
        proc = inlay_image_proc_named(i, name);
    return proc;
}

static void insert(inlay_process *p, const char *name, counted *c)
{
    c->proc = find(p, name);
    c->calls = inlay_alloc(sizeof *c->calls);
    if (!c->proc) fprintf(stderr, "count: there is no procedure %s\n", name);
    if (c->proc && c->calls)
        c->at = inlay_insert(inlay_proc_entry(c->proc), inlay_atomic_add(inlay_pointer(c->calls), inlay_const(1), 8));
}

static void report(inlay_process *p, const counted *c)
{
    if (!c->at) return;
    const char *why = inlay_proc_refused(c->proc);
    if (why) printf("%12s  %s: %s\n", "-", inlay_proc_name(c->proc), why);
    else if (inlay_process_read(p, c->calls, (uintptr_t)c->calls, sizeof *c->calls))
        printf("%12ld  %s\n", *c->calls, inlay_proc_name(c->proc));
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    if (argc < 4) return fprintf(stderr, "usage: count PID SECONDS PROC...\n"), 2;
    inlay_process *p = inlay_process_attach(atoi(argv[1]));
    counted *all = calloc((size_t)argc, sizeof *all);
    if (!p) return fail("cannot attach");
    for (int k = 3; k < argc; k++) insert(p, argv[k], &all[k]);
    if (!inlay_process_commit(p)) return fail("cannot insert");
    sleep((unsigned)atoi(argv[2]));
    for (int k = 3; k < argc; k++) report(p, &all[k]);
    for (int k = 3; k < argc; k++)
        if (all[k].at) inlay_remove(all[k].at);
    if (inlay_process_is_running(p) && !inlay_process_commit(p)) return fail("cannot remove");
    return !inlay_process_let_go(p);
}
