/* A mutator that counts entries and exits of all procedures of some images of a process, and obeys lines, of which it
 * answers each with one:
 *
 *     in PID IMAGE...   attaches, unless it has done so, inserts, commits; answers how many procedures
 *     sums              answers entries, exits, and procedures whose two numbers differ by more than one:
 * NAME=ENTRIES/EXITS off               removes what was inserted, and commits out               and takes its file out
 * of the process toggle N          switches the procedure that was entered most off and on, N times; answers its name
 * and entries by then
 *
 * Images are named by how their names begin. What cannot be done because the process has ended is answered `gone`. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct both {
    long entries, exits; /* shared with the process */
} both;

typedef struct counted {
    inlay_proc *proc;
    inlay_insertion *entry, *exit;
} counted;

enum { MOST = 200000 };

static inlay_process *process;
static counted procs[MOST];
static both *counts;
static size_t count;
static inlay_switch *hot;

static bool fail(const char *what)
{
    if (process && !inlay_process_is_running(process)) {
        inlay_process_let_go(process);
        process = NULL;
        count = 0;
        printf("gone\n");
    } else {
        printf("no %s: %s\n", what, inlay_process_error());
    }
    return false;
}

static inlay_expr one_more(long *of) { return inlay_atomic_add(inlay_pointer(of), inlay_const(1), 8); }

static bool is_named(const char *name, char *images)
{
    char all[1024], *rest;
    snprintf(all, sizeof all, "%s", images);
    for (char *one = strtok_r(all, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
        if (!strncmp(name, one, strlen(one))) return true;
    return false;
}

static bool insert(inlay_proc *p)
{
    inlay_block *first = inlay_proc_block_first(p);
    if (first && inlay_block_flags(first) & INLAY_BLOCK_TARGET) return true; /* it is entered once more by a loop */
    counted *c = &procs[count];
    c->proc = p;
    c->entry = inlay_insert(inlay_proc_entry(p), one_more(&counts[count].entries));
    c->exit = inlay_insert(inlay_proc_exit(p), one_more(&counts[count].exits));
    return ++count < MOST && c->entry && c->exit;
}

static bool put_in(int pid, char *images)
{
    if (!process) {
        process = inlay_process_attach(pid);
        counts = process ? inlay_process_share(process, MOST * sizeof *counts) : NULL;
        if (!counts) {
            fail("attach"); /* it ends just then, maybe */
            if (process) inlay_process_let_go(process);
            process = NULL;
            return false;
        }
    }
    memset(counts, 0, MOST * sizeof *counts);
    count = 0;
    for (inlay_image *i = inlay_process_image_first(process); i; i = inlay_image_next(i))
        for (inlay_proc *p = is_named(inlay_image_name(i), images) ? inlay_image_proc_first(i) : NULL; p;
             p = inlay_proc_next(p))
            if (!insert(p)) return fail("insert");
    if (!inlay_process_commit(process)) return fail("commit");
    return printf("%zu\n", count) > 0;
}

static bool sums(void)
{
    long entries = 0, exits = 0;
    for (size_t k = 0; k < count; k++) entries += counts[k].entries, exits += counts[k].exits;
    printf("%ld %ld", entries, exits);
    for (size_t k = 0; k < count; k++)
        if (labs(counts[k].entries - counts[k].exits) > 1)
            printf(" %s=%ld/%ld", inlay_proc_name(procs[k].proc), counts[k].entries, counts[k].exits);
    return printf("\n") > 0;
}

static bool take_off(void)
{
    for (size_t k = 0; k < count; k++)
        if (!inlay_remove(procs[k].entry) || !inlay_remove(procs[k].exit)) return fail("remove");
    count = 0;
    if (!inlay_process_commit(process)) return fail("commit");
    return printf("off\n") > 0;
}

static bool take_out(void)
{
    if (process && !inlay_process_take_out(process)) return fail("take out");
    process = NULL;
    return printf("out\n") > 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static long entries_meanwhile(const both *of)
{
    usleep(100000); /* who has begun by then may count once more */
    long before = *(volatile const long *)&of->entries;
    usleep(500000);
    return *(volatile const long *)&of->entries - before;
}

static bool toggle(long times)
{
    size_t k = 0;
    bool good = true;
    for (size_t i = 0; i < count; i++)
        if (counts[i].entries > counts[k].entries) k = i;
    good = inlay_remove(procs[k].entry);
    procs[k].entry = inlay_insert(inlay_proc_entry(procs[k].proc), inlay_switched(hot, one_more(&counts[k].entries)));
    if (!good || !procs[k].entry || !inlay_process_commit(process)) return fail("switch");
    double began = now();
    for (long i = 0; i < times && good; i++) good = inlay_switch_set(hot, i & 1);
    double each = (now() - began) / (double)times;
    if (!good || !inlay_switch_set(hot, false)) return fail("toggle");
    long off = entries_meanwhile(&counts[k]);
    if (!inlay_switch_set(hot, true)) return fail("toggle");
    long on = entries_meanwhile(&counts[k]);
    return printf("%.0f %s %ld %ld\n", each, inlay_proc_name(procs[k].proc), off, on) > 0;
}

static bool obey(char *line)
{
    int at = 0, pid;
    long times;
    if (sscanf(line, "in %d %n", &pid, &at) == 1) return put_in(pid, line + at);
    if (sscanf(line, "toggle %ld", &times) == 1) return toggle(times);
    if (!strcmp(line, "sums")) return sums();
    if (!strcmp(line, "off")) return take_off();
    if (!strcmp(line, "out")) return take_out();
    return printf("no such order\n") > 0;
}

int main(int argc, char **argv)
{
    char line[1200];
    inlay_mutator(&argc, &argv);
    hot = inlay_switch_new(true);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        obey(line);
        fflush(stdout);
    }
    return 0;
}
