/* region: counts instructions of a region of interest only: while a thread is inside of a procedure, or between two.
 *
 *     inlay run ./region --from=solve -- app                  within solve and what it calls
 *     inlay run ./region --from=roi_begin --to=roi_end -- app         from the one's entry to the other's
 *
 * Each thread has a depth of its own; outside of the region a block costs one comparison. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

static inlay_local *depth;
static struct shared {
    inlay_counter entries, inside, all;
    uint64_t found;
} * shared;
static const char *from, *to;

static inlay_expr add_depth(uint64_t amount)
{
    inlay_expr at = inlay_local_address(depth);
    return inlay_store(at, inlay_binary(INLAY_ADD, inlay_load(at, 8), inlay_const(amount)), 8);
}

/* A region that ends without having begun is none. */
static inlay_expr leave(void)
{
    return inlay_if(inlay_load(inlay_local_address(depth), 8), add_depth((uint64_t)-1), NULL);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *begin = inlay_image_proc_named(image, from), *end = to ? inlay_image_proc_named(image, to) : NULL;
    if (begin) {
        shared->found = 1;
        inlay_insert(inlay_proc_entry(begin), inlay_count(&shared->entries, 1));
        inlay_insert(inlay_proc_entry(begin), add_depth(1));
        if (!to) inlay_insert(inlay_proc_exit(begin), leave());
    }
    if (end) inlay_insert(inlay_proc_entry(end), leave());
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    unsigned n = inlay_block_insn_count(b);
    inlay_expr inside = inlay_load(inlay_local_address(depth), 8);
    inlay_insert(inlay_block_entry(b), inlay_if(inside, inlay_count(&shared->inside, n), NULL));
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
    inlay_option_string(&to, "to", 't', "the procedure at whose entry it ends (default: where the first returns)");
    inlay_init(&argc, &argv, "instructions in a region of interest");
    if (!from) {
        inlay_warn("--from=PROCEDURE must be given");
        return 2;
    }
    shared = inlay_alloc(sizeof *shared);
    depth = inlay_local_new(sizeof(uint64_t));
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
