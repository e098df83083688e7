/* A program that writes code and runs it: fresh pages, the same address with new code (by rewriting a
 * writable-executable page, by mprotect, by munmap and mmap), and code copied over code. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*function)(void);

/* mov $value, %eax; ret */
static void emit(uint8_t *at, uint32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static uint8_t *pages(int prot)
{
    return mmap((void *)0x20000000, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

int main(void)
{
    long sum = 0;
    uint8_t *p = pages(PROT_READ | PROT_WRITE | PROT_EXEC);
    for (uint32_t i = 0; i < 300; i++) {
        emit(p, i);
        sum += ((function)(void *)p)();
    }
    printf("rewritten in place %ld\n", sum);

    sum = 0;
    for (uint32_t i = 0; i < 300; i++) {
        mprotect(p, 8192, PROT_READ | PROT_WRITE);
        emit(p, i * 2);
        mprotect(p, 8192, PROT_READ | PROT_EXEC);
        sum += ((function)(void *)p)();
    }
    printf("by mprotect %ld\n", sum);

    sum = 0;
    for (uint32_t i = 0; i < 100; i++) {
        munmap(p, 8192);
        p = pages(PROT_READ | PROT_WRITE);
        emit(p, i * 3);
        mprotect(p, 8192, PROT_READ | PROT_EXEC);
        sum += ((function)(void *)p)();
    }
    printf("mapped anew %ld\n", sum);

    /* A loop whose body changes itself: dec counter; add $1 -> add $2 ... in the immediate. */
    sum = 0;
    mprotect(p, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    static const uint8_t loop[] = {
        0x31, 0xc0,                         /* xor eax, eax */
        0xb9, 0x0a, 0,    0,    0,          /* mov ecx, 10 */
        0x05, 1,    0,    0,    0,          /* add eax, 1 */
        0xfe, 0x05, 0xf6, 0xff, 0xff, 0xff, /* inc byte [that immediate] */
        0xff, 0xc9,                         /* dec ecx */
        0x75, 0xf1,                         /* jnz to the add */
        0xc3,
    };
    memcpy(p, loop, sizeof loop);
    printf("changes itself %d\n", ((function)(void *)p)());
    return 0;
}
