/* How often a block begins at each place, and how many instructions its executions have in all; counted in the way
 * that --how names: with a counter at the entry, with a counter anywhere, or by a call at the entry. The same under
 * every engine, and what the single-stepper sees (docs/glossary.md, block). */
#include <inlay.h>

#include <string.h>

typedef struct head {
    inlay_counter counted;
    uint64_t called, insns;
} head;

static const char *how = "entry";
static inlay_counter instructions;

static void begins(head *h) { __atomic_fetch_add(&h->called, 1, __ATOMIC_RELAXED); }

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    if (!inlay_block_is_head(block)) return;
    head *h = inlay_record(inlay_block_address(block), sizeof *h);
    if (!h) return;
    inlay_point *point = strcmp(how, "anywhere") ? inlay_block_entry(block) : inlay_block_anywhere(block);
    inlay_insert(point, strcmp(how, "call") ? inlay_count(&h->counted, 1) : inlay_call(begins, inlay_pointer(h)));
}

/* What lies in blocks adds up to what is executed, in whatever parts they are shown. */
static void each_part(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_insert(inlay_block_anywhere(block), inlay_count(&instructions, inlay_block_insn_count(block)));
}

static void print(uint64_t address, void *record, void *arg)
{
    (void)arg;
    const head *h = record;
    uint64_t times = strcmp(how, "call") ? inlay_counter_sum(&h->counted) : h->called;
    if (!times) return;
    inlay_json_begin(NULL, '{');
    inlay_json_uint("address", address);
    inlay_json_uint("begun", times);
    inlay_json_end();
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    inlay_json_begin(NULL, '{');
    inlay_json_uint("instructions", inlay_counter_sum(&instructions));
    inlay_json_begin("heads", '[');
    inlay_records(print, NULL);
    inlay_json_end();
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_option_string(&how, "how", 0, "what counts: entry, anywhere or call");
    inlay_init(&argc, &argv, "where blocks begin");
    inlay_on_block(each_block, NULL);
    inlay_on_block(each_part, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
