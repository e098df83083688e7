/* dying SIGNAL: dies by that signal, raised in the natural way where there is one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    printf("about to die\n");
    fflush(stdout);
    int sig = atoi(argv[1]);
    switch (sig) {
    case SIGSEGV: __asm__ volatile("mov %eax, 8"); break;
    case SIGILL: __asm__ volatile("ud2"); break;
    case SIGFPE: __asm__ volatile("xor %%ecx, %%ecx\n idiv %%ecx" ::: "rax", "rcx", "rdx"); break;
    case SIGTRAP: __asm__ volatile("int3"); break;
    case SIGABRT: abort();
    case SIGPIPE: {
        int ends[2];
        if (pipe(ends) == 0) close(ends[0]);
        if (write(ends[1], "x", 1) < 0) perror("write");
        break;
    }
    case SIGALRM:
        alarm(1);
        pause();
        break;
    case SIGXCPU: {
        struct rlimit cpu = {1, 2};
        setrlimit(RLIMIT_CPU, &cpu);
        for (;;) __asm__ volatile("");
    }
    case 0: return 77;
    default: kill(getpid(), sig);
    }
    printf("still alive\n");
    return 1;
}
