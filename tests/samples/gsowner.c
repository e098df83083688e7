/* A program that has GS for itself: set by arch_prctl and by wrgsbase, read as the kernel and the processor tell, and
 * through the segment; in two threads, and in a signal's handler. What it prints does not depend on where it runs.
 *
 *     gsowner [wait]      wait: says "ready" first, begins with the first line of standard input, and ends with another
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURNS = 1000, HWCAP2_FSGSBASE = 2 };

typedef struct block {
    uint64_t self, count, handled;
    char name[8];
} block;

#define AT_GS(value, offset) __asm__ volatile("mov %%gs:" #offset ", %0" : "=r"(value))

static uint64_t self(void)
{
    uint64_t value;
    AT_GS(value, 0);
    return value;
}

static void set_by_call(const block *b) { syscall(SYS_arch_prctl, ARCH_SET_GS, b); }
static void set_by_instruction(const block *b) { __asm__ volatile("wrgsbase %0" : : "r"(b)); }

static uint64_t base(void)
{
    uint64_t value = 0;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &value);
    return value;
}

static void handler(int signo)
{
    (void)signo;
    __asm__ volatile("incq %%gs:16" ::: "memory");
}

static int work(block *b, const char *how, void (*set)(const block *))
{
    int wrong = 0;
    *b = (block){.self = (uint64_t)(uintptr_t)b};
    set(b);
    for (int i = 0; i < TURNS; i++) {
        __asm__ volatile("incq %%gs:8" ::: "memory");
        if (i % 100 == 0) raise(SIGUSR1);
        wrong += self() != (uint64_t)(uintptr_t)b;
    }
    strcpy(b->name, "block");
    uint8_t letter;
    __asm__ volatile("movb %%gs:26, %0" : "=r"(letter));
    printf("%s: %d wrong, counted %d, handled %d, base %s, letter %c\n", how, wrong, (int)b->count, (int)b->handled,
           base() == (uint64_t)(uintptr_t)b ? "right" : "wrong", letter);
    return wrong;
}

static void *thread(void *arg)
{
    block b;
    set_by_call((block *)arg); /* as a new thread's is natively: its creator's */
    work(&b, "thread, call", set_by_call);
    if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) work(&b, "thread, instruction", set_by_instruction);
    return NULL;
}

int main(int argc, char **argv)
{
    static block first, second;
    struct sigaction a = {.sa_handler = handler};
    char line[8];
    pthread_t other;
    bool waits = argc > 1 && !strcmp(argv[1], "wait");
    sigaction(SIGUSR1, &a, NULL);
    if (waits) {
        puts("ready");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) return 1;
    }
    work(&first, "call", set_by_call);
    pthread_create(&other, NULL, thread, &first);
    pthread_join(other, NULL);
    printf("still %s\n", self() == (uint64_t)(uintptr_t)&first ? "its own" : "another's");
    if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) work(&second, "instruction", set_by_instruction);
    fflush(stdout);
    return waits && !fgets(line, sizeof line, stdin);
}
