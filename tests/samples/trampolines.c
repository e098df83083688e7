/* Code and data that change on one page again and again: nested functions, whose trampolines lie on the stack among
 * the variables of the functions that use them; code that writes to its own page while it runs; code that
 * is written anew each time, at one place and at many. With an argument less of it, and in one thread. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST = 500 };
static int count = MOST;

typedef long (*function)(long);

static function as_function(void *p)
{
    function f;
    memcpy(&f, &p, sizeof f);
    return f;
}

#ifndef __clang__
/* Calls of `compare` while its own variables lie on the same page as its trampoline. */
static int sorted_by(int key, int *values, int n)
{
    int calls = 0;
    int compare(const void *a, const void *b)
    {
        calls++;
        return (*(const int *)a ^ key) - (*(const int *)b ^ key);
    }
    qsort(values, (size_t)n, sizeof *values, compare);
    return calls;
}

static long deeper(int depth, long (*outer)(long))
{
    long own = depth;
    long add(long x) { return own += x; }
    if (!depth) return outer(1);
    return deeper(depth - 1, add) + outer(own) + own;
}

static void *nested(void *arg)
{
    int values[MOST];
    long sum = 0, seed = (long)arg;
    long first(long x) { return sum += x; }
    for (int i = 0; i < count; i++) values[i] = (int)((i + seed) * 7919 % 2003);
    for (int k = 0; k < count / 20; k++) sum += sorted_by(k, values, count);
    for (int k = 0; k < count / 2; k++) sum += deeper(10, first);
    return (void *)sum;
}
#else
static void *nested(void *arg) { return arg; }
#endif

static uint8_t *code_pages(void)
{
    static uintptr_t at = 0x20000000; /* counts by address can be compared */
    return mmap((void *)(at += 4 * PAGE), 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Counts in a word of its own page, over the border of two pages. */
static long counts_beside(void)
{
    static const uint8_t code[] = {
        0x31, 0xc0,                               /*     xor eax, eax */
        0x48, 0x01, 0x3d, 0x20, 0x00, 0x00, 0x00, /* 1:  add [rip + 0x20], rdi */
        0x48, 0x03, 0x05, 0x19, 0x00, 0x00, 0x00, /*     add rax, [rip + 0x19] */
        0xff, 0xcf,                               /*     dec edi */
        0x75, 0xee,                               /*     jnz 1b */
        0xc3,
    };
    uint8_t *p = code_pages();
    unsigned long sum = 0;
    memcpy(p + PAGE - 12, code, sizeof code);
    for (int i = 0; i < count; i++) sum = sum * 31 + (unsigned long)as_function(p + PAGE - 12)(i % 50 + 1);
    return (long)sum;
}

/* The instruction behind the store is what the store writes, in a loop. */
static long changes_next(void)
{
    static const uint8_t code[] = {
        0x31, 0xc0,                         /*     xor eax, eax */
        0x89, 0x3d, 0x01, 0x00, 0x00, 0x00, /* 1:  mov [rip + 1], edi */
        0x05, 0x00, 0x00, 0x00, 0x00,       /*     add eax, the immediate just written */
        0x01, 0xc0,                         /*     add eax, eax */
        0xff, 0xcf,                         /*     dec edi */
        0x75, 0xef,                         /*     jnz 1b */
        0xc3,
    };
    uint8_t *p = code_pages();
    unsigned long sum = 0;
    memcpy(p, code, sizeof code);
    for (int i = 0; i < count; i++) sum = sum * 31 + (unsigned long)as_function(p)(i % 20 + 1);
    return (long)sum;
}

/* lea rax, [rdi + value] ; ret */
static void write_code(uint8_t *at, int32_t value)
{
    static const uint8_t lea[] = {0x48, 0x8d, 0x87};
    memcpy(at, lea, sizeof lea);
    memcpy(at + 3, &value, 4);
    at[7] = 0xc3;
}

static long written_anew(int places)
{
    uint8_t *p = code_pages();
    long sum = 0;
    for (int i = 0; i < 4 * count; i++) {
        uint8_t *at = p + i % places * 67;
        write_code(at, i);
        sum = as_function(at)(sum) ^ as_function(at)(i);
    }
    return sum;
}

/* Undefined instructions and the end of what can be executed are part of checked code too. */
static long up_to_the_end(void)
{
    uint8_t *p = code_pages();
    long sum = 0;
    mprotect(p + PAGE, PAGE, PROT_NONE);
    for (int i = 0; i < 200; i++) {
        write_code(p + PAGE - 8, i);
        sum += as_function(p + PAGE - 8)(i);
        p[PAGE - 9] = 0x06; /* no instruction in 64-bit mode */
    }
    return sum;
}

static long in_threads(void)
{
    pthread_t threads[3];
    long sum = 0;
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, nested, (void *)i);
    for (int i = 0; i < 3; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        sum += (long)answer;
    }
    return sum;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) count = 60;
    printf("nested functions %ld\n", (long)nested((void *)1));
    if (argc == 1) printf("in threads %ld\n", in_threads());
    printf("counts beside itself %ld\n", counts_beside());
    printf("changes its next instruction %ld\n", changes_next());
    printf("written anew %ld, at places %ld\n", written_anew(1), written_anew(50));
    printf("up to the end %ld\n", up_to_the_end());
    return 0;
}
