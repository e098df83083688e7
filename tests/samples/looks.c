/* Prints all that a program can see of itself, in terms that do not change from run to run: its arguments and
 * environment, the auxiliary vector, its stack, what the dynamic linker lists, the names of its procedures and of
 * its callers, signals' actions and masks, threads, registers at the start, what the kernel has been told. */
#include <asm/prctl.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

#define NOINLINE __attribute__((noinline))
extern char **environ;
extern void _start(void);
#pragma weak _DYNAMIC

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "none";
}

/* --- what the kernel hands over --- */

static void vectors(int argc, char **argv)
{
    printf("arguments %d %s, in one row %d, ended %d\n", argc, last_part(argv[0]),
           argc < 2 || argv[0] + strlen(argv[0]) + 1 == argv[1], !argv[argc]);
    int n = 0, above = 1;
    for (char **e = environ; *e; e++) {
        n += strncmp(*e, "INLAY_", 6) != 0;
        above &= (char *)*e > (char *)environ;
    }
    printf("environment %d, above its vector %d, behind the arguments %d\n", n, above, environ == argv + argc + 1);
}

static void auxiliary(void)
{
    char **e = environ;
    while (*e) e++;
    printf("auxiliary:");
    for (const Elf64_auxv_t *a = (const void *)(e + 1); a->a_type; a++) printf(" %lu", (long)a->a_type);
    printf("\nexecfn %s, platform %s, page %lu, secure %lu, flags %lu, phent %lu, ids %d\n",
           last_part((char *)getauxval(AT_EXECFN)), (char *)getauxval(AT_PLATFORM), getauxval(AT_PAGESZ),
           getauxval(AT_SECURE), getauxval(AT_FLAGS), getauxval(AT_PHENT),
           getauxval(AT_UID) == getuid() && getauxval(AT_EGID) == getegid());
    printf("entry is _start %d, base %d, vdso %d, random %d\n", getauxval(AT_ENTRY) == (uintptr_t)_start,
           getauxval(AT_BASE) != 0, getauxval(AT_SYSINFO_EHDR) != 0, getauxval(AT_RANDOM) > (uintptr_t)environ);
}

static void headers(void)
{
    const Elf64_Phdr *ph = (const void *)getauxval(AT_PHDR);
    uint64_t n = getauxval(AT_PHNUM), base = 0;
    int found = 0;
    for (uint64_t i = 0; i < n; i++)
        if (ph[i].p_type == PT_PHDR) base = (uintptr_t)ph - ph[i].p_vaddr;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = ph[i].p_vaddr + base;
        if (ph[i].p_type == PT_GNU_STACK) printf("stack flags %u\n", ph[i].p_flags);
        if (ph[i].p_type == PT_TLS) printf("thread-local %lu\n", (long)ph[i].p_memsz);
        if (ph[i].p_type == PT_LOAD) found |= (uintptr_t)_start - at < ph[i].p_memsz && ph[i].p_flags == (PF_R | PF_X);
    }
    printf("_start in text %d\n", found);
    for (uint64_t i = 0; i < n; i++)
        if (ph[i].p_type == PT_DYNAMIC)
            printf("dynamic section is _DYNAMIC %d\n", ph[i].p_vaddr + base == (uintptr_t)_DYNAMIC);
}

static int about(struct dl_phdr_info *i, size_t size, void *arg)
{
    (void)size;
    int dynamic = 0, *number = arg;
    for (int k = 0; k < i->dlpi_phnum; k++) dynamic += i->dlpi_phdr[k].p_type == PT_DYNAMIC;
    printf("object %d %s, dynamic %d\n", (*number)++, last_part(i->dlpi_name), dynamic);
    return 0;
}

static void objects(void)
{
    int number = 0;
    dl_iterate_phdr(about, &number);
    const struct r_debug *d = NULL;
    for (const ElfW(Dyn) *t = _DYNAMIC; t && t->d_tag; t++)
        if (t->d_tag == DT_DEBUG) d = (const void *)t->d_un.d_ptr;
    if (!d) return;
    printf("linker's list, version %d, state %d:", d->r_version, d->r_state);
    for (const struct link_map *m = d->r_map; m; m = m->l_next) printf(" %s", last_part(m->l_name));
    printf("\n");
}

/* --- names --- */

static const char *name_of(const void *p)
{
    Dl_info i;
    return dladdr(p, &i) && i.dli_sname ? i.dli_sname : "unknown";
}

NOINLINE int exported(int depth)
{
    volatile int kept = depth;
    if (depth > 2) {
        printf("called by %s\n", name_of(__builtin_return_address(0)));
#ifdef __GLIBC__
        void *frames[8];
        int n = backtrace(frames, 8);
        char **names = backtrace_symbols(frames, n);
        for (int k = 0; k < 4 && k < n; k++) {
            char *from = strchr(names[k], '('), *to = from ? strchr(from, '+') : NULL;
            printf("frame %.*s\n", to ? (int)(to - from - 1) : 1, to ? from + 1 : "?");
        }
        free(names);
#endif
        return kept;
    }
    return exported(depth + 1) + kept;
}

int main(int, char **);

#ifdef __GLIBC__
static sigjmp_buf behind;
static const char *volatile crashed;

static void crash(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    crashed = name_of((void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
    siglongjmp(behind, 1);
}

/* A fault in a procedure that the C library exports. */
static void faults(void)
{
    void *volatile nowhere = (void *)8;
    struct sigaction a = {.sa_sigaction = crash, .sa_flags = SA_SIGINFO}, old;
    sigaction(SIGSEGV, &a, &old);
    if (!sigsetjmp(behind, 1)) insque(nowhere, nowhere);
    sigaction(SIGSEGV, &old, NULL);
    printf("crashed in %s\n", crashed);
}
#else
static void faults(void) {}
#endif

static void names(void)
{
    faults();
    printf("named %s %s %s\n", name_of((void *)exported), name_of((void *)names), name_of((void *)main));
    printf("sum %d\n", exported(0));
    printf("looked up %d\n", dlsym(RTLD_DEFAULT, "exported") == (void *)exported);
}

/* --- the process --- */

static void handler(int signo) { (void)signo; }

static void signals(void)
{
    int odd = 0;
    for (int s = 1; s < 65; s++) {
        struct sigaction a;
        if (sigaction(s, NULL, &a) == 0) odd += a.sa_handler != SIG_DFL || a.sa_flags;
    }
    sigset_t blocked, pending;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    sigpending(&pending);
    int n = 0;
    for (int s = 1; s < 65; s++) n += sigismember(&blocked, s) > 0 || sigismember(&pending, s) > 0;
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART}, old;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR1, NULL, &old);
    printf("actions set %d, blocked or pending %d, set and read %d %x\n", odd, n, old.sa_handler == handler,
           old.sa_flags & ~0x4000000u);
}

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n - 2;
}

static void line_of(const char *file, const char *start)
{
    char line[300];
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, start, strlen(start))) fputs(line, stdout);
    if (f) fclose(f);
}

static void *thread(void *arg)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    printf("thread's name as the first's %d, threads %d\n", !strcmp(name, arg), entries("/proc/self/task"));
    return NULL;
}

static void process(void)
{
    char name[16] = "";
    struct rlimit files, stack;
    prctl(PR_GET_NAME, name);
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_STACK, &stack);
    printf("name %s, threads %d, descriptors %d, limits %ld %ld\n", name, entries("/proc/self/task"),
           entries("/proc/self/fd"), (long)files.rlim_cur, (long)stack.rlim_cur);
    const char *lines[] = {"Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "NoNewPrivs", "Seccomp:", "VmLck"};
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) line_of("/proc/self/status", lines[i]);
    printf("dumpable %d, subreaper %d, priority %d, personality same %d\n", prctl(PR_GET_DUMPABLE),
           prctl(PR_GET_PDEATHSIG, &(int){0}), getpriority(PRIO_PROCESS, 0), personality(~0u) == personality(~0u));
    int tid_known = 0;
    int *tid = NULL;
    if (prctl(PR_GET_TID_ADDRESS, &tid) == 0) tid_known = tid != NULL;
    void *robust = NULL;
    size_t size = 0;
    syscall(SYS_get_robust_list, 0, &robust, &size);
    printf("tid address %d, robust list %d %zu\n", tid_known, robust != NULL, size);
    pthread_t t;
    pthread_create(&t, NULL, thread, name);
    pthread_join(t, NULL);
}

static void memory(void)
{
    char *here = sbrk(0);
    int moved = sbrk(5000) == here;
    printf("break moves %d %d, behind the data %d\n", moved, sbrk(0) == here + 5000,
           (uintptr_t)here > (uintptr_t)&environ);
    pthread_attr_t a;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &a) == 0 && pthread_attr_getstack(&a, &low, &size) == 0)
        printf("on its stack %d\n", (uintptr_t)&a - (uintptr_t)low < size);
}

/* --- the processor --- */

static void registers(void)
{
    unsigned mxcsr;
    unsigned short control;
    unsigned long gs = 1, flags;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(control));
    __asm__ volatile("pushfq\n pop %0" : "=r"(flags));
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    struct timespec t;
    printf("mxcsr %x, control %x, direction %lu, gs %lx, clock %d\n", mxcsr, control, flags & 0x400, gs,
           clock_gettime(CLOCK_MONOTONIC, &t));
}

/* The frame of main is where the C library puts it: aligned, and the return address leads into it. */
NOINLINE static void stack(void *frame, void *back)
{
    printf("frame aligned %d, called by %s\n", ((uintptr_t)frame & 15) == 0, last_part(name_of(back)));
}

static char at_start[64];
__attribute__((constructor)) static void begins(int argc, char **argv)
{
    snprintf(at_start, sizeof at_start, "constructor %d %d", argc, argv ? argv[argc] == NULL : -1);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    puts(at_start);
    vectors(argc, argv);
    auxiliary();
    headers();
    objects();
    names();
    stack(__builtin_frame_address(0), __builtin_return_address(0));
    signals();
    process();
    memory();
    registers();
    return 0;
}
