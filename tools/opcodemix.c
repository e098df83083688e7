/* opcodemix: how often each kind of instruction is executed: by mnemonic and by class, for the whole
 * program, for each image and for each procedure.
 *
 * One counter a basic block; the mix follows afterwards from what each block consists of. A string
 * instruction with a REP prefix counts once. */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where code belongs to. */
typedef struct place {
    struct place *next;
    const char *image, *proc;
    uint64_t address;
    uint64_t *mix; /* by opcode, filled in for the report */
    uint64_t sum;
} place;

/* A block as it was seen: its opcodes, its counter. The same address may hold other code later. */
typedef struct block {
    struct block *next, *other; /* all blocks; those of the same address and length */
    place *where;
    inlay_counter executed;
    unsigned count;
    uint16_t opcodes[];
} block;

/* What instrumentation leaves for the report, in memory that travels into a rewritten program. */
static struct {
    place *places;
    block *blocks;
} * found;
static uint64_t top = 20;
static bool by_proc, by_image;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

static place *place_of(const inlay_block *b)
{
    inlay_proc *proc = inlay_block_proc(b);
    const inlay_image *image = inlay_block_image(b);
    place **p = proc ? inlay_proc_record(proc, sizeof *p) : inlay_record(image ? inlay_image_id(image) : 0, sizeof *p);
    if (!p || *p) return p ? *p : NULL;
    place *made = inlay_alloc(sizeof *made);
    if (!made) return NULL;
    made->image = image ? keep(inlay_image_name(image)) : "[anonymous]";
    made->proc = proc ? keep(inlay_proc_name(proc)) : "[unknown]";
    made->address = proc ? inlay_proc_address(proc) : 0;
    made->next = found->places;
    found->places = made;
    return *p = made;
}

static bool same_code(const block *known, inlay_block *b)
{
    unsigned i = 0;
    for (inlay_insn *in = inlay_block_first(b); in; in = inlay_insn_next(in)) {
        if (known->opcodes[i++] != inlay_insn_opcode(in)) return false;
    }
    return true;
}

/* The record of a block: found again when its code is translated again. */
static block *block_of(inlay_block *b)
{
    unsigned count = inlay_block_insn_count(b);
    block **head = inlay_record(inlay_block_address(b) | (uint64_t)count << 48, sizeof *head);
    if (!head) return NULL;
    for (block *k = *head; k; k = k->other) {
        if (same_code(k, b)) return k;
    }
    block *made = inlay_alloc(sizeof *made + count * sizeof made->opcodes[0]);
    if (!made) return NULL;
    for (inlay_insn *in = inlay_block_first(b); in; in = inlay_insn_next(in)) {
        made->opcodes[made->count++] = (uint16_t)inlay_insn_opcode(in);
    }
    made->where = place_of(b);
    made->other = *head;
    *head = made;
    made->next = found->blocks;
    return found->blocks = made;
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    block *known = block_of(b);
    if (known) inlay_insert(inlay_block_anywhere(b), inlay_count(&known->executed, 1));
}

/* --- the report --- */

typedef struct named {
    const char *name;
    uint64_t count;
} named;

static int larger(const void *a, const void *b)
{
    const named *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Sums a mix up under the names that `name` gives its opcodes; sorted, largest first. */
static size_t group(const uint64_t *mix, const char *(*name)(unsigned), named *out)
{
    size_t n = 0;
    for (unsigned op = 0; op < inlay_opcode_count(); op++) {
        if (!mix[op]) continue;
        size_t i = 0;
        while (i < n && strcmp(out[i].name, name(op)) != 0) i++;
        if (i == n) out[n++] = (named){name(op), 0};
        out[i].count += mix[op];
    }
    qsort(out, n, sizeof *out, larger);
    return n;
}

static void print_mix(const char *title, const uint64_t *mix, uint64_t sum, named *names, const char *(*name)(unsigned))
{
    FILE *out = inlay_out();
    size_t n = group(mix, name, names), shown = top && top < n ? (size_t)top : n;
    fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < shown; i++) {
        fprintf(out, "%16" PRIu64 " %6.2f%%  %s\n", names[i].count, 100.0 * (double)names[i].count / (double)sum,
                names[i].name);
    }
    if (shown < n) fprintf(out, "  ... %zu more (--top=0 shows all)\n", n - shown);
}

static void json_mix(const char *key, const uint64_t *mix, named *names, const char *(*name)(unsigned))
{
    size_t n = group(mix, name, names);
    inlay_json_begin(key, '{');
    for (size_t i = 0; i < n; i++) inlay_json_uint(names[i].name, names[i].count);
    inlay_json_end();
}

static int hotter(const void *a, const void *b)
{
    const place *x = *(place *const *)a, *y = *(place *const *)b;
    if (x->sum != y->sum) return x->sum < y->sum ? 1 : -1;
    int order = strcmp(x->image, y->image);
    return order ? order : strcmp(x->proc, y->proc);
}

/* What an earlier report has summed up (inlay report; that of a forked child's parent) is not in this one. */
static void begin_anew(place *p)
{
    p->sum = 0;
    if (p->mix) memset(p->mix, 0, inlay_opcode_count() * sizeof *p->mix);
}

/* Adds every block to its place and to `all`; returns the places that ran, hottest first. */
static place **add_up(uint64_t *all, uint64_t *total, size_t *count)
{
    size_t made = 0;
    for (place *p = found->places; p; p = p->next, made++) begin_anew(p);
    place **list = calloc(made + 1, sizeof *list);
    if (!list) return NULL;
    for (block *b = found->blocks; b; b = b->next) {
        uint64_t n = inlay_counter_sum(&b->executed);
        place *p = b->where;
        if (!n || !p) continue;
        if (!p->mix) p->mix = calloc(inlay_opcode_count(), sizeof *p->mix);
        if (!p->mix) continue;
        for (unsigned i = 0; i < b->count; i++) {
            p->mix[b->opcodes[i]] += n;
            all[b->opcodes[i]] += n;
        }
        p->sum += n * b->count;
        *total += n * b->count;
    }
    for (place *p = found->places; p; p = p->next) {
        if (p->sum) list[(*count)++] = p;
    }
    qsort(list, *count, sizeof *list, hotter);
    return list;
}

/* Folds the places of one image into one; the result is in the order of the hottest procedure. */
static size_t by_images(place **list, size_t count, place *out)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < n && strcmp(out[k].image, list[i]->image) != 0) k++;
        if (k == n) {
            out[n] = (place){.image = list[i]->image, .mix = calloc(inlay_opcode_count(), sizeof(uint64_t))};
            if (!out[n++].mix) return n - 1;
        }
        for (unsigned op = 0; op < inlay_opcode_count(); op++) out[k].mix[op] += list[i]->mix[op];
        out[k].sum += list[i]->sum;
    }
    return n;
}

static void print_text(place **list, size_t count, place *images, size_t image_count, const uint64_t *all,
                       uint64_t total, named *names)
{
    fprintf(inlay_out(), "%s: %" PRIu64 " instructions\n", inlay_program(), total);
    print_mix("by mnemonic", all, total, names, inlay_opcode_name);
    print_mix("by class", all, total, names, inlay_opcode_class);
    fprintf(inlay_out(), "\nby image\n");
    for (size_t i = 0; i < image_count; i++) {
        fprintf(inlay_out(), "%16" PRIu64 " %6.2f%%  %s\n", images[i].sum,
                100.0 * (double)images[i].sum / (double)total, images[i].image);
    }
    char title[4600], text[4096];
    for (size_t i = 0; by_image && i < image_count; i++) {
        snprintf(title, sizeof title, "image %s: %" PRIu64, images[i].image, images[i].sum);
        print_mix(title, images[i].mix, images[i].sum, names, inlay_opcode_name);
    }
    for (size_t i = 0; by_proc && i < count; i++) {
        snprintf(title, sizeof title, "procedure %s (%s): %" PRIu64, inlay_demangle(list[i]->proc, text, sizeof text),
                 list[i]->image, list[i]->sum);
        print_mix(title, list[i]->mix, list[i]->sum, names, inlay_opcode_name);
    }
}

static void json_places(const char *key, place **list, size_t count, named *names)
{
    char text[4096];
    inlay_json_begin(key, '[');
    for (size_t i = 0; i < count; i++) {
        inlay_json_begin(NULL, '{');
        const char *proc = list[i]->proc, *plain = proc ? inlay_demangle(proc, text, sizeof text) : NULL;
        if (proc) inlay_json_string("name", proc);
        if (plain != proc) inlay_json_string("demangled", plain);
        inlay_json_string("image", list[i]->image);
        if (list[i]->proc) inlay_json_uint("address", list[i]->address);
        inlay_json_uint("instructions", list[i]->sum);
        json_mix("mnemonics", list[i]->mix, names, inlay_opcode_name);
        inlay_json_end();
    }
    inlay_json_end();
}

static void print_json(place **list, size_t count, place *images, size_t image_count, const uint64_t *all,
                       uint64_t total, named *names)
{
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "opcodemix");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_uint("instructions", total);
    json_mix("mnemonics", all, names, inlay_opcode_name);
    json_mix("classes", all, names, inlay_opcode_class);
    place **pointers = calloc(image_count + 1, sizeof *pointers);
    for (size_t i = 0; pointers && i < image_count; i++) pointers[i] = &images[i];
    if (pointers) json_places("images", pointers, image_count, names);
    free(pointers);
    json_places("procedures", list, count, names);
    inlay_json_end();
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    uint64_t total = 0, *all = calloc(inlay_opcode_count(), sizeof *all);
    named *names = calloc(inlay_opcode_count() + 1, sizeof *names);
    size_t count = 0;
    place **list = all && names ? add_up(all, &total, &count) : NULL;
    place *images = list ? calloc(count + 1, sizeof *images) : NULL;
    if (images) {
        size_t image_count = by_images(list, count, images);
        if (inlay_format_is_json()) print_json(list, count, images, image_count, all, total, names);
        else print_text(list, count, images, image_count, all, total, names);
        for (size_t i = 0; i < image_count; i++) free(images[i].mix);
    } else {
        inlay_warn("opcodemix: out of memory, no report");
    }
    free(images);
    free(list);
    free(names);
    free(all);
}

int main(int argc, char **argv)
{
    inlay_option_uint(&top, "top", 'n', "lines of each table as text; 0: all (default 20)");
    inlay_option_flag(&by_image, "by-image", 0, "a table for each image, too");
    inlay_option_flag(&by_proc, "by-proc", 0, "a table for each procedure, too");
    inlay_init(&argc, &argv,
               "executed instructions by mnemonic and class, image and procedure (a REP-prefixed "
               "string instruction counts once)");
    found = inlay_alloc(sizeof *found);
    if (!found) return 1;
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
