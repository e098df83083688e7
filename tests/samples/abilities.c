/* What tools read, change and name: strings, memory that ends, a variable, calls into a library through a pointer,
 * threads. Each thread calls `target` as often as `main` does. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 500, LAST = 4 };

int data = 7;
static __thread volatile long own;
static size_t (*volatile length)(const char *) = strlen;
static char *page_end; /* the last bytes before memory that may not be touched */

__attribute__((noinline)) long target(long n, const char *text, const char *end, const char *nowhere)
{
    __asm__ volatile("" : "+r"(n) : "r"(end), "r"(nowhere));
    own += n;
    return n + (long)length(text);
}

static void *calls(void *sum)
{
    for (long n = 0; n < CALLS; n++) *(long *)sum += target(n, "hello", page_end, (const char *)8);
    return NULL;
}

int main(void)
{
    long size = sysconf(_SC_PAGESIZE), sums[THREADS + 1] = {0}, all = 0;
    char *pages = mmap(NULL, (size_t)(2 * size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + size, (size_t)size, PROT_NONE);
    page_end = memcpy(pages + size - LAST, "last", LAST);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, calls, &sums[i]);
    calls(&sums[THREADS]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i <= THREADS; i++) all += sums[i];
    printf("%ld, data %d\n", all, data);
    return 0;
}
