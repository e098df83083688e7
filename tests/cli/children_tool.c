/* Counts instructions; of executed programs, "cat" runs without the tool and "sort" with another word. */
#include <inlay.h>

#include <string.h>

static inlay_counter instructions;
static const char *word = "usual";

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    inlay_insert(inlay_before(insn), inlay_count(&instructions, 1));
}

static bool on_exec(const char *path, char *const argv[], void *arg)
{
    static const char *const other[] = {"--word=special", "--format=json", NULL};
    (void)argv, (void)arg;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!strcmp(name, "sort") && !inlay_exec_options(other)) return false;
    return strcmp(name, "cat") != 0;
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "children");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_string("word", word);
    inlay_json_uint("instructions", inlay_counter_sum(&instructions));
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_option_string(&word, "word", 0, "what is reported");
    inlay_init(&argc, &argv, "chooses which programs it follows");
    inlay_on_insn(each_insn, NULL);
    inlay_on_exec(on_exec, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
