/* bbcount: how many basic blocks a program executes, and how many different ones were instrumented. */
#include <inlay.h>

#include <inttypes.h>

static inlay_counter executed;
static uint64_t *discovered; /* in memory that travels into a rewritten program */

static void discover(uint64_t address, bool head, void *arg)
{
    (void)arg;
    bool *seen = head ? inlay_record(address, sizeof *seen) : NULL;
    if (!seen || *seen) return;
    *seen = true;
    ++*discovered;
}

static void each_block(inlay_block *block, void *arg)
{
    if (!inlay_block_is_head(block)) return; /* a further part of a block already counted */
    discover(inlay_block_address(block), true, arg);
    inlay_insert(inlay_block_anywhere(block), inlay_count(&executed, 1));
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    uint64_t sum = inlay_counter_sum(&executed);
    if (inlay_format_is_json()) {
        inlay_json_begin(NULL, '{');
        inlay_json_string("tool", "bbcount");
        inlay_json_string("program", inlay_program());
        inlay_json_uint("pid", (uint64_t)inlay_pid());
        inlay_json_uint("blocks", sum);
        inlay_json_uint("different_blocks", *discovered);
        inlay_json_end();
    } else {
        fprintf(inlay_out(), "%s: %" PRIu64 " blocks executed, %" PRIu64 " instrumented\n", inlay_program(), sum,
                *discovered);
    }
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "counts executed basic blocks");
    discovered = inlay_alloc(sizeof *discovered);
    if (!discovered) return 1;
    inlay_counter_reserve(&executed);
    inlay_on_block(each_block, NULL);
    inlay_on_kept_block(discover, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
