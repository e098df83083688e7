/* What gdb is shown of it natively and under --gdb must be the same: calls, values, a handler, a fork, a library that
 * is opened later, threads, an exec; with an argument, a fault at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int hits, got;
static double total = 1.5;
long watched;

__attribute__((noinline)) int work(int x)
{
    hits++;
    total += x * 0.5;
    return x * 2;
}

__attribute__((noinline)) double mix(double a, double b) { return a * b + total; }

static void handler(int signo) { got = signo; }

static void *thread(void *arg)
{
    for (int i = 0; i < 3; i++) work((int)(long)arg * 10 + i);
    return NULL;
}

__attribute__((noinline)) static void threads(void)
{
    for (long i = 1; i < 4; i++) {
        pthread_t t;
        pthread_create(&t, NULL, thread, (void *)i);
        pthread_join(t, NULL);
    }
}

__attribute__((noinline)) static void forks(void)
{
    int status;
    pid_t child = fork();
    if (!child) _exit(work(4));
    waitpid(child, &status, 0);
    printf("child %d, system %d\n", WEXITSTATUS(status), system("true"));
}

__attribute__((noinline)) static void opens(void)
{
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (!library) return;
    unsigned long (*crc)(unsigned long, const char *,
                         unsigned) = (unsigned long (*)(unsigned long, const char *, unsigned))dlsym(library, "crc32");
    printf("%lx\n", crc(0, "hello", 5));
}

int main(int argc, char **argv)
{
    int local = 5;
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 10; i++) local += work(i);
    printf("local %d\n", local);
    for (int i = 0; i < 3; i++) watched += i;
    raise(SIGUSR1);
    printf("got %d, %g\n", got, mix(2, 3));
    threads();
    forks();
    opens();
    printf("hits %d\n", hits);
    if (argc > 2) execl(argv[0], argv[0], "again", NULL);
    if (argc > 1) *(volatile int *)16 = 1;
    return 3;
}
