/* Code on stacks: one that becomes executable while the program runs, in one call for all of it, as the C library makes
 * it for a library that needs that; and a mapping that grows downwards from a page with code. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, FRAME = 3000 };

/* mov $N, %eax; ret */
static void put(uint8_t *at, uint8_t n)
{
    memcpy(at, (uint8_t[]){0xb8, n, 0, 0, 0, 0xc3}, 6);
    __asm__ volatile("" : : "r"(at) : "memory"); /* it is read, by the processor */
}

static int call(const uint8_t *at)
{
    int (*f)(void) = (int (*)(void))(uintptr_t)at;
    return f();
}

/* Code in frames far below, and as far above. */
static int deep(int n, const uint8_t *above)
{
    uint8_t code[FRAME];
    put(code, (uint8_t)n);
    int sum = call(code) + call(above);
    if (n) sum += deep(n - 1, code);
    put(code, 1);
    return sum + call(code);
}

int main(void)
{
    uint8_t code[16], *page = (uint8_t *)((uintptr_t)code & -(uintptr_t)PAGE);
    put(code, 2);
    printf("%d\n", mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN));
    printf("%d\n", deep(5, code));
    printf("%d\n", deep(200, code));
    printf("%d\n", mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_GROWSDOWN));
    printf("%d\n", mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN));
    printf("%d\n", deep(5, code));

    uint8_t *grows = mmap((void *)0x400000000000, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    for (int k = 0; k < 20; k++) {
        uint8_t *at = grows - k * PAGE;
        put(at, (uint8_t)k);
        int sum = call(at);
        put(at, (uint8_t)(k + 1));
        printf("%d ", sum + call(at));
    }
    puts("");
    return 0;
}
