/* callgraph: who calls whom, how often, for dot. Calls through pointers are dashed; where they lead into a library that
 * is not instrumented, it is named all the same. inlay run ./callgraph --image ls -o ls.dot -- ls && dot -Tsvg ls.dot
 */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct edge {
    struct edge *next;
    inlay_counter direct;
    uint64_t from, to, indirect;
} edge;

static struct shared {
    inlay_mutex lock;
    edge *edges;
} * shared;

/* The record's key is made of both addresses: two edges of one key are in one list. */
static edge *edge_of(uint64_t from, uint64_t to)
{
    edge **head = inlay_record((from ^ to * 0x9e3779b97f4a7c15) | 1, sizeof *head), *e;
    if (!head) return NULL;
    inlay_lock(&shared->lock);
    for (e = *head; e && (e->from != from || e->to != to); e = e->next) {}
    if (!e && (e = inlay_alloc(sizeof *e))) {
        *e = (edge){.next = *head, .from = from, .to = to};
        *head = e;
    }
    inlay_unlock(&shared->lock);
    return e;
}

static void goes(uint64_t from, uint64_t to)
{
    edge *e = edge_of(from, to);
    if (e) __atomic_fetch_add(&e->indirect, 1, __ATOMIC_RELAXED);
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    const inlay_proc *from = inlay_insn_proc(insn);
    if (!from || !inlay_insn_is_call(insn)) return;
    if (inlay_insn_is_indirect(insn)) {
        inlay_insert(inlay_before(insn),
                     inlay_call(goes, inlay_const(inlay_proc_address(from)), inlay_branch_target()));
        return;
    }
    edge *e = edge_of(inlay_proc_address(from), inlay_insn_target(insn));
    if (e) inlay_insert(inlay_before(insn), inlay_count(&e->direct, 1));
}

static void put_name(uint64_t address)
{
    char text[1024];
    const inlay_proc *p = inlay_proc_at(address);
    const inlay_image *i = inlay_image_at(address);
    snprintf(text, sizeof text, "+%#" PRIx64, i ? address - inlay_image_bias(i) : address);
    const char *name = p ? inlay_demangle(inlay_proc_name(p), text, sizeof text) : text;
    fprintf(inlay_out(), "\"%s (%s)\"", name, i ? inlay_image_name(i) : "?");
}

static void put_edge(const edge *e, uint64_t count, const char *style)
{
    if (!count) return;
    put_name(e->from);
    fputs(" -> ", inlay_out());
    put_name(e->to);
    fprintf(inlay_out(), " [label=%" PRIu64 "%s];\n", count, style);
}

static void each_list(uint64_t key, void *head, void *arg)
{
    (void)key, (void)arg;
    for (const edge *e = *(edge **)head; e; e = e->next) {
        put_edge(e, inlay_counter_sum(&e->direct), "");
        put_edge(e, e->indirect, ", style=dashed");
    }
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "digraph \"%s\" {\n", inlay_program());
    inlay_records(each_list, NULL);
    fprintf(inlay_out(), "}\n");
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "a graph of calls, those through pointers included");
    shared = inlay_alloc(sizeof *shared);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
