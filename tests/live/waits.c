/* Waits in every way that has an end in time, in a thread each, and in one of these ways in the first thread. Says how
 * each has ended, and when those are all over that the kernel itself continues after a stop.
 *
 *   waits KIND SECONDS */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int seconds;
static struct timespec all(void) { return (struct timespec){.tv_sec = seconds}; }
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static struct timespec at_end(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += seconds;
    return t;
}

static long in_nanosleep(void)
{
    struct timespec t = all();
    return nanosleep(&t, NULL);
}
static long in_clock_nanosleep(void)
{
    struct timespec t = at_end();
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    return -errno;
}
static long in_poll(void) { return poll(NULL, 0, 1000 * seconds); }
static long in_ppoll(void)
{
    struct timespec t = all();
    return ppoll(NULL, 0, &t, NULL);
}
static long in_select(void)
{
    struct timeval t = {.tv_sec = seconds};
    return select(0, NULL, NULL, NULL, &t);
}
static long in_pselect(void)
{
    struct timespec t = all();
    return pselect(0, NULL, NULL, NULL, &t, NULL);
}
static long in_futex(void)
{
    static int word;
    struct timespec t = all();
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}
static long in_futex_until(void)
{
    static int word;
    struct timespec t = at_end();
    return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, -1);
}
static long in_condition(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += seconds;
    pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&never, &mutex, &t);
    pthread_mutex_unlock(&mutex);
    errno = error;
    return -error;
}

/* --- those that a stop ends with EINTR, or begins anew --- */

static long in_epoll_wait(void)
{
    struct epoll_event e;
    return epoll_wait(epoll_create1(0), &e, 1, 1000 * seconds);
}
static long in_epoll_pwait(void)
{
    struct epoll_event e;
    sigset_t none;
    sigemptyset(&none);
    return epoll_pwait(epoll_create1(0), &e, 1, 1000 * seconds, &none);
}
static long in_sigtimedwait(void)
{
    struct timespec t = all();
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    return sigtimedwait(&some, NULL, &t);
}
static long in_recv(void)
{
    int ends[2];
    char byte;
    struct timeval t = {.tv_sec = seconds};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t))
        return -2;
    return recv(ends[0], &byte, 1, 0);
}
static long in_accept(void)
{
    struct timeval t = {.tv_sec = seconds};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr name = {.sa_family = AF_UNIX};
    if (bind(s, &name, sizeof(sa_family_t)) || listen(s, 1) || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t))
        return -2;
    return accept(s, NULL, NULL);
}
static long in_semtimedop(void)
{
    struct sembuf one = {.sem_op = -1};
    struct timespec t = all();
    int id = semget(IPC_PRIVATE, 1, 0600);
    long answer = semtimedop(id, &one, 1, &t);
    int error = errno;
    semctl(id, 0, IPC_RMID);
    errno = error;
    return answer;
}

/* --- those that somebody else ends --- */

static int sem = -1, queue = -1, pipe_ends[2];
typedef struct message {
    long kind;
    char text[1];
} message;
static long in_semop(void)
{
    struct sembuf one = {.sem_op = -1};
    return semop(sem, &one, 1);
}
static long in_msgrcv(void)
{
    message m;
    return msgrcv(queue, &m, 1, 0, 0);
}
static long in_read(void)
{
    char byte;
    return read(pipe_ends[0], &byte, 1);
}

typedef struct way {
    const char *name;
    long (*wait)(void);
    bool goes_on; /* with the time that is left, after a stop */
    long answer;
    int error;
    double took;
} way;
static way ways[] = {{"nanosleep", in_nanosleep, true, 0, 0, 0},
                     {"clock_nanosleep", in_clock_nanosleep, true, 0, 0, 0},
                     {"poll", in_poll, true, 0, 0, 0},
                     {"ppoll", in_ppoll, true, 0, 0, 0},
                     {"select", in_select, true, 0, 0, 0},
                     {"pselect", in_pselect, true, 0, 0, 0},
                     {"futex", in_futex, true, 0, 0, 0},
                     {"futex_until", in_futex_until, true, 0, 0, 0},
                     {"condition", in_condition, true, 0, 0, 0},
                     {"epoll_wait", in_epoll_wait, false, 0, 0, 0},
                     {"epoll_pwait", in_epoll_pwait, false, 0, 0, 0},
                     {"sigtimedwait", in_sigtimedwait, false, 0, 0, 0},
                     {"recv", in_recv, false, 0, 0, 0},
                     {"accept", in_accept, false, 0, 0, 0},
                     {"semtimedop", in_semtimedop, false, 0, 0, 0},
                     {"semop", in_semop, false, 0, 0, 0},
                     {"msgrcv", in_msgrcv, false, 0, 0, 0},
                     {"read", in_read, false, 0, 0, 0}};
enum { WAYS = sizeof ways / sizeof *ways };
static int under_way;

static void *run(void *arg)
{
    way *w = arg;
    double began = now();
    errno = 0;
    w->answer = w->wait();
    w->error = w->answer < 0 ? errno : 0;
    w->took = now() - began;
    if (w->goes_on && __atomic_sub_fetch(&under_way, 1, __ATOMIC_SEQ_CST) == 0) {
        printf("over\n");
        fflush(stdout);
    }
    return w;
}

/* A little later than the others' time, since their waits may not have begun. */
static void end_others(void)
{
    struct sembuf two = {.sem_op = 2};
    message m = {.kind = 1};
    semop(sem, &two, 1);
    for (int i = 0; i < 2; i++)
        if (msgsnd(queue, &m, 1, 0) || write(pipe_ends[1], "x", 1) != 1) abort();
}

static void *ends(void *arg)
{
    (void)arg;
    for (double until = now() + seconds + 0.2; now() < until;) usleep(10000);
    end_others();
    return NULL;
}

static void say(const way *w)
{
    printf("%s %ld %s %s\n", w->name, w->answer, w->error ? strerrorname_np(w->error) : "-",
           w->took < seconds - 0.01 ? "early" : "in time");
}

int main(int argc, char **argv)
{
    pthread_t threads[WAYS], ender;
    way *mine = NULL, first;
    if (argc != 3) return 2;
    for (unsigned i = 0; i < WAYS; i++)
        if (!strcmp(ways[i].name, argv[1])) mine = &ways[i];
    seconds = atoi(argv[2]);
    sem = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    if (!mine || sem < 0 || queue < 0 || pipe(pipe_ends)) return 2;
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    sigprocmask(SIG_BLOCK, &usr2, NULL);
    first = *mine;
    under_way = first.goes_on;
    for (unsigned i = 0; i < WAYS; i++) under_way += ways[i].goes_on;
    printf("begins\n");
    fflush(stdout);
    for (unsigned i = 0; i < WAYS; i++)
        if (pthread_create(&threads[i], NULL, run, &ways[i])) return 2;
    if (pthread_create(&ender, NULL, ends, NULL)) return 2;
    run(&first);
    pthread_join(ender, NULL);
    for (unsigned i = 0; i < WAYS; i++) pthread_join(threads[i], NULL);
    printf("the first thread: ");
    say(&first);
    for (unsigned i = 0; i < WAYS; i++) say(&ways[i]);
    semctl(sem, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    fflush(stdout);
    while (getchar() != EOF) {} /* somebody may be at work in this process */
    return 0;
}
