/* Conditional breakpoints that are evaluated inside the program: the third application of the paper on dynamic
 * instrumentation (`inlay break` is one for daily use).
 *
 *     inlay cc -O2 examples/live/condbreak.c -o condbreak
 *     ./condbreak PID PROC CONDITION HITS
 *     ./condbreak 4711 write '$arg0 == 1 && $arg2 > 4096' 3
 *
 * A debugger stops the program at each call, to see that it need not have: here a false condition costs a few
 * instructions, and one thread alone waits where it holds. */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES = 20 };

static int fail(const char *what)
{
    fprintf(stderr, "condbreak: %s: %s\n", what, inlay_process_error());
    return 1;
}

static inlay_proc *find(inlay_process *p, const char *name)
{
    inlay_proc *proc = NULL;
    for (inlay_image *i = inlay_process_image_first(p); i && !proc; i = inlay_image_next(i))
        proc = inlay_image_proc_named(i, name);
    return proc;
}

/* if (CONDITION) wait */
static inlay_insertion *set(inlay_proc *proc, const char *condition)
{
    inlay_scope *names = inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc));
    inlay_expr holds = inlay_scope_parse(names, condition);
    inlay_expr wait = inlay_call(inlay_break_here, inlay_const(1), inlay_context_arg());
    if (!holds) fprintf(stderr, "condbreak: %s\n", inlay_scope_error(names));
    return holds ? inlay_insert(inlay_proc_entry(proc), inlay_typed_if(names, holds, wait, NULL)) : NULL;
}

static void show(inlay_process *p, const inlay_event *e)
{
    inlay_stack_frame frames[FRAMES];
    unsigned n = inlay_process_stack(p, e->context, frames, FRAMES);
    printf("thread %d, stack pointer %#" PRIx64 "\n", e->tid, e->context->gpr[inlay_reg_stack_pointer()]);
    for (unsigned k = 0; k < n; k++) {
        inlay_proc *proc = inlay_process_proc_at(p, frames[k].address);
        printf("  %#18" PRIx64 "  %s\n", frames[k].address, proc ? inlay_proc_display_name(proc) : "?");
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    inlay_event e;
    inlay_mutator(&argc, &argv);
    if (argc != 5) return fprintf(stderr, "usage: condbreak PID PROC CONDITION HITS\n"), 2;
    inlay_process *p = inlay_process_attach(atoi(argv[1]));
    if (!p) return fail("cannot attach");
    inlay_proc *proc = find(p, argv[2]);
    if (!proc) return fprintf(stderr, "condbreak: there is no procedure %s\n", argv[2]), 1;
    inlay_insertion *here = set(proc, argv[3]);
    if (!here) return 1;
    if (!inlay_process_watch(p, INLAY_EVENTS(BREAK) | INLAY_EVENTS(EXIT)) || !inlay_process_commit(p))
        return fail("cannot insert");
    if (inlay_proc_refused(proc)) return fprintf(stderr, "condbreak: %s\n", inlay_proc_refused(proc)), 1;
    fprintf(stderr, "condbreak: set\n");
    for (int hits = 0; hits < atoi(argv[4]) && inlay_event_next(&e, -1) && e.kind == INLAY_EVENT_BREAK; hits++) {
        show(p, &e);
        inlay_event_resume(&e);
    }
    inlay_remove(here);
    if (inlay_process_is_running(p) && !inlay_process_commit(p)) return fail("cannot remove");
    return !inlay_process_let_go(p);
}
