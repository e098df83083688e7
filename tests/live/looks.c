/* A mutator that says what an image's modules are and which procedures match patterns: points.py.
 *
 *     looks PID IMAGE MODULE PATTERN...
 *
 * What could not be had leads to nothing. */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(inlay_proc *p, void *arg)
{
    printf("%s %s in %s\n", (const char *)arg, inlay_proc_display_name(p), inlay_module_name(inlay_proc_module(p)));
}

/* How many calls answer something for a process, an image, a procedure, a call that are not there. */
static unsigned of_nothing(void)
{
    inlay_process *p = inlay_process_attach(0);
    inlay_image *i = inlay_process_image_first(p);
    inlay_proc *f = inlay_image_proc_named(i, "main");
    inlay_process_thread t;
    unsigned line;
    return (p || i || f || inlay_process_pid(p) || inlay_process_program(p)) + !!inlay_process_image_at(p, 4096) +
           !!inlay_process_proc_at(p, 4096) + !!inlay_process_threads(p, &t, 1) + !!inlay_image_symbol(i, "main") +
           !!inlay_image_module_first(i) + !!inlay_image_module_named(i, "x.c") + inlay_proc_restore(f) +
           !!inlay_line_addresses(i, "x.c", 1, NULL, 0, &line) + inlay_call_restore(NULL) + !!inlay_proc_refused(f) +
           !!inlay_process_create(NULL, NULL, NULL, NULL) + !!inlay_own_cycles_now() + !!inlay_thread_number_now();
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    printf("%u of nothing\n", of_nothing());
    inlay_process *process = inlay_process_attach(atoi(argv[1]));
    inlay_image *image = process ? inlay_process_image_first(process) : NULL;
    while (image && strncmp(inlay_image_name(image), argv[2], strlen(argv[2]))) image = inlay_image_next(image);
    if (!image) return 1;
    unsigned count = 0, rest = 0, procs = 0, in_modules = 0;
    for (inlay_proc *p = inlay_image_proc_first(image); p; p = inlay_proc_next(p)) procs++;
    for (inlay_module *m = inlay_image_module_first(image); m; m = inlay_module_next(m)) {
        count++;
        rest += inlay_module_is_rest(m);
        if (count > 4 && !inlay_module_is_rest(m)) continue; /* each looks at all procedures */
        for (inlay_proc *p = inlay_module_proc_first(m); p; p = inlay_module_proc_next(m, p))
            in_modules += inlay_proc_module(p) == m && inlay_proc_image(p) == inlay_module_image(m);
    }
    inlay_module *named = inlay_image_module_named(image, argv[3]);
    printf("%s: %u modules, %u rest, %s%s\n", inlay_image_name(image), count, rest,
           named ? inlay_module_name(named) : "none", count < 5 && in_modules != procs ? ", some are in none" : "");
    for (inlay_proc *p = named ? inlay_module_proc_first(named) : NULL; p; p = inlay_module_proc_next(named, p))
        say(p, "of it:");
    for (int i = 4; i < argc; i++)
        printf("%s: %d\n", argv[i], inlay_image_procs_matching(image, argv[i], say, argv[i]));
    return 0;
}
