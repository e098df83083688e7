/* Code that one thread changes and others run: what a thread calls after it has heard of the change is the new code;
 * and others call it all the time, are sent signals, or sleep meanwhile. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef uint32_t (*function)(void);

enum { ROUNDS = 200, CALLERS = 3, SENT = 1500 };

static uint8_t *code;
static volatile uint32_t ticks;
static sem_t asked, answered, asleep;
static uint32_t answer;
static int ends;

/* mov $value, %eax; ret: the value is stored at once, where it does not cross a line */
static void emit(uint32_t value)
{
    code[3] = 0xb8;
    __atomic_store_n((uint32_t *)(void *)(code + 4), value, __ATOMIC_SEQ_CST);
    code[8] = 0xc3;
}

static uint32_t call(void)
{
    function f;
    void *volatile at = code + 3;
    *(void **)&f = at;
    return f();
}

static void await(sem_t *s)
{
    while (sem_wait(s) && errno == EINTR) continue;
}

static void *answers(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        await(&asked);
        __asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
        answer = call();
        sem_post(&answered);
    }
    return arg;
}

static void tick(int signo) { __atomic_fetch_add(&ticks, (uint32_t)signo, __ATOMIC_RELAXED); }

static void *calls(void *arg)
{
    uint32_t last = 0, wrong = 0;
    while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
        uint32_t now = call();
        wrong += now < last;
        last = now;
    }
    *(uint32_t *)arg = wrong;
    return NULL;
}

static void *sleeps(void *arg)
{
    *(uint32_t *)arg = call() >= SENT + 1;
    await(&asleep);
    *(uint32_t *)arg += call() != SENT;
    return NULL;
}

static void one_after_another(void)
{
    pthread_t other;
    uint32_t wrong = 0;
    pthread_create(&other, NULL, answers, NULL);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        emit(i);
        sem_post(&asked);
        await(&answered);
        wrong += answer != i;
    }
    pthread_join(other, NULL);
    printf("%u of %d are the code before\n", wrong, ROUNDS);
}

static void at_once(void)
{
    pthread_t callers[CALLERS], sleeper;
    uint32_t wrong[CALLERS + 1] = {0};
    emit(0);
    pthread_create(&sleeper, NULL, sleeps, &wrong[CALLERS]);
    for (int i = 0; i < CALLERS; i++) pthread_create(&callers[i], NULL, calls, &wrong[i]);
    for (uint32_t i = 1; i <= SENT; i++) {
        pthread_kill(i % 4 ? callers[i % CALLERS] : sleeper, SIGUSR1);
        emit(i);
        call();
    }
    __atomic_store_n(&ends, 1, __ATOMIC_RELEASE);
    sem_post(&asleep);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
    pthread_join(sleeper, NULL);
    for (int i = 0; i <= CALLERS; i++) printf("thread %d: %u wrong\n", i, wrong[i]);
}

int main(void)
{
    struct sigaction a = {.sa_handler = tick};
    sigaction(SIGUSR1, &a, NULL);
    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    sem_init(&asleep, 0, 0);
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    one_after_another();
    at_once();
    printf("signals %s\n", ticks ? "came" : "did not come");
    return 0;
}
