/* A handler has the interrupted code go on at the entry of a search through images, as if that had been called there:
 * it knows where this program's code is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { WORDS = 1 << 14 };
static uintptr_t stack[WORDS];
static void *frame;

__attribute__((noinline, noreturn, used)) static void landed(const void *image)
{
    puts(image ? "found" : "not found");
    exit(0);
}

__asm__(".text\n.globl landing\n.type landing, @function\n"
        "landing: mov %rax, %rdi\n call landed\n ud2\n .size landing, . - landing\n");
void landing(void);

static void handler(int signo, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t *sp = &stack[WORDS - 1]; /* of a procedure that has been called */
    (void)signo, (void)info;
    while (((uintptr_t)sp + 8) % 16) sp--;
    *sp = (uintptr_t)landing;
    r[REG_RSP] = (greg_t)sp;
    r[REG_RIP] = (greg_t)dlsym(RTLD_DEFAULT, "_dl_find_dso_for_object");
    r[REG_RDI] = (greg_t)frame;
}

__attribute__((noinline)) static void interrupt(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = handler;
    a.sa_flags = SA_SIGINFO;
    frame = __builtin_return_address(0);
    sigaction(SIGUSR1, &a, NULL);
    raise(SIGUSR1);
}

int main(void)
{
    interrupt();
    return 1;
}
