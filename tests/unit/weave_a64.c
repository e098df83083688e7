/* See the header. The ways in and out are written with the emitter: every register has a value of the program's, so
 * that only code which knows the addresses by heart can load and store them. */
#include "weave_a64.h"

#include "isa/aarch64/move.h"
#include "weave/aarch64/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { PAGE = 4096, ROOM = 1 << 20, EXIT_BYTES = 16, TOOL_STACK = 1 << 18, X0 = 0, X1 = 1 };

harness bench;
static machine now; /* what is loaded and stored */
static uint64_t own_tls;
static uint8_t *entry, *common, *exits, *out_of_line;
static uint32_t random_state = 1;

/* Goes to x0 with what the ABI has kept; weave_test_return comes back. */
__asm__(".text\n.p2align 2\n.globl weave_test_call, weave_test_return\nweave_test_call:\n"
        " stp x29, x30, [sp, -160]!\n stp x19, x20, [sp, 16]\n stp x21, x22, [sp, 32]\n stp x23, x24, [sp, 48]\n"
        " stp x25, x26, [sp, 64]\n stp x27, x28, [sp, 80]\n stp d8, d9, [sp, 96]\n stp d10, d11, [sp, 112]\n"
        " stp d12, d13, [sp, 128]\n stp d14, d15, [sp, 144]\n"
        " adrp x9, test_sp\n mov x10, sp\n str x10, [x9, :lo12:test_sp]\n br x0\n"
        "weave_test_return:\n adrp x9, test_sp\n ldr x9, [x9, :lo12:test_sp]\n mov sp, x9\n"
        " ldp x19, x20, [sp, 16]\n ldp x21, x22, [sp, 32]\n ldp x23, x24, [sp, 48]\n ldp x25, x26, [sp, 64]\n"
        " ldp x27, x28, [sp, 80]\n ldp d8, d9, [sp, 96]\n ldp d10, d11, [sp, 112]\n"
        " ldp d12, d13, [sp, 128]\n ldp d14, d15, [sp, 144]\n ldp x29, x30, [sp], 160\n ret\n"
        ".data\n.balign 8\ntest_sp: .quad 0\n.text\n");
void weave_test_call(const void *code);
void weave_test_return(void);

uint32_t harness_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

void harness_seed(uint32_t seed) { random_state = seed * 2654435761u | 1; }

uint64_t harness_exit(unsigned i) { return (uint64_t)(uintptr_t)exits + (uint64_t)EXIT_BYTES * i; }

static isa_code window(uint8_t *at, size_t size)
{
    return (isa_code){.write = at, .exec = (uintptr_t)at, .size = size};
}

/* New code is to be seen. C libraries copy by long vectors where there are some, and QEMU 7.2, as a machine, then
 * forgets its translation of the first byte's instruction only: so each word is stored once more by itself. */
static void publish(uint8_t *code, size_t size)
{
    volatile uint32_t *words = (volatile uint32_t *)(void *)code;
    for (size_t i = 0; i < size / 4; i++) words[i] = words[i];
    __builtin___clear_cache((char *)code, (char *)code + size);
}

#define FIELD(name) ((int32_t)offsetof(machine, name))

static void write_entry(const void *code)
{
    isa_code c = window(entry, PAGE);
    unsigned m = A64_LR;
    a64_mov_ri(&c, m, (uintptr_t)&now);
    a64_add_ri(&c, X0, m, FIELD(vec));
    for (unsigned v = 0; v < 32; v++) a64_load_vec(&c, 16, v, a64_at(X0, 16 * (int)v));
    a64_load(&c, 8, X0, a64_at(m, FIELD(flags)));
    a64_write_flags(&c, X0);
    a64_load(&c, 8, X0, a64_at(m, FIELD(fpcr)));
    a64_write_fp_control(&c, X0);
    a64_load(&c, 8, X0, a64_at(m, 8 * A64_SP));
    a64_mov_rr(&c, 8, A64_SP, X0);
    for (unsigned r = 0; r < 31; r++)
        if (r != m) a64_load(&c, 8, r, a64_at(m, 8 * (int)r));
    a64_load(&c, 8, m, a64_at(m, 8 * (int)m));
    a64_b(&c, (uintptr_t)code);
    assert_false(c.full || c.unreachable);
    publish(entry, PAGE);
}

/* x30 is the number of the exit, its own value is on the stack. */
static void write_common(void)
{
    isa_code c = window(common, PAGE);
    unsigned m = X0;
    a64_store(&c, 8, a64_at(A64_SP, 8), m);
    a64_mov_ri(&c, m, (uintptr_t)&now);
    a64_store(&c, 8, a64_at(m, FIELD(exit)), A64_LR);
    for (unsigned r = 1; r < 30; r++) a64_store(&c, 8, a64_at(m, 8 * (int)r), r);
    a64_load(&c, 8, X1, a64_at(A64_SP, 8));
    a64_store(&c, 8, a64_at(m, 0), X1);
    a64_load(&c, 8, X1, a64_post(A64_SP, 16));
    a64_store(&c, 8, a64_at(m, 8 * A64_LR), X1);
    a64_mov_rr(&c, 8, X1, A64_SP);
    a64_store(&c, 8, a64_at(m, 8 * A64_SP), X1);
    a64_read_flags(&c, X1);
    a64_store(&c, 8, a64_at(m, FIELD(flags)), X1);
    a64_read_fp_control(&c, X1);
    a64_store(&c, 8, a64_at(m, FIELD(fpcr)), X1);
    a64_write_fp_control(&c, A64_ZR);
    a64_read_tls(&c, X1);
    a64_store(&c, 8, a64_at(m, FIELD(tls)), X1);
    a64_mov_ri(&c, X1, own_tls);
    a64_write_tls(&c, X1);
    a64_add_ri(&c, X0, m, FIELD(vec));
    for (unsigned v = 0; v < 32; v++) a64_store_vec(&c, 16, a64_at(X0, 16 * (int)v), v);
    a64_mov_ri(&c, X0, (uintptr_t)weave_test_return);
    a64_br(&c, X0);
    assert_false(c.full || c.unreachable);
}

static void write_exits(void)
{
    for (unsigned i = 0; i < EXITS; i++) {
        isa_code c = window(exits + EXIT_BYTES * i, EXIT_BYTES);
        a64_store(&c, 8, a64_pre(A64_SP, -16), A64_LR);
        a64_mov_ri(&c, A64_LR, i);
        a64_b(&c, (uintptr_t)common);
        assert_false(c.full || c.unreachable);
    }
}

static void *map(size_t size, int more)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE | more, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool open_frame(void)
{
    weave_frame *f = map(WEAVE_BLOCK_SIZE, 0);
    uint8_t *stack = map(TOOL_STACK, 0);
    if (!f || !stack) return false;
    f->self = f;
    f->thread_number = 7;
    f->tool_stack = (uintptr_t)stack + TOOL_STACK;
    f->vector_area = map(WEAVE_VECTOR_ROOM, 0);
    __asm__("mrs %0, tpidr_el0" : "=r"(own_tls));
    f->tool_tls_base = own_tls;
    *(weave_frame **)(own_tls + WEAVE_FRAME_WORD) = f;
    weave_vectors_choose(f);
    bench.frame = f;
    bench.counters = (uint64_t *)((uint8_t *)f + WEAVE_COUNTERS);
    return f->vector_area != NULL;
}

bool harness_open(void)
{
    uint8_t *area = map(4 * ROOM, PROT_EXEC);
    if (!area || !open_frame()) return false;
    entry = area, common = area + PAGE, exits = area + 2 * PAGE;
    bench.app = area + 4 * PAGE;
    bench.data = area + 8 * PAGE;
    bench.stack = area + 10 * PAGE;
    bench.woven = area + 2 * ROOM; /* out of reach of short distances */
    out_of_line = area + 3 * ROOM;
    write_common();
    write_exits();
    publish(area, 4 * PAGE);
    return true;
}

void harness_random_state(machine *m)
{
    memset(m, 0, sizeof *m);
    for (unsigned r = 0; r < 31; r++) {
        m->gpr[r] = (uint64_t)harness_random() << 32 | harness_random();
        if (harness_random() % 4 == 0) m->gpr[r] = harness_random() % 3;
    }
    m->gpr[A64_SP] = (uintptr_t)bench.stack + STACK_SIZE / 2;
    m->flags = harness_random() & A64_NZCV;
    for (unsigned v = 0; v < 32; v++)
        for (unsigned i = 0; i < 16; i++) m->vec[v][i] = (uint8_t)harness_random();
    m->fpcr = 1u << 22; /* towards plus infinity */
}

/* --- programs --- */

isa_code harness_program(void) { return window(bench.app, PAGE / 2); }

weave_run *harness_run(const isa_code *c)
{
    assert_false(c->full || c->unreachable);
    inl_arena_reset(&bench.arena);
    weave_run *run = inl_arena_alloc(&bench.arena, sizeof *run);
    run->isa = &isa_aarch64;
    run->arena = &bench.arena;
    run->insns = inl_arena_alloc(&bench.arena, (c->at / 4 + 1) * sizeof *run->insns);
    run->blocks = inl_arena_alloc(&bench.arena, (c->at / 4 + 1) * sizeof *run->blocks);
    bool fresh = true;
    for (size_t at = 0; at < c->at; at += 4) {
        weave_insn *n = &run->insns[run->insn_count];
        assert_int_equal(isa_aarch64.decode(c->write + at, 4, c->exec + at, &n->in), ISA_OK);
        if (fresh) run->blocks[run->block_count++] = (weave_block){.run = run, .head = true, .first = run->insn_count};
        n->run = run;
        n->index = run->insn_count++;
        n->block = run->block_count - 1;
        run->blocks[n->block].count++;
        fresh = n->in.flow != ISA_FLOW_NEXT;
    }
    return run;
}

static void go(machine *m, const void *code)
{
    write_entry(code);
    now = *m;
    weave_test_call(entry);
    *m = now;
}

void harness_native(const weave_run *run, uint32_t count, machine *m)
{
    uint8_t *end = bench.app + 4 * (count < run->insn_count ? count : run->insn_count), kept[4];
    isa_code c = window(end, 4);
    memcpy(kept, end, 4);
    a64_b(&c, harness_exit(END));
    publish(bench.app, PAGE);
    go(m, bench.app);
    memcpy(end, kept, 4);
}

/* --- the engine --- */

static bool exit_to(void *arg, isa_code *c, uint64_t target)
{
    (void)arg;
    bool is_end = target - (uintptr_t)bench.app < PAGE;
    a64_b(c, is_end ? harness_exit(END) : target);
    return true;
}

static bool lower(void *arg, isa_code *c, const weave_run *run, uint32_t i)
{
    const isa_insn *in = &run->insns[i].in;
    uint8_t out[16];
    unsigned n;
    switch (in->flow) {
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG:
        n = a64_move_branch(in, isa_here(c), in->target, out);
        isa_put(c, out, n);
        return n != 0;
    case ISA_FLOW_JUMP: return exit_to(arg, c, in->target);
    case ISA_FLOW_CALL: a64_mov_ri(c, A64_LR, in->addr + 4); return exit_to(arg, c, in->target);
    case ISA_FLOW_CALL_IND: return false;
    default: isa_put(c, in->raw, 4); return true;
    }
}

inl_status harness_weave(const weave_run *run, const weave_options *options, inl_error *e)
{
    bench.code = window(bench.woven, ROOM);
    bench.cold = window(out_of_line, ROOM);
    weave_engine engine = {.lower = lower, .exit_to = exit_to, .cold = bench.apart ? &bench.cold : NULL};
    return weave_compile(run, &engine, options, &bench.code, &bench.out, e);
}

static bool are_known(const isa_code *c)
{
    isa_insn in;
    for (size_t at = 0; at < c->at; at += 4)
        if (isa_aarch64.decode(c->write + at, c->at - at, c->exec + at, &in) != ISA_OK) return false;
    return true;
}

bool harness_is_valid(void) { return are_known(&bench.code) && (!bench.apart || are_known(&bench.cold)); }

void harness_woven(machine *m)
{
    publish(bench.woven, bench.code.at);
    publish(out_of_line, bench.cold.at);
    go(m, bench.woven);
}

/* --- both, compared --- */

void harness_fill_memory(void)
{
    uint32_t seed = 1;
    uint8_t *areas[] = {bench.data, bench.stack};
    for (unsigned a = 0; a < 2; a++)
        for (unsigned i = 0; i < DATA_SIZE; i += 4) {
            seed = seed * 1664525 + 1013904223;
            memcpy(areas[a] + i, &seed, 4);
        }
}

static void save_memory(uint8_t out[DATA_SIZE + STACK_SIZE])
{
    memcpy(out, bench.data, DATA_SIZE);
    memcpy(out + DATA_SIZE, bench.stack, STACK_SIZE);
}

void harness_both(const weave_run *run, const weave_options *options, const machine *start, machine *native,
                  machine *woven)
{
    inl_error e;
    if (harness_weave(run, options, &e)) fail_msg("%s", e.text);
    assert_true(harness_is_valid());
    harness_fill_memory();
    *native = *start;
    harness_native(run, run->insn_count, native);
    save_memory(bench.native_memory);
    harness_fill_memory();
    *woven = *start;
    harness_woven(woven);
    save_memory(bench.woven_memory);
}

static void complain(const weave_run *run, const char *what, uint64_t woven, uint64_t native)
{
    char text[128];
    isa_insn in;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        isa_aarch64.format(&run->insns[i].in, text, sizeof text);
        fprintf(stderr, "%3u  %s\n", i, text);
    }
    for (size_t at = 0; at < bench.code.at && getenv("WEAVE_DUMP"); at += 4) {
        isa_aarch64.decode(bench.code.write + at, 4, bench.code.exec + at, &in);
        isa_aarch64.format(&in, text, sizeof text);
        fprintf(stderr, "     %4zx  %s\n", at, text);
    }
    fail_msg("%s is %#llx, natively %#llx", what, (unsigned long long)woven, (unsigned long long)native);
}

/* What has been below the stack pointer is nobody's. */
void harness_same(const weave_run *run, const machine *native, const machine *woven)
{
    size_t from = DATA_SIZE + STACK_SIZE / 2;
    if (native->exit != woven->exit) complain(run, "the exit", woven->exit, native->exit);
    for (unsigned r = 0; r < 32; r++)
        if (native->gpr[r] != woven->gpr[r]) complain(run, isa_aarch64.reg_name(r), woven->gpr[r], native->gpr[r]);
    if ((native->flags ^ woven->flags) & A64_NZCV) complain(run, "nzcv", woven->flags, native->flags);
    if (native->fpcr != woven->fpcr) complain(run, "fpcr", woven->fpcr, native->fpcr);
    if (native->tls != woven->tls) complain(run, "tpidr_el0", woven->tls, native->tls);
    for (unsigned v = 0; v < 32; v++)
        if (memcmp(native->vec[v], woven->vec[v], 16)) complain(run, "a vector register", v, v);
    for (size_t i = 0; i < sizeof bench.native_memory; i++)
        if ((i < DATA_SIZE || i >= from) && bench.native_memory[i] != bench.woven_memory[i])
            complain(run, "memory", i, bench.native_memory[i]);
}
