/* fork, exec of a small dynamic program, wait.
 * operations: 50 (processes) */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    int good = 0;
    for (int i = 0; i < rounds * 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        int status;
        if (child > 0 && waitpid(child, &status, 0) == child) good += status == 0;
    }
    printf("%d\n", good);
    return 0;
}
