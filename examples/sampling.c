/* sampling: which procedures execute the most instructions, from samples: bursts of exact counts, and plain code between.
 *
 *     inlay run ./sampling --every=1000 --burst=10 -- app
 *
 * The code is there in two versions. The plain one has a countdown at procedures' entries and nothing else; when it has
 * come to an end, the thread goes on in the detailed one, which counts each block's instructions to its procedure, for so
 * many entries. Each thread has a countdown of its own. */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>

enum { PLAIN, DETAILED };

typedef struct row {
    inlay_counter sampled;
    const char *name;
    uint64_t sum;
} row;

static inlay_local *left;
static uint64_t every = 1000, burst = 10, rows_count;
static row *rows[1 << 16];

static void turn(const inlay_context *now, uint64_t *countdown)
{
    inlay_context here = *now;
    bool detailed = inlay_code_version() == DETAILED;
    *countdown = detailed ? every : burst;
    inlay_code_version_switch(detailed ? PLAIN : DETAILED);
    inlay_resume(&here); /* the entry once more, in the other version */
}

/* At a procedure's entry, in both versions. */
static void count_down(inlay_insn *insn)
{
    inlay_expr at = inlay_local_address(left);
    inlay_expr less = inlay_store(at, inlay_binary(INLAY_SUB, inlay_load(at, 8), inlay_const(1)), 8);
    inlay_insert(inlay_before(insn),
                 inlay_if(inlay_load(at, 8), less, inlay_call(turn, inlay_context_arg(), inlay_local_address(left))));
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    inlay_insn *first = inlay_block_first(b);
    inlay_proc *p = inlay_proc_at(inlay_insn_address(first));
    if (!p) return;
    if (inlay_insn_address(first) == inlay_proc_address(p)) count_down(first);
    if (inlay_code_version() == PLAIN) return;
    row *r = inlay_proc_record(p, sizeof *r);
    if (!r->name && rows_count < sizeof rows / sizeof *rows) rows[rows_count++] = r;
    r->name = inlay_proc_name(p);
    inlay_insert(inlay_block_anywhere(b), inlay_count(&r->sampled, inlay_block_insn_count(b)));
}

static int by_sum(const void *a, const void *b)
{
    const row *x = *(row *const *)a, *y = *(row *const *)b;
    return x->sum < y->sum ? 1 : x->sum > y->sum ? -1 : 0;
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    uint64_t all = 0;
    for (uint64_t i = 0; i < rows_count; i++) all += rows[i]->sum = inlay_counter_sum(&rows[i]->sampled);
    qsort(rows, rows_count, sizeof *rows, by_sum);
    fprintf(inlay_out(), "%" PRIu64 " instructions in samples\n", all);
    for (uint64_t i = 0; i < rows_count && i < 20 && rows[i]->sum; i++)
        fprintf(inlay_out(), "%6.2f %% %s\n", 100.0 * (double)rows[i]->sum / (double)all, rows[i]->name);
}

int main(int argc, char **argv)
{
    inlay_option_uint(&every, "every", 'n', "entries of procedures between two samples");
    inlay_option_uint(&burst, "burst", 'b', "entries in a sample");
    inlay_init(&argc, &argv, "procedures by instructions, from samples");
    left = inlay_local_new(sizeof(uint64_t));
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
