/* inlay_init and inlay_start: which role is this? */
#include "tool/note.h"
#include "tool/state.h"

#include <inlay/tool.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the data segment even while it is all zero: the helper writes to its place in the file's
 * mapping. */
tool_handoff tool_handoff_data __attribute__((section(".data"))) = {
    .fds = {-1, -1, -1, -1, -1, -1},
};

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)
/* note.h */
__asm__(".pushsection .note.inlay, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 4, 1\n"
        ".asciz \"Inlay\"\n"
        ".balign 4\n"
        ".long " TEXT(TOOL_NOTE_VERSION) "\n"
                                         ".popsection");

/* What main goes on with: the tool's name, the program and its arguments. */
static void strip_options(int *argc, char ***argv, int program)
{
    bool alone = tool_now->options.rewriting || tool_now->options.attaching || tool_handoff_data.target;
    int n = alone ? 1 : *argc - program;
    char **kept = calloc((size_t)n + 2, sizeof *kept);
    if (!kept) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    kept[0] = (*argv)[0];
    memcpy(kept + 1, *argv + program, (size_t)n * sizeof *kept);
    *argv = kept;
    *argc = n + 1;
}

void inlay_init(int *argc, char ***argv, const char *help)
{
    tool_now->blame.phase = BLAME_INLAY;
    if (tool_handoff_data.role == TOOL_LAUNCHER) native_command(*argc, *argv);
    tool_now->command_line.words = *argv;
    int program = options_parse(*argc, *argv, help ? help : "an Inlay tool");
    tool_handoff *h = &tool_handoff_data;
    if (h->role == TOOL_LAUNCHER && tool_now->options.attaching) attacher_enter((*argv)[program], *argv);
    if (h->role == TOOL_LAUNCHER && tool_now->options.join) join_process(tool_now->options.join, *argv);
    if (h->role == TOOL_LAUNCHER && tool_now->options.rewriting) rewriter_enter((*argv)[program], *argv);
    if (h->role == TOOL_LAUNCHER) {
        char path[sizeof tool_handoff_data.program];
        inl_error e = {0};
        if (tool_now->options.exec_path) {
            if (strlen(tool_now->options.exec_path) >= sizeof path)
                tool_fail(TOOL_EXIT_FAILED, "the program's path is too long");
            strcpy(path, tool_now->options.exec_path);
        } else if (program_find((*argv)[program], path, &e) != INL_OK || program_check(path, &e) != PROGRAM_OK) {
            tool_fail(TOOL_EXIT_FAILED, "cannot run %s", e.text);
        }
        if (tool_now->options.engine == ENGINE_JIT && tool_jit_missing())
            tool_fail(TOOL_EXIT_FAILED, "cannot run %s: %s", path, tool_jit_missing());
        tool_launch(path, *argv + program, *argv);
        resident_begin(); /* without ptrace: the program is loaded beside us */
    }
    if (h->role == TOOL_RESIDENT || h->role == TOOL_CARRIED) tool_exec_remember(*argc, *argv, program);
    strip_options(argc, argv, program);
    tool_now->blame.phase = BLAME_BEFORE_START;
}
