/* What the tool that goes wrong is put into. Ends with 5; "fork": as a child of its own does, which only ends; "fault":
 * by a fault of its own; "handled": handles one; "twice": frees twice, which the C library aborts it for. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *arg) { return arg; }
static void handler(int signo)
{
    (void)signo;
    _exit(6);
}

int main(int argc, char **argv)
{
    pthread_t t;
    int status = 0;
    puts("the program runs");
    fflush(stdout);
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    if (argc > 1 && !strcmp(argv[1], "fork")) {
        if (fork() == 0) _exit(0);
        wait(&status);
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (argc > 1 && !strcmp(argv[1], "handled")) signal(SIGSEGV, handler);
    if (argc > 1 && !strcmp(argv[1], "twice")) {
        void *volatile p = malloc(5000);
        free(p);
        free(p);
    }
    if (argc > 1) *(volatile int *)24 = 1;
    for (volatile int i = 0; i < 1000; i++) {}
    return 5;
}
