/* Threads run and are sent signals when another one forks; the child begins threads in their place. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, CHILDREN = 30, BORN = 6, STATUS = 7 };

static atomic_int ends;

static void tick(int signo) { (void)signo; }

static int add(int n) { return n + 1; }
static int (*volatile by_pointer)(int) = add;

static void *runs(void *arg)
{
    int n = 0;
    while (!ends) n = by_pointer(n & 0xff);
    return arg;
}

static void *once(void *arg)
{
    *(int *)arg = by_pointer(1);
    return NULL;
}

static int child(void)
{
    pthread_t born[BORN];
    int answers[BORN] = {0}, good = 0;
    for (int i = 0; i < BORN; i++) pthread_create(&born[i], NULL, once, &answers[i]);
    for (int i = 0; i < BORN; i++) {
        pthread_join(born[i], NULL);
        good += answers[i] == 2;
    }
    return good == BORN ? STATUS : 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sigaction a = {.sa_handler = tick};
    int good = 0;
    sigaction(SIGUSR1, &a, NULL);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, runs, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        for (int k = 0; k < THREADS; k++) pthread_kill(threads[k], SIGUSR1);
        if (fork() == 0) _exit(child());
        wait(&status);
        good += WIFEXITED(status) && WEXITSTATUS(status) == STATUS;
    }
    ends = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d children\n", good);
    return 0;
}
