/* Code that lies on two pages, of which only the second changes: by a store, by the kernel, through another mapping
 * of the same memory, by another process, from a signal handler; and instructions whose bytes lie on both. Each
 * function is run again after its second page has changed, and must be the new one. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, TIMES = 120 };

typedef unsigned (*function)(void);

static unsigned run_at(void *at)
{
    function f;
    memcpy(&f, &at, sizeof f);
    return f();
}

/* mov eax, 1000 ; nops up to the border ; add eax, value ; ret. The answer is where the function begins; the value
 * is at *value, on the second page unless `split`: then the border goes through it. */
static uint8_t *write_function(uint8_t *border, int split, uint8_t **value)
{
    static const uint8_t head[] = {0xb8, 0xe8, 3, 0, 0}, tail[] = {0x05, 0, 0, 0, 0, 0xc3};
    uint8_t *add = border - (split ? 3 : 0), *start = add - 16;
    memset(start, 0x90, 16);
    memcpy(start, head, sizeof head);
    memcpy(add, tail, sizeof tail);
    *value = split ? border + 1 : add + 1; /* the part of the immediate that is on the second page */
    return start;
}

static uint8_t *private_pages(void)
{
    return mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static unsigned by_store(int split)
{
    uint8_t *p = private_pages(), *value, *f = write_function(p + PAGE, split, &value);
    unsigned sum = 0;
    for (unsigned i = 0; i < TIMES; i++) {
        *value = (uint8_t)i;
        sum = sum * 7 + run_at(f);
    }
    munmap(p, 3 * PAGE);
    return sum;
}

/* The second page is protected, changed and protected again; the first stays as it was. */
static unsigned by_mprotect(int split)
{
    uint8_t *p = private_pages(), *value, *f = write_function(p + PAGE, split, &value);
    unsigned sum = 0;
    for (unsigned i = 0; i < TIMES; i++) {
        mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE);
        *value = (uint8_t)i;
        mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC);
        sum = sum * 7 + run_at(f);
    }
    munmap(p, 3 * PAGE);
    return sum;
}

static unsigned by_mapping_over(int split)
{
    uint8_t *p = private_pages(), *value, *f = write_function(p + PAGE, split, &value), second[PAGE];
    unsigned sum = 0;
    for (unsigned i = 0; i < TIMES; i++) {
        memcpy(second, p + PAGE, PAGE);
        mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy(p + PAGE, second, PAGE);
        *value = (uint8_t)i;
        sum = sum * 7 + run_at(f);
    }
    munmap(p, 3 * PAGE);
    return sum;
}

static unsigned by_the_kernel(int split)
{
    uint8_t *p = private_pages(), *value, *f = write_function(p + PAGE, split, &value);
    unsigned sum = 0;
    int ends[2];
    if (pipe(ends)) return 0;
    for (unsigned i = 0; i < TIMES; i++) {
        uint8_t byte = (uint8_t)i;
        if (write(ends[1], &byte, 1) != 1 || read(ends[0], value, 1) != 1) return 0;
        sum = sum * 7 + run_at(f);
    }
    close(ends[0]), close(ends[1]);
    munmap(p, 3 * PAGE);
    return sum;
}

/* Dropped by the kernel: the page is zero again, and then written. */
static unsigned by_madvise(int split)
{
    uint8_t *p = private_pages(), *value, *f = write_function(p + PAGE, split, &value), second[16];
    unsigned sum = 0;
    for (unsigned i = 0; i < TIMES; i++) {
        memcpy(second, p + PAGE, sizeof second);
        madvise(p + PAGE, PAGE, MADV_DONTNEED);
        memcpy(p + PAGE, second, sizeof second);
        *value = (uint8_t)i;
        sum = sum * 7 + run_at(f);
    }
    munmap(p, 3 * PAGE);
    return sum;
}

/* Another view of the memory, written to by this process or by a child. */
static unsigned by_another_view(int split, int in_child)
{
    int fd = memfd_create("code", 0);
    if (fd < 0 || ftruncate(fd, 3 * PAGE)) return 0;
    uint8_t *w = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *x = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    uint8_t *value, *f = write_function(w + PAGE, split, &value);
    unsigned sum = 0, times = in_child ? 10 : TIMES;
    for (unsigned i = 0; i < times; i++) {
        pid_t child = in_child ? fork() : -1;
        if (child <= 0) *value = (uint8_t)i;
        if (child == 0) _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
        sum = sum * 7 + run_at(x + (f - w));
    }
    /* Written to as a file. */
    for (unsigned i = 0; i < times; i++) {
        uint8_t byte = (uint8_t)(i + 1);
        if (pwrite(fd, &byte, 1, value - w) != 1) return 0;
        sum = sum * 7 + run_at(x + (f - w));
    }
    munmap(w, 3 * PAGE), munmap(x, 3 * PAGE);
    close(fd);
    return sum;
}

static uint8_t *handled_value;

static void handler(int signo)
{
    (void)signo;
    (*handled_value)++;
}

static unsigned by_a_handler(int split)
{
    uint8_t *p = private_pages(), *f = write_function(p + PAGE, split, &handled_value);
    unsigned sum = 0;
    signal(SIGUSR1, handler);
    for (unsigned i = 0; i < TIMES; i++) {
        raise(SIGUSR1);
        sum = sum * 7 + run_at(f);
    }
    munmap(p, 3 * PAGE);
    return sum;
}

int main(void)
{
    for (int split = 0; split < 2; split++) {
        printf("%s the border\n", split ? "across" : "behind");
        printf("  store %u\n", by_store(split));
        printf("  mprotect %u\n", by_mprotect(split));
        printf("  mmap %u\n", by_mapping_over(split));
        printf("  read %u\n", by_the_kernel(split));
        printf("  madvise %u\n", by_madvise(split));
        printf("  another view %u, in a child %u\n", by_another_view(split, 0), by_another_view(split, 1));
        printf("  signal handler %u\n", by_a_handler(split));
    }
    return 0;
}
