/* What howto-tool.md says of points, results, buffers and data of threads, looked at in guide_program.c. */
#include <inlay.h>

#include <string.h>

typedef struct mine { /* of a thread */
    uint64_t records, fed, room[300];
} mine;

static struct found {
    inlay_counter blocks, odd, negative;
    uint64_t entries, exits, returns, of_last, sum, late, order, wrong_order, repeated, times, never, same, of_stack;
    uint64_t of_ended, of_others, late_records;
} * found;
static inlay_local *data;
static inlay_buffer *buffer, *fed;

/* --- where a procedure ends --- */

static void at_return(uint64_t value, uint64_t stack, const uint64_t *entered_at)
{
    found->returns++;
    found->sum += value;
    found->same += stack == *entered_at;
}

static void seen(uint64_t *what) { ++*what; }
static inlay_expr note(uint64_t *what) { return inlay_call(seen, inlay_pointer(what)); }

/* --- results of routines --- */

static bool is_odd(uint64_t n) { return n & 1; }
static int8_t minus(uint64_t n) { return (int8_t)-n; }
static uint64_t many(uint64_t g, uint64_t h) { return found->of_stack = g * 10 + h; }

static void ends_of(inlay_proc *proc, const char *name)
{
    inlay_expr stack = inlay_stack_pointer(), kept = inlay_local_address(data);
    kept = inlay_binary(INLAY_ADD, kept, inlay_const(sizeof(mine)));
    if (!strcmp(name, "jumps")) {
        inlay_insert(inlay_proc_entry(proc), inlay_store(kept, stack, 8));
        inlay_insert(inlay_proc_entry(proc), note(&found->entries));
        inlay_insert(inlay_proc_exit(proc), note(&found->exits));
        inlay_insert(inlay_proc_return(proc), note(&found->never));
    }
    if (!strcmp(name, "last")) {
        inlay_insert(inlay_proc_exit(proc), note(&found->of_last));
        inlay_insert(inlay_proc_return(proc), inlay_call(at_return, inlay_return_value(), stack, kept));
    }
    if (!strcmp(name, "leaps")) inlay_insert(inlay_proc_exit(proc), note(&found->late));
}

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    const char *name = inlay_proc_name(proc);
    ends_of(proc, name);
    if (!strcmp(name, "last")) {
        inlay_expr n = inlay_argument(0);
        inlay_expr odd = inlay_call(is_odd, inlay_binary(INLAY_ADD, n, inlay_const(1)));
        inlay_expr below = inlay_binary(INLAY_LT, inlay_call(minus, inlay_const(1)), inlay_const(0));
        inlay_insert(inlay_proc_entry(proc), inlay_if(odd, inlay_count(&found->odd, 1), NULL));
        inlay_insert(inlay_proc_entry(proc), inlay_if(below, inlay_count(&found->negative, 1), NULL));
        inlay_insert(inlay_proc_entry(proc), inlay_store(inlay_pointer(&found->order), inlay_const(1), 8));
    }
    if (!strcmp(name, "many"))
        inlay_insert(inlay_proc_entry(proc), inlay_call(many, inlay_argument(6), inlay_argument(7)));
}

/* --- blocks and instructions --- */

static void in_order(void)
{
    found->wrong_order += found->order != 1;
    found->order = 0;
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    const inlay_proc *p = inlay_block_proc(b);
    if (p && inlay_block_address(b) == inlay_proc_address(p) && !strcmp(inlay_proc_name(p), "last"))
        inlay_insert(inlay_block_entry(b), inlay_call(in_order));
    inlay_insert(inlay_block_entry(b), inlay_append(buffer, INLAY_FIELD(8, inlay_pc())));
    inlay_insert(inlay_block_entry(b), inlay_append(fed, INLAY_FIELD(8, inlay_pc())));
    inlay_insert(inlay_block_entry(b), inlay_count(&found->blocks, 1));
}

static void repeats(uint64_t size, uint64_t times)
{
    found->repeated++;
    found->times += size * times;
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    const inlay_proc *p = inlay_insn_proc(insn);
    if (p && inlay_insn_is_rep(insn) && !strcmp(inlay_proc_name(p), "repeats"))
        inlay_insert(inlay_before(insn), inlay_call(repeats, inlay_access_size(0), inlay_rep_count()));
}

/* --- threads --- */

static void full(const void *records, size_t count, unsigned thread, void *arg)
{
    (void)records, (void)thread, (void)arg;
    mine *m = inlay_local_now(data);
    m->records += count;
}

static void *next(void *filled, size_t count, unsigned thread, size_t *room, void *arg)
{
    (void)filled, (void)thread, (void)arg;
    mine *m = inlay_local_now(data);
    m->fed += count;
    if (room) *room = sizeof m->room / sizeof *m->room;
    return room ? m->room : NULL;
}

static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    const mine *m = inlay_local_of(data, t);
    __atomic_fetch_add(&found->of_ended, m->records, __ATOMIC_RELAXED);
    __atomic_fetch_add(&found->late_records, m->records - m->fed, __ATOMIC_RELAXED);
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    const struct found *f = found;
    inlay_process *own = inlay_process_self();
    for (inlay_thread *t = inlay_process_thread_first(own); t; t = inlay_process_thread_next(own, t)) {
        const mine *m = inlay_local_of(data, t);
        if (m) found->of_others += m->records;
    }
    fprintf(inlay_out(), "jumps %ju %ju %ju last %ju %ju %ju %ju leaps %ju\n", f->entries, f->exits, f->never,
            f->of_last, f->returns, f->sum, f->same, f->late);
    fprintf(inlay_out(), "results %ju %ju stack %ju order %ju rep %ju %ju\n", inlay_counter_sum(&f->odd),
            inlay_counter_sum(&f->negative), f->of_stack, f->wrong_order, f->repeated, f->times);
    uint64_t blocks = inlay_counter_sum(&f->blocks);
    fprintf(inlay_out(), "records %s, %ju late\n",
            f->of_ended + f->of_others == blocks && f->of_others ? "all" : "lost", f->late_records);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "what the guide says");
    found = inlay_alloc(sizeof *found);
    data = inlay_local_new(sizeof(mine) + sizeof(uint64_t));
    buffer = inlay_buffer_new(sizeof(uint64_t), 500, full, NULL);
    fed = inlay_buffer_fed(sizeof(uint64_t), next, NULL);
    inlay_on_proc(each_proc, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_thread_end(thread_ends, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
