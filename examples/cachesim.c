/* cachesim: which source lines miss a data cache. Each thread has one of its own, of SETS sets of WAYS lines; the least
 * recently used makes room. inlay run ./cachesim --image app -- ./app: "4194304 accesses, 524288 misses: matrix.c:31"
 */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, SETS = 64, WAYS = 8 };

typedef uint64_t cache[SETS][WAYS]; /* address / LINE, the most recently used first; 0: none */
typedef struct site {               /* the record of a source line, or of a procedure that has none */
    uint64_t accesses, misses;
    const char *name;
} site;

static inlay_local *caches;
static site **list;
static size_t count;

static bool is_hit(uint64_t *set, uint64_t tag)
{
    unsigned k = 0;
    while (k < WAYS - 1 && set[k] != tag) k++;
    bool hit = set[k] == tag;
    memmove(set + 1, set, k * sizeof *set);
    set[0] = tag;
    return hit;
}

static void access_to(site *s, uint64_t (*c)[WAYS], uint64_t address, uint64_t size)
{
    for (uint64_t tag = address / LINE; tag <= (address + size - 1) / LINE; tag++) {
        __atomic_fetch_add(&s->accesses, 1, __ATOMIC_RELAXED);
        if (!is_hit(c[tag % SETS], tag)) __atomic_fetch_add(&s->misses, 1, __ATOMIC_RELAXED);
    }
}

static site *site_of(inlay_insn *insn)
{
    char name[512];
    const char *file;
    unsigned line;
    const inlay_proc *p = inlay_insn_proc(insn);
    if (inlay_line_at(inlay_insn_address(insn), &file, &line)) snprintf(name, sizeof name, "%s:%u", file, line);
    else snprintf(name, sizeof name, "%s", p ? inlay_proc_name(p) : "?");
    uint64_t key = 14695981039346656037u; /* of the name */
    for (const char *c = name; *c; c++) key = (key ^ (uint8_t)*c) * 1099511628211;
    site *s = inlay_record(key, sizeof *s);
    char *kept = s && !s->name ? inlay_alloc(strlen(name) + 1) : NULL;
    if (kept) s->name = strcpy(kept, name);
    return s && s->name ? s : NULL;
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    for (unsigned k = 0; k < inlay_insn_memory_count(insn); k++) {
        inlay_memory m = inlay_insn_memory(insn, k);
        site *s = (m.read || m.write) && !m.masked ? site_of(insn) : NULL;
        inlay_expr mine = inlay_local_address(caches), at = inlay_effective_address(k), size = inlay_access_size(k);
        if (s) inlay_insert_predicated(inlay_before(insn), inlay_call(access_to, inlay_pointer(s), mine, at, size));
    }
}

static void add(uint64_t key, void *record, void *arg)
{
    (void)key, (void)arg;
    if (!((site *)record)->accesses) return;
    list = realloc(list, (count + 1) * sizeof *list);
    if (list) list[count++] = record;
}

static int by_misses(const void *a, const void *b)
{
    const site *x = *(site *const *)a, *y = *(site *const *)b;
    return x->misses == y->misses ? strcmp(x->name, y->name) : x->misses < y->misses ? 1 : -1;
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    inlay_records(add, NULL);
    qsort(list, count, sizeof *list, by_misses);
    for (site **s = list; s < list + count; s++)
        fprintf(inlay_out(), "%" PRIu64 " accesses, %" PRIu64 " misses: %s\n", (*s)->accesses, (*s)->misses,
                (*s)->name);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "data-cache misses of each source line");
    caches = inlay_local_new(sizeof(cache));
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
