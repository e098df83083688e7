/* See the header. Faults: the handler takes the state out of the signal frame (for woven code,
 * through the map that the weaver left), and goes to the way out. */
#include "weave_harness.h"

#include "isa/x86_64/bases.h"
#include "weave/buffer.h"
#include "weave/isa.h"
#include "weave/x86_64/vectors.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <asm/prctl.h>
#include <ucontext.h>
#include <unistd.h>

enum { AREA = 64 * 4096, CACHE = 1 << 20, EXIT_FIELD = WEAVE_FRAME_SIZE };

harness bench;
static bool running_woven;
static machine *current;
static uint32_t random_state = 1;

__asm__(".text\n.globl weave_test_enter\nweave_test_enter:\n"
        " push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n sub $8, %rsp\n"
        " mov %rsp, test_rsp(%rip)\n mov %rdi, test_machine(%rip)\n mov %rsi, test_code(%rip)\n"
        " .set i, 0\n"
        " .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        " vmovdqu 160+32*\\r(%rdi), %ymm\\r\n .endr\n"
        " ldmxcsr 152(%rdi)\n pushq 128(%rdi)\n popfq\n"
        " mov 0(%rdi), %rax\n mov 8(%rdi), %rcx\n mov 16(%rdi), %rdx\n mov 24(%rdi), %rbx\n"
        " mov 32(%rdi), %rsp\n mov 40(%rdi), %rbp\n mov 48(%rdi), %rsi\n mov 64(%rdi), %r8\n"
        " mov 72(%rdi), %r9\n mov 80(%rdi), %r10\n mov 88(%rdi), %r11\n mov 96(%rdi), %r12\n"
        " mov 104(%rdi), %r13\n mov 112(%rdi), %r14\n mov 120(%rdi), %r15\n mov 56(%rdi), %rdi\n"
        " jmp *test_code(%rip)\n"
        ".globl weave_test_exit\nweave_test_exit:\n"
        " mov %rdi, test_rdi(%rip)\n mov test_machine(%rip), %rdi\n"
        " mov %rax, 0(%rdi)\n mov %rcx, 8(%rdi)\n mov %rdx, 16(%rdi)\n mov %rbx, 24(%rdi)\n"
        " mov %rsp, 32(%rdi)\n mov %rbp, 40(%rdi)\n mov %rsi, 48(%rdi)\n mov %r8, 64(%rdi)\n"
        " mov %r9, 72(%rdi)\n mov %r10, 80(%rdi)\n mov %r11, 88(%rdi)\n mov %r12, 96(%rdi)\n"
        " mov %r13, 104(%rdi)\n mov %r14, 112(%rdi)\n mov %r15, 120(%rdi)\n"
        " mov test_rsp(%rip), %rsp\n pushfq\n popq 128(%rdi)\n mov test_rdi(%rip), %rax\n"
        " mov %rax, 56(%rdi)\n stmxcsr 152(%rdi)\n"
        " .irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        " vmovdqu %ymm\\r, 160+32*\\r(%rdi)\n .endr\n vzeroupper\n"
        ".globl weave_test_leave\nweave_test_leave:\n"
        " mov test_rsp(%rip), %rsp\n movl $0x1f80, test_mxcsr(%rip)\n ldmxcsr test_mxcsr(%rip)\n"
        " cld\n add $8, %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        ".data\n.balign 8\ntest_rsp: .quad 0\ntest_machine: .quad 0\ntest_code: .quad 0\n"
        "test_rdi: .quad 0\ntest_mxcsr: .quad 0\n.text\n");
void weave_test_enter(machine *, const void *code);
void weave_test_exit(void);
void weave_test_leave(void);

uint32_t harness_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

void harness_seed(uint32_t seed) { random_state = seed * 2654435761u | 1; }

static uint64_t merged_flags(uint64_t saved, uint64_t flags)
{
    flags &= ~(uint64_t)X86_ARITH;
    flags |= saved >> 8 & (X86_CF | X86_PF | X86_AF | X86_ZF | X86_SF);
    return flags | (saved & 1 ? X86_OF : 0);
}

static void take_state(ucontext_t *u, machine *m)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (unsigned r = 0; r < 16; r++) m->gpr[r] = (uint64_t)u->uc_mcontext.gregs[order[r]];
    m->flags = (uint64_t)u->uc_mcontext.gregs[REG_EFL];
    m->fault_pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
    m->exit = m->fault_pc;
}

static void subtract(void *arg, uint32_t counter, int64_t amount)
{
    (void)arg;
    if (weave_is_next(counter)) bench.frame->buffers[counter - WEAVE_NEXT_OF].next -= (uint64_t)amount;
    else bench.counters[counter] -= (uint64_t)amount;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)info;
    if (!current) {
        signal(sig, SIG_DFL);
        return;
    }
    take_state(u, current);
    if (running_woven) {
        weave_map_entry entry;
        int index = weave_locate(&bench.out, (uint32_t)(current->fault_pc - bench.code.exec), &entry);
        if (index < 0 || current->fault_pc - bench.code.exec >= bench.code.at) {
            signal(sig, SIG_DFL);
            return;
        }
        current->fault_pc = current->exit = entry.app;
        if (entry.spilled & WEAVE_AHEAD) current->gpr[X86_RSI] -= bench.frame->app_gs_base;
        for (unsigned r = 0; r < 16; r++)
            if ((entry.spilled & ~WEAVE_AHEAD) >> r & 1) current->gpr[r] = bench.frame->slot[r];
        if (entry.flags_saved) current->flags = merged_flags(bench.frame->flags, current->flags);
        weave_undo(&bench.out, (uint32_t)index, false, subtract, NULL);
    }
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)weave_test_leave;
    u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)X86_DF;
}

void harness_catch_faults(void)
{
    static uint8_t alternate[65536];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    stack_t alt = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alt, NULL);
    for (unsigned i = 0; i < 4; i++) sigaction(signals[i], &act, NULL);
}

static uint8_t *map_near(uintptr_t hint, size_t size)
{
    for (unsigned i = 0; i < 64; i++) {
        void *p = mmap((void *)(hint + i * 0x1000000ul), size, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p != MAP_FAILED) return p;
    }
    return NULL;
}

static void emit_leave(x86_code *c, uint64_t target)
{
    x86_store_imm(c, 4, x86_gs(EXIT_FIELD), (int32_t)target);
    x86_store_imm(c, 4, x86_gs(EXIT_FIELD + 4), (int32_t)(target >> 32));
    static const uint8_t jump[] = {0x65, 0xff, 0x24, 0x25}; /* jmp gs:[disp32] */
    int32_t disp = EXIT_FIELD + 8;
    x86_bytes(c, jump, sizeof jump);
    x86_bytes(c, &disp, 4);
}

static bool open_frame(void)
{
    void *p = mmap(NULL, WEAVE_BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    bench.frame = p;
    bench.frame->self = p;
    bench.frame->thread_number = 7;
    bench.counters = (uint64_t *)((uint8_t *)p + WEAVE_COUNTERS);
    uint8_t *stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench.frame->tool_stack = (uint64_t)(uintptr_t)stack + (1 << 18);
    bench.frame->vector_area = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (x86_bases_choose(getauxval(AT_HWCAP2)) == X86_BASES_NOT) return false;
    weave_vectors_choose(bench.frame);
    uint64_t fs;
    __asm__("rdfsbase %0" : "=r"(fs));
    bench.frame->tool_tls_base = fs;
    ((uint64_t *)p)[EXIT_FIELD / 8 + 1] = (uint64_t)(uintptr_t)weave_test_exit;
    return syscall(SYS_arch_prctl, ARCH_SET_GS, p) == 0;
}

bool harness_open(void)
{
    if (!__builtin_cpu_supports("avx2")) return false;
    uint8_t *area = map_near(((uintptr_t)weave_test_enter & ~0xfffffful) + 0x10000000, AREA);
    if (!area) return false;
    bench.app = area + 256; /* in front of it: a stub that short branches reach */
    bench.exits = area + 4096;
    bench.data = area + 4 * 4096;
    bench.stack = area + 6 * 4096;
    bench.bad = area + 10 * 4096;
    mprotect(bench.bad, 4096, PROT_NONE);
    bench.room = CACHE;
    bench.near = map_near((uintptr_t)area + 0x1000000, CACHE);
    bench.far = map_near(((uintptr_t)area & ~0xffffffful) - 0x400000000ul, CACHE);
    if (!bench.near || !bench.far || !open_frame()) return false;
    for (unsigned i = 0; i < MAX_EXITS; i++) { /* each stub: call; the common part finds out which */
        x86_code c = {.write = area + 3 * 4096 + 48 * i, .exec = (uintptr_t)area + 3 * 4096 + 48 * i, .size = 48};
        emit_leave(&c, harness_exit(i));
        x86_code hop = {.write = bench.exits + 16 * i, .exec = harness_exit(i), .size = 16};
        x86_jmp_to(&hop, c.exec);
    }
    x86_code hop = {.write = bench.app - 5, .exec = (uintptr_t)bench.app - 5, .size = 5};
    x86_jmp_rel32(&hop, harness_exit(MAX_EXITS - 1), false);
    return true;
}

void harness_random_state(machine *m)
{
    memset(m, 0, sizeof *m);
    for (unsigned r = 0; r < 16; r++) {
        m->gpr[r] = (uint64_t)harness_random() << 32 | harness_random();
        if (harness_random() % 4 == 0) m->gpr[r] = harness_random() % 3;
    }
    m->gpr[X86_RSP] = (uint64_t)(uintptr_t)bench.stack + STACK_SIZE / 2;
    m->flags = 0x202 | (harness_random() & X86_ARITH);
    for (unsigned v = 0; v < 16; v++)
        for (unsigned i = 0; i < 32; i++) m->ymm[v][i] = (uint8_t)harness_random();
    m->mxcsr = 0x1f80;
}

void harness_fill_memory(uint32_t seed)
{
    uint8_t *areas[] = {bench.data, bench.stack};
    for (unsigned a = 0; a < 2; a++)
        for (unsigned i = 0; i < 4096; i += 4) {
            seed = seed * 1664525 + 1013904223;
            memcpy(areas[a] + i, &seed, 4);
        }
}

void harness_save_memory(uint8_t out[DATA_SIZE + STACK_SIZE])
{
    memcpy(out, bench.data, DATA_SIZE);
    memcpy(out + DATA_SIZE, bench.stack, STACK_SIZE);
}

weave_run *harness_run(const uint8_t *bytes, size_t size)
{
    inl_arena_reset(&bench.arena);
    memcpy(bench.app, bytes, size);
    weave_run *run = inl_arena_alloc(&bench.arena, sizeof *run);
    run->isa = &isa_x86_64;
    run->arena = &bench.arena;
    run->insns = inl_arena_alloc(&bench.arena, (size + 1) * sizeof *run->insns);
    run->blocks = inl_arena_alloc(&bench.arena, (size + 1) * sizeof *run->blocks);
    bool fresh = true;
    for (size_t at = 0; at < size;) {
        weave_insn *n = &run->insns[run->insn_count];
        if (isa_x86_64.decode(bytes + at, size - at, (uintptr_t)bench.app + at, &n->in) != ISA_OK) return NULL;
        if (fresh) run->blocks[run->block_count++] = (weave_block){.run = run, .head = true, .first = run->insn_count};
        n->run = run;
        n->index = run->insn_count++;
        n->block = run->block_count - 1;
        run->blocks[n->block].count++;
        fresh = n->in.flow != ISA_FLOW_NEXT;
        at += n->in.len;
    }
    return run;
}

static void go(machine *m, const void *code)
{
    m->fault_pc = 0;
    current = m;
    weave_test_enter(m, code);
    current = NULL;
    if (!m->fault_pc) m->exit = ((uint64_t *)bench.frame)[EXIT_FIELD / 8];
}

void harness_native(const weave_run *run, uint32_t count, machine *m)
{
    const isa_insn *last = &run->insns[run->insn_count - 1].in;
    uint64_t end = last->addr + last->len;
    uint64_t at = count < run->insn_count ? run->insns[count].in.addr : end;
    uint8_t kept[64];
    uint8_t *p = (uint8_t *)(uintptr_t)at;
    memcpy(kept, p, sizeof kept);
    x86_code c = {.write = p, .exec = at, .size = sizeof kept};
    emit_leave(&c, at);
    running_woven = false;
    go(m, bench.app);
    memcpy(p, kept, sizeof kept);
}

static bool exit_to(void *arg, x86_code *c, uint64_t target)
{
    (void)arg;
    emit_leave(c, target);
    return true;
}

static bool lower(void *arg, x86_code *c, const weave_run *run, uint32_t i)
{
    const isa_insn *in = &run->insns[i].in;
    (void)arg;
    switch (in->flow) {
    case ISA_FLOW_COND: {
        x86_label over = x86_jcc_label(c, in->cond ^ 1u, 1);
        emit_leave(c, in->target);
        return x86_bind(c, over);
    }
    case ISA_FLOW_COND_REG: {
        uint8_t bytes[16];
        memcpy(bytes, in->raw, in->len);
        bytes[in->len - 1] = 2;
        x86_bytes(c, bytes, in->len);
        x86_label over = x86_jmp_label(c, 1);
        emit_leave(c, in->target);
        return x86_bind(c, over);
    }
    case ISA_FLOW_JUMP: emit_leave(c, in->target); return true;
    case ISA_FLOW_CALL: {
        uint64_t back = in->addr + in->len;
        x86_lea(c, X86_RSP, x86_at(X86_RSP, -8));
        x86_store_imm(c, 4, x86_at(X86_RSP, 0), (int32_t)back);
        x86_store_imm(c, 4, x86_at(X86_RSP, 4), (int32_t)(back >> 32));
        emit_leave(c, in->target);
        return true;
    }
    case ISA_FLOW_RETURN: {
        static const uint8_t jump[] = {0x65, 0xff, 0x24, 0x25};
        int32_t disp = EXIT_FIELD + 8;
        x86_pop_m(c, x86_gs(EXIT_FIELD));
        x86_bytes(c, jump, sizeof jump);
        x86_bytes(c, &disp, 4);
        return true;
    }
    default: return false;
    }
}

enum { FIXUPS = 4096 };

/* Says that both windows are to lie elsewhere, with lists for what that changes. */
static void send_away(isa_fixups lists[2])
{
    static isa_fixup room[2][FIXUPS];
    for (unsigned i = 0; i < 2; i++) lists[i] = (isa_fixups){.items = room[i], .room = FIXUPS};
    bench.code.exec += (uint64_t)bench.moved_by, bench.cold.exec += (uint64_t)bench.moved_by;
    bench.code.fixups = &lists[0], bench.cold.fixups = &lists[1];
}

static inl_status bring_back(isa_fixups lists[2], inl_error *e)
{
    uint64_t low = bench.code.exec, high = low + bench.room;
    bool placed = true;
    x86_code *codes[] = {&bench.code, &bench.cold};
    for (unsigned i = 0; i < 2; i++) {
        codes[i]->exec -= (uint64_t)bench.moved_by;
        codes[i]->fixups = NULL;
        placed &= weave_isa_here()->place(&lists[i], codes[i]->write, codes[i]->exec, low, high);
    }
    return placed ? INL_OK : inl_fail(e, INL_ERR_UNSUPPORTED, "the code cannot be moved here");
}

inl_status harness_weave(const weave_run *run, const weave_options *options, bool far, inl_error *e)
{
    weave_engine engine = {.lower = lower,
                           .exit_to = exit_to,
                           .arg = bench.hook_arg,
                           .live_at = bench.live_at,
                           .live_behind = bench.live_behind};
    uint8_t *at = far ? bench.far : bench.near;
    bench.code = (x86_code){.write = at, .exec = (uintptr_t)at, .size = bench.room / 2};
    bench.cold = bench.code;
    bench.cold.write += bench.room / 2, bench.cold.exec += bench.room / 2;
    if (bench.apart) engine.cold = &bench.cold;
    isa_fixups lists[2];
    if (bench.moved_by) send_away(lists);
    inl_status status = weave_compile(run, &engine, options, &bench.code, &bench.out, e);
    return status || !bench.moved_by ? status : bring_back(lists, e);
}

void harness_woven(machine *m)
{
    running_woven = true;
    go(m, (void *)(uintptr_t)bench.code.exec);
    running_woven = false;
}
