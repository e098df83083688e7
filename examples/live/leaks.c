/* What a running program allocates meanwhile and does not free: how many pieces, how many bytes, by who calls malloc.
 *
 *     inlay cc -O2 examples/live/leaks.c -o leaks
 *     ./leaks PID             until Enter is pressed
 *
 * Routines in the process note each piece in a table that lies in memory of both, under a lock of one word: what they
 * do they do to the end, so nobody holds it when the process is stopped for long. Pieces that are older than the first
 * look are not known, and their end is no matter. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 1 << 20 };
typedef struct piece {
    uint64_t at, size, from; /* at 0: free, 1: was in use */
} piece;
typedef struct table {
    uint64_t lock, lost;
    piece pieces[PIECES];
} table;

/* --- in the process --- */

static __thread uint64_t size_now, from_now, old_now;
static __thread unsigned depth; /* calloc or realloc may call malloc */

static void lock(table *t)
{
    while (__atomic_exchange_n(&t->lock, 1, __ATOMIC_ACQUIRE)) {}
}
static void unlock(table *t) { __atomic_store_n(&t->lock, 0, __ATOMIC_RELEASE); }
static uint64_t place(uint64_t at) { return (at >> 4) * 0x9e3779b97f4a7c15ull >> 44; }

static void forget(table *t, uint64_t at)
{
    for (uint64_t k = place(at), n = 0; n < 256 && t->pieces[k].at; n++, k = (k + 1) % PIECES) {
        if (t->pieces[k].at != at) continue;
        t->pieces[k].at = 1;
        return;
    }
}

static void begins(uint64_t size, uint64_t old, uint64_t from)
{
    if (depth++) return;
    size_now = size;
    old_now = old;
    from_now = from;
}

static void ends(table *t, uint64_t at)
{
    if (!depth || --depth || !at) return;
    lock(t);
    if (old_now) forget(t, old_now);
    uint64_t k = place(at), n = 0;
    while (n < 256 && t->pieces[k].at > 1) n++, k = (k + 1) % PIECES;
    if (n < 256) t->pieces[k] = (piece){at, size_now, from_now};
    else t->lost++;
    unlock(t);
}

static void freed(table *t, uint64_t at)
{
    if (at < 2) return;
    lock(t);
    forget(t, at);
    unlock(t);
}

/* --- in the mutator --- */

static inlay_process *process;
static inlay_insertion *inserted[16];
static unsigned count;

static int fail(const char *what)
{
    fprintf(stderr, "leaks: %s: %s\n", what, inlay_process_error());
    return 1;
}

static void insert(inlay_point *at, inlay_expr code)
{
    inlay_insertion *i = inlay_insert(at, code);
    if (i) inserted[count++] = i;
}

static void watch(inlay_image *libc, table *t, const char *name, inlay_expr size, inlay_expr old)
{
    inlay_proc *p = inlay_image_proc_named(libc, name);
    if (!p) return;
    insert(inlay_proc_entry(p), inlay_call(begins, size, old, inlay_return_address()));
    insert(inlay_proc_exit(p), inlay_call(ends, inlay_pointer(t), inlay_return_value()));
}

static int by_caller(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static void report(table *t)
{
    char file_line[300];
    const char *file;
    unsigned line;
    qsort(t->pieces, PIECES, sizeof *t->pieces, by_caller);
    for (uint64_t k = 0, bytes = 0, n = 0; k < PIECES; k++) {
        const piece *p = &t->pieces[k];
        if (p->at < 2) continue;
        n++, bytes += p->size;
        if (k + 1 < PIECES && p[1].from == p->from && p[1].at > 1) continue;
        inlay_proc *by = inlay_process_proc_at(process, p->from - 1);
        *file_line = 0;
        if (inlay_line_at(p->from - 1, &file, &line)) snprintf(file_line, sizeof file_line, " at %s:%u", file, line);
        printf("%8lu pieces %12lu bytes  %s%s\n", n, bytes, by ? inlay_proc_display_name(by) : "?", file_line);
        n = bytes = 0;
    }
    if (t->lost) printf("%lu pieces have found no room\n", t->lost);
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    if (argc < 2) return fprintf(stderr, "usage: leaks PID\n"), 2;
    process = inlay_process_attach(atoi(argv[1]));
    table *t = process ? inlay_process_share(process, sizeof *t) : NULL;
    if (!t) return fail("cannot attach");
    for (inlay_image *i = inlay_process_image_first(process); i; i = inlay_image_next(i)) {
        if (strncmp(inlay_image_name(i), "libc.", 5)) continue;
        watch(i, t, "malloc", inlay_argument(0), inlay_const(0));
        watch(i, t, "calloc", inlay_binary(INLAY_MUL, inlay_argument(0), inlay_argument(1)), inlay_const(0));
        watch(i, t, "realloc", inlay_argument(1), inlay_argument(0));
        inlay_proc *p = inlay_image_proc_named(i, "free");
        if (p) insert(inlay_proc_entry(p), inlay_call(freed, inlay_pointer(t), inlay_argument(0)));
    }
    if (!count) return fprintf(stderr, "leaks: process %s has no malloc\n", argv[1]), 1;
    if (!inlay_process_commit(process)) return fail("cannot insert");
    fprintf(stderr, "leaks: process %s is watched\n", argv[1]);
    getchar();
    for (unsigned k = 0; k < count; k++) inlay_remove(inserted[k]);
    if (inlay_process_is_running(process) && !inlay_process_commit(process)) return fail("cannot remove");
    report(t);
    return !inlay_process_take_out(process);
}
