/* inlay info: what the analysis of a whole program finds, without writing or running anything.
 *
 * Text is for reading; JSON (--format=json) has the same facts under one name each. With --proc, the
 * procedures whose names match are listed as well, and with --blocks their blocks and edges. */
#include "cli/cli.h"

#include "base/json_text.h"
#include "cfg/program.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *program, *output, *pattern;
    bool json, blocks;
} request;

typedef struct reason {
    const char *text;
    uint32_t count;
    uint64_t bytes;
} reason;

enum { max_reasons = 32 };
typedef struct summary {
    uint32_t procs[2]; /* by status */
    uint32_t exact;
    uint32_t loops;
    reason partly[max_reasons];
    size_t partly_count;
} summary;

static const char *const status_names[] = {"whole", "partly"};
static const char *const table_kinds[] = {"absolute", "relative", "code"};
static const char *const edge_names[] = {"fall", "taken", "not taken", "jump", "table", "returned", "tail"};

/* clang-format off */
static const struct {
    uint32_t flag;
    const char *name;
} block_names[] = {
    {CFG_BLOCK_ENTRY, "entry"}, {CFG_BLOCK_TABLE, "table"}, {CFG_BLOCK_LANDING, "landing pad"},
    {CFG_BLOCK_ADDRESS_TAKEN, "address taken"}, {CFG_BLOCK_OUTSIDE, "outside"}, {CFG_BLOCK_CALL, "call"},
    {CFG_BLOCK_NO_RETURN, "no return"}, {CFG_BLOCK_RETURN, "return"}, {CFG_BLOCK_LOOP_HEAD, "loop head"},
    {CFG_BLOCK_UNRESOLVED, "unresolved"}, {CFG_BLOCK_TAIL_IND, "indirect tail"},
};
/* clang-format on */

/* --- gathering --- */

static size_t add_reason(reason *list, size_t count, const cfg_proc *p)
{
    size_t i = 0;
    while (i < count && strcmp(list[i].text, p->reason) != 0) i++;
    if (i == max_reasons) return count;
    if (i == count) list[count++] = (reason){.text = p->reason};
    list[i].count++;
    list[i].bytes += p->size;
    return count;
}

static int by_count(const void *a, const void *b)
{
    const reason *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->text, y->text);
}

static void sum_up(const cfg_program *p, summary *s)
{
    for (uint32_t i = 0; i < p->proc_count; i++) {
        const cfg_proc *q = &p->procs[i];
        s->procs[q->status]++;
        if (q->status == CFG_PROC_PARTLY) s->partly_count = add_reason(s->partly, s->partly_count, q);
    }
    for (uint32_t i = 0; i < p->table_count; i++) s->exact += p->tables[i].exact;
    for (uint32_t i = 0; i < p->block_count; i++) s->loops += (p->blocks[i].flags & CFG_BLOCK_LOOP_HEAD) != 0;
    qsort(s->partly, s->partly_count, sizeof(reason), by_count);
}

static const char *kind_of(const cfg_program *p)
{
    bool interp = image_interp(p->image);
    if (image_type(p->image) == ET_EXEC) return interp ? "program" : "static program";
    if (interp) return "position-independent program";
    return image_entry(p->image) ? "static position-independent program or shared object" : "shared object";
}

static double share(const cfg_program *p)
{
    return p->text_bytes ? 100.0 * (double)p->covered_bytes / (double)p->text_bytes : 0;
}

static const char *name_of(const cfg_proc *q, char made[32])
{
    if (q->name) return q->name;
    snprintf(made, 32, "sub_%" PRIx64, q->addr);
    return made;
}

static bool matches(const request *r, const cfg_proc *q)
{
    char made[32];
    image_place place;
    if (r->pattern && image_place_read(r->pattern, &place))
        return !place.image[0] && image_place_has(&place, q->addr, q->size);
    return r->pattern && image_name_matches(name_of(q, made), r->pattern);
}

/* --- text --- */

static void text_flags(FILE *f, uint32_t flags)
{
    for (size_t i = 0; i < sizeof block_names / sizeof *block_names; i++)
        if (flags & block_names[i].flag) fprintf(f, ", %s", block_names[i].name);
    fputc('\n', f);
}

static void text_blocks(FILE *f, const cfg_program *p, const cfg_proc *q)
{
    for (uint32_t i = 0; i < q->block_count; i++) {
        const cfg_block *b = &p->blocks[q->first_block + i];
        fprintf(f, "    %" PRIx64 "  %u bytes, %u instructions", b->addr, b->size, b->insn_count);
        text_flags(f, b->flags);
        for (uint32_t k = 0; k < b->edge_count; k++) {
            const cfg_edge *e = &p->edges[b->first_edge + k];
            fprintf(f, "      %s %" PRIx64 "%s\n", edge_names[e->kind], (uint64_t)e->target, e->back ? " (loop)" : "");
        }
    }
}

static void text_proc(FILE *f, const request *r, const cfg_program *p, const cfg_proc *q)
{
    char made[32];
    fprintf(f, "\n%s  %" PRIx64 ", %" PRIu64 " bytes, %s%s%s\n", name_of(q, made), q->addr, q->size,
            status_names[q->status], q->reason ? ": " : "", q->reason ? q->reason : "");
    if (r->blocks) text_blocks(f, p, q);
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (t->jump - q->addr >= q->size) continue;
        fprintf(f, "    jump at %" PRIx64 ": table %" PRIx64 ", %u %s entries%s%s\n", t->jump, t->table, t->count,
                table_kinds[t->kind], t->exact ? "" : ", as many as make sense",
                t->named_at || t->kind == CFG_TABLE_CODE ? "" : ", named in several places");
    }
    for (uint32_t i = 0; i < q->block_count; i++) {
        const cfg_block *b = &p->blocks[q->first_block + i];
        if (b->flags & CFG_BLOCK_UNRESOLVED)
            fprintf(f, "    the block at %" PRIx64 " ends with a jump to where is not known\n", b->addr);
    }
}

static void text_reasons(FILE *f, const reason *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(f, "    %8u  %s (%" PRIu64 " bytes)\n", list[i].count, list[i].text, list[i].bytes);
}

static void print_text(FILE *f, const request *r, const cfg_program *p, const summary *s)
{
    fprintf(f, "%s: %s, %s\n", image_path(p->image), kind_of(p), p->isa->name);
    fprintf(f, "procedures  %u\n", p->proc_count);
    fprintf(f, "  whole     %u\n", s->procs[CFG_PROC_WHOLE]);
    fprintf(f, "  partly    %u\n", s->procs[CFG_PROC_PARTLY]);
    text_reasons(f, s->partly, s->partly_count);
    fprintf(f, "blocks      %u\n", p->block_count);
    fprintf(f, "edges       %u\n", p->edge_count);
    fprintf(f, "loops       %u\n", s->loops);
    fprintf(f, "tables      %u (%u exact, %u read until they stop making sense)\n", p->table_count, s->exact,
            p->table_count - s->exact);
    fprintf(f, "text bytes  %" PRIu64 " (%.2f %% in whole procedures)\n", p->text_bytes, share(p));
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (matches(r, &p->procs[i])) text_proc(f, r, p, &p->procs[i]);
}

/* --- JSON --- */

static void json_reasons(FILE *f, const char *key, const reason *list, size_t count)
{
    fprintf(f, "  \"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        fprintf(f, "%s\n    {\"reason\": ", i ? "," : "");
        inl_json_text(f, list[i].text, "");
        fprintf(f, ", \"procedures\": %u, \"bytes\": %" PRIu64 "}", list[i].count, list[i].bytes);
    }
    fprintf(f, "%s],\n", count ? "\n  " : "");
}

static void json_block(FILE *f, const cfg_program *p, const cfg_block *b)
{
    bool first = true;
    fprintf(f, "{\"address\": %" PRIu64 ", \"size\": %u, \"instructions\": %u, \"flags\": [", b->addr, b->size,
            b->insn_count);
    for (size_t i = 0; i < sizeof block_names / sizeof *block_names; i++) {
        if (!(b->flags & block_names[i].flag)) continue;
        fprintf(f, "%s\"%s\"", first ? "" : ", ", block_names[i].name);
        first = false;
    }
    fputs("], \"edges\": [", f);
    for (uint32_t i = 0; i < b->edge_count; i++) {
        const cfg_edge *e = &p->edges[b->first_edge + i];
        fprintf(f, "%s{\"kind\": \"%s\", \"target\": %" PRIu64 ", \"loop\": %s}", i ? ", " : "", edge_names[e->kind],
                (uint64_t)e->target, e->back ? "true" : "false");
    }
    fputs("]}", f);
}

static void json_tables(FILE *f, const cfg_program *p, const cfg_proc *q)
{
    const char *between = "";
    fputs(", \"tables\": [", f);
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (t->jump - q->addr >= q->size) continue;
        fprintf(f,
                "%s{\"jump\": %" PRIu64 ", \"table\": %" PRIu64 ", \"entries\": %u, \"kind\": \"%s\", "
                "\"exact\": %s}",
                between, t->jump, t->table, t->count, table_kinds[t->kind], t->exact ? "true" : "false");
        between = ", ";
    }
    fputs("]", f);
}

static void json_proc(FILE *f, const request *r, const cfg_program *p, const cfg_proc *q)
{
    char made[32];
    fputs("    {\"name\": ", f);
    inl_json_text(f, name_of(q, made), "");
    fprintf(f, ", \"address\": %" PRIu64 ", \"size\": %" PRIu64 ", \"status\": \"%s\", \"reason\": ", q->addr, q->size,
            status_names[q->status]);
    if (q->reason) inl_json_text(f, q->reason, "");
    else fputs("null", f);
    json_tables(f, p, q);
    if (r->blocks) {
        fputs(", \"blocks\": [", f);
        for (uint32_t i = 0; i < q->block_count; i++) {
            fputs(i ? ",\n      " : "\n      ", f);
            json_block(f, p, &p->blocks[q->first_block + i]);
        }
        fputs("]", f);
    }
    fputs("}", f);
}

static void print_json(FILE *f, const request *r, const cfg_program *p, const summary *s)
{
    fputs("{\n  \"file\": ", f);
    inl_json_text(f, image_path(p->image), "");
    fprintf(f, ",\n  \"kind\": \"%s\",\n  \"isa\": \"%s\",\n", kind_of(p), p->isa->name);
    fprintf(f, "  \"procedures\": %u,\n  \"whole\": %u,\n  \"partly\": %u,\n", p->proc_count, s->procs[0], s->procs[1]);
    json_reasons(f, "partly_reasons", s->partly, s->partly_count);
    fprintf(f, "  \"blocks\": %u,\n  \"edges\": %u,\n  \"loops\": %u,\n", p->block_count, p->edge_count, s->loops);
    fprintf(f, "  \"tables\": %u,\n  \"exact_tables\": %u,\n", p->table_count, s->exact);
    fprintf(f, "  \"text_bytes\": %" PRIu64 ",\n  \"covered_bytes\": %" PRIu64, p->text_bytes, p->covered_bytes);
    if (r->pattern) {
        const char *between = "";
        fputs(",\n  \"matching\": [\n", f);
        for (uint32_t i = 0; i < p->proc_count; i++) {
            if (!matches(r, &p->procs[i])) continue;
            fputs(between, f);
            json_proc(f, r, p, &p->procs[i]);
            between = ",\n";
        }
        fputs("\n  ]", f);
    }
    fputs("\n}\n", f);
}

/* --- the command --- */

/* The value of an option `name`, given as --name=VALUE or --name VALUE; NULL when it is another one. */
static const char *value_of(char **argv, int *i, const char *name)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0) return NULL;
    if (argv[*i][n] == '=') return argv[*i] + n + 1;
    if (argv[*i][n] || !argv[*i + 1]) return NULL;
    return argv[++*i];
}

static bool read_request(int argc, char **argv, request *r)
{
    for (int i = 1; i < argc; i++) {
        const char *v;
        if (argv[i][0] != '-') {
            if (r->program) {
                cli_say("info takes one program (%s and %s were named)", r->program, argv[i]);
                return false;
            }
            r->program = argv[i];
        } else if ((v = value_of(argv, &i, "--format"))) {
            r->json = strcmp(v, "json") == 0;
            if (!r->json && strcmp(v, "text") != 0) {
                cli_say("no format '%s' (text or json)", v);
                return false;
            }
        } else if ((v = value_of(argv, &i, "-o")) || (v = value_of(argv, &i, "--output"))) {
            r->output = v;
        } else if ((v = value_of(argv, &i, "--proc"))) {
            r->pattern = v;
        } else if (strcmp(argv[i], "--blocks") == 0) {
            r->blocks = true;
        } else {
            cli_say("option '%s' is not known to info, or lacks its value", argv[i]);
            return false;
        }
    }
    if (r->blocks && !r->pattern) r->pattern = "*";
    if (!r->program)
        cli_say("no program named (usage: inlay info PROGRAM [--proc PATTERN] [--blocks] "
                "[--format=json] [-o FILE])");
    return r->program != NULL;
}

static int print(const request *r, const cfg_program *p)
{
    summary *s = calloc(1, sizeof *s);
    FILE *f = r->output ? fopen(r->output, "we") : stdout;
    if (!f || !s) {
        cli_say("%s: %s", r->output ? r->output : "output", strerror(errno));
        free(s);
        return EXIT_FAILED;
    }
    sum_up(p, s);
    if (r->json) print_json(f, r, p, s);
    else print_text(f, r, p, s);
    free(s);
    bool bad = ferror(f) | (f == stdout ? fflush(f) : fclose(f));
    if (bad) cli_say("%s: %s", r->output ? r->output : "standard output", strerror(errno));
    return bad ? EXIT_FAILED : EXIT_OK;
}

static const char usage[] =
    "usage: inlay info PROGRAM [--proc PATTERN] [--blocks] [--format=json] [-o FILE]\n"
    "What the analysis of a whole program finds: procedures, blocks, edges, jump tables, and which procedures are not\n"
    "wholly understood, with the reason. --proc lists those procedures, --blocks their blocks too.\n";

int cli_info(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return 0;
    }
    request r = {0};
    image *im;
    cfg_program *p;
    inl_error e;
    if (!read_request(argc, argv, &r)) return EXIT_USAGE;
    if (image_open(r.program, &im, &e) != INL_OK) {
        cli_say("%s", e.text);
        return EXIT_FAILED;
    }
    int status = EXIT_FAILED;
    if (cfg_program_analyse(im, NULL, &p, &e) == INL_OK) {
        status = print(&r, p);
        cfg_program_free(p);
    } else {
        cli_say("%s", e.text);
    }
    image_close(im);
    return status;
}
