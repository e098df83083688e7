/* callgraph: who calls whom, how often, for dot; a jump to another procedure's entry is a call too. Those through
 * pointers are dashed; where they lead into a library that is not instrumented, it is named all the same.
 *
 *     inlay run ./callgraph --image ls -o ls.dot -- ls && dot -Tsvg ls.dot */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

typedef struct edge { /* the record of two procedures' numbers */
    inlay_counter direct;
    uint64_t indirect;
    const char *from, *to;
} edge;

static uint64_t number_of(const inlay_proc *p) { return p ? inlay_proc_id(p) + 1 : 0; }

/* Names are kept: their image may be gone when they are wanted. */
static const char *name_of(const inlay_proc *p)
{
    if (!p) return "?";
    const char *name = inlay_proc_name(p), *image = inlay_image_name(inlay_proc_image(p));
    char *kept = inlay_alloc(strlen(name) + strlen(image) + 2);
    return kept ? sprintf(kept, "%s/%s", image, name), kept : "?";
}

static edge *edge_of(const inlay_proc *from, const inlay_proc *to)
{
    edge *e = inlay_record(number_of(from) << 32 | number_of(to), sizeof *e);
    if (e && !e->from) {
        e->to = name_of(to);
        e->from = name_of(from);
    }
    return e;
}

static void goes(const inlay_proc *from, uint64_t target, bool is_call)
{
    const inlay_proc *to = inlay_proc_at(target);
    edge *e = is_call || from != to ? edge_of(from, to) : NULL;
    if (e) __atomic_fetch_add(&e->indirect, 1, __ATOMIC_RELAXED);
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    bool is_call = inlay_insn_is_call(insn);
    if (!inlay_insn_is_branch(insn) || inlay_insn_is_return(insn)) return;
    const inlay_proc *from = inlay_insn_proc(insn), *to = inlay_proc_at(inlay_insn_target(insn));
    if (inlay_insn_is_indirect(insn)) {
        inlay_expr call = inlay_call(goes, inlay_pointer(from), inlay_branch_target(), inlay_const(is_call));
        inlay_insert(inlay_before(insn), call);
        return;
    }
    bool at_entry = to && inlay_proc_address(to) == inlay_insn_target(insn);
    edge *e = is_call || (at_entry && to != from) ? edge_of(from, to) : NULL;
    if (e) inlay_insert(inlay_taken_edge(insn), inlay_count(&e->direct, 1));
}

static void put_name(const char *kept)
{
    char text[1024];
    size_t image = strcspn(kept, "/");
    const char *name = kept[image] ? inlay_demangle(kept + image + 1, text, sizeof text) : "?";
    fprintf(inlay_out(), "\"%s (%.*s)\"", name, (int)image, kept);
}

static void put_edge(const edge *e, uint64_t count, const char *style)
{
    if (!count) return;
    put_name(e->from);
    fputs(" -> ", inlay_out());
    put_name(e->to);
    fprintf(inlay_out(), " [label=%" PRIu64 "%s];\n", count, style);
}

static void each_edge(uint64_t key, void *record, void *arg)
{
    (void)key, (void)arg;
    const edge *e = record;
    put_edge(e, inlay_counter_sum(&e->direct), "");
    put_edge(e, e->indirect, ", style=dashed");
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "digraph \"%s\" {\n", inlay_program());
    inlay_records(each_edge, NULL);
    fprintf(inlay_out(), "}\n");
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "a graph of calls, those through pointers included");
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
