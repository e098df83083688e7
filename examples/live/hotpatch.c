/* A procedure of a running program becomes another one, of a library that is loaded for it; or, without a library, the
 * value of an expression.
 *
 *     inlay cc -O2 examples/live/hotpatch.c -o hotpatch
 *     ./hotpatch PID PROCEDURE EXPRESSION [LIBRARY]      'better_price(item, count)', 'count * 3', '$arg0 + 1'
 *
 * A library without debug information wants its procedure declared: 'extern int better_price(int, int);
 * better_price(item, count)'. Until Enter is pressed; or for good (the end of the input): then the code stays in the
 * process, which goes on with it when this one has ended. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>

static inlay_process *process;

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "hotpatch: %s: %s\n", what, why);
    return 1;
}

static inlay_proc *find(const char *name)
{
    inlay_proc *p = NULL;
    for (inlay_image *i = inlay_process_image_first(process); i && !p; i = inlay_image_next(i))
        p = inlay_image_proc_named(i, name);
    return p;
}

int main(int argc, char **argv)
{
    char near_ones[200];
    inlay_mutator(&argc, &argv);
    if (argc < 4) return fprintf(stderr, "usage: hotpatch PID PROCEDURE EXPRESSION [LIBRARY]\n"), 2;
    process = inlay_process_attach(atoi(argv[1]));
    if (!process) return fail("cannot attach", inlay_process_error());
    if (argc > 4 && !inlay_process_load(process, 0, argv[4])) return fail(argv[4], inlay_process_error());
    inlay_proc *old = find(argv[2]);
    if (!old)
        return fail("no such procedure; near it",
                    inlay_process_procs_near(process, argv[2], near_ones, sizeof near_ones));
    inlay_scope *names = inlay_scope_new(inlay_proc_image(old), inlay_proc_address(old));
    inlay_expr value = inlay_scope_parse(names, argv[3]);
    if (!value) return fail(argv[3], inlay_scope_error(names));
    if (!inlay_proc_replace(old, value) || !inlay_process_commit(process))
        return fail("cannot replace it", inlay_process_error());
    if (inlay_proc_refused(old)) return fail("cannot replace it", inlay_proc_refused(old));
    fprintf(stderr, "hotpatch: %s is replaced\n", argv[2]);
    if (getchar() == EOF) return !inlay_process_let_go(process);
    if (!inlay_proc_restore(old) || !inlay_process_commit(process))
        return fail("cannot restore it", inlay_process_error());
    return !inlay_process_take_out(process);
}
