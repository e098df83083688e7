/* Values are 32 bits wide; a shift by more than 31 is by the low five bits, as the kernel's compilers do it; a
 * division by zero ends the filter with 0. */
#include "run/bpf.h"

#include <stddef.h>
#include <string.h>

typedef struct machine {
    const struct seccomp_data *data;
    uint32_t a, x, memory[BPF_MEMWORDS];
    bool looks, fails;
} machine;

static uint32_t word_at(machine *m, uint32_t offset)
{
    uint32_t word;
    if (offset > sizeof *m->data - sizeof word || offset % sizeof word) {
        m->fails = true;
        return 0;
    }
    if (offset >= offsetof(struct seccomp_data, instruction_pointer)) m->looks = true;
    memcpy(&word, (const char *)m->data + offset, sizeof word);
    return word;
}

static uint32_t load(machine *m, const struct sock_filter *i)
{
    switch (BPF_MODE(i->code)) {
    case BPF_IMM: return i->k;
    case BPF_ABS: return word_at(m, i->k);
    case BPF_LEN: return sizeof *m->data;
    case BPF_MEM:
        if (i->k < BPF_MEMWORDS) return m->memory[i->k];
    }
    m->fails = true;
    return 0;
}

static void store(machine *m, uint32_t place, uint32_t value)
{
    if (place < BPF_MEMWORDS) m->memory[place] = value;
    else m->fails = true;
}

static uint32_t compute(machine *m, uint16_t code, uint32_t by)
{
    uint32_t a = m->a;
    switch (BPF_OP(code)) {
    case BPF_ADD: return a + by;
    case BPF_SUB: return a - by;
    case BPF_MUL: return a * by;
    case BPF_DIV:
        if (by) return a / by;
        break;
    case BPF_AND: return a & by;
    case BPF_OR: return a | by;
    case BPF_XOR: return a ^ by;
    case BPF_LSH: return a << (by & 31);
    case BPF_RSH: return a >> (by & 31);
    case BPF_NEG: return -a;
    }
    m->fails = true;
    return 0;
}

static uint32_t distance(machine *m, const struct sock_filter *i)
{
    uint32_t with = BPF_SRC(i->code) == BPF_X ? m->x : i->k;
    switch (BPF_OP(i->code)) {
    case BPF_JA: return i->k;
    case BPF_JEQ: return m->a == with ? i->jt : i->jf;
    case BPF_JGT: return m->a > with ? i->jt : i->jf;
    case BPF_JGE: return m->a >= with ? i->jt : i->jf;
    case BPF_JSET: return m->a & with ? i->jt : i->jf;
    }
    m->fails = true;
    return 0;
}

uint32_t run_bpf_run(const struct sock_filter *code, unsigned count, const struct seccomp_data *data, bool *looks)
{
    machine m = {.data = data};
    uint32_t answer = SECCOMP_RET_KILL_PROCESS;
    for (uint64_t at = 0; at < count && !m.fails; at++) {
        const struct sock_filter *i = &code[at];
        if (BPF_CLASS(i->code) == BPF_RET) {
            answer = BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
            break;
        }
        switch (BPF_CLASS(i->code)) {
        case BPF_LD: m.a = load(&m, i); break;
        case BPF_LDX: m.x = load(&m, i); break;
        case BPF_ST: store(&m, i->k, m.a); break;
        case BPF_STX: store(&m, i->k, m.x); break;
        case BPF_ALU: m.a = compute(&m, i->code, BPF_SRC(i->code) == BPF_X ? m.x : i->k); break;
        case BPF_JMP: at += distance(&m, i); break;
        case BPF_MISC:
            if (BPF_MISCOP(i->code) == BPF_TAX) m.x = m.a;
            else m.a = m.x;
            break;
        }
    }
    *looks |= m.looks;
    return m.fails ? 0 : answer;
}
