/* setjmp and longjmp through frames, and a coroutine with swapcontext on its own stack. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static jmp_buf back;

static int descend(int n)
{
    if (n == 0) longjmp(back, 42);
    return n > 1000 ? n : descend(n - 1);
}

static ucontext_t main_context, worker_context;
static int yielded;

static void worker(int from, int to)
{
    for (int i = from; i < to; i++) {
        yielded = i * i;
        swapcontext(&worker_context, &main_context);
    }
    yielded = -1;
}

/* A return that takes more arguments off the stack than a byte can count. */
__asm__(".pushsection .text\n.type takes_arguments, @function\ntakes_arguments:\n"
        "mov 8(%rsp), %rax\n ret $0x118\n.popsection");
static long past_arguments(void)
{
    long before, after, first;
    __asm__ volatile("sub $128, %%rsp\n mov %%rsp, %0\n sub $0x118, %%rsp\n movq $77, (%%rsp)\n"
                     "call takes_arguments\n mov %%rsp, %1\n mov %0, %%rsp\n add $128, %%rsp\n"
                     : "=&r"(before), "=&r"(after), "=&a"(first)
                     :
                     : "rcx", "rdx", "cc", "memory");
    return after - before + 0x118 + (first != 77);
}

int main(void)
{
    volatile int total = 0;
    for (volatile int i = 0; i < 100; i++) {
        int r = setjmp(back);
        if (r == 0) descend(i);
        total += r;
    }
    printf("longjmp %d\n", total);

    sigjmp_buf with_mask;
    if (sigsetjmp(with_mask, 1) == 0) siglongjmp(with_mask, 1);

    char *stack = malloc(65536);
    getcontext(&worker_context);
    worker_context.uc_stack.ss_sp = stack;
    worker_context.uc_stack.ss_size = 65536;
    worker_context.uc_link = &main_context;
    makecontext(&worker_context, (void (*)(void))worker, 2, 3, 50);
    long sum = 0;
    do {
        swapcontext(&main_context, &worker_context);
        sum += yielded;
    } while (yielded >= 0);
    printf("coroutine %ld\n", sum);
    free(stack);
    printf("returned past %ld bytes\n", past_arguments());
    return 0;
}
