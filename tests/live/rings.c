/* A program that the kernel works for in threads of its own: one that looks for requests, and others that carry them
 * out. Each line of standard input makes some requests, and is answered by how many were done. The line "end" has a
 * thread end the process that has been there from the beginning, and that no tool has ever been called in. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 8, REQUESTS = 100 };

static int ring = -1;
static struct io_uring_params p = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 50};
static char *requests, *answers;
static struct io_uring_sqe *entries;
static volatile int ends;

#define AT(base, off) ((volatile unsigned *)((base) + (off)))

static void *map(size_t size, unsigned long what)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, (off_t)what);
    if (at == MAP_FAILED) exit(3);
    return at;
}

static void begin(void)
{
    ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
    if (ring < 0) return; /* not here */
    requests = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    answers = map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    entries = map(p.sq_entries * sizeof *entries, IORING_OFF_SQES);
}

/* One that a thread of its own is made for. */
static void make_request(void)
{
    unsigned tail = *AT(requests, p.sq_off.tail), k = tail & *AT(requests, p.sq_off.ring_mask);
    entries[k] = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .flags = IOSQE_ASYNC, .user_data = tail};
    AT(requests, p.sq_off.array)[k] = k;
    __atomic_store_n(AT(requests, p.sq_off.tail), tail + 1, __ATOMIC_SEQ_CST);
    if (*AT(requests, p.sq_off.flags) & IORING_SQ_NEED_WAKEUP)
        syscall(SYS_io_uring_enter, ring, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
}

static int is_answered(void)
{
    unsigned head = *AT(answers, p.cq_off.head);
    while (__atomic_load_n(AT(answers, p.cq_off.tail), __ATOMIC_SEQ_CST) == head) {
        if (syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR) return 0;
    }
    const struct io_uring_cqe *all = (const void *)(answers + p.cq_off.cqes);
    int good = all[head & *AT(answers, p.cq_off.ring_mask)].res == 0;
    __atomic_store_n(AT(answers, p.cq_off.head), head + 1, __ATOMIC_SEQ_CST);
    return good;
}

static void *ender(void *arg)
{
    while (!ends) usleep(1000);
    exit(5);
    return arg;
}

int main(void)
{
    char line[64];
    pthread_t t;
    begin();
    if (pthread_create(&t, NULL, ender, NULL)) return 4;
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n")) {
        int done = 0;
        for (int i = 0; i < REQUESTS && ring >= 0; i++) {
            make_request();
            done += is_answered();
        }
        printf("%d\n", ring < 0 ? REQUESTS : done);
        fflush(stdout);
    }
    ends = 1;
    for (;;) pause();
}
