/* Options: declared in tables, the tool's own by the public calls, the common ones in options.c; --help is made
 * from the declarations. A tool's own option hides the common one of the same name.
 *
 *     TOOL [options] [--] PROGRAM [ARGS]
 *     TOOL --inlay-rewrite [options] PROGRAM -o OUT [options]      from `inlay rewrite`
 *     TOOL --inlay-attach [options] PID [options]                  from `inlay attach`
 *
 * Options end at "--" or at the first argument that is not one; in the second form they may stand behind
 * the program, too, and -o is what --rewrite is in the first. */
#include "tool/options.h"
#include "base/check.h"
#include "base/log.h"
#include "moved/moved.h"
#include "version.h"

#include <inlay/option.h>
#include <inlay/tool.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef tool_option option;

static tool_command_line *state(void) { return &tool_now->command_line; }
static void *value_of(const option *o) { return o->value ? o->value : (char *)&tool_now->options + o->at; }

static void carry(const char *argument)
{
    if (!inl_vec_push(&state()->carried, argument)) tool_fail(TOOL_EXIT_FAILED, "out of memory");
}

const char *const *options_carried(int *count)
{
    tool_command_line *all = state();
    bool whole = all->carried.count && !strcmp(all->carried.items[all->carried.count - 1], "--");
    if (!whole && tool_now->options.result) {
        carry("--output");
        carry(tool_now->options.result);
    }
    if (!whole) carry("--");
    *count = (int)all->carried.count;
    return all->carried.items;
}

/* Without what options_carried has put behind them. */
const char *const *options_given(int *count)
{
    const char *const *all = options_carried(count);
    *count -= tool_now->options.result ? 3 : 1;
    return all;
}

/* The launcher has been through them then. */
static void declare(option o)
{
    if (tool_now->blame.phase != BLAME_BEFORE_INIT)
        tool_fail(TOOL_EXIT_FAILED, "--%s is declared too late: main declares options before it calls inlay_init",
                  o.name);
    if (!inl_vec_push(&state()->own, o)) tool_fail(TOOL_EXIT_FAILED, "out of memory");
}

void inlay_option_flag(bool *value, const char *name, char letter, const char *help)
{
    declare((option){.kind = OPTION_FLAG, .name = name, .letter = letter, .value = value, .help = help});
}

void inlay_option_uint(uint64_t *value, const char *name, char letter, const char *help)
{
    declare((option){.kind = OPTION_UINT, .name = name, .letter = letter, .value = value, .help = help, .what = "N"});
}

void inlay_option_string(const char **value, const char *name, char letter, const char *help)
{
    declare(
        (option){.kind = OPTION_STRING, .name = name, .letter = letter, .value = value, .help = help, .what = "TEXT"});
}

void inlay_option_choice(int *value, const char *const *words, const char *name, const char *help)
{
    declare((option){.kind = OPTION_CHOICE, .name = name, .value = value, .help = help, .words = words});
}

static void wrong_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tool_say_list(fmt, args);
    va_end(args);
    fprintf(stderr, "Try '%s --help'.\n", tool_name());
    exit(TOOL_EXIT_USAGE);
}

/* The program, if there is one, ends before it has begun (blame.c). */
void inlay_option_refuse(const char *fmt, ...)
{
    va_list args;
    tool_now->blame.refuses = true;
    va_start(args, fmt);
    tool_say_list(fmt, args);
    va_end(args);
    fprintf(stderr, "Try '%s --help'.\n", tool_name());
    exit(TOOL_EXIT_USAGE);
}

static bool hides(const option *c)
{
    for (size_t i = 0; i < state()->own.count; i++)
        if (!strcmp(state()->own.items[i].name, c->name)) return true;
    return false;
}

static void print_option(const option *o)
{
    char left[64];
    int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "    --%s", o->name);
    if (o->kind == OPTION_CHOICE) {
        for (int i = 0; o->words[i]; i++)
            n += snprintf(left + n, sizeof left - (size_t)n, "%s%s", i ? "|" : "=", o->words[i]);
    } else if (o->kind == OPTION_MAYBE) {
        n += snprintf(left + n, sizeof left - (size_t)n, "[=%s]", o->what);
    } else if (o->what) {
        n += snprintf(left + n, sizeof left - (size_t)n, "=%s", o->what);
    }
    printf("  %-28s %s\n", left, o->help);
}

static void print_help(const char *help)
{
    printf("%s: %s\n\nusage: %s [OPTIONS] [--] PROGRAM [ARGS]\n\n", tool_name(), help, tool_name());
    for (size_t i = 0; i < state()->own.count; i++) print_option(&state()->own.items[i]);
    for (unsigned i = 0; i < options_common_count; i++)
        if (options_common[i].help && strcmp(options_common[i].name, "log") && !hides(&options_common[i]))
            print_option(&options_common[i]);
    printf("      --%-22s %s\n      --%-22s %s\n", "help", "this text", "version", "the version of Inlay");
    for (unsigned i = 0; i < options_common_count; i++)
        if (!strcmp(options_common[i].name, "log")) print_option(&options_common[i]);
    inl_log_list(stdout);
    exit(0);
}

static const option *by_name(const char *name, size_t n)
{
    for (size_t i = 0; i < state()->own.count; i++)
        if (strlen(state()->own.items[i].name) == n && !memcmp(state()->own.items[i].name, name, n))
            return &state()->own.items[i];
    for (unsigned i = 0; i < options_common_count; i++)
        if (strlen(options_common[i].name) == n && !memcmp(options_common[i].name, name, n)) return &options_common[i];
    return NULL;
}

static const option *by_letter(char letter)
{
    for (size_t i = 0; i < state()->own.count; i++)
        if (state()->own.items[i].letter == letter) return &state()->own.items[i];
    for (unsigned i = 0; i < options_common_count; i++)
        if (options_common[i].letter == letter) return &options_common[i];
    return NULL;
}

static void take_choice(const option *o, const char *value)
{
    for (int i = 0; o->words[i]; i++) {
        if (strcmp(o->words[i], value) != 0) continue;
        *(int *)value_of(o) = i;
        return;
    }
    char words[200] = "";
    for (int i = 0; o->words[i]; i++) {
        size_t n = strlen(words);
        snprintf(words + n, sizeof words - n, "%s%s", i ? ", " : "", o->words[i]);
    }
    wrong_usage("--%s: '%s' is not one of %s", o->name, value, words);
}

static void take_uint(const option *o, const char *value)
{
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 0);
    if (errno || end == value || *end || *value == '-') wrong_usage("--%s: '%s' is not a number", o->name, value);
    *(uint64_t *)value_of(o) = n;
}

static void take_glob(tool_globs *g, char letter, const char *value)
{
    tool_glob *items = realloc(g->items, (g->count + 1) * sizeof *items);
    if (!items) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    g->items = items;
    items[g->count++] = (tool_glob){.pattern = value, .letter = letter};
}

/* letter: that the option was given by; or 0. */
static void take(const option *o, char letter, const char *value)
{
    const char *wrong;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)value_of(o) = true; break;
    case OPTION_UINT: take_uint(o, value); break;
    case OPTION_STRING: /* of the common ones all name something */
        if (!*value && !o->value) wrong_usage("--%s: lacks its value", o->name);
        *(const char **)value_of(o) = value;
        break;
    case OPTION_MAYBE: *(const char **)value_of(o) = value; break;
    case OPTION_CHOICE: take_choice(o, value); break;
    case OPTION_GLOB: take_glob(value_of(o), letter, value); break;
    case OPTION_ACTION:
        wrong = o->action(value);
        if (wrong) wrong_usage("--%s=%s: %s", o->name, value, wrong);
        break;
    }
}

static bool is_own(const option *o)
{
    return state()->own.count && o >= state()->own.items && o < state()->own.items + state()->own.count;
}

/* Notes the arguments [from, to) for the carried tool, and the tool's own for the key of kept translations. An option
 * of its own may have the name of one that is for rewriting. */
static int taken(const option *o, char **argv, int from, int to)
{
    bool goes_along = is_own(o) || !options_is_for_rewriting(o);
    for (int i = from; i < to && goes_along; i++) carry(argv[i]);
    for (int i = from; i < to && is_own(o); i++)
        if (!inl_vec_push(&tool_now->kept.options, argv[i])) tool_fail(TOOL_EXIT_FAILED, "out of memory");
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
            if (o && o->kind == OPTION_FLAG && !a[2 + n]) {
                *(bool *)value_of(o) = false;
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
    if (state()->by_command && (!strcmp(o->name, "output") || a[1] == 'o')) o = by_name("rewrite", 7);
    if (o->kind == OPTION_MAYBE) {
        if (!value) value = o->words[0];
    } else if (o->kind == OPTION_FLAG) {
        if (value) wrong_usage("%s: takes no value", a);
    } else if (!value) {
        if (++i >= argc) wrong_usage("%s: lacks its value", a);
        value = argv[i];
    }
    take(o, a[1] == '-' ? 0 : a[1], value);
    return taken(o, argv, from, i + 1);
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
            if (program)
                wrong_usage("one %s at a time, not %s and %s", tool_now->options.attaching ? "process" : "program",
                            argv[program], a);
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

/* What the JIT engine alone can do, and what can be done to a program that is run. */
static void check_running(void)
{
    const tool_options *o = &tool_now->options;
    const char *of_it = o->gdb ? "--gdb" : o->debug_info ? "--debug-info" : o->stats ? "--stats" : NULL;
    const char *follows = o->no_follow ? "--no-follow" : o->follow.count ? "--follow" : NULL;
    bool other = o->attaching || state()->by_command || o->rewrite_out || o->with_libs;
    if (of_it && (other || o->engine != ENGINE_JIT))
        wrong_usage("%s is for programs that are translated (inlay run, --engine=jit)", of_it);
    if (follows && other) wrong_usage("%s is for programs that are run (inlay run)", follows);
    if (o->gdb && (o->join || o->no_ptrace))
        wrong_usage("--gdb is for a program that is started, and into which the tool is put by ptrace");
    if (o->no_follow && o->follow.count) wrong_usage("--follow and --no-follow exclude each other");
}

static void check_rewriting(void)
{
    tool_options *o = &tool_now->options;
    o->rewriting = state()->by_command || o->rewrite_out || o->with_libs;
    if (o->rewriting && o->engine != ENGINE_JIT) wrong_usage("--engine is for running a program (inlay run)");
    if (!o->rewriting && (o->report || o->map || o->result))
        wrong_usage("--report, --map and --result are for rewriting (inlay rewrite)");
    if (o->rewriting && !o->rewrite_out && !o->with_libs) wrong_usage("no output named (-o OUT, or --with-libs DIR)");
    if (o->libs.count && !o->with_libs) wrong_usage("--lib is for --with-libs DIR: more libraries that go there");
    if (o->rewriting && !state()->by_command && !o->result) o->result = o->output;
}

/* The report is written by a process that may be in another folder. */
static void name_result(tool_options *o)
{
    char folder[4096];
    if (!o->output) return;
    char *whole = NULL;
    if (*o->output == '/') whole = strdup(o->output);
    else if (getcwd(folder, sizeof folder) && (whole = malloc(strlen(folder) + strlen(o->output) + 2)))
        sprintf(whole, "%s/%s", folder, o->output);
    if (!whole) tool_fail(TOOL_EXIT_FAILED, "-o %s: cannot say where this is: %s", o->output, strerror(errno));
    o->result = whole;
    char *slash = strrchr(whole, '/'), kept = slash[1];
    slash[1] = 0;
    if (access(whole, F_OK) != 0) tool_fail(TOOL_EXIT_FAILED, "cannot write %s: %s", o->output, strerror(errno));
    slash[1] = kept;
}

/* `inlay run --attach` */
static void check_joining(bool has_program)
{
    tool_options *o = &tool_now->options;
    if (has_program) wrong_usage("--attach takes a process that runs, and no program");
    if (o->engine != ENGINE_JIT || o->attaching || state()->by_command || o->no_ptrace)
        wrong_usage("--attach is for the JIT engine, and puts the tool in by ptrace");
}

static void check_attaching(void)
{
    tool_options *o = &tool_now->options;
    if (o->rewrite_out || o->with_libs || o->libs.count || o->result)
        wrong_usage("--rewrite, --with-libs, --lib and --result are for rewriting (inlay rewrite)");
    if (o->engine != ENGINE_JIT) wrong_usage("--engine is for running a program (inlay run)");
    name_result(o);
}

static void check_live(void)
{
    tool_options *o = &tool_now->options;
    if (o->no_ptrace) wrong_usage("--engine=live puts the tool in by ptrace; --no-ptrace is for --engine=jit");
    if (o->rewrite_out || o->with_libs || o->libs.count || o->result)
        wrong_usage("--rewrite, --with-libs, --lib and --result are for rewriting (inlay rewrite)");
    name_result(o);
}

static void name_output(tool_options *o)
{
    result_run_began();
    o->output_given = o->output;
    if (o->output && !o->rewriting && !o->attaching && o->engine == ENGINE_JIT) o->output = result_name(o->output);
}

int options_parse(int argc, char **argv, const char *help)
{
    tool_options *o = &tool_now->options;
    const char *variable, *wrong = options_from_environment(&variable);
    if (wrong) wrong_usage("%s=%s: %s", variable, getenv(variable), wrong);
    state()->by_command = argc > 1 && !strcmp(argv[1], "--inlay-rewrite");
    o->attaching = argc > 1 && !strcmp(argv[1], "--inlay-attach");
    int i = state()->by_command || o->attaching ? parse_command(argc, argv, help) : parse(argc, argv, help);
    if (o->dump_high && !o->dump) o->dump = OPTIONS_DUMP_ALL;
    state()->program = i < argc ? argv[i] : NULL;
    inl_debug = o->debug;
    o->json = !strcmp(options_formats[o->format], "json");
    if (tool_handoff_data.role == TOOL_CARRIED) {
        const char *result = moved_is_live() ? NULL : getenv("INLAY_OUT"); /* for files: a run's -o says more */
        if (result && *result) o->output = result;
        name_output(o);
        return i;
    }
    check_running();
    if (o->join) check_joining(i < argc);
    else if (i >= argc && !o->exec_path) wrong_usage(o->attaching ? "no process named" : "no program named");
    if (o->attaching) check_attaching();
    else if (o->engine != ENGINE_JIT && !state()->by_command) check_live();
    else check_rewriting();
    name_output(o);
    return i;
}

const char *inlay_version(void) { return INLAY_VERSION; }
