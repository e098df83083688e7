/* Registers of contexts by their names: what context_program.c has in them is found, those of `hook` are set, in copies
 * that the program goes on with. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

static struct found {
    uint64_t right, wrong, times, changed;
    inlay_counter insns;
} * found;

static void check(bool good, const char *what, unsigned n)
{
    if (good) found->right++;
    else found->wrong++;
    if (!good) fprintf(stderr, "%s %u\n", what, n);
}

/* Whole registers and parts, got and set. */
static void general(const inlay_context *now)
{
    inlay_context c = *now;
    uint64_t v = 0, all = 0x1122334455667788;
    uint32_t half = 0x99aabbcc;
    uint16_t low = 0xddee;
    uint8_t byte = 0;
    for (unsigned r = 0; r < INLAY_REG_COUNT; r++)
        check(inlay_context_get(&c, r, &v, sizeof v) == 8 && v == c.gpr[r], "general", r);
    check(inlay_context_get(&c, INLAY_RIP, &v, 8) == 8 && v == c.pc, "rip", 0);
    check(inlay_context_get(&c, INLAY_FS_BASE, &v, 8) == 8 && v == c.fs_base, "fs_base", 0);
    check(inlay_context_get(&c, INLAY_ZF, &byte, 1) == 1 && byte == (c.flags >> 6 & 1), "zf", 0);
    check(inlay_context_set(&c, INLAY_RBX, &all, 8) && c.gpr[INLAY_RBX] == all, "set", 0);
    check(inlay_context_set(&c, INLAY_BX, &low, 2) && c.gpr[INLAY_RBX] == 0x112233445566ddee, "set", 1);
    check(inlay_context_get(&c, INLAY_BH, &byte, 1) == 1 && byte == 0xdd, "get", 2);
    byte = 7;
    check(inlay_context_set(&c, INLAY_BH, &byte, 1) && c.gpr[INLAY_RBX] == 0x11223344556607ee, "set", 3);
    check(inlay_context_set(&c, INLAY_EBX, &half, 4) && c.gpr[INLAY_RBX] == half, "set", 4);
    byte = !(c.flags >> 6 & 1);
    check(inlay_context_set(&c, INLAY_ZF, &byte, 1) && (c.flags ^ now->flags) == 0x40, "set", 5);
    check(!inlay_context_set(&c, INLAY_RBX, &half, 4) && !inlay_context_get(&c, INLAY_RBX, &half, 4), "size", 0);
    check(!inlay_context_get(&c, INLAY_CR0, &v, 8) && !inlay_context_get(&c, 0xfff, &v, 8), "none", 0);
}

/* What AVX-512 has more: the upper halves of the first sixteen, sixteen others, masks. */
static void wide_ones(const inlay_context *c, inlay_context *copy, bool change)
{
    uint8_t bytes[64] = {0}, third[64], twentieth[64];
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i++) third[i] = (uint8_t)(i < 32 ? 3 * 16 + i : 5 * 16 + i - 32);
    for (unsigned i = 0; i < 64; i++) twentieth[i] = (uint8_t)(i < 32 ? 6 * 16 + i : 7 * 16 + i - 32);
    check(inlay_context_get(c, INLAY_ZMM0 + 3, bytes, 64) == 64 && !memcmp(bytes, third, 64), "zmm", 3);
    check(inlay_context_get(c, INLAY_ZMM0 + 20, bytes, 64) == 64 && !memcmp(bytes, twentieth, 64), "zmm", 20);
    check(inlay_context_get(c, INLAY_YMM0 + 20, bytes, 32) == 32 && !memcmp(bytes, twentieth, 32), "ymm", 20);
    check(inlay_context_get(c, INLAY_K0 + 3, &mask, 8) == 8 && mask == 0x5a5a, "k", 3);
    if (!change) return;
    mask = 0x1234, third[33] = 99, twentieth[63] = 98, twentieth[1] = 97;
    check(inlay_context_set(copy, INLAY_K0 + 3, &mask, 8) && inlay_context_set(copy, INLAY_ZMM0 + 3, third, 64) &&
              inlay_context_set(copy, INLAY_ZMM0 + 20, twentieth, 64) &&
              inlay_context_set(copy, INLAY_XMM0 + 20, twentieth, 16),
          "set", 7);
}

static void vectors(const inlay_context *c, bool change)
{
    bool avx = __builtin_cpu_supports("avx2");
    inlay_context copy = *c, without = *c;
    uint8_t bytes[64] = {0}, wanted[32];
    uint32_t mxcsr = 0;
    uint16_t control = 0, tags = 0;
    long double top = 0;
    for (unsigned n = 0; n < 16; n++) {
        for (unsigned i = 0; i < 32; i++) wanted[i] = (uint8_t)(n * 16 + i);
        check(inlay_context_get(c, INLAY_XMM0 + n, bytes, 16) == 16 && !memcmp(bytes, wanted, 16), "xmm", n);
        if (avx) check(inlay_context_get(c, INLAY_YMM0 + n, bytes, 32) == 32 && !memcmp(bytes, wanted, 32), "ymm", n);
        for (unsigned i = 0; i < 32; i++) wanted[i]++;
        if (change && n % 3 == 1) check(inlay_context_set(&copy, INLAY_XMM0 + n, wanted, 16), "set xmm", n);
        if (change && n % 3 == 2 && avx) check(inlay_context_set(&copy, INLAY_YMM0 + n, wanted, 32), "set ymm", n);
    }
    if (__builtin_cpu_supports("avx512f")) wide_ones(c, &copy, change);
    check(inlay_context_get(c, INLAY_MXCSR, &mxcsr, 4) == 4 && mxcsr == 0x9f80, "mxcsr", mxcsr);
    check(inlay_context_get(c, INLAY_X87_CONTROL, &control, 2) == 2 && control == 0x67f, "control", control);
    check(inlay_context_get(c, INLAY_X87_TAG, &tags, 2) == 2 && tags == 0x0fff, "tags", tags);
    check(inlay_context_get(c, INLAY_ST0, &top, 10) == 0 || top == 1, "st", 0);
    check(inlay_context_get(c, INLAY_ST0 + 1, &top, sizeof top) == 10 && (int)(top * 100) == 314, "st", 1);
    without.xsave = NULL;
    check(!inlay_context_get(&without, INLAY_XMM0, bytes, 16), "no vectors", 0);
    if (!change) return;
    mxcsr = 0x1f80, control = 0x37f, top = 2.5L;
    check(inlay_context_set(&copy, INLAY_MXCSR, &mxcsr, 4) &&
              inlay_context_set(&copy, INLAY_X87_CONTROL, &control, 2) && inlay_context_set(&copy, INLAY_ST0, &top, 10),
          "set", 6);
    copy.pc++; /* behind the nop */
    inlay_resume(&copy);
}

static void at_hook(const inlay_context *c)
{
    found->times++;
    general(c);
    vectors(c, true);
}

/* The program's own are those of its start then, but general ones are there. */
static void on_signal(inlay_thread *t, int signo, const siginfo_t *info, const inlay_context *c, void *arg)
{
    (void)t, (void)info, (void)arg;
    uint16_t control = 0;
    if (signo != SIGUSR1) return;
    found->times++;
    general(c);
    if (c->xsave)
        check(inlay_context_get(c, INLAY_X87_CONTROL, &control, 2) == 2 && control == 0x37f, "control", control);
}

static void see_flags(uint64_t flags, uint64_t wanted)
{
    const uint64_t arithmetic = 0x8d5;
    check((flags & arithmetic) == wanted, "flags", (unsigned)(flags & arithmetic));
}

/* In front of what leads on what is inserted changes flags; there they are looked at. */
static void each_of_flags(inlay_insn *i, const char *proc)
{
    bool makes = !strcmp(proc, "makes_flags");
    if (!makes && strcmp(proc, "sets_flags") != 0) return;
    if (inlay_insn_is_call(i) || inlay_insn_is_return(i))
        inlay_insert(inlay_before(i), inlay_atomic_add(inlay_pointer(&found->changed), inlay_const(1), 8));
    if (!strcmp(inlay_opcode_name(inlay_insn_opcode(i)), "nop"))
        inlay_insert(inlay_before(i), inlay_call(see_flags, inlay_flags(), inlay_const(makes ? 0x44 : 0x95)));
}

static void each_insn(inlay_insn *i, void *arg)
{
    (void)arg;
    const char *proc = inlay_proc_name(inlay_insn_proc(i));
    each_of_flags(i, proc);
    inlay_insert(inlay_before(i), inlay_count(&found->insns, 1));
    if (strcmp(proc, "hook") != 0 || strcmp(inlay_opcode_name(inlay_insn_opcode(i)), "nop") != 0 ||
        inlay_insn_size(i) != 1)
        return;
    inlay_insert(inlay_before(i), inlay_call(at_hook, inlay_context_arg()));
}

static void report(int status, void *arg)
{
    (void)arg;
    fprintf(inlay_out(), "%" PRIu64 " times, %" PRIu64 " wrong, status %d, %s\n", found->times, found->wrong, status,
            found->right > 100 ? "many right" : "few right");
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "looks at registers of contexts");
    found = inlay_alloc(sizeof *found);
    inlay_on_insn(each_insn, NULL);
    inlay_on_signal(on_signal, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
