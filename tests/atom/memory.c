/* All ways to ask for memory, from several threads and in a forked child; says what it has asked for, as the
 * tool dyn does. What the C library allocates on the program's behalf is not in it. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3000, SLOTS = 64 };
static long allocated, pieces, freed;
static struct { char *p; size_t size; } slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define NEED(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, #what); exit(9); } } while (0)
#define ADD(sum, n) __atomic_fetch_add(&(sum), (long)(n), __ATOMIC_RELAXED)

static void *count(void *p, size_t size)
{
    NEED(p);
    ADD(allocated, size);
    ADD(pieces, 1);
    return p;
}

static void give(void *p, size_t size)
{
    ADD(freed, size);
    free(p);
}

/* Pieces go from thread to thread. */
static void *work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int k = 0; k < ROUNDS; k++) {
        seed = seed * 1103515245u + 12345u;
        size_t size = 1 + (seed >> 16) % (k % 16 ? 200 : 40000);
        char *p = count(k % 3 ? malloc(size) : calloc(1, size), size), *other;
        NEED(k % 3 || (!p[0] && !p[size - 1]));
        p[0] = p[size - 1] = (char)size;
        pthread_mutex_lock(&lock);
        unsigned i = (seed >> 8) % SLOTS;
        size_t old = slots[i].size;
        other = slots[i].p;
        slots[i].p = p;
        slots[i].size = size;
        pthread_mutex_unlock(&lock);
        if (!other) continue;
        NEED(other[old - 1] == (char)old && (old == 1 || other[0] == (char)old));
        if (k % 5 == 0) {
            other = count(realloc(other, old + 50), old + 50);
            ADD(freed, old);
            NEED(other[old - 1] == (char)old);
            old += 50;
        }
        give(other, old);
    }
    return NULL;
}

static void aligned(void)
{
    static const size_t to[] = {16, 64, 4096, 1 << 16};
    for (int k = 0; k < 4; k++)
        for (size_t size = 1; size < 100000; size *= 7) {
            void *a;
            NEED(posix_memalign(&a, to[k], size) == 0);
            char *p = count(a, size), *q = count(aligned_alloc(to[k], size), size), *r = count(memalign(to[k], size), size);
            NEED(((uintptr_t)p | (uintptr_t)q | (uintptr_t)r) % to[k] == 0);
            NEED(malloc_usable_size(p) >= size && malloc_usable_size(q) >= size);
            memset(p, 1, size);
            memset(q, 2, size);
            memset(r, 3, size);
            p = count(realloc(p, 3 * size), 3 * size);
            ADD(freed, size);
            NEED(p[0] == 1 && p[size - 1] == 1 && q[size - 1] == 2 && r[size - 1] == 3);
            give(p, 3 * size);
            give(q, size);
            give(r, size);
        }
    give(count(valloc(10), 10), 10);
    void *volatile huge = malloc((size_t)PTRDIFF_MAX + 1 + (size_t)getpid()); /* compilers know that nobody uses it */
    void *volatile huger = calloc((size_t)getpid() << 40, (size_t)1 << 40);
    NEED(!huge && !huger);
}

/* The C library's own pieces, given back by the program. */
static void others(void)
{
    char *s = strdup("a piece of the library's");
    free(s);
    s = strdup("another piece of the library's");
    s = count(realloc(s, 1000), 1000);
    NEED(!strcmp(s, "another piece of the library's"));
    give(s, 1000);
    s = count(reallocarray(NULL, 10, 7), 70);
    s = count(reallocarray(s, 20, 7), 140);
    ADD(freed, 70);
    give(s, 140);
    free(NULL);
}

int main(void)
{
    pthread_t t[THREADS];
    int status;
    aligned();
    others();
    for (uintptr_t i = 0; i < THREADS; i++) NEED(!pthread_create(&t[i], NULL, work, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    pid_t child = fork();
    if (child == 0) {
        aligned();
        work((void *)77);
        exit(0);
    }
    NEED(waitpid(child, &status, 0) == child && status == 0);
    printf("%ld bytes allocated in %ld pieces, %ld freed\n", allocated, pieces, freed);
    return 0;
}
