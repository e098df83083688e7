/* Options: declared in tables, the tool's own by the public calls, the common ones here; --help is
 * made from the declarations. A tool's own option hides the common one of the same name.
 *
 *     TOOL [options] [--] PROGRAM [ARGS]
 *     TOOL --inlay-rewrite [options] PROGRAM -o OUT [options]      from `inlay rewrite`
 *
 * Options end at "--" or at the first argument that is not one; in the second form they may stand behind
 * the program, too, and -o is what --rewrite is in the first. Options named inlay-... are for the
 * way from a resident to the next launcher (exec.c) and are not shown. */
#include "tool/tool.h"
#include "base/log.h"
#include "base/vec.h"
#include "version.h"

#include <inlay/option.h>
#include <inlay/tool.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FLAG, UINT, STRING, CHOICE, GLOB, ACTION } kind;

typedef struct option {
    kind kind;
    const char *name;
    char letter;
    void *value;
    const char *help;
    const char *const *words;                 /* CHOICE */
    const char *what;                         /* the value's name in --help */
    const char *(*action)(const char *value); /* ACTION: a text says what is wrong */
} option;

tool_options tool_options_now = {.fds = {-1, -1, -1, -1, -1}};

static INL_VEC(option) own;
static const char *const formats[] = {"text", "json", NULL};
static int format;

static const char *enable_log(const char *names) { return inl_log_enable(names) ? NULL : "names an unknown domain"; }

typedef struct word {
    const char *name;
    uint32_t bit;
} word;

/* Sets the bits of names divided by commas; false: one is not in the table, which a row without a name
 * ends. */
static bool take_words(const word *table, const char *names, uint32_t *bits)
{
    while (*names) {
        size_t n = strcspn(names, ",");
        const word *w = table;
        while (w->name && (strlen(w->name) != n || memcmp(names, w->name, n))) w++;
        if (!w->name && n) return false;
        *bits |= w->bit;
        names += n + (names[n] == ',');
    }
    return true;
}

static const char *enable_stress(const char *names)
{
    static const word switches[] = {
        {"tiny-cache", JIT_STRESS_TINY_CACHE},
        {"flush", JIT_STRESS_FLUSH},
        {"random-regs", JIT_STRESS_RANDOM_REGS},
        {"no-link", JIT_STRESS_NO_LINK},
        {"one-block", JIT_STRESS_ONE_BLOCK},
        {"count-in-place", TOOL_STRESS_IN_PLACE},
        {"check", JIT_STRESS_CHECK},
        {NULL, 0},
    };
    return take_words(switches, names, &tool_options_now.stress)
               ? NULL
               : "must be of tiny-cache, flush, random-regs, no-link, one-block, count-in-place, check";
}

enum { DUMP_ALL = JIT_DUMP_DECODED | JIT_DUMP_SNIPPETS | JIT_DUMP_LOWERED | JIT_DUMP_BYTES };

static const char *enable_dump(const char *names)
{
    static const word stages[] = {
        {"decoded", JIT_DUMP_DECODED},
        {"snippets", JIT_DUMP_SNIPPETS},
        {"lowered", JIT_DUMP_LOWERED},
        {"bytes", JIT_DUMP_BYTES},
        {"all", DUMP_ALL},
        {NULL, 0},
    };
    return take_words(stages, names, &tool_options_now.dump) ? NULL
                                                             : "must be of decoded, snippets, lowered, bytes, all";
}

/* ADDR or ADDR-ADDR, in hexadecimal, the second not included. */
static const char *take_dump_at(const char *text)
{
    tool_options *o = &tool_options_now;
    char *end;
    if (*text == '-') return "must be an address or two";
    o->dump_low = strtoull(text, &end, 16);
    o->dump_high = o->dump_low + 1;
    if (end != text && *end == '-' && end[1]) o->dump_high = strtoull(end + 1, &end, 16);
    if (end == text || *end || o->dump_high <= o->dump_low) return "must be an address or two";
    return NULL;
}

static const char *take_exec_path(const char *path)
{
    tool_options_now.exec_path = path;
    tool_options_now.followed = true;
    return NULL;
}

static const char *take_fds(const char *text)
{
    tool_fds *f = &tool_options_now.fds;
    int n = sscanf(text, "%d,%d,%d,%d,%d", &f->tool, &f->err, &f->out, &f->out_dir, &f->shared);
    return n == TOOL_FDS ? NULL : "must be a number for each descriptor";
}

static const option common[] = {
    {STRING, "output", 'o', &tool_options_now.output, "write the result to FILE", .what = "FILE"},
    {CHOICE, "format", 0, &format, "form of the result", .words = formats},
    {GLOB, "image", 0, &tool_options_now.images, "only images whose name matches", .what = "PATTERN"},
    {GLOB, "proc", 0, &tool_options_now.procs, "only procedures whose name matches", .what = "PATTERN"},
    {FLAG, "no-ptrace", 0, &tool_options_now.no_ptrace,
     "load the program into the tool's process instead of the reverse", .words = NULL},
    {FLAG, "strict", 0, &tool_options_now.strict, "what cannot be inserted is a failure (status 1)", .words = NULL},
    {ACTION, "log", 0, .help = "messages about Inlay's own work, of these domains:", .what = "DOMAINS",
     .action = enable_log},
    {ACTION, "stress", 0, .what = "SWITCHES", .action = enable_stress,
     .help = "for tests: tiny-cache, flush, random-regs, no-link, one-block"},
    {ACTION, "dump", 0, .what = "STAGES", .action = enable_dump,
     .help = "show translations: decoded, snippets, lowered, bytes, all"},
    {ACTION, "dump-at", 0, .what = "ADDR[-ADDR]", .action = take_dump_at,
     .help = "only those of code in there (hexadecimal); all stages unless --dump says"},
    {STRING, "rewrite", 0, &tool_options_now.rewrite_out,
     "do not run PROGRAM: write OUT, a program that carries the tool", .what = "OUT"},
    {STRING, "with-libs", 0, &tool_options_now.with_libs, "... and the libraries that it loads, all of them into DIR",
     .what = "DIR"},
    {GLOB, "lib", 0, &tool_options_now.libs, "... and libraries that it opens later: a path, or a name; with * and ?",
     .what = "PATTERN"},
    {STRING, "result", 0, &tool_options_now.result,
     "... whose result goes to FILE (standard error; INLAY_OUT overrides it)", .what = "FILE"},
    {STRING, "report", 0, &tool_options_now.report,
     "... with a report of what was instrumented and what was not (JSON)", .what = "FILE"},
    {STRING, "map", 0, &tool_options_now.map, "... with a list of old and new addresses", .what = "FILE"},
    {FLAG, "no-sums", 0, &tool_options_now.no_sums,
     "... and make every addition of an analysis routine at once, none at the end", .words = NULL},
    {ACTION, "inlay-exec-path", 0, .action = take_exec_path},
    {ACTION, "inlay-fds", 0, .action = take_fds},
    {ACTION, "inlay-began", 0, .action = result_take_beginning},
};
enum { COMMON = sizeof common / sizeof *common };

/* Of these the program that is written knows nothing. */
static bool is_for_rewriting(const option *o)
{
    static const char *const names[] = {"rewrite", "with-libs", "lib", "result", "report", "map", "no-sums", "strict"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(o->name, names[i])) return true;
    return false;
}

/* The options that the carried tool's main is to find, in order. */
static INL_VEC(const char *) carried;
static bool by_command; /* `inlay rewrite` */

static void carry(const char *argument)
{
    if (!inl_vec_push(&carried, argument)) tool_fail(TOOL_EXIT_FAILED, "out of memory");
}

const char *const *options_carried(int *count)
{
    if (tool_options_now.result) {
        carry("--output");
        carry(tool_options_now.result);
    }
    carry("--");
    *count = (int)carried.count;
    return carried.items;
}

static void declare(option o)
{
    if (!inl_vec_push(&own, o)) tool_fail(TOOL_EXIT_FAILED, "out of memory");
}

void inlay_option_flag(bool *value, const char *name, char letter, const char *help)
{
    declare((option){FLAG, name, letter, value, help, NULL, NULL, NULL});
}

void inlay_option_uint(uint64_t *value, const char *name, char letter, const char *help)
{
    declare((option){UINT, name, letter, value, help, NULL, "N", NULL});
}

void inlay_option_string(const char **value, const char *name, char letter, const char *help)
{
    declare((option){STRING, name, letter, value, help, NULL, "TEXT", NULL});
}

void inlay_option_choice(int *value, const char *const *words, const char *name, const char *help)
{
    declare((option){CHOICE, name, 0, value, help, words, NULL, NULL});
}

const char *tool_name(void) { return program_invocation_short_name; }

static void say(const char *fmt, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, fmt, args);
    fprintf(stderr, "%s: %s\n", tool_name(), line);
}

void tool_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

void tool_fail(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
    fflush(NULL);
    _Exit(status);
}

static void wrong_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
    fprintf(stderr, "Try '%s --help'.\n", tool_name());
    exit(TOOL_EXIT_USAGE);
}

static bool hides(const option *c)
{
    for (size_t i = 0; i < own.count; i++)
        if (!strcmp(own.items[i].name, c->name)) return true;
    return false;
}

static void print_option(const option *o)
{
    char left[64];
    int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "    --%s", o->name);
    if (o->kind == CHOICE) {
        for (int i = 0; o->words[i]; i++)
            n += snprintf(left + n, sizeof left - (size_t)n, "%s%s", i ? "|" : "=", o->words[i]);
    } else if (o->what) {
        n += snprintf(left + n, sizeof left - (size_t)n, "=%s", o->what);
    }
    printf("  %-28s %s\n", left, o->help);
}

static void print_help(const char *help)
{
    printf("%s: %s\n\nusage: %s [OPTIONS] [--] PROGRAM [ARGS]\n\n", tool_name(), help, tool_name());
    for (size_t i = 0; i < own.count; i++) print_option(&own.items[i]);
    for (int i = 0; i < COMMON; i++)
        if (common[i].help && strcmp(common[i].name, "log") && !hides(&common[i])) print_option(&common[i]);
    printf("      --%-22s %s\n      --%-22s %s\n", "help", "this text", "version", "the version of Inlay");
    for (int i = 0; i < COMMON; i++)
        if (!strcmp(common[i].name, "log")) print_option(&common[i]);
    inl_log_list(stdout);
    exit(0);
}

static const option *by_name(const char *name, size_t n)
{
    for (size_t i = 0; i < own.count; i++)
        if (strlen(own.items[i].name) == n && !memcmp(own.items[i].name, name, n)) return &own.items[i];
    for (int i = 0; i < COMMON; i++)
        if (strlen(common[i].name) == n && !memcmp(common[i].name, name, n)) return &common[i];
    return NULL;
}

static const option *by_letter(char letter)
{
    for (size_t i = 0; i < own.count; i++)
        if (own.items[i].letter == letter) return &own.items[i];
    for (int i = 0; i < COMMON; i++)
        if (common[i].letter == letter) return &common[i];
    return NULL;
}

static void take_choice(const option *o, const char *value)
{
    for (int i = 0; o->words[i]; i++) {
        if (strcmp(o->words[i], value) != 0) continue;
        *(int *)o->value = i;
        return;
    }
    wrong_usage("--%s: '%s' is not a choice", o->name, value);
}

static void take_uint(const option *o, const char *value)
{
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 0);
    if (errno || end == value || *end || *value == '-') wrong_usage("--%s: '%s' is not a number", o->name, value);
    *(uint64_t *)o->value = n;
}

static void take_glob(tool_globs *g, const char *value)
{
    const char **items = realloc(g->items, (g->count + 1) * sizeof *items);
    if (!items) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    g->items = items;
    bool *hit = realloc(g->hit, g->count + 1);
    if (!hit) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    hit[g->count] = false;
    g->hit = hit;
    items[g->count++] = value;
}

static void take(const option *o, const char *value)
{
    const char *wrong;
    switch (o->kind) {
    case FLAG: *(bool *)o->value = true; break;
    case UINT: take_uint(o, value); break;
    case STRING: *(const char **)o->value = value; break;
    case CHOICE: take_choice(o, value); break;
    case GLOB: take_glob(o->value, value); break;
    case ACTION:
        wrong = o->action(value);
        if (wrong) wrong_usage("--%s=%s: %s", o->name, value, wrong);
        break;
    }
}

/* Notes the arguments [from, to) for the carried tool. */
static int taken(const option *o, char **argv, int from, int to)
{
    for (int i = from; i < to && !is_for_rewriting(o); i++) carry(argv[i]);
    return to;
}

/* Takes the option at argv[i]; returns the index behind it and its value. */
static int take_argument(int argc, char **argv, int i, const char *help)
{
    const char *a = argv[i], *value = NULL;
    const option *o;
    int from = i;
    if (a[1] == '-') {
        size_t n = strcspn(a + 2, "=");
        if (!strcmp(a, "--help")) print_help(help);
        if (!strcmp(a, "--version")) {
            printf("%s (Inlay %s)\n", tool_name(), INLAY_VERSION);
            exit(0);
        }
        o = by_name(a + 2, n);
        if (!o && n > 3 && !memcmp(a + 2, "no-", 3)) {
            o = by_name(a + 5, n - 3);
            if (o && o->kind == FLAG && !a[2 + n]) {
                *(bool *)o->value = false;
                return taken(o, argv, from, i + 1);
            }
            o = NULL;
        }
        if (!o) wrong_usage("unknown option '%.*s'", (int)n + 2, a);
        if (a[2 + n]) value = a + 3 + n;
    } else {
        o = by_letter(a[1]);
        if (!o) wrong_usage("unknown option '-%c'", a[1]);
        if (a[2]) value = a + 2;
    }
    if (by_command && (!strcmp(o->name, "output") || a[1] == 'o')) o = by_name("rewrite", 7);
    if (o->kind == FLAG) {
        if (value) wrong_usage("%s: takes no value", a);
    } else if (!value) {
        if (++i >= argc) wrong_usage("%s: lacks its value", a);
        value = argv[i];
    }
    take(o, value);
    return taken(o, argv, from, i + 1);
}

static void take_environment(void)
{
    const char *stress = getenv("INLAY_STRESS"), *log = getenv("INLAY_LOG");
    const char *wrong = stress ? enable_stress(stress) : NULL;
    if (wrong) wrong_usage("INLAY_STRESS=%s: %s", stress, wrong);
    wrong = log ? enable_log(log) : NULL;
    if (wrong) wrong_usage("INLAY_LOG=%s: %s", log, wrong);
}

/* The second form's arguments; the index of the program. */
static int parse_command(int argc, char **argv, const char *help)
{
    int program = 0;
    bool ended = false;
    for (int i = 2; i < argc;) {
        const char *a = argv[i];
        if (!ended && !strcmp(a, "--")) {
            ended = true;
            i++;
        } else if (!ended && a[0] == '-' && a[1]) {
            i = take_argument(argc, argv, i, help);
        } else {
            if (program) wrong_usage("one program at a time, not %s and %s", argv[program], a);
            program = i++;
        }
    }
    return program ? program : argc;
}

static int parse(int argc, char **argv, const char *help)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        if (!strcmp(argv[i], "--")) return i + 1;
        i = take_argument(argc, argv, i, help);
    }
    return i;
}

static void check_rewriting(void)
{
    tool_options *o = &tool_options_now;
    o->rewriting = by_command || o->rewrite_out || o->with_libs;
    if (!o->rewriting && (o->report || o->map || o->result))
        wrong_usage("--report, --map and --result are for rewriting (inlay rewrite)");
    if (o->rewriting && !o->rewrite_out && !o->with_libs) wrong_usage("no output named (-o OUT, or --with-libs DIR)");
    if (o->libs.count && !o->with_libs) wrong_usage("--lib is for --with-libs DIR: more libraries that go there");
    if (o->rewriting && !by_command && !o->result) o->result = o->output;
}

static void name_output(tool_options *o)
{
    result_run_began();
    if (o->output && !o->rewriting) o->output = result_name(o->output);
}

int options_parse(int argc, char **argv, const char *help)
{
    tool_options *o = &tool_options_now;
    take_environment();
    by_command = argc > 1 && !strcmp(argv[1], "--inlay-rewrite");
    int i = by_command ? parse_command(argc, argv, help) : parse(argc, argv, help);
    if (o->dump_high && !o->dump) o->dump = DUMP_ALL;
    o->json = !strcmp(formats[format], "json");
    if (tool_handoff_data.role == TOOL_CARRIED) {
        const char *result = getenv("INLAY_OUT");
        if (result && *result) o->output = result;
        name_output(o);
        return i;
    }
    if (i >= argc && !o->exec_path) wrong_usage("no program named");
    check_rewriting();
    name_output(o);
    return i;
}

const char *inlay_version(void) { return INLAY_VERSION; }
