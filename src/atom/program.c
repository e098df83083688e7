/* A tool of two files as an Inlay tool: when which of its parts runs.
 *
 *     main          declares nothing of its own; may name the program itself (atom_tool.program)
 *     first image   InstrumentInit, Instrument for each object, InstrumentFini; or InstrumentAll
 *     start         ProgramBefore's calls, then ObjBefore's
 *     end           ObjAfter's calls, then ProgramAfter's, each in the order in which they were added
 *
 * Under the JIT the program has started, in Inlay's sense, when its image is shown; no instruction of it
 * has run. In a rewritten program only start and end remain. */
#include "atom/state.h"
#include "tool/blame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atom_context atom_now;

void atom_fail(const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    inlay_warn("%s", line);
    fflush(NULL);
    _exit(1);
}

void *atom_alloc(size_t bytes)
{
    void *p = inlay_alloc(bytes);
    if (!p) atom_fail("out of memory");
    return p;
}

/* --- instrumentation --- */

/* The loader and the kernel's page are nobody's objects. */
bool atom_is_object(inlay_image *i)
{
    const char *name = inlay_image_name(i);
    return inlay_image_wanted(i) && strncmp(name, "ld-", 3) && strncmp(name, "linux-vdso", 10) && name[0] != '[';
}

static char **instrumentation_args(int *argc)
{
    int n = 0;
    while (atom_now.tool->args[n]) n++;
    char **argv = calloc((size_t)n + 2, sizeof *argv);
    if (!argv) atom_fail("out of memory");
    argv[0] = strdup(atom_now.tool->name);
    for (int i = 0; i < n; i++) argv[i + 1] = strdup(atom_now.tool->args[i]);
    *argc = n + 1;
    return argv;
}

static void run_tool(void)
{
    const atom_tool *t = atom_now.tool;
    int argc;
    char **argv = instrumentation_args(&argc);
    if (t->all) {
        if (t->all(argc, argv) != 0) atom_fail("InstrumentAll failed");
        return;
    }
    if (t->init) t->init(argc, argv);
    for (Obj *o = GetFirstObj(); o && t->instrument; o = GetNextObj(o)) {
        atom_now.object = o;
        t->instrument(argc, argv, o);
    }
    atom_now.object = NULL;
    if (t->fini) t->fini();
}

/* --- calls of the whole program --- */

static void make(const atom_call *c)
{
    const uint64_t *a = c->args;
    ((void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
               uint64_t, uint64_t))c->code)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

static void make_all(const atom_list *l)
{
    for (const atom_call *c = l->first; c; c = c->next) make(c);
}

static void begin(void)
{
    if (atom_now.ran) return;
    atom_now.ran = true;
    make_all(&atom_now.travels->program_before);
    make_all(&atom_now.travels->object_before);
}

static void image_loaded(inlay_image *i, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(i) || atom_now.travels->instrumented) return;
    atom_now.travels->instrumented = true;
    blame_name_images("the instrumentation file");
    run_tool();
    if (atom_now.started) begin();
}

static void on_start(void *arg)
{
    (void)arg;
    atom_now.started = true;
    if (atom_now.travels->instrumented) begin();
}

static void on_exit_of_program(int status, void *arg)
{
    (void)status;
    (void)arg;
    if (atom_now.ended) return;
    atom_now.ended = true;
    make_all(&atom_now.travels->object_after);
    make_all(&atom_now.travels->program_after);
    fflush(NULL);
}

static bool never_follow(const char *path, char *const argv[], void *arg)
{
    (void)path;
    (void)argv;
    (void)arg;
    return false;
}

/* --- main --- */

/* OUT ARGS...: the tool knows its program. */
static void name_program(int *argc, char ***argv)
{
    const char *program = atom_now.tool->program;
    if (!program || (*argc > 1 && !strncmp((*argv)[1], "--inlay-", 8))) return;
    char **more = calloc((size_t)*argc + 3, sizeof *more);
    if (!more) atom_fail("out of memory");
    more[0] = (*argv)[0];
    more[1] = "--";
    more[2] = strdup(program);
    for (int i = 1; i < *argc; i++) more[i + 2] = (*argv)[i];
    *argc += 2;
    *argv = more;
}

int atom_main(int argc, char **argv, const atom_tool *tool)
{
    atom_now.tool = tool;
    name_program(&argc, &argv);
    inlay_init(&argc, &argv, "a tool made of ATOM files");
    inlay_use_stdout();
    atom_now.travels = inlay_alloc(sizeof *atom_now.travels);
    if (!atom_now.travels) atom_fail("out of memory");
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_start(on_start, NULL);
    inlay_on_exit(on_exit_of_program, NULL);
    inlay_on_exec(never_follow, NULL);
    inlay_sums_may_wait();
    return inlay_start();
}
