/* Restartable sequences (rseq) of the program's own: per-processor counters that many threads add to without
 * locks. What is lost when a sequence is interrupted and not restarted is missing in the sum. Status 77 where the
 * C library has not registered the thread. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/rseq.h>
#include <unistd.h>

enum { THREADS = 4, TIMES = 400000, PROCESSORS = 1024 };
static struct {
    _Alignas(64) volatile uint64_t value;
} counters[PROCESSORS];

static struct rseq *own(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

/* The whole: descriptor; start; is it still this processor's turn; the store. 0: it must be tried again. */
__attribute__((noinline)) static int add_one(volatile uint64_t *counter, uint32_t cpu, struct rseq *r)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
                 ".balign 32\n"
                 "3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n"
                 ".popsection\n"
                 "lea 3b(%%rip), %%rax\n"
                 "mov %%rax, %c[cs](%[r])\n"
                 "1: cmp %[cpu], %c[id](%[r])\n"
                 "jnz 5f\n"
                 "mov (%[counter]), %%rax\n"
                 "mov $20, %%ecx\n"
                 "6: dec %%ecx\n jnz 6b\n" /* time to be interrupted in */
                 "inc %%rax\n"
                 "mov %%rax, (%[counter])\n"
                 "2: jmp 7f\n"
                 ".byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n"
                 "4: jmp %l[again]\n"
                 "5: jmp %l[again]\n"
                 "7:\n"
                 :
                 : [r] "r"(r), [cpu] "r"(cpu), [counter] "r"(counter),
                   [cs] "i"(__builtin_offsetof(struct rseq, rseq_cs)), [id] "i"(__builtin_offsetof(struct rseq, cpu_id))
                 : "rax", "rcx", "cc", "memory"
                 : again);
    return 1;
again:
    return 0;
}

static void *adds(void *unused)
{
    struct rseq *r = own();
    for (int i = 0; i < TIMES;) {
        uint32_t cpu = *(volatile uint32_t *)&r->cpu_id_start;
        i += add_one(&counters[cpu % PROCESSORS].value, cpu, r);
    }
    return unused;
}

int main(void)
{
    pthread_t t[THREADS];
    uint64_t sum = 0;
    if (!__rseq_size) return 77;
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, adds, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < PROCESSORS; i++) sum += counters[i].value;
    printf("sum %llu of %llu\n", (unsigned long long)sum, (unsigned long long)THREADS * TIMES);
    return 0;
}
