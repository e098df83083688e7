/* Counts the instructions of procedures work_... of tests/cli/counters_program.c, a counter each procedure, and of
 * their branches how often they are executed and taken, and looks at that: at mark(), in the middle of work_looked_at,
 * as threads end, before exec, and at the end. With -DIN_PLACE what translated code adds is added to these counters
 * themselves. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { MOST = 512 };
typedef struct slot {
    uint64_t address; /* twice that of the procedure, or the branch; 1 more: of its taken edge */
    inlay_counter counter;
} slot;
static struct found {
    slot slots[MOST];
    unsigned count;
    uint64_t looks; /* of the middle, added up */
} * found;

static inlay_counter *counter_of(uint64_t address)
{
    unsigned k = 0;
    while (k < found->count && found->slots[k].address != address) k++;
    if (k == MOST) return NULL;
    if (k == found->count) found->slots[found->count++].address = address;
    return &found->slots[k].counter;
}

static bool is_work(const inlay_proc *p) { return p && !strncmp(inlay_proc_name(p), "work_", 5); }

/* One number that says what all of them hold, whatever their order. */
static uint64_t digest(uint64_t (*value)(const inlay_counter *, const void *), const void *of, uint64_t *sum)
{
    uint64_t all = 0;
    *sum = 0;
    for (unsigned k = 0; k < found->count; k++) {
        uint64_t n = value(&found->slots[k].counter, of);
        all += n * (found->slots[k].address * 0x9e3779b97f4a7c15u | 1);
        *sum += n;
    }
    return all;
}

static uint64_t of_all(const inlay_counter *c, const void *of)
{
    (void)of;
    return inlay_counter_sum(c);
}

static uint64_t of_thread(const inlay_counter *c, const void *of) { return inlay_counter_of(c, of); }

static void tell(const char *what, uint64_t number, const inlay_thread *t)
{
    uint64_t sum, all = t ? digest(of_thread, t, &sum) : digest(of_all, NULL, &sum);
    fprintf(inlay_out(), "%s %" PRIu64 ": %" PRIu64 " %016" PRIx64 "\n", what, number, sum, all);
}

/* --- where the program runs --- */

static void marked(uint64_t number)
{
    tell("mark", number, NULL);
    if (number < 100) inlay_reinstrument_all();
}

static void looked(void)
{
    uint64_t sum;
    if (inlay_thread_number_now()) return; /* of one thread alone: the others are anywhere meanwhile */
    found->looks = found->looks * 31 + digest(of_all, NULL, &sum);
}

static void count(inlay_point *at, uint64_t address, uint64_t amount)
{
    inlay_counter *c = at ? counter_of(address) : NULL;
    if (c) inlay_insert(at, inlay_count(c, amount));
}

static void each_insn(inlay_insn *i, void *arg)
{
    inlay_proc *p = inlay_insn_proc(i);
    (void)arg;
    if (!is_work(p)) return;
    uint64_t bias = inlay_image_bias(inlay_proc_image(p)), at = 2 * (inlay_insn_address(i) - bias);
    bool branches = inlay_insn_is_branch(i) && inlay_insn_is_conditional(i);
    if (branches && !strcmp(inlay_proc_name(p), "work_looked_at")) inlay_insert(inlay_before(i), inlay_call(looked));
    count(inlay_before(i), 2 * (inlay_proc_address(p) - bias), 1);
    if (!branches) return;
    if (at != 2 * (inlay_proc_address(p) - bias)) count(inlay_before(i), at, 1);
    count(inlay_taken_edge(i), at + 1, 2);
}

static void each_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    if (!strcmp(inlay_proc_name(p), "mark")) inlay_insert(inlay_proc_entry(p), inlay_call(marked, inlay_argument(0)));
}

static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    tell("thread", 0, t);
}

static void report(int status, void *arg)
{
    (void)arg;
    tell("end", (uint64_t)status, NULL);
    fprintf(inlay_out(), "looks %016" PRIx64 "\n", found->looks);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "counts blocks and looks at the counters");
    found = inlay_alloc(sizeof *found);
    if (!found) return 1;
#ifdef IN_PLACE
    if (!inlay_counter_value(&found->slots[0].counter)) return 1;
#endif
    inlay_on_proc(each_proc, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_thread_end(thread_ends, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
