/* The static view against what is executed: what is inserted through handles of the view counts the same as
 * what is inserted when an engine shows the code. And the view of known.S, which run.py knows. */
#include <inlay.h>

#include <inttypes.h>

static inlay_counter view_insns, shown_insns, view_taken, shown_taken, view_blocks, shown_blocks;
static bool describe;

static void count_in_view(inlay_insn *i)
{
    inlay_insert(inlay_before(i), inlay_count(&view_insns, 1));
    if (inlay_insn_is_conditional(i)) inlay_insert(inlay_taken_edge(i), inlay_count(&view_taken, 1));
}

static void tell(inlay_block *b)
{
    fprintf(inlay_out(), "%" PRIx64 " %u %x:", inlay_block_address(b), inlay_block_insn_count(b),
            inlay_block_flags(b));
    for (unsigned k = 0; k < inlay_block_successor_count(b); k++) {
        inlay_edge e = inlay_block_successor(b, k);
        fprintf(inlay_out(), " %d %" PRIx64 "%s", e.kind, e.target, e.back ? " back" : "");
        if (!e.to || inlay_block_address(e.to) != e.target) fprintf(inlay_out(), " lost");
    }
    fprintf(inlay_out(), "\n");
}

static void loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    for (inlay_proc *p = inlay_image_proc_first(image); p; p = inlay_proc_next(p)) {
        if (inlay_proc_known(p, NULL) == INLAY_LEFT) continue;
        if (describe) fprintf(inlay_out(), "%s\n", inlay_proc_name(p));
        for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
            if (describe) tell(b);
            inlay_insert(inlay_block_anywhere(b), inlay_count(&view_blocks, 1));
            for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i)) count_in_view(i);
        }
    }
}

static void shown(inlay_insn *i, void *arg)
{
    (void)arg;
    inlay_image *image = inlay_image_at(inlay_insn_address(i));
    if (!image || !inlay_image_is_main(image)) return;
    inlay_insn *same = inlay_insn_at(inlay_insn_address(i));
    if (!same || inlay_proc_known(inlay_insn_proc(same), NULL) == INLAY_LEFT) return;
    inlay_insert(inlay_before(i), inlay_count(&shown_insns, 1));
    if (inlay_insn_is_conditional(i)) inlay_insert(inlay_taken_edge(i), inlay_count(&shown_taken, 1));
    if (inlay_block_first(inlay_insn_block(same)) == same)
        inlay_insert(inlay_before(i), inlay_count(&shown_blocks, 1));
}

static void compare(const char *what, const inlay_counter *a, const inlay_counter *b)
{
    uint64_t x = inlay_counter_sum(a), y = inlay_counter_sum(b);
    if (x != y) fprintf(inlay_out(), "%s: %" PRIu64 " by the view, %" PRIu64 " as shown\n", what, x, y);
    else fprintf(inlay_out(), "%s: equal%s\n", what, x ? "" : ", none");
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    compare("instructions", &view_insns, &shown_insns);
    compare("blocks", &view_blocks, &shown_blocks);
    compare("taken", &view_taken, &shown_taken);
}

int main(int argc, char **argv)
{
    inlay_option_flag(&describe, "describe", 0, "print the view");
    inlay_init(&argc, &argv, "compares the static view with what is executed");
    inlay_on_image_load(loaded, NULL);
    inlay_on_insn(shown, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
