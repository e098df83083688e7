/* null: runs a program from the code cache and changes nothing. What the engine itself costs. */
#include <inlay.h>

/* As text there is nothing to tell. */
static void report(int status, void *arg)
{
    (void)status, (void)arg;
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "null");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "runs the program under the engine, without any instrumentation");
    if (inlay_format_is_json()) inlay_on_exit(report, NULL);
    return inlay_start();
}
