/* The tool's allocator, in a program linked as a tool is: contents, alignment and sizes under random requests,
 * from one thread and from several that free each other's blocks; and that the weaver knows what it changes. */
#include "run/kernel.h"
#include "tool/heap.h"
#include "tool/tool.h"
#include "weave/weaver.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { SLOTS = 1000, ROUNDS = 200000, THREADS = 4, BIG = 300 << 10 };

typedef struct piece {
    unsigned char *p;
    size_t size;
    unsigned char mark;
} piece;

static size_t random_size(uint32_t *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    uint32_t r = *seed >> 8;
    switch (r & 15) {
    case 0: return r >> 4 & 0xfffff; /* to 1 MB */
    case 1:
    case 2: return r >> 4 & 0x7fff; /* to 32 KB */
    default: return r >> 4 & 0xff;
    }
}

/* Only the ends of large ones, or the test takes long. */
static void fill(piece *s)
{
    size_t n = s->size < 512 ? s->size : 512;
    memset(s->p, s->mark, n);
    memset(s->p + s->size - n, s->mark, n);
}

static bool holds(const piece *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (s->p[i] != s->mark) return false;
    return true;
}

static void check(const piece *s)
{
    size_t n = s->size < 512 ? s->size : 512;
    CHECK(holds(s, 0, n) && holds(s, s->size - n, s->size));
}

static void take(piece *s, uint32_t *seed)
{
    size_t to = 16;
    s->size = random_size(seed);
    s->mark = (unsigned char)(*seed >> 16);
    if (*seed >> 28 == 0) {
        to = 16u << (*seed >> 20 & 7);
        s->p = memalign(to, s->size);
    } else if (*seed >> 28 == 1) {
        s->p = calloc(1, s->size);
        for (size_t i = 0; i < s->size; i++) CHECK(s->p[i] == 0);
    } else {
        s->p = malloc(s->size);
    }
    CHECK(s->p && (uintptr_t)s->p % to == 0 && malloc_usable_size(s->p) >= s->size);
    fill(s);
}

static void resize(piece *s, uint32_t *seed)
{
    size_t old = s->size, n = random_size(seed);
    n += !n;
    s->p = realloc(s->p, n);
    CHECK(s->p && (uintptr_t)s->p % 16 == 0 && malloc_usable_size(s->p) >= n);
    size_t kept = old < n ? old : n;
    CHECK(holds(s, 0, kept < 512 ? kept : 512));
    s->size = n;
    fill(s);
}

static void work(piece *slots, uint32_t seed, unsigned rounds)
{
    for (unsigned k = 0; k < rounds; k++) {
        seed = seed * 1103515245u + 12345u;
        piece *s = &slots[(seed >> 8) % SLOTS];
        if (s->p) check(s);
        if (s->p && seed >> 30 == 1) {
            resize(s, &seed);
            continue;
        }
        free(s->p);
        s->p = NULL;
        if (seed >> 30 != 2) take(s, &seed);
    }
}

/* --- threads, with a frame each, as the engines give them --- */

static struct {
    pthread_mutex_t lock;
    piece slots[SLOTS];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned started;

static void give_frame(void)
{
    static run_thread blocks[THREADS + 1];
    static unsigned given;
    run_thread *t = &blocks[__atomic_fetch_add(&given, 1, __ATOMIC_RELAXED)];
    t->frame.self = &t->frame;
    run_adopt_block(t);
}

/* Pieces change hands all the time. */
static void *thread(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    give_frame();
    __atomic_fetch_add(&started, 1, __ATOMIC_RELEASE);
    for (unsigned k = 0; k < ROUNDS / 4; k++) {
        piece mine, other;
        take(&mine, &seed);
        pthread_mutex_lock(&shared.lock);
        piece *s = &shared.slots[(seed >> 8) % SLOTS];
        other = *s;
        *s = mine;
        pthread_mutex_unlock(&shared.lock);
        if (!other.p) continue;
        check(&other);
        if (seed >> 30 == 1) resize(&other, &seed);
        free(other.p);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[THREADS];
    give_frame();
    heap_threads_begin();
    for (uintptr_t i = 0; i < THREADS; i++) {
        /* The library may start the thread with the creator's block, which its first requests share: so
         * nobody else asks for memory meanwhile. */
        CHECK(pthread_create(&t[i], NULL, thread, (void *)(i + 2)) == 0);
        while (__atomic_load_n(&started, __ATOMIC_ACQUIRE) <= i) usleep(100);
    }
    for (unsigned i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (shared.slots[i].p) check(&shared.slots[i]);
        free(shared.slots[i].p);
    }
}

/* --- the rest --- */

static void known(void)
{
    void (*const all[])(void) = {(void (*)(void))malloc, (void (*)(void))free, (void (*)(void))calloc,
                                 (void (*)(void))realloc, (void (*)(void))memalign};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        const weave_routine *r = weave_routine_of(all[i]);
        CHECK(r && !r->unknown && r->tls == FRAME_BY_TLS && !r->modes && !r->vecs && !r->fp);
    }
}

static void corners(void)
{
    void *p = &p;
    volatile size_t most = (size_t)-1;
    CHECK(posix_memalign(&p, 24, 8) == EINVAL && p == &p);
    CHECK(posix_memalign(&p, 1 << 20, 8) == 0 && (uintptr_t)p % (1 << 20) == 0);
    CHECK(malloc_usable_size(p) >= 8);
    free(p);
    CHECK(!malloc(most) && !malloc(most - 63) && !calloc(most / 2, most / 2) && !memalign(4096, most - 4095));
    CHECK(malloc_usable_size(NULL) == 0);
    p = malloc(0);
    CHECK(p && realloc(p, 0) == NULL);
    free(NULL);
}

/* Large memory goes back. */
static void given_back(void)
{
    size_t before = mallinfo2().arena;
    for (unsigned i = 0; i < 100; i++) {
        char *p = malloc(100 << 20);
        CHECK(p);
        p[i << 20] = 1;
        p = realloc(p, 200 << 20);
        CHECK(p && p[i << 20] == 1);
        free(p);
    }
    void *kept = malloc(BIG);
    free(kept);
    malloc_trim(0);
    CHECK(mallinfo2().arena <= before + (4 << 20));
}

static void forked(void)
{
    pid_t child = fork();
    if (child == 0) {
        piece slots[SLOTS] = {0};
        work(slots, 99, 10000);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    static piece slots[SLOTS];
    inl_error e;
    CHECK(run_check_processor(&e) == INL_OK);
    corners();
    work(slots, 1, ROUNDS);
    forked();
    threads();
    forked();
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slots[i].p) check(&slots[i]);
        free(slots[i].p);
    }
    given_back();
    known();
    puts("the tool's heap: good");
    tool_exit(0); /* as no tool may end by itself */
}
