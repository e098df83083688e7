/* inlay trace: records, by the tool of that name, and shows what has been recorded.
 *
 *     inlay trace -F 'parse*' --clock=none -- app x     ->  inlay run -o app.trace -F 'parse*' trace --clock=none
 * -- app x inlay trace -p 123 -o f                           ->  inlay attach -o f trace 123 inlay trace report
 * app.trace                          trace_read.c */
#include "cli/cli.h"
#include "cli/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: inlay trace [OPTIONS] -- PROGRAM [ARGS]\n"
    "       inlay trace [OPTIONS] -p PID\n"
    "       inlay trace report|list|tree|browse|graph|diff|export ... FILE    (inlay trace report --help)\n"
    "       inlay rewrite --result FILE trace [OPTIONS] PROGRAM -o OUT\n"
    "\n"
    "Records when procedures are entered and left, to a file. PROGRAM's other processes write FILE.PID.\n"
    "\n"
    "  -o FILE               the recording (PROGRAM.trace; with -p, PID.trace)\n"
    "  -F PATTERN            only procedures whose name matches (repeatable); C++ names as people write them; or by\n"
    "                        address in the file: 0x1234, 0x1000-0x1fff, libc.so.6:0x1234\n"
    "  -N PATTERN            none whose name matches (repeatable)\n"
    "  --libs                procedures of libraries, too; otherwise the program's own and its imports' stubs\n"
    "  --image PATTERN       only these images, libraries or not (repeatable)\n"
    "  --min-size=BYTES      only procedures of at least so many bytes\n"
    "  --min-path=N          only procedures whose shortest way from entry to exit has so many instructions\n"
    "  --inside=PATTERN      only calls of these procedures and what they call (A|B: several)\n"
    "  --every=N             one call in N of each procedure; all are counted\n"
    "  --thin=N              of a procedure called more than N times one call in 10, behind N more one in 100, and so "
    "on;\n"
    "                        the report says of which\n"
    "  -A 'NAME@arg1/u,arg2/s;NAME'\n"
    "                        arguments: in forms d u x (8, 16, 32, 64 bits), p, c, s (a string); fparg1/f, /f32:\n"
    "                        floating point; without '@' by the types that\n"
    "                        debug information has (repeatable, as the next); 'double pow(double, double)': by these\n"
    "  -R 'NAME/p'           results\n"
    "  --event=LIST          counters, too (repeatable): page-faults,context-switches,cycles:u,{instructions,r1b2};\n"
    "                        names as perf list has them, cpu/event=0x3c,umask=1/, PAPI's, libpfm4's\n"
    "                        (inlay trace encode LIST: as numbers, for inlay rewrite)\n"
    "  --tool=FILE           the tool, where it has routines of yours at entries and exits (inlay cc --trace)\n"
    "  --depth=N, --threshold=TIME\n"
    "                        what reports leave out, if they are not asked for something else\n"
    "  --clock=cycles|monotonic|none\n"
    "                        the processor's clock, CLOCK_MONOTONIC, or calls counted alone\n"
    "  --last=MB             keep the last so many MB of records\n"
    "  --no-compress         do not compress the recording\n"
    "  --engine=jit|live     translate code as it is met (works on most programs), or instrument the program where it\n"
    "                        lies before it begins (disturbs least); rewrite: see inlay rewrite\n"
    "  -p PID                a process that runs, until inlay detach PID or its end\n"
    "and the options that every tool has (inlay help).\n";

static const char encode_usage[] =
    "usage: inlay trace encode LIST\n"
    "\n"
    "Writes LIST, events as --event has them, with numbers for names that the tool does not know itself: for\n"
    "inlay rewrite trace --event=..., or to be looked at.\n";

typedef struct request {
    char **before, **behind; /* of the tool's name */
    int before_count, behind_count;
    const char *output, *pid, *tool;
    char *values[2]; /* -A, -R: all, with ';' between them */
    char *events;    /* --event: all, with ',' */
    int program;     /* index of "--"; 0: none */
} request;

static bool is_or_begins(const char *text, const char *name)
{
    size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && (text[n] == 0 || text[n] == '=');
}

/* Of -x VALUE, -xVALUE, --name VALUE, --name=VALUE; *words: of how many. NULL: it is another option, or has none. */
static const char *value_of(char **argv, const char *name, int *words)
{
    size_t n = strlen(name);
    bool is_letter = name[1] != '-', joined = strncmp(argv[0], name, n) == 0 && argv[0][n];
    if (strncmp(argv[0], name, n) != 0 || (joined && !is_letter && argv[0][n] != '=')) return NULL;
    const char *value = joined ? argv[0] + n + !is_letter : argv[1];
    *words = joined ? 1 : 2;
    return value && (joined || strcmp(value, "--") != 0) ? value : NULL;
}

/* Of an option that may be repeated. */
static int take_joined(char **all, char **argv, const char *name, char between)
{
    int words;
    const char *value = value_of(argv, name, &words);
    if (!value) return 0;
    size_t before = *all ? strlen(*all) + 1 : 0;
    char *text = malloc(before + strlen(value) + 1);
    if (!text) return 0;
    if (before) sprintf(text, "%s%c%s", *all, between, value);
    else strcpy(text, value);
    free(*all);
    *all = text;
    return words;
}

static int take_value(const char **to, char **argv, const char *name)
{
    int words;
    const char *value = value_of(argv, name, &words);
    if (value) *to = value;
    return value ? words : 0;
}

/* The tool's: it says itself what is wrong with a value. */
static int take_tools(request *r, char **argv)
{
    enum { FLAGS = 4 }; /* the others have values */
    static const char *const names[] = {"--libs",  "--no-libs", "--compress", "--no-compress", "--min-size",
                                        "--clock", "--last",    "--inside",   "--min-path",    "--every",
                                        "--thin",  "--depth",   "--threshold"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_or_begins(argv[0], names[i])) continue;
        bool has_value = i >= FLAGS && argv[0][strlen(names[i])] == 0 && argv[1];
        r->behind[r->behind_count++] = argv[0];
        if (has_value) r->behind[r->behind_count++] = argv[1];
        return 1 + has_value;
    }
    return 0;
}

static int take_common(request *r, char **argv)
{
    int width = cli_option_width(argv);
    for (int i = 0; i < width; i++) r->before[r->before_count++] = argv[i];
    return width;
}

static int take(request *r, char **argv)
{
    int n = take_joined(r->values, argv, "-A", ';');
    if (!n) n = take_joined(r->values + 1, argv, "-R", ';');
    if (!n) n = take_joined(&r->events, argv, "--event", ',');
    if (!n) n = take_tools(r, argv);
    if (!n) n = take_value(&r->tool, argv, "--tool");
    if (!n) n = take_value(&r->output, argv, "--output");
    if (!n) n = take_value(&r->output, argv, "-o");
    if (!n) n = take_value(&r->pid, argv, "-p");
    return n ? n : take_common(r, argv);
}

/* 0: go on. */
static int parse(request *r, int argc, char **argv)
{
    int at = 1;
    while (at < argc && strcmp(argv[at], "--") != 0) {
        if (strcmp(argv[at], "--help") == 0) {
            fputs(usage, stdout);
            exit(EXIT_OK);
        }
        size_t last = strlen(argv[at]) - (argv[at][0] != 0);
        bool is_option = argv[at][0] == '-', is_cut = is_option && argv[at][last] == '=';
        int n = is_option && !is_cut ? take(r, argv + at) : 0;
        if (!n) {
            cli_say(is_option ? "option '%s' is not known to inlay trace, or lacks its value"
                              : "'%s': the program stands after '--' (see: inlay trace --help)",
                    argv[at]);
            return EXIT_USAGE;
        }
        at += n;
    }
    r->program = at < argc ? at : 0;
    if ((r->pid != NULL) != (r->program && at + 1 < argc)) return 0;
    cli_say(r->pid ? "a process (-p) or a program, not both"
                   : "no program named: it stands after '--' (see: inlay trace --help)");
    return EXIT_USAGE;
}

static char *default_output(const char *of)
{
    const char *slash = strrchr(of, '/'), *name = slash && slash[1] ? slash + 1 : of;
    char *text = malloc(strlen(name) + sizeof ".trace");
    if (text) strcat(strcpy(text, name), ".trace");
    return text;
}

/* What the tool does not know by name it is told by number. */
static int translate_events(request *r)
{
    enum { ROOM = 8192 };
    char why[512], *out = r->events ? malloc(ROOM) : NULL;
    if (!r->events) return EXIT_OK;
    if (!out || !events_translate(r->events, EVENTS_DEVICES, out, ROOM, why)) {
        cli_say("--event: %s", out ? why : "out of memory");
        return out ? EXIT_USAGE : EXIT_FAILED;
    }
    free(r->events);
    r->events = out;
    return EXIT_OK;
}

/* inlay trace encode LIST: for inlay rewrite, and to be looked at. */
static int encode(int argc, char **argv)
{
    bool helps = argc == 3 && strcmp(argv[2], "--help") == 0;
    if (argc != 3 || helps) {
        fputs(encode_usage, helps ? stdout : stderr);
        return helps ? EXIT_OK : EXIT_USAGE;
    }
    request r = {.events = strdup(argv[2])};
    int status = translate_events(&r);
    if (status) return status;
    puts(r.events);
    free(r.events);
    return EXIT_OK;
}

static int run(request *r, int argc, char **argv)
{
    int wrong = translate_events(r);
    if (wrong) return wrong;
    char **args = calloc((size_t)argc * 2 + 16, sizeof *args);
    const char *output = r->output ? r->output : default_output(r->pid ? r->pid : argv[r->program + 1]);
    if (!args || !output) {
        cli_say("out of memory");
        return EXIT_FAILED;
    }
    int n = 0;
    args[n++] = argv[0];
    args[n++] = "-o";
    args[n++] = (char *)output;
    for (int i = 0; i < r->before_count; i++) args[n++] = r->before[i];
    args[n++] = r->tool ? (char *)r->tool : "trace";
    for (int i = 0; i < r->behind_count; i++) args[n++] = r->behind[i];
    for (int i = 0; i < 2; i++) {
        if (!r->values[i]) continue;
        args[n++] = i ? "-R" : "-A";
        args[n++] = r->values[i];
    }
    if (r->events) args[n++] = "--event";
    if (r->events) args[n++] = r->events;
    if (r->pid) args[n++] = (char *)r->pid;
    for (int i = r->program; i && i < argc; i++) args[n++] = argv[i];
    return r->pid ? cli_attach(n, args) : cli_run(n, args);
}

int cli_trace(int argc, char **argv)
{
    int status = cli_trace_read(argc, argv);
    if (status >= 0) return status;
    if (argc > 1 && strcmp(argv[1], "encode") == 0) return encode(argc, argv);
    request r = {.before = calloc((size_t)argc * 2 + 2, sizeof(char *)),
                 .behind = calloc((size_t)argc + 2, sizeof(char *))};
    if (argc < 2 || !r.before || !r.behind) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    status = parse(&r, argc, argv);
    return status ? status : run(&r, argc, argv);
}
