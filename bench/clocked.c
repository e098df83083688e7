/* Calls of each procedure, and cycles from its entry to its exit: for bench/live.py. Cycles are taken off a counter at
 * the entry and added at the exit, so recursion is right, too: what is left is the time of all its calls. */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>

typedef struct timed {
    inlay_counter calls, cycles;
} timed;

static void each_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    timed *t = inlay_record(inlay_proc_address(p), sizeof *t);
    if (!t) return;
    inlay_insert(inlay_proc_entry(p), inlay_count(&t->calls, 1));
    inlay_insert(inlay_proc_entry(p), inlay_count_by(&t->cycles, inlay_unary(INLAY_NEG, inlay_cycles())));
    inlay_insert(inlay_proc_exit(p), inlay_count_by(&t->cycles, inlay_cycles()));
}

static void print(uint64_t address, void *record, void *arg)
{
    const timed *t = record;
    const inlay_proc *p = inlay_proc_at(address);
    (void)arg;
    if (!inlay_counter_sum(&t->calls)) return;
    fprintf(inlay_out(), "%s %" PRIu64 " %" PRIu64 "\n", p ? inlay_proc_name(p) : "?", inlay_counter_sum(&t->calls),
            inlay_counter_sum(&t->cycles));
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    inlay_records(print, NULL);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "calls of procedures, and cycles from entry to exit");
    inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
