/* Tells the number of its first file, closes all that it has not opened, and forks while a thread is in a procedure. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE(name)                                                                                                    \
    __attribute__((noinline)) static void name(void) { __asm__ volatile("nop # " #name); }
PLACE(take)
PLACE(is_about_to_fork)
PLACE(child)
PLACE(parent)

static void *other(void *arg)
{
    take();
    return arg;
}

int main(void)
{
    pthread_t t;
    int status;
    printf("%d\n", open("/dev/null", O_RDONLY));
    fflush(stdout);
    for (int fd = 3; fd < 256; fd++) close(fd);
    if (pthread_create(&t, NULL, other, NULL)) return 1;
    is_about_to_fork();
    pid_t pid = fork();
    if (pid == 0) {
        child();
        exit(3);
    }
    parent();
    waitpid(pid, &status, 0);
    pthread_join(t, NULL);
    return WEXITSTATUS(status);
}
