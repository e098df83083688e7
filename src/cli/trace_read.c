/* inlay trace report, tree, graph, diff, export: what has been recorded. */
#include "cli/cli.h"
#include "trace/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: inlay trace report FILE          each procedure's calls and times, and what was not instrumented\n"
    "       inlay trace tree FILE            who called whom\n"
    "       inlay trace graph PATTERN FILE   callers and callees of the procedures that match\n"
    "       inlay trace browse FILE          the tree in a terminal: lines open and close\n"
    "       inlay trace list FILE            each call: when, how long, with which arguments and result\n"
    "       inlay trace diff BEFORE AFTER    two recordings\n"
    "       inlay trace export chrome|folded|callgrind|perfetto|pprof|html [-o OUT] FILE\n"
    "       inlay trace export uftrace -o DIRECTORY FILE\n"
    "\n"
    "  -o FILE             write there\n"
    "  --format=text|json\n"
    "  --sort=self|total|calls\n"
    "  --top=N             so many lines (40; 0: all)\n"
    "  --threads           report: each thread by itself, too\n"
    "  --asked-for         report: each procedure that was asked for: how it is instrumented, or why not\n"
    "  --entries           list: each entry and each exit, in the order of the records\n"
    "  --depth=N           calls nested deeper belong to who called them\n"
    "  --threshold=TIME    leave out calls shorter than TIME: 500ns, 2us, 1.5ms, 1s\n"
    "  --inside=PATTERN    only these procedures and what they call (repeatable, as the next two)\n"
    "  --outside=PATTERN   neither these nor what they call\n"
    "  --leading=PATTERN   only these, what they call, and the calls that lead to them\n"
    "  --program=N         of a recording of several programs, one after the other, the Nth\n"
    "  --raw               do not take off what the recording itself costs\n";

typedef struct request {
    trace_view view;
    const char *words[3];
    int count;
    const char *output;
    uint64_t program; /* of a file that has several, from 1; 0: all */
} request;

typedef enum what { REPORT, TREE, GRAPH, DIFF, EXPORT, BROWSE, LIST, COMMANDS } what;
static const struct {
    const char *name;
    int words;
} commands[COMMANDS] = {{"report", 1}, {"tree", 1},   {"graph", 2}, {"diff", 2},
                        {"export", 2}, {"browse", 1}, {"list", 1}};

/* "1.5ms" in ns; false: it is none. */
static bool read_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value >= 0) || value > 1e9) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        *ns = (uint64_t)(value * units[i].ns);
        return true;
    }
    return false;
}

static bool read_number(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return end != text && !*end && !errno && *text != '-' && *out <= most;
}

static bool take_order(trace_view *v, const char *word)
{
    static const struct {
        const char *name;
        int (*order)(const void *, const void *);
    } orders[] = {{"self", trace_by_self}, {"total", trace_by_total}, {"calls", trace_by_calls}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(word, orders[i].name) != 0) continue;
        v->order = orders[i].order;
        return true;
    }
    return false;
}

static const char *value_of(const char *arg, const char *name)
{
    size_t n = strlen(name);
    return strncmp(arg, name, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

static bool take_format(trace_view *v, const char *word)
{
    v->json = strcmp(word, "json") == 0;
    return v->json || strcmp(word, "text") == 0;
}

static const char *filter_value(const char *arg, trace_filter_kind *kind)
{
    static const char *const names[] = {"--inside", "--outside", "--leading"};
    for (*kind = 0; *kind < TRACE_FILTERS; ++*kind) {
        const char *value = value_of(arg, names[*kind]);
        if (value) return value;
    }
    return NULL;
}

/* False: it is no option, or its value is none. */
static bool take_option(request *r, const char *arg)
{
    trace_view *v = &r->view;
    const char *value;
    uint64_t number = 0;
    trace_filter_kind kind;
    bool good = false;
    if ((value = value_of(arg, "--format"))) good = take_format(v, value);
    else if ((value = value_of(arg, "--sort"))) good = take_order(v, value);
    else if ((value = value_of(arg, "--top"))) good = read_number(value, UINT64_MAX, &v->top);
    else if ((value = value_of(arg, "--depth"))) {
        good = read_number(value, 1 << 20, &number) && number;
        v->depth = (uint32_t)number;
    } else if ((value = value_of(arg, "--threshold"))) good = read_time(value, &v->threshold);
    else if ((value = value_of(arg, "--program"))) good = read_number(value, UINT32_MAX, &r->program) && r->program;
    else if ((value = filter_value(arg, &kind))) good = trace_filter_add(&v->filter, kind, value);
    else if (strcmp(arg, "--threads") == 0) good = v->threads = true;
    else if (strcmp(arg, "--asked-for") == 0) good = v->asked = true;
    else if (strcmp(arg, "--entries") == 0) good = v->entries = true;
    else if (strcmp(arg, "--raw") == 0) good = v->raw = true;
    return good;
}

/* 0: go on. */
static int parse(request *r, what w, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            exit(EXIT_OK);
        }
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) r->output = argv[++i];
        else if (argv[i][0] == '-' && argv[i][1] && !take_option(r, argv[i])) {
            cli_say("'%s' is no option of inlay trace %s, or its value is none", argv[i], commands[w].name);
            return EXIT_USAGE;
        } else if (argv[i][0] != '-') {
            if (r->count == 3) break;
            r->words[r->count++] = argv[i];
        }
    }
    if (r->count == commands[w].words) return 0;
    fputs(usage, stderr);
    return EXIT_USAGE;
}

static trace_exporter *exporter(const char *name)
{
    static const struct {
        const char *name;
        trace_exporter *export;
    } exporters[] = {{"chrome", trace_export_chrome},       {"folded", trace_export_folded},
                     {"callgrind", trace_export_callgrind}, {"perfetto", trace_export_perfetto},
                     {"pprof", trace_export_pprof},         {"html", trace_export_html}};
    for (size_t i = 0; i < sizeof exporters / sizeof *exporters; i++)
        if (strcmp(name, exporters[i].name) == 0) return exporters[i].export;
    return NULL;
}

static inl_status open_file(const char *path, const request *r, trace_file *file, inl_error *e)
{
    inl_status s = trace_open(path, file, e);
    if (s != INL_OK || trace_choose(file, r->program)) return s;
    s = inl_fail(e, INL_ERR_NOT_FOUND, "%s has %zu program%s, and no %llu", path, file->sessions.count,
                 file->sessions.count == 1 ? "" : "s", (unsigned long long)r->program);
    trace_close(file);
    return s;
}

static inl_status show_diff(FILE *f, const request *r, const trace_file *after, inl_error *e)
{
    trace_file before;
    inl_status s = open_file(r->words[0], r, &before, e);
    if (s != INL_OK) return s;
    s = trace_put_diff(f, &before, after, &r->view, e);
    trace_close(&before);
    return s;
}

static inl_status show(FILE *f, what w, const request *r, const trace_file *file, inl_error *e)
{
    switch (w) {
    case REPORT: return trace_put_report(f, file, &r->view, e);
    case TREE: return trace_put_tree(f, file, &r->view, e);
    case GRAPH: return trace_put_graph(f, file, r->words[0], &r->view, e);
    case LIST: return (r->view.entries ? trace_put_entries : trace_put_list)(f, file, &r->view, e);
    case DIFF: return show_diff(f, r, file, e);
    default: return exporter(r->words[0])(f, file, &r->view, e);
    }
}

/* uftrace reads a directory. */
static bool is_folder(what w, const request *r) { return w == EXPORT && strcmp(r->words[0], "uftrace") == 0; }

static inl_status write_out(what w, const request *r, const trace_file *file, inl_error *e)
{
    if (w == BROWSE) return trace_browse(file, &r->view, e);
    if (is_folder(w, r)) return trace_export_uftrace(r->output, file, &r->view, e);
    FILE *f = r->output ? fopen(r->output, "we") : stdout;
    if (!f) return inl_fail(e, INL_ERR_ACCESS, "cannot write %s: %s", r->output, strerror(errno));
    inl_status s = show(f, w, r, file, e);
    int bad = trace_out_error(f);
    if (r->output && fclose(f) != 0 && !bad) bad = errno;
    if (s == INL_OK && bad)
        s = inl_fail(e, INL_ERR_SYSTEM, "cannot write %s: %s", r->output ? r->output : "the report", strerror(bad));
    return s;
}

static int act(what w, const request *r)
{
    trace_file file;
    inl_error e = {0};
    inl_status s = open_file(r->words[commands[w].words - 1], r, &file, &e);
    if (s == INL_OK) {
        s = write_out(w, r, &file, &e);
        trace_close(&file);
    }
    if (s != INL_OK) cli_say("trace %s: %s", commands[w].name, e.text);
    return s == INL_OK ? EXIT_OK : EXIT_FAILED;
}

int cli_trace_read(int argc, char **argv)
{
    what w = 0;
    while (w < COMMANDS && (argc < 2 || strcmp(argv[1], commands[w].name) != 0)) w++;
    if (w == COMMANDS) return -1;
    request r = {.view = {.top = 40}};
    int status = parse(&r, w, argc, argv);
    if (status) return status;
    if (is_folder(w, &r) && !r.output) {
        cli_say("trace export uftrace: -o DIRECTORY, where it goes");
        return EXIT_USAGE;
    }
    if (w == EXPORT && !is_folder(w, &r) && !exporter(r.words[0])) {
        cli_say("trace export: no form '%s' (chrome, folded, callgrind, perfetto, pprof, uftrace, html)", r.words[0]);
        return EXIT_USAGE;
    }
    return act(w, &r);
}
