/* The options that all tools have, as a table, and what those of them do that are more than a value.
 *
 * Options named inlay-... are for the way from a resident to the next launcher (exec.c) and are not shown. */
#include "tool/options.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        {"elsewhere", JIT_STRESS_ELSEWHERE},
        {"paired", JIT_STRESS_PAIRED},
        {"base-calls", JIT_STRESS_BASE_CALLS},
        {"astride", TOOL_STRESS_ASTRIDE},
        {NULL, 0},
    };
    return take_words(switches, names, &tool_now->options.stress)
               ? NULL
               : "must be of tiny-cache, flush, random-regs, no-link, one-block, count-in-place, check, elsewhere, "
                 "paired, base-calls, astride";
}

static const char *enable_dump(const char *names)
{
    static const word stages[] = {
        {"decoded", JIT_DUMP_DECODED}, {"snippets", JIT_DUMP_SNIPPETS}, {"lowered", JIT_DUMP_LOWERED},
        {"bytes", JIT_DUMP_BYTES},     {"all", OPTIONS_DUMP_ALL},       {NULL, 0},
    };
    return take_words(stages, names, &tool_now->options.dump) ? NULL
                                                              : "must be of decoded, snippets, lowered, bytes, all";
}

/* ADDR or ADDR-ADDR, in hexadecimal, the second not included. */
static const char *take_dump_at(const char *text)
{
    tool_options *o = &tool_now->options;
    char *end;
    if (*text == '-') return "must be an address or two";
    o->dump_low = strtoull(text, &end, 16);
    o->dump_high = o->dump_low + 1;
    if (end != text && *end == '-' && end[1]) o->dump_high = strtoull(end + 1, &end, 16);
    if (end == text || *end || o->dump_high <= o->dump_low) return "must be an address or two";
    return NULL;
}

static const char *enable_debug(const char *value)
{
    tool_now->options.debug = *value && strcmp(value, "0") != 0;
    return NULL;
}

static const char *take_exec_path(const char *path)
{
    tool_now->options.exec_path = path;
    tool_now->options.followed = true;
    return NULL;
}

static const char *take_fds(const char *text)
{
    tool_fds *f = &tool_now->options.fds;
    int n = sscanf(text, "%d,%d,%d,%d,%d,%d", &f->tool, &f->err, &f->out, &f->out_dir, &f->shared, &f->gdb);
    return n == TOOL_FDS ? NULL : "must be a number for each descriptor";
}

/* Of a program that is run: a file of another name or place would not be the program to itself ($ORIGIN,
 * /proc/self/exe), so nothing is rewritten for one run. */
static const char *take_engine(const char *name)
{
    bool live = !strcmp(name, "live");
    tool_now->options.engine = live ? ENGINE_LIVE : ENGINE_JIT;
    if (!strcmp(name, "rewrite"))
        return "a program that is rewritten is another file; write it with inlay rewrite and run that, or use "
               "--engine=live, which is the same without a file";
    return live || !strcmp(name, "jit") ? NULL : "must be jit or live";
}

const char *const options_formats[] = {"text", "json", NULL};

static const char *const debug_folder[] = {"/tmp", NULL};
static const char *const own_gdb[] = {"", NULL};

#define AT(field) NULL, offsetof(tool_options, field)
const tool_option options_common[] = {
    {OPTION_STRING, "output", 'o', AT(output), "write the result to FILE", .what = "FILE"},
    {OPTION_CHOICE, "format", 0, AT(format), "form of the result", .words = options_formats},
    {OPTION_GLOB, "image", 0, AT(images), "only images whose name matches", .what = "PATTERN"},
    {OPTION_GLOB, "proc", 'F', AT(procs),
     "only procedures whose name matches; or by address: 0x1234, 0x1000-0x1fff, libc.so.6:0x1234", .what = "PATTERN"},
    {OPTION_GLOB, "not-proc", 'N', AT(not_procs), "no procedures whose name matches", .what = "PATTERN"},
    {OPTION_ACTION, "engine", 0, .what = "jit|live", .action = take_engine,
     .help = "who instruments the program that is run"},
    {OPTION_STRING, "attach", 0, AT(join), "run no PROGRAM: process PID, which runs already, goes on under the tool",
     .what = "PID"},
    {OPTION_GLOB, "follow", 0, AT(follow), "of programs that are exec'ed follow only those whose name matches",
     .what = "PATTERN"},
    {OPTION_FLAG, "no-follow", 0, AT(no_follow), "... follow none: they run natively", .words = NULL},
    {OPTION_FLAG, "no-ptrace", 0, AT(no_ptrace), "load the program into the tool's process instead of the reverse",
     .words = NULL},
    {OPTION_FLAG, "strict", 0, AT(strict), "what cannot be inserted is a failure (status 1)", .words = NULL},
    {OPTION_ACTION, "log", 0, .help = "messages about Inlay's own work, of these domains:", .what = "DOMAINS",
     .action = enable_log},
    {OPTION_FLAG, "debug", 0, AT(debug), "check whole structures of Inlay's own at every step, slowly", .words = NULL},
    {OPTION_ACTION, "stress", 0, .what = "SWITCHES", .action = enable_stress,
     .help = "for tests: tiny-cache, flush, random-regs, no-link, one-block"},
    {OPTION_ACTION, "dump", 0, .what = "STAGES", .action = enable_dump,
     .help = "show translations: decoded, snippets, lowered, bytes, all"},
    {OPTION_ACTION, "dump-at", 0, .what = "ADDR[-ADDR]", .action = take_dump_at,
     .help = "only those of code in there (hexadecimal); all stages unless --dump says"},
    {OPTION_FLAG, "stats", 0, AT(stats), "at the end, tell in numbers what the translator has done", .words = NULL},
    {OPTION_FLAG, "cache", 0, AT(cache),
     "keep translations, where the tool allows it, and analyses of files for the next run (~/.cache/inlay)",
     .words = NULL},
    {OPTION_FLAG, "no-cache", 0, AT(no_cache), "... keep none and use none", .words = NULL},
    {OPTION_MAYBE, "gdb", 0, AT(gdb), .words = own_gdb, .what = "PORT|unix:PATH",
     .help = "stop at the first instruction: gdb is started, or comes from there"},
    {OPTION_MAYBE, "debug-info", 0, AT(debug_info), .words = debug_folder, .what = "DIR",
     .help =
         "for gdb and perf: names and lines of translated code; files inlay-PID.gdb and perf-PID.map in DIR (/tmp)"},
    {OPTION_STRING, "rewrite", 0, AT(rewrite_out), "do not run PROGRAM: write OUT, a program that carries the tool",
     .what = "OUT"},
    {OPTION_STRING, "with-libs", 0, AT(with_libs), "... and the libraries that it loads, all of them into DIR",
     .what = "DIR"},
    {OPTION_GLOB, "lib", 0, AT(libs), "... and libraries that it opens later: a path, or a name; with * and ?",
     .what = "PATTERN"},
    {OPTION_STRING, "result", 0, AT(result), "... whose result goes to FILE (standard error; INLAY_OUT overrides it)",
     .what = "FILE"},
    {OPTION_STRING, "report", 0, AT(report), "... with a report of what was instrumented and what was not (JSON)",
     .what = "FILE"},
    {OPTION_STRING, "map", 0, AT(map), "... with a list of old and new addresses", .what = "FILE"},
    {OPTION_FLAG, "no-sums", 0, AT(no_sums),
     "... and make every addition of an analysis routine at once, none at the end", .words = NULL},
    {OPTION_ACTION, "inlay-exec-path", 0, .action = take_exec_path},
    {OPTION_ACTION, "inlay-fds", 0, .action = take_fds},
    {OPTION_ACTION, "inlay-gdb", 0, .action = tool_jit_take_gdb},
    {OPTION_ACTION, "inlay-began", 0, .action = result_take_beginning},
};
const unsigned options_common_count = sizeof options_common / sizeof *options_common;

bool options_is_for_rewriting(const tool_option *o)
{
    static const char *const names[] = {"rewrite", "with-libs", "lib",    "result", "report",
                                        "map",     "no-sums",   "strict", "engine"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(o->name, names[i])) return true;
    return false;
}

const char *options_from_environment(const char **name)
{
    static const struct {
        const char *name;
        const char *(*action)(const char *value);
    } variables[] = {{"INLAY_STRESS", enable_stress}, {"INLAY_LOG", enable_log}, {"INLAY_DEBUG", enable_debug}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i].name), *wrong = value ? variables[i].action(value) : NULL;
        *name = variables[i].name;
        if (wrong) return wrong;
    }
    return NULL;
}
