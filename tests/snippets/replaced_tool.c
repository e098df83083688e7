/* Replaces in the program replaced.c what --what says, on every engine alike: calls in `through`, procedures, a
 * procedure of another image for all callers in the program, or both with insertions in front. */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *what;
static inlay_counter seen, first;
static uint64_t *walks; /* that have come from the procedure which a snippet calls to main */

static bool is(const char *name) { return !strcmp(what, name); }

static inlay_expr parse(inlay_proc *p, const char *text)
{
    inlay_scope *names = inlay_scope_new(inlay_proc_image(p), inlay_proc_address(p));
    inlay_expr e = inlay_scope_parse(names, text);
    if (!e) fprintf(stderr, "%s\n", inlay_scope_error(names));
    return e;
}

/* In front of a call, and of what is there: the second reads what the first has counted. */
static void around(inlay_insn *i)
{
    inlay_insert(inlay_before(i), inlay_count_by(&first, inlay_counter_value(&seen)));
    inlay_insert_first(inlay_before(i), inlay_count(&seen, 1));
}

static void replace_call(inlay_proc *in, inlay_insn *i, const char *of)
{
    bool good = true;
    if (is("mistake")) { /* nothing is replaced */
        if (!strcmp(of, "twice") && inlay_call_replace(i, inlay_load(inlay_const(0), 3)))
            fprintf(stderr, "a call became nothing by mistake\n");
        return;
    }
    if (!strcmp(of, "plus")) good = inlay_call_replace(i, inlay_const(77));
    else if (is("both")) return;
    else if (!strcmp(of, "note")) good = inlay_call_replace(i, NULL);
    else if (!strcmp(of, "twice")) good = inlay_call_replace(i, parse(in, "other(5)"));
    else if (!strcmp(of, "many")) good = inlay_call_replace(i, inlay_argument(7));
    else return;
    if (!good) fprintf(stderr, "a call of %s is not replaced\n", of);
    if (is("both")) around(i);
}

static bool stands_in(const inlay_stack_frame *f, const char *name)
{
    const inlay_proc *p = inlay_proc_at(f->address);
    return p && !strcmp(inlay_proc_name(p), name);
}

static void walk(const inlay_context *here)
{
    inlay_stack_frame f[4];
    unsigned n = inlay_process_stack(inlay_process_self(), here, f, 4);
    *walks += n > 2 && stands_in(&f[0], "other") && f[1].interrupted && stands_in(&f[1], "through") &&
              !f[2].interrupted && stands_in(&f[2], "main");
}

static void each_call(inlay_proc *in)
{
    for (inlay_block *b = inlay_proc_block_first(in); b; b = inlay_block_next(b)) {
        inlay_insn *i = inlay_block_last(b);
        const inlay_proc *of = inlay_insn_is_call(i) ? inlay_proc_at(inlay_insn_target(i)) : NULL;
        if (of) replace_call(in, i, inlay_proc_name(of));
    }
}

static void replace_proc(inlay_proc *p, inlay_expr result)
{
    if (!p || !inlay_proc_replace(p, result)) fprintf(stderr, "a procedure is not replaced\n");
}

static void loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    inlay_proc *whole = inlay_image_proc_named(image, "whole");
    if (is("calls") || is("both") || is("mistake")) each_call(inlay_image_proc_named(image, "through"));
    if (is("calls"))
        inlay_insert(inlay_proc_entry(inlay_image_proc_named(image, "other")), inlay_call(walk, inlay_context_arg()));
    if (is("procs")) {
        replace_proc(whole, inlay_binary(INLAY_ADD, inlay_argument(0), inlay_const(100)));
        replace_proc(inlay_image_proc_named(image, "note"), inlay_const(3));
        replace_proc(inlay_image_proc_named(image, "twice"),
                     inlay_binary(INLAY_ADD, inlay_argument(0), inlay_argument(0)));
    }
    if (is("both")) replace_proc(whole, inlay_const(9));
    if (is("stub")) replace_proc(inlay_image_proc_named(image, "abs@plt"), inlay_const(7));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", inlay_counter_sum(&seen), inlay_counter_sum(&first),
            *walks);
}

int main(int argc, char **argv)
{
    static const char *chosen = "calls";
    inlay_option_string(&chosen, "what", 'w', "what is replaced");
    inlay_init(&argc, &argv, "replaces procedures and calls");
    what = chosen;
    walks = inlay_alloc(sizeof *walks);
    inlay_on_image_load(loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
