/* inlay atom: makes a tool of ATOM's files, and has it rewrite or run the program.
 *
 *     inlay atom app cache.inst.c cache.anal.c -o app.cache
 *
 *     cache.inst.c -> inst.o    all but Instrument, InstrumentInit, ... made local  objcopy
 *     cache.anal.c -> anal0.o, ... -> anal.o                                         ld -r
 *     anal.o + table.o (its routines by name) -> anal_all.o                          ld -r, objcopy
 *     main.c       -> main.o    tells atom_main about both
 *     inlay cc main.o inst.o anal_all.o -> tool;   tool --inlay-rewrite app -o app.cache
 *
 * So the two sides have name spaces of their own: both may define a helper of the same name, or one that
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
    "(usage: inlay atom PROGRAM INST.c ANAL.c... [-o OUT] [--engine=rewrite|jit] [OPTIONS] [-- ARGS])";

static const char help[] =
    "Makes an instrumented program of a program and the files of an ATOM tool.\n"
    "\n"
    "usage: inlay atom PROGRAM INST.c ANAL.c... -o OUT [OPTIONS] [-- ARGS OF THE INSTRUMENTATION FILE]\n"
    "       inlay atom PROGRAM INST.c ANAL.c... --engine=jit [OPTIONS] [-- ARGS OF THE PROGRAM]\n"
    "       inlay atom PROGRAM TOOL.desc ...\n"
    "       inlay atom PROGRAM -tool NAME [-env NAME] ...\n"
    "\n"
    "  -o OUT                       the instrumented program\n"
    "  --engine=rewrite|jit         rewrite PROGRAM, or run it under the JIT (at once, or when OUT is run)\n"
    "  --tool-arg WORD              an argument of the instrumentation file\n"
    "  -toolargs=\"WORDS\"            the same, several at once\n"
    "  -tool NAME, -env NAME        the tool that NAME.desc, or NAME.ENV.desc, describes (ATOMTOOLPATH)\n"
    "  -all                         insist on --with-libs\n"
    "  -D -U -I -O -g -f -std= -include FILE   for the compiler; -l -L for the link\n"
    "  --no-sums                    routines make every addition at once (docs/atom.md)\n"
    "  --with-libs, --report, --map, --result, --image, --proc   as inlay rewrite has them\n"
    "\n"
    "docs/atom.md tells what ATOM's names mean here.\n";

typedef struct job {
    const char *program, *out;
    const char *named, *environment; /* -tool, -env */
    bool jit;
    atom_tool_files tool;
    cli_words rewrite, program_args;
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
    return a[0] == '-' && (strchr("IDUOgf", a[1]) || !strncmp(a, "-std=", 5)) && a[1];
}

static bool take_file(job *j, const char *a)
{
    size_t n = strlen(a);
    if (!j->program) {
        j->program = a;
        return true;
    }
    if (n > 5 && !strcmp(a + n - 5, ".desc") && !j->tool.inst.count) return atom_read_description(a, &j->tool);
    return cli_words_add(j->tool.inst.count ? &j->tool.anal : &j->tool.inst, a);
}

/* Returns how many arguments it took; 0: a mistake, told. */
static int take_option(job *j, char **argv)
{
    const char *a = argv[0];
    if (!strncmp(a, "--engine=", 9)) return take_engine(j, a + 9);
    if (!strcmp(a, "--engine") && argv[1]) return take_engine(j, argv[1]) ? 2 : 0;
    if (!strncmp(a, "--tool-arg=", 11)) return cli_words_add(&j->tool.args, a + 11);
    if (!strcmp(a, "--tool-arg") && argv[1]) return cli_words_add(&j->tool.args, argv[1]) ? 2 : 0;
    if (!strcmp(a, "-tool") && argv[1]) return j->named = argv[1], 2;
    if (!strcmp(a, "-env") && argv[1]) return j->environment = argv[1], 2;
    int flag = atom_take_flag("the command line", (const char *const *)argv, &j->tool);
    if (flag) return flag > 0 ? flag : 0;
    if (!strcmp(a, "-o") && argv[1]) return j->out = argv[1], 2;
    if (!strncmp(a, "-o", 2) && a[2]) return j->out = a + 2, 1;
    if (!strncmp(a, "-l", 2) || !strncmp(a, "-L", 2)) return cli_words_add(&j->tool.link, a);
    if (!strcmp(a, "-include") && argv[1])
        return cli_words_add(&j->tool.compile, a) && cli_words_add(&j->tool.compile, argv[1]) ? 2 : 0;
    if (is_for_compiler(a)) return cli_words_add(&j->tool.compile, a);
    int width = cli_option_width(argv);
    if (!width) cli_say("option '%s' is not known, or lacks its value %s", a, usage);
    for (int i = 0; i < width; i++)
        if (!cli_words_add(&j->rewrite, argv[i])) return 0;
    return width;
}

static bool has_option(const cli_words *w, const char *name)
{
    for (int i = 0; i < w->count; i++)
        if (!strncmp(w->items[i], name, strlen(name))) return true;
    return false;
}

/* Is all there that is needed? */
static bool complete(job *j)
{
    if (j->named && !j->tool.inst.count) {
        const char *description = atom_find_description(j->named, j->environment);
        if (!description || !atom_read_description(description, &j->tool)) return false;
    }
    if (!j->program || !j->tool.anal.count)
        cli_say("a program, an instrumentation and an analysis file are needed %s", usage);
    else if (!j->out && !j->jit && !has_option(&j->rewrite, "--with-libs"))
        cli_say("no output named (-o OUT, or --engine=jit to run at once)");
    else if (j->tool.wants_libs && !has_option(&j->rewrite, "--with-libs"))
        cli_say("%s: -all: the tool wants all libraries; name a folder for them (--with-libs DIR)", j->tool.wants_libs);
    else return true;
    return false;
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
        if (!cli_words_add(j->out || !j->jit ? &j->tool.args : &j->program_args, argv[i])) return false;
    return complete(j);
}

/* --- making the tool --- */

static char *in_folder(const job *j, const char *name)
{
    char *path = malloc(strlen(j->folder) + strlen(name) + 2);
    if (path) sprintf(path, "%s/%s", j->folder, name);
    return path;
}

/* Objects as one: ld -r. */
static bool join(const job *j, const cli_words *objects, const char *out)
{
    cli_words w = {0};
    cli_words_add(&w, "ld");
    cli_words_add(&w, "-r");
    for (int i = 0; i < objects->count; i++) cli_words_add(&w, objects->items[i]);
    cli_words_add(&w, "-o");
    cli_words_add(&w, in_folder(j, out));
    return cli_command(&w);
}

/* The headers, as they lie in the build's tree and as they are installed; those of the instruction set too. */
static void add_includes(const job *j, cli_words *w)
{
    static const char *const folders[] = {"compat", "compat/" INLAY_ISA, "inlay/compat", "inlay/compat/" INLAY_ISA, ""};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *option = malloc(strlen(j->place.include) + strlen(folders[i]) + 8);
        if (option) sprintf(option, "-I%s/%s", j->place.include, folders[i]);
        cli_words_add(w, option);
    }
}

/* clang-format off */
static bool compile(const job *j, const char *source, const char *object, bool generated)
{
    bool cxx = cli_is_cxx(source);
    size_t n = strlen(source);
    const char *wanted = getenv(cxx ? "CXX" : "CC");
    cli_words w = {0};
    if (!strcmp(source + (n > 2 ? n - 2 : 0), ".o")) {
        cli_words one = {&source, 1};
        return join(j, &one, object);
    }
    const char *const fixed[] = {wanted && *wanted ? wanted : cxx ? "c++" : "cc", "-O2", "-g", "-fPIE",
                                 "-fno-stack-protector", "-fno-optimize-sibling-calls", "-fno-common",
                                 "-fcf-protection=none", "-fno-tree-vectorize", "-w", "-Wno-return-type",
                                 cxx ? "-std=gnu++17" : "-std=gnu89"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) cli_words_add(&w, fixed[i]);
    add_includes(j, &w);
    for (int i = 0; i < j->tool.compile.count && !generated; i++) cli_words_add(&w, j->tool.compile.items[i]);
    if (generated) cli_words_add(&w, "-g0"); /* who is told of its lines would look for it in vain */
    cli_words_add(&w, "-c");
    cli_words_add(&w, source);
    cli_words_add(&w, "-o");
    cli_words_add(&w, in_folder(j, object));
    if (cli_command(&w)) return true;
    cli_say("%s does not compile", source);
    return false;
}
/* clang-format on */

/* Several files of one side become one object. */
static bool compile_all(const job *j, const cli_words *files, const char *side)
{
    cli_words objects = {0};
    char name[64];
    bool good = true;
    for (int i = 0; good && i < files->count; i++) {
        snprintf(name, sizeof name, "%s%d.o", side, i);
        good = cli_words_add(&objects, in_folder(j, name)) && compile(j, files->items[i], name, false);
    }
    snprintf(name, sizeof name, "%s.o", side);
    good = good && join(j, &objects, name);
    for (int i = 0; i < objects.count; i++) unlink(objects.items[i]);
    return good;
}

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
    for (int i = 0; i < j->tool.args.count; i++) {
        write_string(f, j->tool.args.items[i]);
        fprintf(f, ", ");
    }
    fprintf(f, "0};\nint main(int argc, char **argv)\n{\n    static const atom_tool tool = {");
    write_string(f, j->tool.inst.items[0]);
    fprintf(f, ", ");
    write_string(f, j->tool.anal.items[0]);
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
    cli_words_add(&w, in_folder(j, "anal.o"));
    cli_words_add(&w, in_folder(j, "table.o"));
    return join(j, &w, "anal_all.o") && make_local(j, "anal_all.o", anal, none);
}

/* C++ in a source's name, or in an object's symbols. */
static bool any_cxx(const cli_words *files, const atom_symbols *s)
{
    for (int i = 0; i < files->count; i++)
        if (cli_is_cxx(files->items[i])) return true;
    for (size_t i = 0; i < s->count; i++)
        if (!strncmp(s->names[i], "_Z", 2)) return true;
    return false;
}

static bool link_tool(const job *j, const char *tool, bool cxx)
{
    cli_words w = {0};
    const char *const words[] = {"/proc/self/exe", "cc", in_folder(j, "main.o"), in_folder(j, "inst.o"),
                                 in_folder(j, "anal_all.o")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) cli_words_add(&w, words[i]);
    for (int i = 0; i < j->tool.link.count; i++) cli_words_add(&w, j->tool.link.items[i]);
    if (cxx) cli_words_add(&w, "-lstdc++"), cli_words_add(&w, "-lm"); /* as C++ compilers do */
    cli_words_add(&w, "-o");
    cli_words_add(&w, tool);
    return cli_command(&w);
}

static bool make_tool(const job *j, const char *program, const char *tool)
{
    static const char *const entries[] = {"Instrument", "InstrumentInit", "InstrumentFini", "InstrumentAll", NULL};
    atom_symbols inst, anal;
    if (!compile_all(j, &j->tool.inst, "inst") || !compile_all(j, &j->tool.anal, "anal")) return false;
    if (!atom_symbols_read(in_folder(j, "inst.o"), &inst) || !atom_symbols_read(in_folder(j, "anal.o"), &anal))
        return false;
    if (!atom_symbols_have(&inst, "Instrument") && !atom_symbols_have(&inst, "InstrumentAll")) {
        cli_say("%s defines neither Instrument nor InstrumentAll", j->tool.inst.items[0]);
        return false;
    }
    if (!write_table(j, &anal) || !write_main(j, &inst, program)) {
        cli_say("cannot write into %s: %s", j->folder, strerror(errno));
        return false;
    }
    return compile(j, in_folder(j, "table.c"), "table.o", true) && compile(j, in_folder(j, "main.c"), "main.o", true) &&
           join_analysis(j, &anal) && make_local(j, "inst.o", &inst, entries) &&
           link_tool(j, tool, any_cxx(&j->tool.inst, &inst) || any_cxx(&j->tool.anal, &anal));
}

/* --- what is done with it --- */

/* A file of this folder is meant before a command of that name, as where it is rewritten. */
static const char *as_path(const char *name)
{
    struct stat st;
    char *path = NULL;
    bool here = !strchr(name, '/') && stat(name, &st) == 0 && S_ISREG(st.st_mode);
    return here && asprintf(&path, "./%s", name) > 0 ? path : name;
}

static int run_tool(const job *j, const char *tool)
{
    cli_words w = {0};
    cli_words_add(&w, tool);
    if (!j->jit) cli_words_add(&w, "--inlay-rewrite");
    for (int i = 0; i < j->rewrite.count; i++) cli_words_add(&w, j->rewrite.items[i]);
    if (j->jit) cli_words_add(&w, "--");
    cli_words_add(&w, j->jit ? as_path(j->program) : j->program);
    if (!j->jit && j->out) {
        cli_words_add(&w, "-o");
        cli_words_add(&w, j->out);
    }
    for (int i = 0; i < j->program_args.count; i++) cli_words_add(&w, j->program_args.items[i]);
    return cli_status(&w);
}

/* The tool is called what its instrumentation file is, up to the first dot: messages begin with it. */
static char *tool_file(const job *j)
{
    const char *inst = j->tool.inst.items[0], *slash = strrchr(inst, '/'), *name = slash ? slash + 1 : inst;
    char *dir = in_folder(j, "tool"), *path = malloc(strlen(j->folder) + strlen(name) + 16);
    if (!dir || !path || mkdir(dir, 0700) != 0) return NULL;
    sprintf(path, "%s/%.*s", dir, (int)strcspn(name, "."), name);
    return path;
}

static int work(const job *j, const char *tool)
{
    if (!j->jit || !j->out) return make_tool(j, NULL, tool) ? run_tool(j, tool) : cli_failed();
    const char *program = whole_path(j->program);
    if (j->rewrite.count) {
        cli_say("with --engine=jit and -o the options of tools are not available (%s)", j->rewrite.items[0]);
        return EXIT_USAGE;
    }
    return program && make_tool(j, program, j->out) ? EXIT_OK : cli_failed();
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
    cli_end_later();
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
    return cli_end_now(status);
}
