#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = 65536, PLACES = 65536 };

struct proc { char *name; long calls, self, total, active; };
struct arc { int from, to; long count; };
struct frame { int proc; unsigned long sp, since, below; };

static struct proc *procs;
static int count, room;
static struct arc arcs[PLACES]; /* hashed; free: count is 0 */
static struct frame stack[DEPTH];
static int depth;

static void reserve(int n)
{
    if (n < room) return;
    procs = realloc(procs, 2 * (n + 64) * sizeof *procs);
    for (; room < 2 * (n + 64); room++) procs[room] = (struct proc){0};
}

void Name(int n, char *name)
{
    reserve(n);
    procs[n].name = name;
}

void Open(int n)
{
    reserve(n);
    count = n;
}

static void add_arc(int from, int to)
{
    unsigned k = (from * 40503u + to) % PLACES, tries;
    for (tries = 0; tries < PLACES; tries++, k = (k + 1) % PLACES) {
        struct arc *a = &arcs[k];
        if (a->count && (a->from != from || a->to != to)) continue;
        a->from = from;
        a->to = to;
        a->count++;
        return;
    }
}

static void pop(unsigned long now)
{
    struct frame *f = &stack[--depth];
    struct proc *p = &procs[f->proc];
    unsigned long spent = now - f->since;
    p->self += spent - f->below;
    if (--p->active == 0) p->total += spent;
    if (depth) stack[depth - 1].below += spent;
}

/* Frames below which the stack has gone back were left by longjmp or an exception. The first thread's only. */
void Enter(int n, unsigned long sp, unsigned long now)
{
    while (depth && stack[depth - 1].sp < sp) pop(now);
    if (depth == DEPTH) return;
    add_arc(depth ? stack[depth - 1].proc : -1, n);
    procs[n].calls++;
    procs[n].active++;
    stack[depth++] = (struct frame){n, sp, now, 0};
}

void Leave(int n, unsigned long sp, unsigned long now)
{
    while (depth && stack[depth - 1].sp < sp) pop(now);
    if (depth && stack[depth - 1].proc == n && stack[depth - 1].sp == sp) pop(now);
}

static int by_names(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

void Report()
{
    FILE *f = fopen("gprof.out", "w");
    int i, times = getenv("GPROF_CALLS_ONLY") == NULL;
    while (depth) pop(stack[depth - 1].since + stack[depth - 1].below);
    for (i = 0; i < count; i++) {
        if (procs[i].calls == 0) continue;
        fprintf(f, "%-32s %10ld calls", procs[i].name, procs[i].calls);
        if (times) fprintf(f, " %14ld cycles, %14ld of its own", procs[i].total, procs[i].self);
        fprintf(f, "\n");
    }
    qsort(arcs, PLACES, sizeof *arcs, by_names);
    for (i = 0; i < PLACES; i++)
        if (arcs[i].count)
            fprintf(f, "%s -> %s %ld\n", arcs[i].from < 0 ? "-" : procs[arcs[i].from].name,
                    procs[arcs[i].to].name, arcs[i].count);
    fclose(f);
}
