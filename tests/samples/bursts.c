/* Signals that come together: while each is still on its way to its handler the next one arrives. What they
 * interrupt goes on as if nothing had been, and no signal stays blocked. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BURSTS = 500, KINDS = 3, LENGTH = 64 };

static const int kinds[KINDS] = {SIGHUP, SIGUSR1, SIGTERM};
static volatile sig_atomic_t came[_NSIG], ended;
static volatile unsigned long work;

static void handler(int signo)
{
    for (unsigned i = 0; i < 20; i++) work += (work >> 3) ^ i * (unsigned)signo;
    came[signo]++;
}

static void child_ended(int signo) { ended = signo; }

static void send_bursts(pid_t to)
{
    for (int i = 0; i < BURSTS; i++) {
        for (int k = 0; k < KINDS; k++) kill(to, kinds[k]);
        usleep(300);
    }
}

static unsigned long __attribute__((noinline)) sum(const unsigned *table)
{
    unsigned long a = 1, b = 2, c = 3, d = 4, e = 5;
    for (unsigned i = 0; i < LENGTH; i++) {
        a += table[i] ^ e;
        b ^= a << (table[i] & 7);
        c = a > b ? c + d : c - b;
        d += c >> 5, e = e * 33 + d;
    }
    return a ^ b ^ c ^ d ^ e;
}

int main(void)
{
    unsigned table[LENGTH];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (unsigned i = 0; i < LENGTH; i++) table[i] = i * 2654435761u;
    for (int k = 0; k < KINDS; k++) sigaction(kinds[k], &action, NULL);
    action.sa_handler = child_ended;
    sigaction(SIGCHLD, &action, NULL);
    unsigned long right = sum(table), wrong = 0;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        send_bursts(parent);
        _exit(0);
    }
    while (!ended) wrong += sum(table) != right;
    waitpid(child, NULL, 0);
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int k = 0; k < KINDS; k++) wrong += !came[kinds[k]] || sigismember(&blocked, kinds[k]);
    printf("%lu wrong\n", wrong);
    return wrong != 0;
}
