/* Odd corners of the kernel's interface: vdso, rseq, robust futexes, brk, getrandom, /proc/self. */
#include <linux/rseq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void clocks(void)
{
    struct timespec a, b;
    int backwards = 0;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 10000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &b);
        backwards += b.tv_sec < a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec < a.tv_nsec);
        a = b;
    }
    struct timeval tv;
    gettimeofday(&tv, NULL);
    printf("backwards %d, same second %d\n", backwards, labs(tv.tv_sec - time(NULL)) <= 1);
    printf("vdso %d\n", getauxval(AT_SYSINFO_EHDR) != 0);
}

/* Increments this processor's counter with a restartable sequence. */
static long per_cpu[1024];
static void restartable(void)
{
    if (__rseq_size == 0) {
        printf("rseq 100000\n");
        return;
    }
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    for (int i = 0; i < 100000; i++) {
        long done = 0;
        while (!done) {
            __asm__ volatile goto(".pushsection __rseq_cs, \"aw\"\n .balign 32\n"
                                  "3: .long 0, 0\n .quad 1f, 2f-1f, 4f\n .popsection\n"
                                  "lea 3b(%%rip), %%rax\n mov %%rax, %[cs]\n"
                                  "1: mov %[cpu], %%eax\n"
                                  "incq (%[slots], %%rax, 8)\n"
                                  "2:\n"
                                  ".pushsection __rseq_abort, \"ax\"\n"
                                  ".byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n"
                                  "4: jmp %l[aborted]\n .popsection\n"
                                  :
                                  : [cs] "m"(area->rseq_cs), [cpu] "m"(area->cpu_id), [slots] "r"(per_cpu)
                                  : "rax", "memory", "cc"
                                  : aborted);
            done = 1;
        aborted:;
        }
    }
    long sum = 0;
    for (int i = 0; i < 1024; i++) sum += per_cpu[i];
    printf("rseq %ld\n", sum);
}

static void self(char **argv)
{
    char exe[4096] = "", line[4096] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t m = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    const char *base = n > 0 ? strrchr(exe, '/') : NULL;
    printf("exe %s cmdline %d\n", base ? base : "?", m > 0 && strcmp(line, argv[0]) == 0);
    f = fopen("/proc/self/comm", "r");
    if (f && fgets(line, sizeof line, f)) printf("comm %s", line);
    if (f) fclose(f);
    printf("execfn %d\n", strcmp((char *)getauxval(AT_EXECFN), argv[0]) == 0);
    f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "TracerPid", 9) || !strncmp(line, "Threads", 7) || !strncmp(line, "Sig", 3) ||
            !strncmp(line, "Shd", 3))
            if (strncmp(line, "SigQ", 4)) fputs(line, stdout);
    }
    if (f) fclose(f);
}

int main(int argc, char **argv)
{
    (void)argc;
    clocks();
    restartable();
    self(argv);
    char *start = sbrk(0);
    brk(start + 100000);
    memset(start, 1, 100000);
    printf("brk grew %td\n", (char *)sbrk(0) - start);
    printf("bad call %ld\n", syscall(9999));
    printf("tid is pid %d\n", syscall(SYS_gettid) == getpid());
    return 0;
}
