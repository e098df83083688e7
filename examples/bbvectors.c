/* bbvectors: basic-block vectors of the first thread, as SimPoint reads them (FILE.bb): for each interval of so many
 * instructions a line that begins with T and says of each block that ran its number and its instructions in there.
 *
 *     T:1:20 :2:5000 :7:12
 *
 *     inlay run ./bbvectors --interval=1000000 -o app.bb -- app
 */
#include <inlay.h>

#include <inttypes.h>

typedef struct block { /* the record of its address */
    struct block *next;
    inlay_counter insns;     /* that were executed in it */
    uint64_t number, before; /* ... when the interval began */
} block;

static struct shared {
    block *blocks, **end;
    uint64_t count, next; /* next: where the interval ends */
    inlay_counter insns;
} * shared;
static uint64_t interval = 100000000;

static const inlay_thread *first_thread;

static void thread_starts(inlay_thread *t, void *arg)
{
    (void)arg;
    if (!inlay_thread_number(t)) first_thread = t;
}

static void put_vector(void)
{
    fputc('T', inlay_out());
    for (block *b = __atomic_load_n(&shared->blocks, __ATOMIC_ACQUIRE); b; b = b->next) {
        uint64_t now = inlay_counter_of(&b->insns, first_thread);
        if (now != b->before) fprintf(inlay_out(), ":%" PRIu64 ":%" PRIu64 " ", b->number, now - b->before);
        b->before = now;
    }
    fputc('\n', inlay_out());
}

static void interval_ends(uint64_t insns)
{
    put_vector();
    while (shared->next <= insns) shared->next += interval;
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    block *r = inlay_record(inlay_block_address(b), sizeof *r);
    if (!r) return;
    if (!r->number) {
        r->number = ++shared->count;
        if (!shared->end) shared->end = &shared->blocks;
        __atomic_store_n(shared->end, r, __ATOMIC_RELEASE);
        shared->end = &r->next;
    }
    /* What is asked for before it is counted belongs to the interval that has ended. */
    inlay_expr insns = inlay_counter_value(&shared->insns);
    inlay_expr is_first = inlay_binary(INLAY_EQ, inlay_thread_id(), inlay_const(0));
    inlay_expr over = inlay_binary(INLAY_UGE, insns, inlay_load(inlay_pointer(&shared->next), 8));
    inlay_point *entry = inlay_block_entry(b);
    inlay_insert(entry, inlay_if(inlay_binary(INLAY_LAND, over, is_first), inlay_call(interval_ends, insns), NULL));
    inlay_insert(entry, inlay_count(&r->insns, inlay_block_insn_count(b)));
    inlay_insert(entry, inlay_count(&shared->insns, inlay_block_insn_count(b)));
}

/* What the last interval has so far. */
static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    if (t == first_thread) put_vector();
}

int main(int argc, char **argv)
{
    inlay_option_uint(&interval, "interval", 'i', "instructions of an interval (default 100000000)");
    inlay_init(&argc, &argv, "basic-block vectors, as SimPoint reads them");
    shared = inlay_alloc(sizeof *shared);
    if (!shared->next) shared->next = interval;
    inlay_on_thread_start(thread_starts, NULL);
    inlay_on_thread_end(thread_ends, NULL);
    inlay_on_block(each_block, NULL);
    return inlay_start();
}
