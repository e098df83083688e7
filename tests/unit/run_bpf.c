/* Filters of system calls, made at random, are run here and by the kernel: both answer the same. What a filter
 * looks at is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/bpf.h"

enum { MOST = 40, FILTERS = 300, CALLS = 8, ERRNO_MASK = 0xfff };

typedef struct filter {
    struct sock_filter code[MOST];
    unsigned count;
} filter;

static uint64_t seed = 20240229;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % n;
}

static uint32_t random_word(void)
{
    static const uint32_t words[] = {0, 1, 2, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff};
    return random_below(2) ? words[random_below(8)] : random_below(UINT32_MAX);
}

static struct sock_filter random_instruction(unsigned left)
{
    static const uint16_t operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
                                          BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
    static const uint16_t jumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    uint16_t source = random_below(2) ? BPF_K : BPF_X;
    uint8_t reach = (uint8_t)(left > 250 ? 250 : left);
    switch (random_below(9)) {
    case 0:
        return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, random_below(4) ? 16 + 4 * random_below(12) : 0);
    case 1: return (struct sock_filter)BPF_STMT((random_below(2) ? BPF_LD : BPF_LDX) | BPF_IMM, random_word());
    case 2: return (struct sock_filter)BPF_STMT((random_below(2) ? BPF_ST : BPF_STX), random_below(BPF_MEMWORDS));
    case 3: return (struct sock_filter)BPF_STMT((random_below(2) ? BPF_LD : BPF_LDX) | BPF_MEM, random_below(4));
    case 4: return (struct sock_filter)BPF_STMT(BPF_MISC | (random_below(2) ? BPF_TAX : BPF_TXA), 0);
    case 5:
    case 6: {
        uint16_t op = operations[random_below(10)];
        uint32_t k = op == BPF_LSH || op == BPF_RSH ? random_below(32)
                     : op == BPF_DIV                ? 1 + random_below(9)
                                                    : random_word();
        bool shift = op == BPF_LSH || op == BPF_RSH;
        return (struct sock_filter)BPF_STMT(BPF_ALU | op | (shift ? BPF_K : source), k);
    }
    case 7:
        if (left > 1) return (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, random_below(left - 1));
        return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0);
    default:
        return (struct sock_filter)BPF_JUMP(BPF_JMP | jumps[random_below(4)] | source, random_word(),
                                            (uint8_t)random_below(reach), (uint8_t)random_below(reach));
    }
}

/* All words are stored first, since the kernel wants no word read before; the last answers with an error. */
static filter random_filter(void)
{
    filter f = {.count = 8 + random_below(MOST - 16)};
    for (unsigned i = 0; i < 4; i++) f.code[i] = (struct sock_filter)BPF_STMT(BPF_ST, i);
    for (unsigned i = 4; i < f.count; i++) f.code[i] = random_instruction(f.count - i);
    f.code[f.count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7ff);
    f.code[f.count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO | 1);
    f.code[f.count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
    return f;
}

/* Only one call is the filter's; the others are needed. */
static filter guarded(const filter *f)
{
    filter g = {.count = 4};
    g.code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    g.code[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
    g.code[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    g.code[3] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
    memcpy(g.code + g.count, f->code, f->count * sizeof *f->code);
    g.count += f->count;
    return g;
}

static void ask_kernel(const filter *f, uint64_t args[CALLS][6], int *answers)
{
    struct sock_fprog p = {.len = (unsigned short)f->count, .filter = (struct sock_filter *)f->code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) _exit(errno == EINVAL ? 1 : 2);
    for (int i = 0; i < CALLS; i++) {
        uint64_t *a = args[i];
        answers[i] = syscall(SYS_getppid, a[0], a[1], a[2], a[3], a[4], a[5]) == -1 ? errno : 0;
    }
    _exit(0);
}

static int ours(const filter *f, const uint64_t *args)
{
    struct seccomp_data d = {.nr = SYS_getppid, .arch = AUDIT_ARCH_X86_64};
    bool looks = false;
    memcpy(d.args, args, sizeof d.args);
    uint32_t answer = run_bpf_run(f->code, f->count, &d, &looks);
    if ((answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_THREAD) return -1;
    return answer == SECCOMP_RET_ALLOW ? 0 : (int)(answer & ERRNO_MASK);
}

static void the_kernel_answers_the_same(void **state)
{
    (void)state;
    int *answers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), taken = 0;
    for (int n = 0; n < FILTERS; n++) {
        filter f = random_filter(), g = guarded(&f);
        uint64_t args[CALLS][6];
        for (int i = 0; i < CALLS * 6; i++) args[i / 6][i % 6] = (uint64_t)random_word() << 32 | random_word();
        pid_t child = fork();
        if (!child) ask_kernel(&g, args, answers);
        int status;
        waitpid(child, &status, 0);
        bool dies = WIFSIGNALED(status); /* divided by zero */
        if (!dies && WEXITSTATUS(status) == 1) continue;
        assert_true(dies || WEXITSTATUS(status) == 0);
        taken++;
        bool one_kills = false;
        for (int i = 0; i < CALLS && !one_kills; i++) {
            int mine = ours(&g, args[i]);
            one_kills = mine == -1;
            if (!one_kills && (!dies || mine != answers[i])) assert_int_equal(mine, answers[i]);
        }
        assert_int_equal(one_kills, dies);
    }
    assert_true(taken >= FILTERS / 2 && taken <= FILTERS);
}

static void what_it_looks_at_is_told(void **state)
{
    (void)state;
    static const struct sock_filter by_number[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct seccomp_data d = {.nr = 6};
    bool looks = false;
    assert_int_equal(run_bpf_run(by_number, 5, &d, &looks), SECCOMP_RET_ALLOW);
    assert_false(looks);
    d.nr = 7;
    assert_int_equal(run_bpf_run(by_number, 5, &d, &looks), SECCOMP_RET_ALLOW);
    assert_true(looks);
}

static void without_an_end_it_kills(void **state)
{
    (void)state;
    static const struct sock_filter endless[] = {BPF_STMT(BPF_LD | BPF_IMM, 0)},
                                    outside[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data)),
                                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct seccomp_data d = {.nr = 6};
    bool looks = false;
    assert_int_equal(run_bpf_run(endless, 1, &d, &looks), SECCOMP_RET_KILL_PROCESS);
    assert_int_not_equal(run_bpf_run(outside, 2, &d, &looks), SECCOMP_RET_ALLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_answers_the_same),
        cmocka_unit_test(what_it_looks_at_is_told),
        cmocka_unit_test(without_an_end_it_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
