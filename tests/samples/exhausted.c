/* A program that uses up its address space. It must find that out itself (ENOMEM), and go on: run code that has not
 * been run before, more of it than fits anywhere, in two threads; fork; wait; and give the memory back. The
 * limit is set by the program, from which moment on it holds for everybody in the process. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FUNCTIONS = 30000, BYTES = 24 };
static const rlim_t limit = 400ul << 20;

typedef long (*function)(long);
static uint8_t code[FUNCTIONS * BYTES] __attribute__((aligned(4096)));

/* Takes all there is, in ever smaller pieces; they are in a list. */
static void **take_all(int *error)
{
    void **list = NULL;
    for (size_t size = 64ul << 20; size >= 4096; size /= 2)
        for (void **p; (p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                                 0)) != MAP_FAILED;
             list = p) {
            p[0] = list;
            p[1] = (void *)size;
        }
    *error = errno;
    return list;
}

static void give_all(void **list)
{
    for (void **next; list; list = next) {
        next = list[0];
        munmap(list, (size_t)list[1]);
    }
}

/* lea rax, [rdi + i] ; test al, 1 ; jz 1f ; add rax, 3 ; 1: ret */
static void write_functions(void)
{
    for (int32_t i = 0; i < FUNCTIONS; i++) {
        uint8_t *p = code + i * BYTES;
        static const uint8_t body[] = {0x48, 0x8d, 0x87, 0, 0, 0, 0, 0xa8, 1, 0x74, 4, 0x48, 0x83, 0xc0, 3, 0xc3};
        memcpy(p, body, sizeof body);
        memcpy(p + 3, &i, sizeof i);
    }
    mprotect(code, sizeof code, PROT_READ | PROT_EXEC);
}

static long run_functions(int times)
{
    long x = 0;
    for (int k = 0; k < times; k++)
        for (int i = 0; i < FUNCTIONS; i++) {
            function f;
            uint8_t *p = code + i * BYTES;
            memcpy(&f, &p, sizeof f);
            x = f(x) & 0xffffff;
        }
    return x;
}

static void *in_thread(void *go_on)
{
    volatile int *wait = go_on;
    while (*wait == 0) {}
    return (void *)run_functions(2);
}

static void *nothing(void *arg) { return arg; }

/* What a library does the first time. */
static void library(void)
{
    char text[200];
    struct tm tm = {0};
    time_t then = 1234567890;
    gmtime_r(&then, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, " %.6f %a %s %ld", cos(1.5) + pow(2.5, 3.5), 0.1, strerror(ENOSPC),
             strtol("-77", NULL, 10));
    puts(text);
}

static void forks(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        long x = run_functions(1);
        _exit(x == run_functions(1) ? 7 : 8);
    }
    waitpid(child, &status, 0);
    printf("fork %s, child %x\n", child > 0 ? "works" : strerror(errno), (unsigned)status);
}

int main(void)
{
    static char buffer[1 << 16];
    static volatile int go_on;
    struct rlimit r = {limit, limit};
    pthread_t thread, another;
    int error;
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    write_functions();
    if (setrlimit(RLIMIT_AS, &r)) return 1;
    pthread_create(&thread, NULL, in_thread, (void *)&go_on);
    void **list = take_all(&error);
    printf("the end: %s, %s\n", list ? "some" : "none", strerror(error));
    printf("malloc: %s\n", malloc(1 << 20) ? "works" : strerror(errno));
    printf("thread: %d\n", pthread_create(&another, NULL, nothing, NULL) == EAGAIN);
    library();
    printf("functions %ld\n", run_functions(2));
    go_on = 1;
    void *answer;
    pthread_join(thread, &answer);
    printf("in a thread %ld\n", (long)answer);
    forks();
    give_all(list);
    printf("malloc: %s\n", malloc(1 << 20) ? "works" : strerror(errno));
    printf("thread: %d\n", pthread_create(&another, NULL, nothing, NULL));
    pthread_join(another, NULL);
    return 0;
}
