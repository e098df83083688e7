/* The memory that a procedure of a running program reads and writes, while it is executed: each access of its own
 * instructions, with its address, its size and the source line.
 *
 *     inlay cc -O2 examples/live/accesses.c -o accesses
 *     ./accesses PID PROC NUMBER
 *
 * At the end, after NUMBER accesses, its code is as it was. */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct access {
    uint64_t pc, address, size;
} access;
static inlay_insertion **inserted;
static unsigned count;

static int fail(const char *what)
{
    fprintf(stderr, "accesses: %s: %s\n", what, inlay_process_error());
    return 1;
}

/* In the process. */
static void note(uint64_t writes, uint64_t pc, uint64_t address, uint64_t size)
{
    const access a = {pc, address, size};
    inlay_message(writes, &a, sizeof a);
}

static void insert(inlay_insn *i, unsigned operand)
{
    inlay_memory m = inlay_insn_memory(i, operand);
    if (m.prefetch || m.masked || (!m.read && !m.write)) return; /* of lea: neither */
    inlay_expr code = inlay_call(note, inlay_const(m.write), inlay_pc(), inlay_effective_address(operand),
                                 inlay_access_size(operand));
    inserted = realloc(inserted, (count + 1) * sizeof *inserted);
    if (!inserted) exit(1);
    /* rep: when it accesses; cmov does always */
    inserted[count] = m.repeated ? inlay_insert_predicated(inlay_before(i), code) : inlay_insert(inlay_before(i), code);
    count += inserted[count] != NULL;
}

static void show(inlay_process *p, const inlay_event *e)
{
    const access *a = e->data;
    const char *file;
    unsigned line;
    inlay_image *i = inlay_process_image_at(p, a->address);
    printf("%#18" PRIx64 "  %s %2" PRIu64 " at %#18" PRIx64 "  %s", a->pc, e->number ? "writes" : "reads ", a->size,
           a->address, i ? inlay_image_name(i) : "");
    if (inlay_line_at(a->pc, &file, &line)) printf("  %s:%u", file, line);
    putchar('\n');
}

int main(int argc, char **argv)
{
    inlay_event e;
    inlay_proc *proc = NULL;
    inlay_mutator(&argc, &argv);
    if (argc != 4) return fprintf(stderr, "usage: accesses PID PROC NUMBER\n"), 2;
    inlay_process *p = inlay_process_attach(atoi(argv[1]));
    if (!p) return fail("cannot attach");
    for (inlay_image *i = inlay_process_image_first(p); i && !proc; i = inlay_image_next(i))
        proc = inlay_image_proc_named(i, argv[2]);
    if (!proc) return fprintf(stderr, "accesses: there is no procedure %s\n", argv[2]), 1;
    for (inlay_block *b = inlay_proc_block_first(proc); b; b = inlay_block_next(b))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i))
            for (unsigned k = 0; k < inlay_insn_memory_count(i); k++) insert(i, k);
    if (!inlay_process_watch(p, INLAY_EVENTS(MESSAGE) | INLAY_EVENTS(EXIT))) return fail("cannot watch");
    if (!inlay_process_commit(p)) return fail("cannot insert");
    if (inlay_proc_refused(proc)) return fprintf(stderr, "accesses: %s\n", inlay_proc_refused(proc)), 1;
    fprintf(stderr, "accesses: %u operands of %s\n", count, argv[2]);
    for (long n = 0, most = atol(argv[3]); n < most && inlay_event_next(&e, -1); n++) {
        if (e.kind == INLAY_EVENT_EXIT) return 0;
        show(p, &e);
    }
    for (unsigned k = 0; k < count; k++) inlay_remove(inserted[k]);
    if (inlay_process_is_running(p) && !inlay_process_commit(p)) return fail("cannot remove");
    return !inlay_process_take_out(p);
}
