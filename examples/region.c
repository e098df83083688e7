/* region: counts instructions of a region of interest only: while a thread is inside of a procedure, or between two.
 *
 *     inlay run ./region --from=solve -- app                  within solve and what it calls
 *     inlay run ./region --from=roi_begin --to=roi_end -- app         from the one's entry to the other's
 *
 * A thread is inside while its stack reaches down to where it was at the entry. So it does not matter how the procedure
 * is left: by a return, by that of one that it jumps to last, by an exception or longjmp. Outside of the region a block
 * costs one comparison. */
#include <inlay.h>

#include <inttypes.h>

static inlay_local *tops; /* of each thread: the stack pointer at the entry; 0: it is outside */
static struct shared {
    inlay_counter entries, inside, all;
    uint64_t found;
} * shared;
static const char *from, *to;

static inlay_expr top(void) { return inlay_load(inlay_local_address(tops), 8); }
static inlay_expr set_top(inlay_expr value) { return inlay_store(inlay_local_address(tops), value, 8); }

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *begin = inlay_image_proc_named(image, from), *end = to ? inlay_image_proc_named(image, to) : NULL;
    if (begin) {
        inlay_expr enter = set_top(to ? inlay_const(UINT64_MAX) : inlay_stack_pointer());
        enter = inlay_sequence(inlay_count(&shared->entries, 1), enter);
        shared->found = 1;
        inlay_insert(inlay_proc_entry(begin), inlay_if(inlay_unary(INLAY_LNOT, top()), enter, NULL));
    }
    if (end) inlay_insert(inlay_proc_entry(end), set_top(inlay_const(0)));
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    unsigned n = inlay_block_insn_count(b);
    inlay_expr has_left = inlay_binary(INLAY_UGT, inlay_stack_pointer(), top());
    inlay_expr inside = inlay_if(has_left, set_top(inlay_const(0)), inlay_count(&shared->inside, n));
    inlay_insert(inlay_block_entry(b), inlay_if(top(), inside, NULL));
    inlay_insert(inlay_block_anywhere(b), inlay_count(&shared->all, n));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    if (!shared->found) inlay_warn("no instrumented image has a procedure %s", from);
    fprintf(inlay_out(), "%" PRIu64 " of %" PRIu64 " instructions in %" PRIu64 " regions\n",
            inlay_counter_sum(&shared->inside), inlay_counter_sum(&shared->all), inlay_counter_sum(&shared->entries));
}

int main(int argc, char **argv)
{
    inlay_option_string(&from, "from", 'f', "the procedure at whose entry the region begins");
    inlay_option_string(&to, "to", 't', "the procedure at whose entry it ends (default: where the first is left)");
    inlay_init(&argc, &argv, "instructions in a region of interest");
    if (!from) {
        inlay_warn("--from=PROCEDURE must be given");
        return 2;
    }
    shared = inlay_alloc(sizeof *shared);
    tops = inlay_local_new(sizeof(uint64_t));
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
