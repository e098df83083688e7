/* A worker that takes samples, shows the program that it is there where that asks for it, and does what it should not.
 */
#include <inlay.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHOWN_AFTER = 3, MILLISECOND = 1000000, THREADS = 64 };

typedef struct shared {
    long samples, ended, last, backwards, in_fork, numbers[THREADS], wrong;
    inlay_mutex lock;
} shared;

static inlay_counter calls;
static shared *all;
static inlay_worker *sampler;
static bool crashes, stays, starts_late;

/* The file has gone: the program asks. */
static void show(const char *path, long *since)
{
    if (!path || access(path, F_OK) == 0) *since = all->samples;
    else if (all->samples - *since >= SHOWN_AFTER) close(open(path, O_WRONLY | O_CREAT, 0666));
}

static void sample(void *arg)
{
    long since = 0, before = 0;
    while (inlay_worker_sleep(MILLISECOND) || stays) {
        inlay_lock(&all->lock);
        all->samples++;
        all->last = (long)inlay_counter_sum(&calls);
        all->backwards += all->last < before;
        before = all->last;
        inlay_unlock(&all->lock);
        all->wrong += !inlay_worker_is_here() || inlay_thread_number_now() != 0;
        show(getenv("WORKER_SHOWS"), &since);
        if (crashes && all->last) *(volatile int *)arg = 1;
    }
    all->ended++;
}

static void called(uint64_t number)
{
    inlay_lock(&all->lock);
    if (number < THREADS) all->numbers[number]++;
    else all->wrong++;
    inlay_unlock(&all->lock);
    if (inlay_worker_is_here()) all->wrong++;
    if (starts_late && !sampler) sampler = inlay_worker_start("late", sample, NULL);
}

static void image(inlay_image *i, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_image_is_main(i) ? inlay_image_proc_named(i, "numbered") : NULL;
    if (!p) return;
    inlay_insert(inlay_proc_entry(p), inlay_count(&calls, 1));
    inlay_insert(inlay_proc_entry(p), inlay_call(called, inlay_thread_id()));
}

static void in_fork(void *arg)
{
    (void)arg;
    all->ended = 0;
    all->wrong += !inlay_worker_end(sampler, 0); /* it is not there */
    sampler = inlay_worker_start("of the child", sample, (void *)16);
    all->in_fork = sampler != NULL;
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "ended %ld, in fork %ld, backwards %ld, wrong %ld, sampled %d, threads", all->ended,
            all->in_fork, all->backwards, all->wrong, all->samples > 0);
    for (int i = 0; i < THREADS; i++)
        if (all->numbers[i]) fprintf(inlay_out(), " %d:%ld", i, all->numbers[i]);
    fprintf(inlay_out(), "\n");
}

int main(int argc, char **argv)
{
    inlay_option_flag(&crashes, "crashes", 0, "once the program works");
    inlay_option_flag(&stays, "stays", 0, "does not end");
    inlay_option_flag(&starts_late, "late", 0, "begins in a routine");
    inlay_init(&argc, &argv, "takes samples");
    all = inlay_alloc(sizeof *all);
    inlay_on_image_load(image, NULL);
    inlay_on_fork_child(in_fork, NULL);
    inlay_on_exit(report, NULL);
    if (!starts_late) sampler = inlay_worker_start("sampler", sample, (void *)16);
    return inlay_start();
}
