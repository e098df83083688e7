/* threads [TURNS [alone]]: eight threads that each do an exactly known amount of work (or, alone, the
 * first thread does it once and nothing else runs). Each ends in its own way: returning,
 * pthread_exit, cancelled while blocked, detached. Thread-local storage and errno stay private. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 8 };

static _Thread_local long mine;
static atomic_long total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long guarded;
static int turns = 200000;
static sem_t done;

__attribute__((noinline)) static void work(int n)
{
    for (int i = 0; i < n; i++) mine += i & 1;
}

static void *body(void *arg)
{
    int id = (int)(long)arg;
    errno = id;
    work(turns);
    if (errno != id) abort();
    atomic_fetch_add(&total, mine);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        guarded++;
        pthread_mutex_unlock(&lock);
    }
    sem_post(&done);
    if (id % 2) pthread_exit(NULL);
    if (id == 4) pause();
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1) turns = atoi(argv[1]);
    if (argc > 2) {
        work(turns);
        return 0;
    }
    pthread_t threads[THREADS];
    sem_init(&done, 0, 0);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++) sem_wait(&done);
    pthread_cancel(threads[4]);
    int cancelled = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        if (i == 6) {
            pthread_detach(threads[i]);
            continue;
        }
        pthread_join(threads[i], &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    printf("total %ld guarded %ld cancelled %d\n", (long)total, guarded, cancelled);
    return 0;
}
