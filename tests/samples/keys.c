/* Protection keys, where the processor has them: code written and run under a key that forbids writing, code under
 * one that forbids even reading (it can still be executed), a fault at such data, and a system call that reads
 * into it; the rights are kept over signals. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int code, rights_in_handler;
static int key;

static void handler(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    (void)uc;
    code = info->si_code;
    rights_in_handler = pkey_get(key);
    siglongjmp(back, 1);
}

static void gentle(int signo) { (void)signo; }

/* New code each time, which may be written no longer, and with the other right not even read. */
static int call(unsigned char *page, unsigned char value, unsigned rights)
{
    unsigned char body[] = {0xb8, value, 0, 0, 0, 0xc3}; /* mov eax, value; ret */
    int (*fn)(void);
    pkey_set(key, 0);
    memcpy(page, body, sizeof body);
    pkey_set(key, rights);
    memcpy(&fn, &page, sizeof fn);
    return fn();
}

int main(void)
{
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    int sum = 0;
    key = pkey_alloc(0, 0);
    if (key < 0) {
        printf("no keys\n");
        return 0;
    }
    sigaction(SIGSEGV, &sa, NULL);
    signal(SIGUSR1, gentle);
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, key);
    for (unsigned char i = 0; i < 50; i++) sum += call(page, i, i % 2 ? PKEY_DISABLE_ACCESS : PKEY_DISABLE_WRITE);
    raise(SIGUSR1);
    printf("sum %d, rights %d\n", sum, pkey_get(key));
    if (!sigsetjmp(back, 1)) printf("read %d\n", *(volatile unsigned char *)page);
    printf("fault code %d, rights there %d, here %d\n", code, rights_in_handler, pkey_get(key));
    pkey_set(key, PKEY_DISABLE_ACCESS);
    int pair[2];
    if (pipe(pair) || write(pair[1], "x", 1) != 1) return 1;
    long got = read(pair[0], page, 1);
    printf("read into it: %ld %d\n", got, got < 0 ? errno : 0);
    return 0;
}
