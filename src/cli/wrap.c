/* inlay wrap: a step of a build. Runs the compiler as it is told, instruments the objects that it makes, and gives the
 * linker the recorder.
 *
 *     inlay wrap gcc -O2 -c a.c -o a.o        gcc ..., then a.o is instrumented where it is
 *     inlay wrap gcc a.o b.o -o app           gcc a.o b.o -o app -L... -linlay-trace
 *     inlay wrap gcc a.c b.o -o app           a.c is compiled to an object of its own first
 */
#include "cli/object.h"
#include "cli/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: inlay wrap [OPTIONS] COMPILER [ARGS]\n"
    "\n"
    "    make CC=\"inlay wrap gcc\" CXX=\"inlay wrap g++\"\n"
    "    cmake -DCMAKE_C_COMPILER_LAUNCHER=\"inlay;wrap\" -DCMAKE_C_LINKER_LAUNCHER=\"inlay;wrap\"\n"
    "\n"
    "Compiles, or links, as COMPILER does; objects that it makes are instrumented (see inlay object --help), programs\n"
    "and libraries are linked with the recorder. Without one of -fn, -F and --all, all procedures are.\n"
    "\n"
    "  -fn NAME,...  --all  -F PATTERN  -N PATTERN  --min-size=BYTES\n"
    "                        which procedures, as inlay object has it\n"
    "  --report=FILE         what was left alone, and why, is added to FILE\n";

/* --- the compiler's command line --- */

typedef enum wrap_kind { PASSES, COMPILES, LINKS } wrap_kind;

typedef struct command {
    char **argv; /* from the compiler's name on */
    int argc;
    wrap_kind kind;
    const char *output;
    int output_at, output_words;
    int *sources, source_count; /* indices */
} command;

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

/* Options whose value is the next word. */
static bool takes_value(const char *word)
{
    static const char *const list[] = {"-I",
                                       "-L",
                                       "-D",
                                       "-U",
                                       "-l",
                                       "-x",
                                       "-T",
                                       "-u",
                                       "-z",
                                       "-e",
                                       "-h",
                                       "-A",
                                       "-G",
                                       "-B",
                                       "-F",
                                       "-include",
                                       "-imacros",
                                       "-isystem",
                                       "-iquote",
                                       "-idirafter",
                                       "-iprefix",
                                       "-iwithprefix",
                                       "-iwithprefixbefore",
                                       "-isysroot",
                                       "-MF",
                                       "-MT",
                                       "-MQ",
                                       "-Xlinker",
                                       "-Xassembler",
                                       "-Xpreprocessor",
                                       "-Xclang",
                                       "-mllvm",
                                       "--param",
                                       "-target",
                                       "--sysroot",
                                       "-arch",
                                       "-aux-info",
                                       "-dumpbase",
                                       "-dumpdir",
                                       "-dumpbase-ext",
                                       "-wrapper",
                                       "-framework",
                                       "-specs",
                                       "--entry",
                                       NULL};
    return is_one_of(word, list);
}

static bool only_passes(const char *word)
{
    static const char *const list[] = {"-E",        "-S",           "-M",           "-MM",          "-fsyntax-only",
                                       "--version", "-dumpversion", "-dumpmachine", "-dumpspecs",   "-dumpfullversion",
                                       "--help",    "-###",         "-emit-ast",    "--precompile", NULL};
    return is_one_of(word, list) || strncmp(word, "-print-", 7) == 0 || strncmp(word, "--print-", 8) == 0 ||
           strncmp(word, "--help=", 7) == 0;
}

/* ccache gcc ...: the compiler is the second word. */
static int first_argument(const command *c)
{
    static const char *const list[] = {"ccache", "sccache", "distcc", "icecc", NULL};
    const char *slash = strrchr(c->argv[0], '/');
    bool another = is_one_of(slash ? slash + 1 : c->argv[0], list) && c->argc > 1 && c->argv[1][0] != '-';
    return another ? 2 : 1;
}

static bool is_source(const char *word)
{
    static const char *const ends[] = {".c",   ".cc",  ".cp",  ".cxx", ".cpp", ".c++", ".C",   ".i",   ".ii",
                                       ".s",   ".S",   ".sx",  ".m",   ".mm",  ".f",   ".for", ".f90", ".F",
                                       ".F90", ".f95", ".f03", ".f08", ".d",   ".adb", ".ads", ".go",  NULL};
    const char *slash = strrchr(word, '/'), *dot = strrchr(slash ? slash : word, '.');
    return dot && is_one_of(dot, ends);
}

/* What a file of arguments says of compiling would be missed. */
static bool holds_compilation(const char *word)
{
    char text[4096];
    bool holds = false;
    FILE *f = word[0] == '@' ? fopen(word + 1, "re") : NULL;
    while (f && !holds && fscanf(f, "%4095s", text) == 1) holds = strcmp(text, "-c") == 0 || is_source(text);
    if (f) fclose(f);
    return holds;
}

static bool is_understood(const command *c)
{
    for (int i = first_argument(c); i < c->argc; i++) {
        if (!holds_compilation(c->argv[i])) continue;
        cli_say("%s: -c and sources are to be named on the command line itself", c->argv[i]);
        return false;
    }
    return true;
}

static void read_command(command *c)
{
    bool compiles = false, passes = c->argc < 2, has_input = false;
    for (int i = first_argument(c); i < c->argc; i++) {
        const char *w = c->argv[i];
        if (strncmp(w, "-o", 2) == 0 && strncmp(w, "-objc", 5) != 0) {
            c->output_at = i;
            c->output_words = w[2] ? 1 : 2;
            c->output = w[2] ? w + 2 : c->argv[++i];
        } else if (strncmp(w, "--output=", 9) == 0 || strcmp(w, "--output") == 0) {
            c->output_at = i;
            c->output_words = w[8] ? 1 : 2;
            c->output = w[8] ? w + 9 : c->argv[++i];
        } else if (strcmp(w, "-c") == 0 || strcmp(w, "--compile") == 0) {
            compiles = true;
        } else if (only_passes(w)) {
            passes = true;
        } else if (takes_value(w)) {
            has_input |= strcmp(w, "-l") == 0;
            i++;
        } else if (w[0] != '-' || strcmp(w, "-") == 0) {
            has_input = true;
            if (is_source(w)) c->sources[c->source_count++] = i;
        }
    }
    c->kind = passes || !has_input ? PASSES : compiles ? COMPILES : LINKS;
}

/* --- running it --- */

static int become(const command *c)
{
    execvp(c->argv[0], c->argv);
    cli_say("cannot start %s: %s", c->argv[0], strerror(errno));
    return EXIT_FAILED;
}

/* NAME.o in this folder. */
static void default_object(const char *source, char out[PATH_MAX])
{
    const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source, *dot = strrchr(name, '.');
    snprintf(out, PATH_MAX, "%.*s.o", dot ? (int)(dot - name) : (int)strlen(name), name);
}

/* What is no object, of code or of what a linker makes code of (a precompiled header, say), stays. */
static bool is_object(const char *path)
{
    char head[18] = "";
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    bool elf = n == sizeof head && memcmp(head, "\177ELF", 4) == 0 && head[16] == 1;
    return elf || (n >= 4 && memcmp(head, "BC\xc0\xde", 4) == 0);
}

static int instrument(const char *path, object_choice *choice, object_log *log)
{
    struct stat st;
    inl_error e;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !is_object(path)) return EXIT_OK;
    if (object_do_file(path, path, choice, log, &e) == INL_OK) return EXIT_OK;
    cli_say("%s", e.text);
    unlink(path); /* a build that goes on would take it for done */
    return EXIT_FAILED;
}

static int compile(const command *c, object_choice *choice, object_log *log)
{
    cli_words words = {0};
    char object[PATH_MAX];
    for (int i = 0; i < c->argc; i++)
        if (!cli_words_add(&words, c->argv[i])) return EXIT_FAILED;
    int status = cli_status(&words);
    if (status == 0 && c->output) status = instrument(c->output, choice, log);
    for (int i = 0; i < c->source_count && !c->output && status == 0; i++) {
        default_object(c->argv[c->sources[i]], object);
        status = instrument(object, choice, log);
    }
    return status;
}

/* --- linking --- */

static bool source_at(const command *c, int at)
{
    for (int i = 0; i < c->source_count; i++)
        if (c->sources[i] == at) return true;
    return false;
}

/* One of several sources, as the command would compile it. */
static int compile_one(const command *c, int source, const char *object, object_choice *choice, object_log *log)
{
    cli_words words = {0};
    bool good = true;
    for (int i = 0; i < c->argc; i++) {
        bool output = c->output && i >= c->output_at && i < c->output_at + c->output_words;
        bool library = strncmp(c->argv[i], "-l", 2) == 0 || strncmp(c->argv[i], "-Wl,", 4) == 0;
        bool input = c->argv[i][0] != '-' && (i == 0 || !takes_value(c->argv[i - 1])) && i >= first_argument(c);
        if (output || library || (input && i != source)) continue;
        good = good && cli_words_add(&words, c->argv[i]);
    }
    good = good && cli_words_add(&words, "-c") && cli_words_add(&words, "-o") && cli_words_add(&words, object);
    int status = good ? cli_status(&words) : EXIT_FAILED;
    return status ? status : instrument(object, choice, log);
}

static int link_all(const command *c, char *const *objects)
{
    static const char *const relocates[] = {"-r", "-Wl,-r", "-Wl,-i", "-Wl,--relocatable", "--relocatable", NULL};
    static char lib[PATH_MAX + 2];
    cli_words words = {0};
    cli_place place;
    bool good = true, relocatable = false, shared = false;
    if (!cli_place_find(&place)) return EXIT_FAILED;
    snprintf(lib, sizeof lib, "-L%s", place.lib);
    for (int i = 0, k = 0; i < c->argc; i++) {
        relocatable |= is_one_of(c->argv[i], relocates);
        shared |= strcmp(c->argv[i], "-shared") == 0;
        good = good && cli_words_add(&words, source_at(c, i) ? objects[k++] : c->argv[i]);
    }
    if (shared) good = good && cli_words_add(&words, "-Wl,-z,nodelete"); /* it holds threads' windows */
    if (!relocatable) good = good && cli_words_add(&words, lib) && cli_words_add(&words, "-linlay-trace");
    return good ? cli_status(&words) : EXIT_FAILED;
}

static int link_program(const command *c, object_choice *choice, object_log *log)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/inlay-wrap.XXXXXX", base && *base ? base : "/tmp");
    char **objects = calloc((size_t)c->source_count + 1, sizeof *objects);
    int status = objects ? EXIT_OK : EXIT_FAILED;
    if (c->source_count && !mkdtemp(folder)) {
        cli_say("%s: cannot be made: %s", folder, strerror(errno));
        return EXIT_FAILED;
    }
    for (int i = 0; i < c->source_count && !status; i++) {
        if (asprintf(&objects[i], "%s/%d.o", folder, i) < 0) objects[i] = NULL;
        status = objects[i] ? compile_one(c, c->sources[i], objects[i], choice, log) : EXIT_FAILED;
    }
    if (!status) status = link_all(c, objects);
    for (int i = 0; i < c->source_count && objects; i++) {
        if (objects[i]) unlink(objects[i]);
        free(objects[i]);
    }
    if (c->source_count) rmdir(folder);
    free(objects);
    return status;
}

/* --- the command --- */

static int parse(int argc, char **argv, object_choice *choice, const char **report)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        int n = object_choice_take(choice, argv + at);
        if (n < 0) return -1;
        if (!n && strncmp(argv[at], "--report=", 9) == 0) *report = argv[at] + 9, n = 1;
        if (!n) {
            cli_say("option '%s' is not known to inlay wrap, or lacks its value", argv[at]);
            return -1;
        }
        at += n;
    }
    if (at == argc) cli_say("no compiler named (see: inlay wrap --help)");
    return at < argc ? at : -1;
}

int cli_wrap(int argc, char **argv)
{
    static object_choice choice;
    object_log log = {0};
    const char *report = NULL;
    if (argc == 2 && cli_asks_for_help(argv + 1)) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    int at = parse(argc, argv, &choice, &report);
    if (at < 0) return EXIT_USAGE;
    if (!choice.only_count) choice.only[choice.only_count++] = "*";
    command c = {.argv = argv + at, .argc = argc - at, .sources = calloc((size_t)argc, sizeof(int))};
    if (report && !(log.to = fopen(report, "ae"))) {
        cli_say("%s: cannot be written: %s", report, strerror(errno));
        return EXIT_FAILED;
    }
    if (!c.sources || !is_understood(&c)) return EXIT_FAILED;
    read_command(&c);
    int status = c.kind == PASSES     ? become(&c)
                 : c.kind == COMPILES ? compile(&c, &choice, &log)
                                      : link_program(&c, &choice, &log);
    free(c.sources);
    if (log.to && fclose(log.to) != 0) status = EXIT_FAILED;
    return status;
}
