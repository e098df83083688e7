/* Signals that a callback keeps from the program: every second SIGUSR1, the first SIGUSR2, each SIGTERM, and a fault
 * whose page can be read then; those that the program is sent on from: a fault that it is let skip,
 * and each SIGALRM but the second, to another procedure. */
#include <inlay.h>

#include <signal.h>
#include <sys/mman.h>

static unsigned seen[64];
static inlay_counter blocks;

static void each_signal(inlay_thread *t, int signo, const siginfo_t *info, const inlay_context *c, void *arg)
{
    unsigned number = seen[signo]++;
    inlay_context next = *c;
    (void)t, (void)arg;
    if (signo == SIGSEGV && info->si_addr == (void *)8) {
        seen[signo]--;
        next.pc += 2; /* mov (%rdx), %ecx */
        next.gpr[INLAY_RAX] += 1000;
        inlay_signal_resume(&next);
    }
    if (signo == SIGALRM && number != 1) {
        next.pc = inlay_proc_address(inlay_image_proc_named(inlay_image_first(), "elsewhere"));
        inlay_signal_resume(&next);
    }
    if (signo == SIGSEGV && mprotect(info->si_addr, 4096, PROT_READ) == 0) inlay_signal_drop();
    if (signo == SIGUSR1 && number % 2) inlay_signal_drop();
    if ((signo == SIGUSR2 && number == 0) || signo == SIGTERM) inlay_signal_drop();
}

static void each_block(inlay_block *b, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_block_proc(b);
    if (p && (inlay_proc_matches(p, "counted") || inlay_proc_matches(p, "skips") || inlay_proc_matches(p, "elsewhere")))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i))
            inlay_insert(inlay_before(i), inlay_count(&blocks, 1));
}

static void at_end(int status, void *arg)
{
    (void)arg;
    fprintf(inlay_out(), "%u %u %u %u, %u, %d\n", seen[SIGUSR1], seen[SIGUSR2], seen[SIGTERM], seen[SIGSEGV],
            (unsigned)inlay_counter_sum(&blocks), status >> 8);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "keeps signals from the program");
    inlay_on_signal(each_signal, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(at_end, NULL);
    return inlay_start();
}
