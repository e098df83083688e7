/* A tool that ends the program before the instruction whose number it was given, with status 9. */
#include <inlay.h>

#include <inttypes.h>

static struct found {
    uint64_t met;
    inlay_counter executed;
} * found;
static uint64_t limit = 1000;

static void one(void)
{
    if (__atomic_add_fetch(&found->met, 1, __ATOMIC_RELAXED) == limit) inlay_end(9);
}

static void each_insn(inlay_insn *i, void *arg)
{
    (void)arg;
    inlay_insert(inlay_before(i), inlay_call(one));
    inlay_insert(inlay_before(i), inlay_count(&found->executed, 1));
}

static void report(int status, void *arg)
{
    (void)arg;
    fprintf(inlay_out(), "%#x %" PRIu64 " %" PRIu64 "\n", status, found->met, inlay_counter_sum(&found->executed));
}

int main(int argc, char **argv)
{
    inlay_option_uint(&limit, "report", 'l', "instructions"); /* a name that rewriting has for another */
    inlay_init(&argc, &argv, "ends the program early");
    found = inlay_alloc(sizeof *found);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
