/* prof: instructions executed in each procedure, hottest first, with file:line where known.
 *
 * One counter a procedure; each basic block adds its number of instructions. Code outside any known
 * procedure is summed up by image, and what lies in no file at all under [anonymous]. A string
 * instruction with a REP prefix counts once. */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    struct row *next;
    inlay_counter instructions;
    uint64_t address; /* of the procedure, 0 for a rest */
    const char *proc, *image, *file;
    unsigned line;
    uint64_t sum; /* filled in for the report */
} row;

/* What instrumentation leaves for the report, in memory that travels into a rewritten program. */
static struct {
    row *rows;
    size_t row_count;
} * found;
static uint64_t top = 30;
static bool lines = true;

static const char *keep(const char *s)
{
    char *copy = s ? inlay_alloc(strlen(s) + 1) : NULL;
    return copy ? strcpy(copy, s) : "?";
}

static row *add_row(const char *proc, const inlay_image *image, uint64_t address)
{
    row *r = inlay_alloc(sizeof *r);
    if (!r) return NULL;
    r->proc = keep(proc);
    r->image = image ? keep(inlay_image_name(image)) : "[anonymous]";
    r->address = address;
    r->next = found->rows;
    found->rows = r;
    found->row_count++;
    return r;
}

/* The row of a block's procedure, or of the rest of its image. */
static row *row_of(const inlay_block *block)
{
    inlay_proc *proc = inlay_block_proc(block);
    const inlay_image *image = inlay_block_image(block);
    row **place = proc ? inlay_proc_record(proc, sizeof *place)
                       : inlay_record(image ? inlay_image_id(image) : 0, sizeof *place);
    if (!place) return NULL;
    if (!*place) {
        *place = add_row(proc ? inlay_proc_name(proc) : "[unknown]", image, proc ? inlay_proc_address(proc) : 0);
    }
    return *place;
}

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    row *r = row_of(block);
    if (!r) return;
    inlay_insert(inlay_block_anywhere(block), inlay_count(&r->instructions, inlay_block_insn_count(block)));
}

static int hotter(const void *a, const void *b)
{
    const row *x = *(row *const *)a, *y = *(row *const *)b;
    if (x->sum != y->sum) return x->sum < y->sum ? 1 : -1;
    int by_image = strcmp(x->image, y->image);
    if (by_image) return by_image;
    int by_name = strcmp(x->proc, y->proc);
    return by_name ? by_name : x->address < y->address ? -1 : x->address > y->address;
}

/* All rows that were executed, sorted; *total is their sum. */
static row **sorted(size_t *count, uint64_t *total)
{
    row **list = calloc(found->row_count + 1, sizeof *list);
    *count = 0;
    *total = 0;
    for (row *r = found->rows; list && r; r = r->next) {
        r->sum = inlay_counter_sum(&r->instructions);
        if (!r->sum) continue;
        list[(*count)++] = r;
        *total += r->sum;
    }
    if (list) qsort(list, *count, sizeof *list, hotter);
    return list;
}

static void print_text(row **list, size_t count, size_t shown, uint64_t total)
{
    FILE *out = inlay_out();
    fprintf(out, "%s: %" PRIu64 " instructions in %zu procedures\n\n", inlay_program(), total, count);
    fprintf(out, "%16s %7s %7s  %s\n", "instructions", "share", "sum", "procedure");
    uint64_t sum = 0;
    char name[4096];
    for (size_t i = 0; i < shown; i++) {
        row *r = list[i];
        sum += r->sum;
        fprintf(out, "%16" PRIu64 " %6.2f%% %6.2f%%  %s (%s)", r->sum, 100.0 * (double)r->sum / (double)total,
                100.0 * (double)sum / (double)total, inlay_demangle(r->proc, name, sizeof name), r->image);
        if (r->file) fprintf(out, " %s:%u", r->file, r->line);
        fputc('\n', out);
    }
    if (shown < count) fprintf(out, "  ... %zu more (--top=0 shows all)\n", count - shown);
}

static void print_json(row **list, size_t count, uint64_t total)
{
    char text[4096];
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "prof");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_uint("instructions", total);
    inlay_json_begin("procedures", '[');
    for (size_t i = 0; i < count; i++) {
        row *r = list[i];
        inlay_json_begin(NULL, '{');
        const char *plain = inlay_demangle(r->proc, text, sizeof text);
        inlay_json_string("name", r->proc);
        if (plain == text) inlay_json_string("demangled", plain);
        inlay_json_string("image", r->image);
        inlay_json_uint("address", r->address);
        inlay_json_uint("instructions", r->sum);
        inlay_json_string("file", r->file);
        if (r->file) inlay_json_uint("line", r->line);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    size_t count;
    uint64_t total;
    row **list = sorted(&count, &total);
    if (!list) return;
    size_t shown = top && top < count ? (size_t)top : count;
    for (size_t i = 0; lines && i < shown; i++) {
        const char *file;
        if (list[i]->address && inlay_line_at(list[i]->address, &file, &list[i]->line)) { list[i]->file = keep(file); }
    }
    if (inlay_format_is_json()) print_json(list, count, total);
    else print_text(list, count, shown, total);
    free(list);
}

int main(int argc, char **argv)
{
    inlay_option_uint(&top, "top", 'n', "how many procedures to show as text; 0: all (default 30)");
    inlay_option_flag(&lines, "lines", 0, "show file:line where known (default; --no-lines: do not)");
    inlay_init(&argc, &argv,
               "instructions in each procedure, hottest first (a REP-prefixed string instruction "
               "counts once)");
    found = inlay_alloc(sizeof *found);
    if (!found) return 1;
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
