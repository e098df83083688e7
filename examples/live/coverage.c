/* Which code of a running program is executed: its basic blocks, by source file where debug information tells of these.
 *
 *     inlay cc -O2 examples/live/coverage.c -o coverage
 *     ./coverage PID SECONDS [PATTERN]         procedures: "lua*", "/^sqlite3Vdbe/"; all
 *
 * Each block has a byte in memory that both processes have, and sets it; that needs no lock, and the process can be
 * killed meanwhile. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct covered { /* a procedure */
    inlay_proc *proc;
    unsigned char *met; /* by block */
    unsigned blocks;
} covered;

static inlay_process *process;
static covered *all;
static inlay_insertion **inserted;
static unsigned count, insertions;

static int fail(const char *what)
{
    fprintf(stderr, "coverage: %s: %s\n", what, inlay_process_error());
    return 1;
}

static void *grown(void *list, unsigned n, size_t size)
{
    void *more = n & (n - 1) ? list : realloc(list, (n ? n * 2 : 1) * size);
    if (!more) exit(fail("out of memory"));
    return more;
}

static void cover(inlay_proc *proc, void *arg)
{
    covered c = {proc, NULL, inlay_proc_block_count(proc)};
    unsigned k = 0;
    (void)arg;
    if (!c.blocks || !(c.met = inlay_process_share(process, c.blocks))) return;
    for (inlay_block *b = inlay_proc_block_first(proc); b && k < c.blocks; b = inlay_block_next(b), k++) {
        inlay_insertion *i =
            inlay_insert(inlay_block_entry(b), inlay_store(inlay_pointer(&c.met[k]), inlay_const(1), 1));
        if (!i) continue;
        inserted = grown(inserted, insertions, sizeof *inserted);
        inserted[insertions++] = i;
    }
    all = grown(all, count, sizeof *all);
    all[count++] = c;
}

static unsigned met(const covered *c)
{
    unsigned n = 0;
    for (unsigned k = 0; k < c->blocks; k++) n += c->met[k];
    return n;
}

static void report_procs(void)
{
    for (unsigned k = 0; k < count; k++) {
        const char *why = inlay_proc_refused(all[k].proc);
        unsigned n = met(&all[k]);
        if (why) printf("          -  %s: %s\n", inlay_proc_display_name(all[k].proc), why);
        else if (n) printf("%5u/%5u  %s\n", n, all[k].blocks, inlay_proc_display_name(all[k].proc));
    }
}

static void report_modules(inlay_image *image)
{
    for (inlay_module *m = inlay_image_module_first(image); m; m = inlay_module_next(m)) {
        unsigned n = 0, of = 0;
        for (unsigned k = 0; k < count; k++) {
            if (inlay_proc_module(all[k].proc) != m) continue;
            n += met(&all[k]);
            of += all[k].blocks;
        }
        if (of) printf("%5.1f %% of %6u blocks: %s\n", 100.0 * n / of, of, inlay_module_name(m));
    }
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    if (argc < 3) return fprintf(stderr, "usage: coverage PID SECONDS [PATTERN]\n"), 2;
    process = inlay_process_attach(atoi(argv[1]));
    if (!process) return fail("cannot attach");
    inlay_image *image = inlay_process_image_first(process);
    inlay_image_procs_matching(image, argc > 3 ? argv[3] : "*", cover, NULL);
    if (!count) return fprintf(stderr, "coverage: there is no such procedure\n"), 1;
    if (!inlay_process_commit(process)) return fail("cannot insert");
    fprintf(stderr, "coverage: %u blocks of %u procedures\n", insertions, count);
    sleep((unsigned)atoi(argv[2]));
    for (unsigned k = 0; k < insertions; k++) inlay_remove(inserted[k]);
    if (inlay_process_is_running(process) && !inlay_process_commit(process)) return fail("cannot remove");
    report_procs();
    report_modules(image);
    return !inlay_process_take_out(process);
}
