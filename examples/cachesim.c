/* cachesim: which source lines miss a data cache. Each thread has one of its own, of SETS sets of WAYS lines; the least
 * recently used makes room. inlay run ./cachesim --image app -- ./app: "4194304 accesses, 524288 misses: matrix.c:31"
 * Accesses go into a buffer, and the cache sees thousands at a time: a call for each would cost ten times as much. */
#include <inlay.h>

#include <stdlib.h>
#include <string.h>

enum { LINE = 64, SETS = 64, WAYS = 8 };

typedef uint64_t cache[SETS][WAYS]; /* address / LINE, the most recently used first; 0: none */
typedef struct site {               /* the record of a source line, or of a procedure that has none */
    uint64_t accesses, misses;
    char name[];
} site;
typedef struct access { /* of a repeated instruction several, one behind the other */
    site *by;
    uint64_t address, size, times;
} access;

static inlay_local *caches;
static inlay_buffer *buffer;
static site **list;
static size_t count;

static uint64_t is_miss(uint64_t (*c)[WAYS], uint64_t tag)
{
    uint64_t *set = c[tag % SETS], k = 0;
    while (k < WAYS - 1 && set[k] != tag) k++;
    uint64_t last = set[k];
    if (k) memmove(set + 1, set, k * sizeof *set);
    return (set[0] = tag) != last;
}

static void full(const void *records, size_t n, unsigned thread, void *arg)
{
    (void)thread, (void)arg;
    uint64_t(*mine)[WAYS] = inlay_local_now(caches);
    for (const access *a = records; n--; a++) {
        uint64_t misses = 0, at = a->address;
        for (uint64_t k = 0; k < a->times; k++, at += a->size)
            misses += is_miss(mine, at / LINE) | is_miss(mine, (at + a->size - 1) / LINE);
        __atomic_fetch_add(&a->by->accesses, a->times, __ATOMIC_RELAXED);
        __atomic_fetch_add(&a->by->misses, misses, __ATOMIC_RELAXED);
    }
}

static site *site_of(inlay_insn *insn)
{
    char name[256];
    const char *file;
    unsigned line;
    const inlay_proc *p = inlay_insn_proc(insn);
    if (inlay_line_at(inlay_insn_address(insn), &file, &line)) snprintf(name, sizeof name, "%s:%u", file, line);
    else snprintf(name, sizeof name, "%s", p ? inlay_proc_name(p) : "?");
    uint64_t key = 14695981039346656037u; /* of the name */
    for (const char *c = name; *c; c++) key = (key ^ (uint8_t)*c) * 1099511628211;
    site *s = inlay_record(key, sizeof *s + strlen(name) + 1);
    return s ? strcpy(s->name, name), s : NULL;
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    for (unsigned k = 0; k < inlay_insn_memory_count(insn); k++) {
        inlay_memory m = inlay_insn_memory(insn, k);
        site *s = (m.read || m.write) && !m.masked ? site_of(insn) : NULL;
        inlay_expr times = m.repeated ? inlay_rep_count() : inlay_const(1), size = inlay_access_size(k);
        inlay_field of[] = {{8, inlay_pointer(s)}, {8, inlay_effective_address(k)}, {8, size}, {8, times}};
        if (s) (m.repeated ? inlay_insert_predicated : inlay_insert)(inlay_before(insn), inlay_append_array(buffer, 4, of));
    }
}

static int by_misses(const void *a, const void *b) { return (*(site **)a)->misses < (*(site **)b)->misses ? 1 : -1; }

static void add(uint64_t key, void *record, void *arg)
{
    (void)key, (void)arg;
    if (((site *)record)->accesses && (list = realloc(list, (count + 1) * sizeof *list))) list[count++] = record;
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    inlay_records(add, NULL);
    qsort(list, count, sizeof *list, by_misses);
    for (site **s = list; s < list + count; s++)
        fprintf(inlay_out(), "%ju accesses, %ju misses: %s\n", (*s)->accesses, (*s)->misses, (*s)->name);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "data-cache misses of each source line");
    caches = inlay_local_new(sizeof(cache));
    buffer = inlay_buffer_new(sizeof(access), 8192, full, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
