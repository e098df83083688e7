/* drcov: which basic blocks were executed, in the form that coverage viewers read (lighthouse, bncov, cartographer): a
 * text head, the modules, then 8 bytes for each block: offset in its module, size, number of the module.
 *
 *     inlay run ./drcov -o ls.drcov -- ls
 *
 * A block leaves a byte when it runs; nothing is counted and nothing called. Under the JIT one of more than 256
 * instructions is several, side by side. */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>

typedef struct module { /* what the report says of an image, which may be gone by then; the record of its number */
    struct module *next;
    uint64_t low, high, entry;
    unsigned number;
    char path[512];
} module;
typedef struct block { /* the record of its image and where it lies in there: another image may have the address later
                        */
    const module *in;
    uint32_t start;
    uint16_t size;
    bool executed;
} block;
typedef struct entry {
    uint32_t start;
    uint16_t size, module;
} entry;

static struct shared {
    module *modules, **end;
    unsigned count;
} * shared;
static struct list {
    entry *items;
    size_t count, room;
} list;

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    module *m = inlay_record(inlay_image_id(image), sizeof *m);
    if (!m) return;
    *m = (module){.low = inlay_image_low(image), .high = inlay_image_high(image), .number = shared->count++};
    m->entry = inlay_image_entry(image);
    snprintf(m->path, sizeof m->path, "%s", inlay_image_path(image));
    if (!shared->end) shared->end = &shared->modules;
    *shared->end = m;
    shared->end = &m->next;
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    const inlay_image *image = inlay_block_image(b);
    const module *in = image ? inlay_record(inlay_image_id(image), sizeof *in) : NULL;
    uint64_t start = in ? inlay_block_address(b) - in->low : 0;
    block *r = in ? inlay_record((uint64_t)inlay_image_id(image) << 32 | start, sizeof *r) : NULL;
    if (!r) return;
    *r = (block){.in = in, .start = (uint32_t)start, .size = (uint16_t)inlay_block_size(b), .executed = r->executed};
    inlay_insert(inlay_block_anywhere(b), inlay_store(inlay_pointer(&r->executed), inlay_const(1), 1));
}

static void add(uint64_t key, void *record, void *arg)
{
    (void)arg;
    const block *b = record;
    if (key <= UINT32_MAX || !b->executed) return; /* a module; never reached */
    if (list.count == list.room)
        list.items = realloc(list.items, (list.room = list.room * 2 + 1000) * sizeof *list.items);
    if (list.items) list.items[list.count++] = (entry){b->start, b->size, (uint16_t)b->in->number};
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    FILE *out = inlay_out();
    inlay_records(add, NULL);
    fprintf(out, "DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\nModule Table: version 2, count %u\n", shared->count);
    fprintf(out, "Columns: id, base, end, entry, path\n");
    for (const module *m = shared->modules; m; m = m->next)
        fprintf(out, "%3u, 0x%016" PRIx64 ", 0x%016" PRIx64 ", 0x%016" PRIx64 ", %s\n", m->number, m->low, m->high,
                m->entry, m->path);
    fprintf(out, "BB Table: %zu bbs\n", list.count);
    fwrite(list.items, sizeof *list.items, list.count, out);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "the basic blocks that were executed, as a drcov file");
    shared = inlay_alloc(sizeof *shared);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
