/* balance: counters at the entry and the exits of each procedure. What is entered while the tool is there and has come
 * back is balanced; what is not is listed. */
#include <inlay.h>

#include <inttypes.h>

typedef struct both {
    inlay_counter entries, exits;
} both;

static void each_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    inlay_block *first = inlay_proc_block_first(p);
    if (first && inlay_block_flags(first) & INLAY_BLOCK_TARGET) return; /* it is entered once more by a loop */
    both *b = inlay_record(inlay_proc_address(p), sizeof *b);
    if (!b) return;
    inlay_insert(inlay_proc_entry(p), inlay_count(&b->entries, 1));
    inlay_insert(inlay_proc_exit(p), inlay_count(&b->exits, 1));
}

typedef struct sums {
    uint64_t entries, exits;
} sums;

static void add_up(uint64_t address, void *record, void *arg)
{
    both *b = record;
    sums *s = arg;
    uint64_t entries = inlay_counter_sum(&b->entries), exits = inlay_counter_sum(&b->exits);
    s->entries += entries;
    s->exits += exits;
    if (entries == exits) return;
    const inlay_proc *p = inlay_proc_at(address);
    fprintf(inlay_out(), "%s %" PRIu64 " %" PRIu64 "\n", p ? inlay_proc_name(p) : "?", entries, exits);
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    sums s = {0, 0};
    inlay_records(add_up, &s);
    fprintf(inlay_out(), "sums %" PRIu64 " %" PRIu64 "\n", s.entries, s.exits);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "entries and exits of procedures that are not balanced");
    inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
