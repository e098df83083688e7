/* Instructions of x86-64 that the cache cannot hold, carried out by the runtime, or refused aloud: once
 * for each kind it is said what the program met, where, and what becomes of it.
 *
 *   int 0x80        a call of the 32-bit table. Those that mean the same in both tables (numbers, strings,
 *                   plain buffers) are made as 64-bit calls, so that the engine sees them; of structures
 *                   that differ, memory, signals and processes it says that they are not carried out,
 *                   and answers ENOSYS.
 *   iret, retf      carried out when they stay in 64-bit mode
 *   far jmp, call   (only through memory) likewise
 *   other far transfers, sysenter      SIGILL
 */
#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "isa/x86_64/x86.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/oldcalls.h"

/* --- int 0x80 --- */

typedef struct call32 {
    uint16_t nr32, nr64;
} call32;

/* By the number in the 32-bit table. Every argument is a number of at most 32 bits or an address of
 * memory that looks the same in both. */
static const call32 calls[] = {
    {1, SYS_exit},          {3, SYS_read},      {4, SYS_write},       {5, SYS_open},         {6, SYS_close},
    {8, SYS_creat},         {9, SYS_link},      {10, SYS_unlink},     {12, SYS_chdir},       {15, SYS_chmod},
    {20, SYS_getpid},       {27, SYS_alarm},    {29, SYS_pause},      {33, SYS_access},      {36, SYS_sync},
    {37, SYS_kill},         {38, SYS_rename},   {39, SYS_mkdir},      {40, SYS_rmdir},       {41, SYS_dup},
    {42, SYS_pipe},         {57, SYS_setpgid},  {60, SYS_umask},      {63, SYS_dup2},        {64, SYS_getppid},
    {65, SYS_getpgrp},      {66, SYS_setsid},   {83, SYS_symlink},    {85, SYS_readlink},    {94, SYS_fchmod},
    {118, SYS_fsync},       {122, SYS_uname},   {132, SYS_getpgid},   {133, SYS_fchdir},     {147, SYS_getsid},
    {158, SYS_sched_yield}, {168, SYS_poll},    {183, SYS_getcwd},    {199, SYS_getuid},     {200, SYS_getgid},
    {201, SYS_geteuid},     {202, SYS_getegid}, {224, SYS_gettid},    {252, SYS_exit_group}, {270, SYS_tgkill},
    {330, SYS_dup3},        {331, SYS_pipe2},   {355, SYS_getrandom},
};

static int number64(uint32_t nr32)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].nr32 == nr32) return calls[i].nr64;
    return -1;
}

/* True the first time. */
static bool first_of(uint8_t *said) { return !__atomic_exchange_n(said, 1, __ATOMIC_RELAXED); }

static void no_such_call(run_thread *t, uint32_t nr, unsigned len)
{
    enum { KNOWN = 512 };
    static uint8_t said[KNOWN + 1];
    if (first_of(&said[nr < KNOWN ? nr : KNOWN]))
        run_say("at %#lx: call %u of the 32-bit table (int 0x80) is not carried out; the program gets ENOSYS",
                (long)t->ctx.pc, nr);
    run_set_answer(&t->ctx, -ENOSYS);
    t->ctx.pc += len;
}

/* Where there is none it faults. */
static bool has_int80(void)
{
    static signed char known; /* the kernel's: the same for all */
    if (!known) known = run_old_calls_fault() ? -1 : 1;
    return known > 0;
}

static void int80(run_thread *t, unsigned len)
{
    enum { GATE = 0x80 << 3 | 2 };
    if (!has_int80()) {
        run_fault_raise(t, RUN_TRAP_PROTECTION, GATE, 0);
        return;
    }
    static const uint8_t from[] = {RUN_RBX, RUN_RCX, RUN_RDX, RUN_RSI, RUN_RDI, RUN_RBP};
    static const uint8_t to[] = {RUN_RDI, RUN_RSI, RUN_RDX, RUN_R10, RUN_R8, RUN_R9};
    weave_context before = t->ctx;
    uint32_t nr = (uint32_t)before.gpr[RUN_RAX];
    int nr64 = number64(nr);
    if (nr64 < 0) {
        no_such_call(t, nr, len);
        return;
    }
    for (int i = 0; i < 6; i++) t->ctx.gpr[to[i]] = (uint32_t)before.gpr[from[i]];
    t->ctx.gpr[RUN_RAX] = (uint64_t)nr64;
    t->ctx.pc = before.pc + len;
    t->leave = RUN_LEAVE_SYSCALL;
    t->leave_arg = before.pc;
    run_syscall(t);
    /* Nothing but the answer changes; a call that a signal came before has none yet. */
    bool done = t->ctx.pc != before.pc;
    uint64_t answer = t->ctx.gpr[RUN_RAX];
    t->ctx = before;
    if (!done) return;
    t->ctx.pc = before.pc + len;
    t->ctx.gpr[RUN_RAX] = answer;
}

/* --- far returns --- */

enum { OP_RETF_IMM = 0xca, OP_RETF = 0xcb, OP_IRET = 0xcf };

static unsigned opcode(const isa_insn *in) { return in->raw[in->opcode_at]; }

static uint16_t code_selector(void)
{
    uint16_t cs;
    __asm__("mov %%cs, %0" : "=r"(cs));
    return cs;
}

static uint64_t slot_at(const uint64_t *words, unsigned width, unsigned k)
{
    if (width == 8) return words[k];
    uint32_t word;
    memcpy(&word, (const uint8_t *)words + 4 * k, 4);
    return word;
}

static bool has_rex_w(const isa_insn *in) { return in->opcode_at && (in->raw[in->opcode_at - 1] & 0xf8) == 0x48; }

/* What user code may change of the flags. */
enum { USER_FLAGS = X86_ARITH | X86_DF | X86_AC | X86_ID | 1 << 8 /* TF */ | 1 << 14 /* NT */ };

typedef enum far_end {
    FAR_DONE,
    FAR_LEAVES, /* 64-bit mode */
    FAR_TOLD,   /* the program has been given a fault */
} far_end;

/* The program's memory, as the instruction would read or write it. */
static bool access_memory(run_thread *t, void *bytes, uint64_t at, size_t size, bool write)
{
    enum { USER = 4, WRITE = 2 };
    bool possible = run_address_possible(at);
    size_t left = !possible ? size
                  : write   ? run_safe_copy((void *)at, bytes, size)
                            : run_safe_copy(bytes, (const void *)at, size);
    if (!left) return true;
    if (possible) run_fault_raise(t, RUN_TRAP_PAGE, USER | (write ? WRITE : 0), at + size - left);
    else run_fault_raise(t, at == run_sp(&t->ctx) ? RUN_TRAP_STACK : RUN_TRAP_PROTECTION, 0, 0);
    return false;
}

static far_end look_at_selector(run_thread *t, uint16_t selector)
{
    enum { CODE_32 = 0x23, PRIVILEGE = 3 };
    if (selector == code_selector()) return FAR_DONE;
    if (selector == CODE_32) return FAR_LEAVES;
    run_fault_raise(t, RUN_TRAP_PROTECTION, selector & ~PRIVILEGE, 0);
    return FAR_TOLD;
}

/* iret: rip, cs, flags, rsp, ss; retf: rip, cs. */
static far_end far_return(run_thread *t, const isa_insn *in)
{
    weave_context *c = &t->ctx;
    bool iret = opcode(in) == OP_IRET;
    unsigned width = has_rex_w(in) ? 8 : 4, count = iret ? 5 : 2;
    uint64_t words[5] = {0}, sp = run_sp(c);
    if (memchr(in->raw, 0x66, in->opcode_at)) return FAR_LEAVES;
    if (!access_memory(t, words, sp, count * width, false)) return FAR_TOLD;
    uint64_t pc = slot_at(words, width, 0);
    far_end end = look_at_selector(t, (uint16_t)slot_at(words, width, 1));
    if (end != FAR_DONE) return end;
    sp += count * width;
    if (opcode(in) == OP_RETF_IMM) sp += in->raw[in->imm_at] | in->raw[in->imm_at + 1] << 8;
    if (iret) {
        c->flags = (c->flags & ~(uint64_t)USER_FLAGS) | (slot_at(words, width, 2) & USER_FLAGS);
        sp = slot_at(words, width, 3);
    }
    run_set_sp(c, sp);
    c->pc = pc;
    return FAR_DONE;
}

/* --- far jumps and calls --- */

enum { OP_GROUP = 0xff, GROUP_CALL = 3, GROUP_JUMP = 5 };

uint64_t run_memory_address(const weave_context *c, const isa_mem *m)
{
    uint64_t a = (uint64_t)m->disp;
    if (m->base != ISA_NO_REG) a += c->gpr[m->base];
    if (m->index != ISA_NO_REG) a += c->gpr[m->index] * m->scale;
    if (m->bits & ISA_MEM_ADDR32) a = (uint32_t)a;
    return a + (m->segment == X86_SEG_FS ? c->tls_base : m->segment == X86_SEG_GS ? c->gs_base : 0);
}

/* Processors of AMD's kind have no form with 64 bits. */
static bool far_is_wide(const isa_insn *in)
{
    unsigned a, b, c, d;
    return has_rex_w(in) && __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx;
}

/* Address, then selector; a call pushes its own first. */
static far_end far_transfer(run_thread *t, const isa_insn *in)
{
    weave_context *c = &t->ctx;
    unsigned kind = in->raw[in->modrm_at] >> 3 & 7, width = far_is_wide(in) ? 8 : 4;
    isa_mem mem[ISA_MAX_MEM] = {0};
    uint64_t pc = 0, sp = run_sp(c) - 2 * width, back[2] = {c->pc + in->len, code_selector()};
    uint32_t narrow[2] = {(uint32_t)back[0], (uint32_t)back[1]};
    uint16_t selector;
    if ((kind != GROUP_CALL && kind != GROUP_JUMP) || memchr(in->raw, 0x66, in->opcode_at)) return FAR_LEAVES;
    int count = isa_x86_64.memory(in, mem), i = 0;
    while (i < count && mem[i].bits & ISA_MEM_IMPLICIT) i++;
    if (i == count) return FAR_LEAVES;
    uint64_t at = run_memory_address(c, &mem[i]);
    if (!access_memory(t, &pc, at, width, false) || !access_memory(t, &selector, at + width, 2, false)) return FAR_TOLD;
    far_end end = look_at_selector(t, selector);
    if (end != FAR_DONE) return end;
    if (kind == GROUP_CALL) {
        if (!access_memory(t, width == 8 ? (void *)back : narrow, sp, 2 * width, true)) return FAR_TOLD;
        run_set_sp(c, sp);
    }
    c->pc = pc;
    return FAR_DONE;
}

/* popf, where it sets the flag that makes the program step itself. */
static bool load_flags(run_thread *t, const isa_insn *in)
{
    weave_context *c = &t->ctx;
    bool is_short = memchr(in->raw, 0x66, in->opcode_at) && !has_rex_w(in);
    uint64_t width = is_short ? 2 : 8, value = 0, changed = is_short ? USER_FLAGS & 0xffff : USER_FLAGS;
    if (!access_memory(t, &value, run_sp(c), width, false)) return true;
    c->flags = (c->flags & ~changed) | (value & changed);
    run_set_sp(c, run_sp(c) + width);
    c->pc += in->len;
    return true;
}

/* --- the whole --- */

static bool is_far_return(unsigned op) { return op == OP_IRET || op == OP_RETF || op == OP_RETF_IMM; }

static far_end far(run_thread *t, const isa_insn *in)
{
    unsigned op = opcode(in);
    if (in->flow != ISA_FLOW_FAR) return FAR_LEAVES;
    if (is_far_return(op)) return far_return(t, in);
    return x86_is_one_byte(in, OP_GROUP) ? far_transfer(t, in) : FAR_LEAVES;
}

static void refuse(run_thread *t, const isa_insn *in)
{
    static uint8_t said[256];
    enum { RSM = 0xaa }; /* is never allowed: natively too it is none */
    char text[96] = "?";
    isa_x86_64.format(in, text, sizeof text);
    bool known = opcode(in) == RSM && in->opcode_at;
    if (!known && first_of(&said[opcode(in) == 0x0f ? in->raw[in->opcode_at + 1] : opcode(in)]))
        run_say("at %#lx: '%s' leaves 64-bit mode, which cannot be followed; the program gets SIGILL", (long)t->ctx.pc,
                text);
    run_signal_raise(t, SIGILL, ILL_ILLOPN, t->ctx.pc);
    t->leave = RUN_LEAVE_START; /* it has not been done */
}

void run_special(run_thread *t)
{
    uint8_t bytes[ISA_MAX_INSN];
    isa_insn in = {0};
    size_t left = run_safe_copy(bytes, (const void *)t->ctx.pc, sizeof bytes);
    isa_x86_64.decode(bytes, sizeof bytes - left, t->ctx.pc, &in);
    if (x86_is_int80(&in)) int80(t, in.len);
    else if (x86_is_popf(&in) && load_flags(t, &in)) return;
    else if (far(t, &in) == FAR_LEAVES) refuse(t, &in);
}

void run_segments_look(run_thread *t)
{
    if (look_at_selector(t, t->returns_to) != FAR_LEAVES) return;
    run_say("a handler returns to 32-bit code, which cannot be followed; the program gets SIGILL");
    run_signal_raise(t, SIGILL, ILL_ILLOPN, t->ctx.pc);
}
