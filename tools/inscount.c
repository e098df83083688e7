/* inscount: how many instructions a program executes.
 *
 * One for each instruction: they become one addition a basic block or less, placed where it costs least; exact, with
 * threads too, and where a fault ends a block in its middle. A string
 * instruction with a REP prefix counts once, however often it repeats, as the hardware counter of
 * retired instructions has it. */
#include <inlay.h>

#include <inttypes.h>

static inlay_counter instructions;

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    for (inlay_insn *insn = inlay_block_first(block); insn; insn = inlay_insn_next(insn))
        inlay_insert(inlay_before(insn), inlay_count(&instructions, 1));
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    uint64_t sum = inlay_counter_sum(&instructions);
    if (inlay_format_is_json()) {
        inlay_json_begin(NULL, '{');
        inlay_json_string("tool", "inscount");
        inlay_json_string("program", inlay_program());
        inlay_json_uint("pid", (uint64_t)inlay_pid());
        inlay_json_uint("instructions", sum);
        inlay_json_end();
    } else {
        fprintf(inlay_out(), "%s: %" PRIu64 " instructions\n", inlay_program(), sum);
    }
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "counts executed instructions (a REP-prefixed string instruction counts once)");
    inlay_counter_reserve(&instructions);
    inlay_on_block(each_block, NULL);
    inlay_on_kept_block(NULL, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
