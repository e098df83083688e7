/* inlay object: objects whose procedures tell of their entries and exits, for programs that are linked with
 * libinlay-trace.a.
 *
 *     inlay object -fn parse,solve a.o b.o -o traced && cc traced/a.o traced/b.o -linlay-trace -o app */
#include "cli/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: inlay object -fn NAME,... | --all | -F PATTERN [OPTIONS] FILE.o... -o DIR\n"
    "\n"
    "Puts calls of a recorder at entry and exits of procedures into relocatable object files (.o) and archives of "
    "them\n"
    "(.a). A program that is linked with them, and with -linlay-trace, records to PROGRAM.trace when it runs\n"
    "(INLAY_OUT=FILE: there), for `inlay trace report` and its like.\n"
    "\n"
    "  -fn NAME,...          these procedures (C++: mangled names, or patterns)\n"
    "  --all                 all\n"
    "  -F PATTERN            those whose name matches (repeatable); C++ names as people write them\n"
    "  -N PATTERN            none whose name matches (repeatable)\n"
    "  --min-size=BYTES      only procedures of at least so many bytes\n"
    "  --min-path=N          only procedures whose shortest way from entry to exit has so many instructions\n"
    "  --clock=, --every=N, --thin=N, --last=MB, --event=LIST, --depth=N, --threshold=TIME, --file=FILE\n"
    "                        as inlay trace has them: what is recorded where INLAY_TRACE in the program's environment\n"
    "                        does not say otherwise (counts,every=N,thin=N,last=MB,event=NAME,file=FILE,off ...).\n"
    "                        --clock=none: exits are left alone, calls can be counted and no more\n"
    "  -o DIR                the folder that the new files go to, under their names; with one FILE, a new file's name\n"
    "                        is good as well, if it ends as FILE does\n"
    "  --report=FILE         what was done goes there (- is standard output) instead of standard error\n"
    "  --format=text|json    how; text tells of procedures that were left alone, JSON of all\n";

typedef struct request {
    object_choice choice;
    object_log log;
    const char *output, *report;
    const char **files;
    int count;
} request;

static int take(request *r, char **argv)
{
    int n = object_choice_take(&r->choice, argv);
    if (n) return n;
    if (strncmp(argv[0], "-o", 2) == 0) {
        r->output = argv[0][2] ? argv[0] + 2 : argv[1];
        return r->output ? 1 + !argv[0][2] : 0;
    }
    if (strncmp(argv[0], "--report=", 9) == 0) r->report = argv[0] + 9;
    else if (strcmp(argv[0], "--format=json") == 0) r->log.json = true;
    else if (strcmp(argv[0], "--format=text") != 0) return 0;
    return 1;
}

static int parse(request *r, int argc, char **argv)
{
    for (int at = 1; at < argc;) {
        if (argv[at][0] != '-') {
            r->files[r->count++] = argv[at++];
            continue;
        }
        int n = take(r, argv + at);
        if (n < 0) return EXIT_USAGE;
        if (!n) {
            cli_say("option '%s' is not known to inlay object, or lacks its value", argv[at]);
            return EXIT_USAGE;
        }
        at += n;
    }
    const char *lacks = !r->count               ? "no object named"
                        : !r->choice.only_count ? "no procedures named: -fn NAME,..., -F PATTERN or --all"
                        : !r->output            ? "no output named: -o DIR"
                                                : NULL;
    if (lacks) cli_say("%s (see: inlay object --help)", lacks);
    return lacks || !object_choice_agrees(&r->choice) ? EXIT_USAGE : EXIT_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_alike(const char *a, const char *b)
{
    const char *x = strrchr(base_name(a), '.'), *y = strrchr(base_name(b), '.');
    return x && y && strcmp(x, y) == 0;
}

/* Where a file goes; false: not to be had, said. */
static bool place(const request *r, const char *file, char out[PATH_MAX])
{
    struct stat st;
    bool folder = stat(r->output, &st) == 0 && S_ISDIR(st.st_mode);
    if (!folder && r->count == 1 && ends_alike(r->output, file)) {
        snprintf(out, PATH_MAX, "%s", r->output);
        return true;
    }
    if (!folder && mkdir(r->output, 0777) != 0) {
        cli_say("%s: cannot be made a folder: %s", r->output, strerror(errno));
        return false;
    }
    if (snprintf(out, PATH_MAX, "%s/%s", r->output, base_name(file)) < PATH_MAX) return true;
    cli_say("%s: the name is too long", r->output);
    return false;
}

/* Two files of one name would become one. */
static bool all_differ(const request *r)
{
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < i; k++) {
            if (strcmp(base_name(r->files[i]), base_name(r->files[k]))) continue;
            cli_say("%s and %s would both be %s/%s: name two folders", r->files[k], r->files[i], r->output,
                    base_name(r->files[i]));
            return false;
        }
    return true;
}

static int do_all(request *r)
{
    char out[PATH_MAX];
    inl_error e;
    int status = EXIT_OK;
    object_log_begin(&r->log);
    for (int i = 0; i < r->count; i++) {
        if (!place(r, r->files[i], out)) return EXIT_FAILED;
        if (object_do_file(r->files[i], out, &r->choice, &r->log, &e) == INL_OK) continue;
        cli_say("%s", e.text);
        status = EXIT_FAILED;
    }
    object_log_end(&r->log);
    for (unsigned i = 0; i < r->choice.only_count && !status; i++) {
        if (r->choice.met[i] || strcmp(r->choice.only[i], "*") == 0) continue;
        cli_say("no procedure of these objects is called '%s'", r->choice.only[i]);
        status = EXIT_FAILED;
    }
    return status;
}

int cli_object(int argc, char **argv)
{
    static request r;
    if (argc == 2 && cli_asks_for_help(argv + 1)) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    r.files = calloc((size_t)argc + 1, sizeof *r.files);
    if (!r.files) {
        cli_say("out of memory");
        return EXIT_FAILED;
    }
    int status = parse(&r, argc, argv);
    if (status || !all_differ(&r)) return status ? status : EXIT_USAGE;
    bool own = r.report && strcmp(r.report, "-") != 0;
    r.log.to = !r.report ? stderr : own ? fopen(r.report, "we") : stdout;
    if (!r.log.to) {
        cli_say("%s: cannot be written: %s", r.report, strerror(errno));
        return EXIT_FAILED;
    }
    status = do_all(&r);
    if ((own ? fclose(r.log.to) : fflush(r.log.to)) != 0) status = EXIT_FAILED;
    return status;
}
