/* A tool in form only: it carries the mark of a tool and runs PROGRAM natively. The runners of the
 * system test and of the benchmark, and the command itself, are tested with it: whatever differs
 * under it is a fault of the runner. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__asm__(".pushsection .note.inlay, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 4, 1\n"
        ".asciz \"Inlay\"\n"
        ".balign 4\n"
        ".long 1\n"
        ".popsection");

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            puts("fake: runs the program natively");
            return 0;
        }
        if (strcmp(argv[i], "--") == 0 && argv[i + 1]) {
            execvp(argv[i + 1], argv + i + 1);
            perror(argv[i + 1]);
            return 1;
        }
    }
    return 2;
}
