/* A handler tells how often it has found the program somewhere else than in what was loaded, while that looks unwind
 * tables up nearly all the time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>

enum { IMAGES = 64, ENOUGH = 300 };

static struct {
    uintptr_t low, high;
} code[IMAGES];
static int count;
static volatile long here, elsewhere;

static void handler(int signo, siginfo_t *info, void *context)
{
    const uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    int k = 0;
    (void)signo, (void)info;
    while (k < count && pc - code[k].low >= code[k].high - code[k].low) k++;
    if (k < count) here++;
    else elsewhere++;
}

static int add(struct dl_phdr_info *i, size_t size, void *arg)
{
    (void)size, (void)arg;
    for (int k = 0; k < i->dlpi_phnum && count < IMAGES; k++) {
        const ElfW(Phdr) *p = &i->dlpi_phdr[k];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        code[count].low = i->dlpi_addr + p->p_vaddr;
        code[count].high = code[count].low + p->p_memsz;
        count++;
    }
    return 0;
}

static int pass(struct dl_phdr_info *i, size_t size, void *arg)
{
    (void)i, (void)size, (void)arg;
    return 0;
}

int main(void)
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    const struct itimerval often = {{0, 1000}, {0, 1000}};
    struct dl_find_object found;
    dl_iterate_phdr(add, NULL);
    sigaction(SIGPROF, &a, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (long n = 0; here + elsewhere < ENOUGH; n++) {
        _dl_find_object((void *)main, &found);
        _dl_find_object((void *)1, &found);
        if (n % 20 == 0) dl_iterate_phdr(pass, NULL);
    }
    printf("%ld elsewhere\n", elsewhere);
    return 0;
}
