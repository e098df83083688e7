/* A thread that is nearly always in a restartable sequence (rseq). As long as it is in one the kernel does not touch
 * what the thread has told it, unless the sequence is aborted: where that is gone in the middle, somebody has made the
 * kernel believe that it was left. Says how often; ends with its input. Status 77: there are none here. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/rseq.h>

static struct rseq *own(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

/* 0: it was aborted; 1: it came to its end; 2: it was not what it was any more. */
__attribute__((noinline)) static int work(struct rseq *r, uint64_t times)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
                 ".balign 32\n"
                 "3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n"
                 ".popsection\n"
                 "lea 3b(%%rip), %%rax\n"
                 "mov %%rax, %c[cs](%[r])\n"
                 "1: cmp %%rax, %c[cs](%[r])\n"
                 "jne %l[torn]\n"
                 "dec %[times]\n"
                 "jnz 1b\n"
                 "2: jmp 5f\n"
                 ".byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n"
                 "4: jmp %l[aborted]\n"
                 "5:\n"
                 :
                 : [r] "r"(r), [times] "r"(times), [cs] "i"(__builtin_offsetof(struct rseq, rseq_cs))
                 : "rax", "cc", "memory"
                 : aborted, torn);
    return 1;
aborted:
    return 0;
torn:
    return 2;
}

int main(void)
{
    enum { TIMES = 3000000 };
    struct pollfd input = {.events = POLLIN};
    unsigned long ends[3] = {0};
    puts(__rseq_size ? "begun" : "none");
    fflush(stdout);
    if (!__rseq_size) return 77;
    do ends[work(own(), TIMES)]++;
    while (poll(&input, 1, 0) == 0);
    printf("aborted %lu, whole %lu, torn %lu\n", ends[0], ends[1], ends[2]);
    return ends[2] != 0;
}
