/* Stores to `marks` one behind the other: some by the process, some by a vfork child on its behalf, some by one that
 * execs, by the process again. Who traces memory sees each once, in this order. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EACH = 3000, ROUNDS = 8 };
volatile unsigned char marks[2 * EACH * ROUNDS];
static volatile int next;

static __attribute__((noinline)) void mark(void)
{
    for (int end = next + EACH; next < end; next++) marks[next] = 1;
}

static __attribute__((noinline)) pid_t child_marks(int execs)
{
    pid_t child = vfork();
    if (child) return child;
    mark();
    if (execs) execl("/bin/true", "true", (char *)NULL);
    _exit(0);
}

int main(void)
{
    int ended = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int status = 0;
        mark();
        pid_t child = child_marks(i % 2);
        ended += waitpid(child, &status, 0) == child && status == 0;
    }
    printf("%d of %d children, %d marks\n", ended, ROUNDS, next);
    return 0;
}
