#include <errno.h>
#include <stdio.h>
#include <malloc.h>
#include <cmplrs/atom.anal.h>

/* Before each piece: its size, and a word by which pieces of others are told, together with how far it is from
 * where the memory begins (a power of two). */
struct head { size_t size, mark; };
enum { PLAIN = 4 };
#define MARK 0x6e79642d6d6f7440ul

struct sums { long allocated, freed, calls; }; /* a thread's */
static ThreadTable *table;

void Open() { table = ThreadTableCreate(sizeof(struct sums)); }

static size_t whole(size_t size, int shift)
{
    return size > (size_t)-1 / 4 ? (size_t)-1 : size + (1ul << shift);
}

static void *note(char *memory, int shift, size_t size)
{
    struct head *h = (struct head *)(memory + (1ul << shift)) - 1;
    struct sums *own = ThreadTableGet(table);
    if (memory == NULL) return NULL;
    own->allocated += size;
    own->calls++;
    h->size = size;
    h->mark = MARK | shift;
    return h + 1;
}

static struct head *head_of(void *p) { return (struct head *)p - 1; }
static int is_ours(void *p) { return (head_of(p)->mark & ~63ul) == MARK; }
static int shift_of(void *p) { return head_of(p)->mark & 63; }
static char *memory_of(void *p) { return (char *)p - (1ul << shift_of(p)); }

static void count_freed(size_t size)
{
    struct sums *own = ThreadTableGet(table);
    own->freed += size;
}

void *new_malloc(size_t size) { return note(malloc(whole(size, PLAIN)), PLAIN, size); }

void *new_calloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    return note(calloc(1, whole(bytes, PLAIN)), PLAIN, bytes);
}

/* What others have allocated stays with them: the program got it from a library's own allocator. */
void new_free(void *p)
{
    char *memory;
    if (p == NULL || !is_ours(p)) return;
    memory = memory_of(p);
    count_freed(head_of(p)->size);
    head_of(p)->mark = 0;
    free(memory);
}

/* The C library's own pieces have their size in the same place. */
size_t new_usable_size(void *p)
{
    if (p == NULL) return 0;
    return is_ours(p) ? head_of(p)->size : (head_of(p)->mark & ~7ul) - 8;
}

static void *copy(void *p, size_t size)
{
    size_t old = new_usable_size(p), i;
    volatile char *to = new_malloc(size);
    for (i = 0; to != NULL && i < old && i < size; i++) to[i] = ((char *)p)[i];
    return (void *)to;
}

void *new_realloc(void *p, size_t size)
{
    size_t old;
    int shift;
    char *memory;
    if (p == NULL) return new_malloc(size);
    if (!is_ours(p)) return copy(p, size);
    if (size == 0) {
        new_free(p);
        return NULL;
    }
    old = head_of(p)->size;
    shift = shift_of(p);
    memory = realloc(memory_of(p), whole(size, shift));
    if (memory == NULL) return NULL;
    count_freed(old);
    return note(memory, shift, size);
}

void *new_reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : new_realloc(p, bytes);
}

void *new_memalign(size_t to, size_t size)
{
    int shift = PLAIN;
    while (1ul << shift < to) shift++;
    return note(memalign(1ul << shift, whole(size, shift)), shift, size);
}

int new_posix_memalign(void **out, size_t to, size_t size)
{
    void *p;
    if (to < sizeof p || to & (to - 1)) return EINVAL;
    p = new_memalign(to, size);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}

void *new_valloc(size_t size) { return new_memalign(4096, size); }
void *new_pvalloc(size_t size) { return new_valloc((size + 4095) & ~4095ul); }

void Report()
{
    FILE *f = fopen("dyn.out", "w");
    long allocated = 0, calls = 0, freed = 0, i;
    for (i = 0; i < ThreadTableCount(table); i++) {
        struct sums *s = ThreadTableOf(table, i);
        if (s == NULL) continue;
        allocated += s->allocated;
        calls += s->calls;
        freed += s->freed;
    }
    fprintf(f, "%ld bytes allocated in %ld pieces, %ld freed\n", allocated, calls, freed);
    fclose(f);
}
