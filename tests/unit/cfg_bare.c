/* The whole-program analysis on programs that say nothing of their procedures: static, no symbols, no unwind
 * table. */
#include "image_sample.h"

#include "cfg/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct sample {
    image *image;
    cfg_program *program;
} sample;

static sample analyse_built(const char *name, const char *source, const char *flags)
{
    const char *path = sample_build("gcc", name, "s", source, flags);
    sample s = {.image = sample_open(path)};
    inl_error e;
    if (cfg_program_analyse(s.image, NULL, &s.program, &e) != INL_OK) fail_msg("%s", e.text);
    return s;
}

static sample analyse(const char *name, const char *source)
{
    return analyse_built(name, source, "-nostdlib -static -no-pie -s -Wl,--build-id=none");
}

static void drop(sample *s)
{
    cfg_program_free(s->program);
    image_close(s->image);
}

/* No branch that is known leads into what is known, but between its instructions' starts. */
static void check_edges(const sample *s)
{
    const cfg_program *p = s->program;
    for (uint32_t i = 0; i < p->edge_count; i++) {
        if (p->edges[i].to != CFG_NONE) continue;
        assert_int_equal(cfg_block_covering(p, p->edges[i].target), CFG_NONE);
    }
}

static const cfg_proc *proc_at(const sample *s, uint64_t addr)
{
    uint32_t i = cfg_proc_covering(s->program, addr);
    assert_int_not_equal(i, CFG_NONE);
    assert_int_equal(s->program->procs[i].addr, addr);
    return &s->program->procs[i];
}

/* `last` is asked for by a jump while nothing is known of it, then found by way of `inner`; and at the same
 * time a procedure begins in front of both. */
static const char found_late_s[] =
    ".globl _start\n.text\n_start: mov $60,%eax; xor %edi,%edi; syscall; hlt\n.p2align 4\n"
    "asks: call front; jmp last\n.p2align 4\n"
    "leads: test %edi,%edi; je inner; ret\n.p2align 4\n"
    "front: nop; inner: mov $1,%eax; last: ret\n"
    ".data\n.quad asks, leads\n.section .note.GNU-stack,\"\",@progbits\n";

static void test_found_late(void **state)
{
    (void)state;
    sample s = analyse("late", found_late_s);
    check_edges(&s);
    for (uint32_t i = 0; i < s.program->proc_count; i++) assert_int_equal(s.program->procs[i].status, CFG_PROC_WHOLE);
    drop(&s);
}

/* What `leads` goes to is its own, until `front` is called, rounds later: then the way back in it is that one's. */
static const char split_late_s[] =
    ".globl _start\n.text\n_start: call leads; call one; mov $60,%eax; xor %edi,%edi; syscall; hlt\n.balign 64,0\n"
    "leads: test %edi,%edi; je inner; ret\n.p2align 4\nfront: nop; inner: mov $1,%eax; ret\n.balign 64,0\n"
    "one: call two; ret\n.p2align 4\ntwo: call asks; ret\n.balign 64,0\nasks: call front; mov $2,%eax; ret\n"
    ".section .note.GNU-stack,\"\",@progbits\n";

static void test_split_late(void **state)
{
    (void)state;
    sample s = analyse("split", split_late_s);
    check_edges(&s);
    assert_int_equal(proc_at(&s, image_entry(s.image) + 192)->block_count, 2);
    drop(&s);
}

/* Hand-written programs end with the call that ends them, and nothing behind it. One that only reads runs on. */
static const char last_s[] =
    ".globl _start\n.text\nreads: xor %eax,%eax; xor %edi,%edi; syscall; ret\n.p2align 4\n"
    "_start: call reads; mov $60,%eax; xor %edi,%edi; syscall\n.section .note.GNU-stack,\"\",@progbits\n";

static void test_last_call(void **state)
{
    (void)state;
    sample s = analyse("last", last_s);
    uint64_t start = image_entry(s.image);
    check_edges(&s);
    assert_int_equal(proc_at(&s, start)->status, CFG_PROC_WHOLE);
    assert_int_equal(proc_at(&s, start - 16)->status, CFG_PROC_WHOLE);
    assert_int_equal(proc_at(&s, start)->block_count, 2);
    assert_int_equal(proc_at(&s, start - 16)->block_count, 2);
    drop(&s);
}

/* Procedures of one call depth each, filled up with zeros; one does not come back, one has instructions
 * that overlap. */
static const char called_s[] =
    ".globl _start\n.text\n_start: call first; mov $60,%eax; xor %edi,%edi; syscall; hlt\n.balign 16,0\n"
    "first: push %rbp; mov %rsp,%rbp; call second; pop %rbp; ret\n.balign 16,0\n"
    "second: push %rbp; mov %rsp,%rbp; call split; call ends\n.balign 16,0\n" /* it does not come back */
    "third: push %rbp; mov %rsp,%rbp; pop %rbp; ret\n.balign 16,0\n"
    "split: test %edi,%edi; je in+1; in: mov $0xc3909090,%eax; ret\n.balign 16,0\n"
    "ends: mov $60,%eax; syscall; hlt\n.balign 16,0\n"
    "alone: push %rbp; mov %rsp,%rbp; call third; pop %rbp; ret\n"
    ".section .note.GNU-stack,\"\",@progbits\n";

static void test_called(void **state)
{
    (void)state;
    sample s = analyse("called", called_s);
    uint64_t start = image_entry(s.image);
    unsigned whole = 0, overlap = 0, guessed = 0;
    check_edges(&s);
    for (uint32_t i = 0; i < s.program->proc_count; i++) {
        const cfg_proc *p = &s.program->procs[i];
        whole += p->status == CFG_PROC_WHOLE;
        overlap += p->reason && strcmp(p->reason, "instructions overlap") == 0;
        guessed += (p->flags & CFG_PROC_GUESSED) != 0;
    }
    assert_int_equal(s.program->proc_count, 7);
    assert_int_equal(overlap, 1);
    assert_int_equal(guessed, 2); /* nobody calls them but each other */
    assert_int_equal(whole, 4);
    assert_int_equal(proc_at(&s, start + 32)->status, CFG_PROC_WHOLE);
    drop(&s);
}

/* A number leads into an instruction that is not known yet; then it is found, and later that it is not `middle`'s. */
static const char late_overlap_s[] =
    ".globl _start\n.text\n_start: mov $60,%eax; xor %edi,%edi; syscall; hlt\n.balign 16,0\n"
    "middle: test %edi,%edi; jne inner; ret\n.balign 16,0\n"
    "front: xor %eax,%eax; inner: xor %ecx,%ecx; within: mov (%rsp),%rax; ret\n.balign 16,0\n"
    "first: call middle; call second; ret\n.balign 16,0\nsecond: call third; ret\n.balign 16,0\n"
    "third: call front; ret\n.data\n.quad within + 2, first\n.section .note.GNU-stack,\"\",@progbits\n";

static void test_late_overlap(void **state)
{
    (void)state;
    sample s = analyse("overlap", late_overlap_s);
    const cfg_proc *front = proc_at(&s, image_entry(s.image) + 32);
    assert_non_null(front->reason);
    assert_string_equal(front->reason, "instructions overlap");
    assert_int_equal(proc_at(&s, front->addr + 32)->status, CFG_PROC_WHOLE);
    drop(&s);
}

/* The table's register holds numbers elsewhere, on ways that come back. */
static const char reused_s[] =
    ".globl _start\n.text\n_start: lea table(%rip),%r12; again: call choose; cmp $3,%eax; ja numbers\n"
    "movslq (%r12,%rax,4),%rax; add %r12,%rax; jmp *%rax\n"
    "one: mov $1,%ebx; jmp again\ntwo: mov $2,%ebx; jmp again\n"
    "three: mov $60,%eax; syscall; hlt\n"
    "numbers: xor %ebp,%ebp; mov $5,%r13d; lea 2(%r13),%r12d; test %ebp,%ebp; jne again; ret\n"
    ".p2align 4\nchoose: mov $3,%eax; ret\n"
    ".section .rodata\n.p2align 2\ntable: .long one-table, two-table, three-table, one-table\n"
    ".section .note.GNU-stack,\"\",@progbits\n";

static void test_reused_register(void **state)
{
    (void)state;
    sample s = analyse("reused", reused_s);
    assert_int_equal(s.program->table_count, 1);
    assert_int_equal(s.program->tables[0].count, 4);
    assert_true(s.program->tables[0].exact);
    check_edges(&s);
    drop(&s);
}

/* A library's one name that says no size, in front of what only data leads to: whose procedures are others. */
static const char nameless_s[] =
    ".text\n.globl named\n.p2align 4\nnamed: jmp *(%rdi)\n.p2align 4\none: mov $1,%eax; ret\n.p2align 4\n"
    "two: lea 1(%rdi,%rdi),%rax; lea 0f(%rip),%rdx; add %rdx,%rax; jmp *%rax\n0: nop; ret\n"
    ".p2align 4\nthree: mov $3,%eax; ret\n"
    ".section .data.rel.local,\"aw\"\n.quad one, two, three\n.section .note.GNU-stack,\"\",@progbits\n";

static void test_nameless(void **state)
{
    (void)state;
    sample s = analyse_built("nameless", nameless_s, "-shared -nostdlib -s");
    uint64_t addr, size;
    assert_true(image_symbol(s.image, "named", &addr, &size));
    assert_int_equal(proc_at(&s, addr)->status, CFG_PROC_WHOLE);
    assert_int_equal(proc_at(&s, addr + 16)->status, CFG_PROC_WHOLE);
    assert_int_not_equal(proc_at(&s, addr + 32)->status, CFG_PROC_WHOLE);
    assert_int_equal(s.program->procs[s.program->proc_count - 1].status, CFG_PROC_WHOLE);
    drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nameless),     cmocka_unit_test(test_found_late), cmocka_unit_test(test_split_late),
        cmocka_unit_test(test_last_call),    cmocka_unit_test(test_called),     cmocka_unit_test(test_reused_register),
        cmocka_unit_test(test_late_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
