/* Makes each call of calls.h (nothing.py) in a child of a mutator that has inserted something in process argv[1]. */
#include "nothing.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned make_all(void)
{
    unsigned made = 0;
    for (unsigned n = 0; n < CALLS; n++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            call(n);
            _exit(0);
        }
        if (waitpid(child, &status, 0) == child && status == 0) made++;
        else fprintf(stderr, "%s: status 0x%x\n", texts[n], status);
    }
    return made;
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    inlay_process *p = inlay_process_attach(atoi(argv[1]));
    long *calls = inlay_alloc(sizeof *calls);
    if (!p) return 1;
    made_in_main();
    made_of(inlay_image_proc_first(inlay_process_image_first(p)));
    v_block = inlay_proc_block_first(v_proc);
    v_insn = inlay_block_first(v_block);
    v_insertion = inlay_insert(inlay_proc_entry(v_proc), inlay_store(inlay_pointer(calls), inlay_const(1), 8));
    v_point = inlay_proc_entry(v_proc);
    if (!inlay_process_commit(p)) return 2;
    fprintf(stderr, "made %u\n", make_all());
    if (!inlay_process_let_go(p) || inlay_process_image_first(p) || inlay_process_commit(p)) return 3;
    fprintf(stderr, "let go: %s\n", inlay_process_error());
    return 0;
}
