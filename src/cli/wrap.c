/* inlay wrap: a step of a build. Runs the compiler as it is told, instruments the objects that it makes, and gives the
 * linker the recorder.
 *
 *     inlay wrap gcc -O2 -c a.c -o a.o        gcc ..., then a.o is instrumented where it is
 *     inlay wrap gcc a.o b.o -o app           gcc a.o b.o -o app -L... -linlay-trace
 *     inlay wrap gcc a.c b.o -o app           the same; what is made of a.c is instrumented before it is linked
 */
#include "cli/wrap.h"

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
    "  -fn NAME,...  --all  -F PATTERN  -N PATTERN  --min-size=BYTES  --min-path=N\n"
    "                        which procedures, as inlay object has it\n"
    "  --clock=  --every=N  --thin=N  --last=MB  --event=LIST  --depth=N  --threshold=TIME  --file=FILE\n"
    "                        what is recorded where INLAY_TRACE does not say otherwise, likewise\n"
    "  --report=FILE         what was left alone, and why, is added to FILE\n";

/* --- running it --- */

static int become(const wrap_command *c)
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

int wrap_instrument(const wrap_command *c, const char *path)
{
    struct stat st;
    inl_error e;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !is_object(path)) return EXIT_OK;
    if (object_do_file(path, path, c->choice, c->log, &e) == INL_OK) return EXIT_OK;
    cli_say("%s", e.text);
    unlink(path); /* a build that goes on would take it for done */
    return EXIT_FAILED;
}

static int compile(const wrap_command *c)
{
    cli_words words = {0};
    char object[PATH_MAX];
    for (char **w = c->argv; *w; w++)
        if (!cli_words_add(&words, *w)) return EXIT_FAILED;
    int status = cli_status(&words);
    if (status == 0 && c->output) status = wrap_instrument(c, c->output);
    for (int i = 0; i < c->source_count && !c->output && status == 0; i++) {
        default_object(c->words.items[c->sources[i]], object);
        status = wrap_instrument(c, object);
    }
    return status;
}

/* --- the command --- */

/* Given by the file that stands for the linker (wrap_link.c). */
typedef struct linker {
    const char *folder;
    bool kept;
} linker;

/* Reads the options in front of the compiler's name; where that stands, -1: wrong, said. */
static int parse(int argc, char **argv, wrap_command *c, const char **report, linker *as)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        int n = object_choice_take(c->choice, argv + at);
        if (n < 0) return -1;
        if (!n && strncmp(argv[at], "--report=", 9) == 0) *report = argv[at] + 9, n = 1;
        if (!n && strncmp(argv[at], "--linker=", 9) == 0) as->folder = argv[at] + 9, n = 1;
        if (!n && strncmp(argv[at], "--kept-linker=", 14) == 0) as->folder = argv[at] + 14, as->kept = true, n = 1;
        if (!n) {
            cli_say("option '%s' is not known to inlay wrap, or lacks its value", argv[at]);
            return -1;
        }
        at += n;
    }
    if (at == argc) cli_say("no compiler named (see: inlay wrap --help)");
    return at < argc ? at : -1;
}

static int run(wrap_command *c, const linker *as)
{
    if (as->folder) return wrap_as_linker(c, as->folder, as->kept);
    if (!wrap_read(c)) return EXIT_FAILED;
    int status = c->kind == PASSES ? become(c) : c->kind == COMPILES ? compile(c) : wrap_link(c);
    free(c->sources);
    return status;
}

int cli_wrap(int argc, char **argv)
{
    static object_choice choice;
    object_log log = {0};
    linker as = {0};
    const char *report = NULL;
    wrap_command c = {.choice = &choice, .log = &log};
    if (argc == 2 && cli_asks_for_help(argv + 1)) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    for (int i = 1; i < argc; i++) /* lists of names are taken apart */
        if (!cli_words_add(&c.own, strdup(argv[i]))) return EXIT_FAILED;
    int at = parse(argc, argv, &c, &report, &as);
    if (at < 0 || !object_choice_agrees(&choice)) return EXIT_USAGE;
    c.own.count = at - 1;
    if (!choice.only_count) choice.only[choice.only_count++] = "*";
    c.argv = argv + at;
    if (report && !(log.to = fopen(report, "ae"))) {
        cli_say("%s: cannot be written: %s", report, strerror(errno));
        return EXIT_FAILED;
    }
    int status = run(&c, &as);
    if (log.to && fclose(log.to) != 0) status = EXIT_FAILED;
    return status;
}
