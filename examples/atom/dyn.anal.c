#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before each piece: its size, and a word by which pieces of others are told. */
struct head { size_t size, mark; };
#define MARK 0x6e79642d6d6f7461ul

static long allocated, freed, calls;

void *new_malloc(size_t size)
{
    struct head *h = malloc(sizeof *h + size);
    if (h == NULL) return NULL;
    h->size = size;
    h->mark = MARK;
    __sync_fetch_and_add(&allocated, size);
    __sync_fetch_and_add(&calls, 1);
    return h + 1;
}

void *new_calloc(size_t n, size_t size)
{
    void *p = size && n > (size_t)-1 / size ? NULL : new_malloc(n * size);
    return p ? memset(p, 0, n * size) : NULL;
}

/* What others have allocated stays with them: the program got it from a library's own allocator. */
void new_free(void *p)
{
    struct head *h = (struct head *)p - 1;
    if (p == NULL || h->mark != MARK) return;
    __sync_fetch_and_add(&freed, h->size);
    h->mark = 0;
    free(h);
}

void *new_realloc(void *p, size_t size)
{
    struct head *h = (struct head *)p - 1;
    void *to = new_malloc(size);
    if (p == NULL || to == NULL || h->mark != MARK) return to;
    memcpy(to, p, h->size < size ? h->size : size);
    new_free(p);
    return to;
}

void Report()
{
    FILE *f = fopen("dyn.out", "w");
    fprintf(f, "%ld bytes allocated in %ld pieces, %ld freed\n", allocated, calls, freed);
    fclose(f);
}
