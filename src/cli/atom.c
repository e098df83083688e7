/* inlay atom: makes a tool of ATOM's pair of files, and has it rewrite or run the program.
 *
 *     inlay atom app cache.inst.c cache.anal.c -o app.cache
 *
 *     cache.inst.c -> inst.o    all but Instrument, InstrumentInit, ... made local  objcopy
 *     cache.anal.c -> anal.o    + table.o (its routines by name) -> anal_all.o       ld -r, objcopy
 *     main.c       -> main.o    tells atom_main about both
 *     inlay cc main.o inst.o anal_all.o -> tool;   tool --inlay-rewrite app -o app.cache
 *
 * So the two files have name spaces of their own: both may define a helper of the same name, or one that
 * is called like something of the C library, which goes on using its own. All is made in a folder that is
 * removed in the end. */
#include "cli/atom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "(usage: inlay atom PROGRAM INST.c ANAL.c [-o OUT] [--engine=rewrite|jit] [OPTIONS] [-- ARGS])";

static const char help[] =
    "Makes an instrumented program of a program and the two files of an ATOM tool.\n"
    "\n"
    "usage: inlay atom PROGRAM INST.c ANAL.c -o OUT [OPTIONS] [-- ARGS OF THE INSTRUMENTATION FILE]\n"
    "       inlay atom PROGRAM INST.c ANAL.c --engine=jit [OPTIONS] [-- ARGS OF THE PROGRAM]\n"
    "       inlay atom PROGRAM TOOL.desc ...\n"
    "\n"
    "  -o OUT                       the instrumented program\n"
    "  --engine=rewrite|jit         rewrite PROGRAM, or run it under the JIT (at once, or when OUT is run)\n"
    "  --tool-arg WORD              an argument of the instrumentation file\n"
    "  -D -U -I -O -g -f -std=      for the compiler; -l -L for the link\n"
    "  --no-sums                    routines make every addition at once (docs/atom.md)\n"
    "  --with-libs, --report, --map, --result, --image, --proc   as inlay rewrite has them\n"
    "\n"
    "docs/atom.md tells what ATOM's names mean here.\n";

typedef struct job {
    const char *program, *out;
    const char *inst, *anal;
    bool jit;
    cli_words compile, rewrite, tool_args, program_args;
    char folder[PATH_MAX];
    cli_place place;
} job;

/* --- the command line --- */

static bool take_engine(job *j, const char *word)
{
    j->jit = !strcmp(word, "jit");
    if (j->jit || !strcmp(word, "rewrite")) return true;
    cli_say("--engine=%s: it is jit or rewrite", word);
    return false;
}

static bool is_for_compiler(const char *a)
{
    return a[0] == '-' && (strchr("IDUOgflL", a[1]) || !strncmp(a, "-std=", 5)) && a[1];
}

static bool take_file(job *j, const char *a)
{
    size_t n = strlen(a);
    if (!j->program) {
        j->program = a;
    } else if (n > 5 && !strcmp(a + n - 5, ".desc") && !j->inst) {
        return atom_read_description(a, &j->inst, &j->anal, &j->tool_args, &j->rewrite);
    } else if (!j->inst) {
        j->inst = a;
    } else if (!j->anal) {
        j->anal = a;
    } else {
        cli_say("one argument too many: %s %s", a, usage);
        return false;
    }
    return true;
}

/* Returns how many arguments it took; 0: a mistake, told. */
static int take_option(job *j, char **argv)
{
    const char *a = argv[0];
    if (!strncmp(a, "--engine=", 9)) return take_engine(j, a + 9);
    if (!strcmp(a, "--engine") && argv[1]) return take_engine(j, argv[1]) ? 2 : 0;
    if (!strncmp(a, "--tool-arg=", 11)) return cli_words_add(&j->tool_args, a + 11);
    if (!strcmp(a, "--tool-arg") && argv[1]) return cli_words_add(&j->tool_args, argv[1]) ? 2 : 0;
    if (!strcmp(a, "-o") && argv[1]) return j->out = argv[1], 2;
    if (!strncmp(a, "-o", 2) && a[2]) return j->out = a + 2, 1;
    if (is_for_compiler(a)) return cli_words_add(&j->compile, a);
    int width = cli_option_width(argv);
    if (!width) cli_say("option '%s' is not known, or lacks its value %s", a, usage);
    for (int i = 0; i < width; i++)
        if (!cli_words_add(&j->rewrite, argv[i])) return 0;
    return width;
}

static bool take_arguments(job *j, int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0) {
        int width = argv[i][0] == '-' && argv[i][1] ? take_option(j, argv + i) : take_file(j, argv[i]);
        if (!width) return false;
        i += width;
    }
    for (i++; i < argc; i++)
        if (!cli_words_add(j->out || !j->jit ? &j->tool_args : &j->program_args, argv[i])) return false;
    if (!j->anal) cli_say("a program, an instrumentation and an analysis file are needed %s", usage);
    else if (!j->out && !j->jit) cli_say("no output named (-o OUT, or --engine=jit to run at once)");
    return j->anal && (j->out || j->jit);
}

/* --- making the tool --- */

static char *in_folder(const job *j, const char *name)
{
    char *path = malloc(strlen(j->folder) + strlen(name) + 2);
    if (path) sprintf(path, "%s/%s", j->folder, name);
    return path;
}

/* clang-format off */
static bool compile(const job *j, const char *source, const char *object, bool generated)
{
    static char include[PATH_MAX + 2], compat[PATH_MAX + 16], installed[PATH_MAX + 16];
    bool cxx = cli_is_cxx(source);
    const char *wanted = getenv(cxx ? "CXX" : "CC");
    cli_words w = {0};
    snprintf(include, sizeof include, "-I%s", j->place.include);
    snprintf(compat, sizeof compat, "-I%s/compat", j->place.include);
    snprintf(installed, sizeof installed, "-I%s/inlay/compat", j->place.include);
    const char *const fixed[] = {wanted && *wanted ? wanted : cxx ? "c++" : "cc", "-O2", "-fPIE",
                                 "-fno-stack-protector", "-fno-common", "-fcf-protection=none",
                                 "-fno-tree-vectorize", "-w", "-Wno-return-type",
                                 compat, installed, include, cxx ? "-std=gnu++17" : "-std=gnu89"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) cli_words_add(&w, fixed[i]);
    for (int i = 0; i < j->compile.count && !generated; i++)
        if (strncmp(j->compile.items[i], "-l", 2) && strncmp(j->compile.items[i], "-L", 2))
            cli_words_add(&w, j->compile.items[i]);
    cli_words_add(&w, "-c");
    cli_words_add(&w, source);
    cli_words_add(&w, "-o");
    cli_words_add(&w, in_folder(j, object));
    if (cli_command(&w)) return true;
    cli_say("%s does not compile", source);
    return false;
}
/* clang-format on */

static bool write_table(const job *j, const atom_symbols *anal)
{
    FILE *f = fopen(in_folder(j, "table.c"), "w");
    if (!f) return false;
    fprintf(f, "struct atom_obj;\n#include <inlay_atom.h>\n");
    for (size_t i = 0; i < anal->count; i++) fprintf(f, "extern void r%zu(void) __asm__(\"%s\");\n", i, anal->names[i]);
    fprintf(f, "const atom_routine atom_routines[] = {\n");
    for (size_t i = 0; i < anal->count; i++) fprintf(f, "    {\"%s\", r%zu},\n", anal->names[i], i);
    fprintf(f, "    {0, 0}};\n");
    return fclose(f) == 0;
}

static void write_string(FILE *f, const char *s)
{
    if (!s) {
        fputs("0", f);
        return;
    }
    putc('"', f);
    for (; *s; s++) fprintf(f, "\\%03o", (unsigned char)*s);
    putc('"', f);
}

/* The whole path of a program that may be named as a command. */
static const char *whole_path(const char *name)
{
    char at[PATH_MAX];
    char *whole = realpath(name, NULL);
    struct stat st;
    if (whole && stat(whole, &st) == 0 && S_ISREG(st.st_mode)) return whole;
    for (const char *p = getenv("PATH"); p && *p && !strchr(name, '/');) {
        size_t n = strcspn(p, ":");
        snprintf(at, sizeof at, "%.*s/%s", (int)n, p, name);
        if (access(at, X_OK) == 0) return realpath(at, NULL);
        p += n + (p[n] == ':');
    }
    cli_say("program %s: %s", name, strerror(ENOENT));
    return NULL;
}

static bool write_main(const job *j, const atom_symbols *inst, const char *program)
{
    static const char *const entries[] = {"InstrumentAll", "InstrumentInit", "Instrument", "InstrumentFini"};
    const char *have[4];
    FILE *f = fopen(in_folder(j, "main.c"), "w");
    if (!f) return false;
    fprintf(f, "struct atom_obj;\n#include <inlay_atom.h>\nextern const atom_routine atom_routines[];\n");
    for (int k = 0; k < 4; k++) have[k] = atom_symbols_have(inst, entries[k]) ? entries[k] : "0";
    if (have[0][0] != '0') fprintf(f, "unsigned InstrumentAll(int, char **);\n");
    if (have[1][0] != '0') fprintf(f, "void InstrumentInit(int, char **);\n");
    if (have[2][0] != '0') fprintf(f, "int Instrument(int, char **, struct atom_obj *);\n");
    if (have[3][0] != '0') fprintf(f, "void InstrumentFini(void);\n");
    fprintf(f, "static const char *const args[] = {");
    for (int i = 0; i < j->tool_args.count; i++) {
        write_string(f, j->tool_args.items[i]);
        fprintf(f, ", ");
    }
    fprintf(f, "0};\nint main(int argc, char **argv)\n{\n    static const atom_tool tool = {");
    write_string(f, j->inst);
    fprintf(f, ", ");
    write_string(f, j->anal);
    fprintf(f, ", ");
    write_string(f, program);
    fprintf(f, ", args, %s, %s, %s, %s, atom_routines};\n    return atom_main(argc, argv, &tool);\n}\n", have[0],
            have[1], have[2], have[3]);
    return fclose(f) == 0;
}

/* What the object defines becomes its own business, but for the names of a list. What several objects may
 * define (C++) stays common to all. */
static bool make_local(const job *j, const char *object, const atom_symbols *s, const char *const *but)
{
    cli_words w = {0};
    char *list = in_folder(j, "local"), *option = malloc(strlen(j->folder) + 64);
    FILE *f = list && option ? fopen(list, "w") : NULL;
    size_t count = 0;
    if (!f) return false;
    for (size_t i = 0; i < s->strong_count; i++) {
        const char *const *k = but;
        while (*k && strcmp(*k, s->strong[i])) k++;
        if (!*k) count += fprintf(f, "%s\n", s->strong[i]) > 0;
    }
    sprintf(option, "--localize-symbols=%s", list);
    const char *const words[] = {"objcopy", option, in_folder(j, object)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) cli_words_add(&w, words[i]);
    return fclose(f) == 0 && (!count || cli_command(&w)); /* objcopy takes no empty list */
}

static bool join_analysis(const job *j, const atom_symbols *anal)
{
    static const char *const none[] = {NULL};
    cli_words w = {0};
    const char *const words[] = {
        "ld", "-r", in_folder(j, "anal.o"), in_folder(j, "table.o"), "-o", in_folder(j, "anal_all.o")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) cli_words_add(&w, words[i]);
    return cli_command(&w) && make_local(j, "anal_all.o", anal, none);
}

static bool link_tool(const job *j, const char *tool)
{
    cli_words w = {0};
    const char *const words[] = {"/proc/self/exe", "cc", in_folder(j, "main.o"), in_folder(j, "inst.o"),
                                 in_folder(j, "anal_all.o")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) cli_words_add(&w, words[i]);
    for (int i = 0; i < j->compile.count; i++)
        if (!strncmp(j->compile.items[i], "-l", 2) || !strncmp(j->compile.items[i], "-L", 2))
            cli_words_add(&w, j->compile.items[i]);
    if (cli_is_cxx(j->inst) || cli_is_cxx(j->anal)) cli_words_add(&w, "-lstdc++");
    cli_words_add(&w, "-o");
    cli_words_add(&w, tool);
    return cli_command(&w);
}

static bool make_tool(const job *j, const char *program, const char *tool)
{
    static const char *const entries[] = {"Instrument", "InstrumentInit", "InstrumentFini", "InstrumentAll", NULL};
    atom_symbols inst, anal;
    if (!compile(j, j->inst, "inst.o", false) || !compile(j, j->anal, "anal.o", false)) return false;
    if (!atom_symbols_read(in_folder(j, "inst.o"), &inst) || !atom_symbols_read(in_folder(j, "anal.o"), &anal))
        return false;
    if (!atom_symbols_have(&inst, "Instrument") && !atom_symbols_have(&inst, "InstrumentAll")) {
        cli_say("%s defines neither Instrument nor InstrumentAll", j->inst);
        return false;
    }
    if (!write_table(j, &anal) || !write_main(j, &inst, program)) {
        cli_say("cannot write into %s: %s", j->folder, strerror(errno));
        return false;
    }
    return compile(j, in_folder(j, "table.c"), "table.o", true) && compile(j, in_folder(j, "main.c"), "main.o", true) &&
           join_analysis(j, &anal) && make_local(j, "inst.o", &inst, entries) && link_tool(j, tool);
}

/* --- what is done with it --- */

static int run_tool(const job *j, const char *tool)
{
    cli_words w = {0};
    cli_words_add(&w, tool);
    if (!j->jit) cli_words_add(&w, "--inlay-rewrite");
    for (int i = 0; i < j->rewrite.count; i++) cli_words_add(&w, j->rewrite.items[i]);
    if (j->jit) cli_words_add(&w, "--");
    cli_words_add(&w, j->program);
    if (!j->jit) {
        cli_words_add(&w, "-o");
        cli_words_add(&w, j->out);
    }
    for (int i = 0; i < j->program_args.count; i++) cli_words_add(&w, j->program_args.items[i]);
    return cli_status(&w);
}

/* The tool is called what its instrumentation file is, up to the first dot: messages begin with it. */
static char *tool_file(const job *j)
{
    const char *slash = strrchr(j->inst, '/'), *name = slash ? slash + 1 : j->inst;
    char *dir = in_folder(j, "tool"), *path = malloc(strlen(j->folder) + strlen(name) + 16);
    if (!dir || !path || mkdir(dir, 0700) != 0) return NULL;
    sprintf(path, "%s/%.*s", dir, (int)strcspn(name, "."), name);
    return path;
}

static int work(const job *j, const char *tool)
{
    if (!j->jit || !j->out) return make_tool(j, NULL, tool) ? run_tool(j, tool) : EXIT_FAILED;
    const char *program = whole_path(j->program);
    if (j->rewrite.count) {
        cli_say("with --engine=jit and -o the options of tools are not available (%s)", j->rewrite.items[0]);
        return EXIT_USAGE;
    }
    return program && make_tool(j, program, j->out) ? EXIT_OK : EXIT_FAILED;
}

int cli_atom(int argc, char **argv)
{
    static job j;
    if (argc > 1 && !strcmp(argv[1], "--help")) {
        fputs(help, stdout);
        return EXIT_OK;
    }
    if (!take_arguments(&j, argc, argv)) return EXIT_USAGE;
    if (!cli_place_find(&j.place)) return EXIT_FAILED;
    const char *tmp = getenv("TMPDIR");
    snprintf(j.folder, sizeof j.folder, "%s/inlay-atom-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(j.folder)) {
        cli_say("cannot make the folder %s: %s", j.folder, strerror(errno));
        return EXIT_FAILED;
    }
    char *tool = tool_file(&j);
    int status = tool ? work(&j, tool) : EXIT_FAILED;
    static const char *const made[] = {"inst.o", "anal.o", "table.c",    "table.o",
                                       "main.c", "main.o", "anal_all.o", "local"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) unlink(in_folder(&j, made[i]));
    if (tool) unlink(tool);
    rmdir(in_folder(&j, "tool"));
    rmdir(j.folder);
    return status;
}
