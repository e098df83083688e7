/* The whole-program analysis on small programs whose answers are known. */
#include "image_sample.h"

#include "cfg/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char switches_c[] =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "volatile int sink;\n"
    "__attribute__((noinline)) void pick(unsigned n) {\n"
    "    switch (n) {\n"
    "    case 0: sink = 7; break;\n"
    "    case 1: sink += 2; puts(\"a\"); break;\n"
    "    case 2: sink ^= 9; break;\n"
    "    case 3: puts(\"b\"); break;\n"
    "    case 4: sink *= 3; break;\n"
    "    case 5: sink = sink / 3; break;\n"
    "    case 6: puts(\"c\"); sink--; break;\n"
    "    case 7: sink <<= 2; break;\n"
    "    default: sink = -1;\n"
    "    }\n"
    "}\n"
    "__attribute__((noinline)) int letters(const char *s) {\n" /* the table's address is hoisted */
    "    int n = 0;\n"
    "    for (; *s; s++) switch (*s) {\n"
    "    case 'a': sink += 1; n += 3; break;\n"
    "    case 'b': n ^= sink; break;\n"
    "    case 'c': sink = n; puts(s); break;\n"
    "    case 'd': n -= 8; break;\n"
    "    case 'e': n *= sink; break;\n"
    "    case 'f': n = n / 5 + sink; break;\n"
    "    }\n"
    "    return n;\n"
    "}\n"
    "__attribute__((noinline)) int masked(unsigned n) {\n"
    "    switch (n & 7) {\n"
    "    case 0: return sink + 1; case 1: sink = 4; return 2; case 2: puts(\"x\"); return 5;\n"
    "    case 3: return sink * 3; case 4: sink = 1; return 9; case 5: puts(\"y\"); return 6;\n"
    "    case 6: return sink / 7; case 7: sink = 2; return 1;\n"
    "    }\n"
    "    return 0;\n"
    "}\n"
    "__attribute__((noinline)) int engine(const unsigned char *p) {\n"
    "    static const void *const labels[] = {&&stop, &&add, &&sub, &&twice};\n"
    "    int n = 1;\n"
    "    goto *labels[*p & 3];\n"
    "add: n += 5; goto *labels[*++p & 3];\n"
    "sub: n -= sink; goto *labels[*++p & 3];\n"
    "twice: n *= 2; goto *labels[*++p & 3];\n"
    "stop: return n;\n"
    "}\n"
    "__attribute__((noinline)) void fail(const char *s) { puts(s); exit(3); }\n"
    "__attribute__((noinline)) int tail(int (*f)(int), int n) { if (n < 0) fail(\"n\"); return f(n + 1); }\n"
    "__attribute__((noinline)) int total(int n) { int t = 0; for (int i = 0; i < n; i++) t += sink; return t; }\n"
    "int main(int argc, char **argv) {\n"
    "    pick(argc); letters(argv[0]); masked(argc); engine((unsigned char *)argv[0]);\n"
    "    return tail(abs, argc) + total(argc);\n"
    "}\n";

typedef struct sample {
    image *image;
    cfg_program *program;
} sample;

static sample analyse(const char *path)
{
    sample s = {.image = sample_open(path)};
    inl_error e;
    if (cfg_program_analyse(s.image, NULL, &s.program, &e) != INL_OK) fail_msg("%s", e.text);
    return s;
}

static void drop(sample *s)
{
    cfg_program_free(s->program);
    image_close(s->image);
}

static const cfg_proc *proc_named(const sample *s, const char *name)
{
    const image_proc *p = image_proc_named(s->image, name);
    if (!p) fail_msg("no procedure %s", name);
    uint32_t i = cfg_proc_covering(s->program, p->addr);
    assert_int_not_equal(i, CFG_NONE);
    assert_int_equal(s->program->procs[i].addr, p->addr);
    return &s->program->procs[i];
}

static const cfg_proc *whole_proc(const sample *s, const char *name)
{
    const cfg_proc *p = proc_named(s, name);
    if (p->status != CFG_PROC_WHOLE) fail_msg("%s is not whole: %s", name, p->reason);
    return p;
}

static unsigned count_blocks(const sample *s, const cfg_proc *p, uint32_t flags)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < p->block_count; i++) n += (s->program->blocks[p->first_block + i].flags & flags) == flags;
    return n;
}

static const cfg_table *table_of(const sample *s, const cfg_proc *p)
{
    const cfg_table *found = NULL;
    for (uint32_t i = 0; i < s->program->table_count; i++) {
        const cfg_table *t = &s->program->tables[i];
        if (t->jump >= p->addr && t->jump - p->addr < p->size) {
            assert_null(found);
            found = t;
        }
    }
    if (!found) fail_msg("%s has no table", p->name);
    return found;
}

static void check_switch(const sample *s, const char *name, unsigned least, unsigned most)
{
    const cfg_proc *p = whole_proc(s, name);
    const cfg_table *t = table_of(s, p);
    if (t->count < least || t->count > most) fail_msg("%s: %u entries", name, t->count);
    assert_true(t->exact);
    const cfg_block *end = &s->program->blocks[t->block];
    assert_true(t->jump >= end->addr && t->jump < end->addr + end->size);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t b = cfg_block_at(s->program, cfg_table_target(s->program, t, i));
        assert_int_not_equal(b, CFG_NONE);
        assert_true(s->program->blocks[b].flags & CFG_BLOCK_TABLE);
    }
}

static void check_engine(const sample *s)
{
    const cfg_proc *p = whole_proc(s, "engine");
    assert_true(count_blocks(s, p, CFG_BLOCK_ADDRESS_TAKEN) + count_blocks(s, p, CFG_BLOCK_TABLE) >= 4);
    assert_int_equal(count_blocks(s, p, CFG_BLOCK_UNRESOLVED), 0);
}

static void check_program(const char *compiler, const char *flags)
{
    sample s = analyse(sample_build(compiler, "switches", "c", switches_c, flags));
    check_switch(&s, "pick", 8, 8);
    check_switch(&s, "letters", 6, 7);
    check_switch(&s, "masked", 7, 8); /* one value may be told apart beforehand */
    check_engine(&s);
    assert_true(whole_proc(&s, "fail")->flags & CFG_PROC_NO_RETURN);
    assert_false(whole_proc(&s, "main")->flags & CFG_PROC_NO_RETURN);
    const cfg_proc *tail = whole_proc(&s, "tail");
    assert_int_equal(count_blocks(&s, tail, CFG_BLOCK_CALL | CFG_BLOCK_NO_RETURN), 1);
    assert_true(count_blocks(&s, tail, CFG_BLOCK_TAIL_IND) + count_blocks(&s, tail, CFG_BLOCK_RETURN) >= 1);
    assert_true(count_blocks(&s, whole_proc(&s, "total"), CFG_BLOCK_LOOP_HEAD) >= 1);
    drop(&s);
}

static void test_gcc(void **state)
{
    (void)state;
    check_program("gcc", "-O0 -fjump-tables"); /* newer ones have none there unless asked */
    check_program("gcc", "-O1 -fno-pie -no-pie");
    check_program("gcc", "-O2");
    check_program("gcc", "-O3 -fno-pie -no-pie -fcf-protection=none");
    check_program("gcc", "-Os");
}

static void test_clang(void **state)
{
    (void)state;
    if (!sample_shell("clang --version >/dev/null 2>&1")) skip();
    check_program("clang", "-O0");
    check_program("clang", "-O2 -fno-pie -no-pie");
    check_program("clang", "-O2 -fPIE -pie");
}

static void test_indirect_tail_call(void **state)
{
    (void)state;
    sample s = analyse(sample_build("gcc", "tail", "c", switches_c, "-O2"));
    const cfg_proc *p = whole_proc(&s, "tail");
    assert_int_equal(count_blocks(&s, p, CFG_BLOCK_TAIL_IND), 1);
    assert_int_equal(count_blocks(&s, p, CFG_BLOCK_RETURN), 0);
    drop(&s);
}

static void test_exceptions(void **state)
{
    static const char source[] =
        "#include <stdio.h>\n#include <string>\n"
        "__attribute__((noinline)) int risky(int n) { if (n > 3) throw n; return n; }\n"
        "extern \"C\" __attribute__((noinline)) int guarded(int n) {\n"
        "    std::string s = \"long enough to be on the heap, really\";\n"
        "    try { return risky(n) + (int)s.size(); } catch (int e) { puts(s.c_str()); return e; }\n"
        "}\n"
        "int main(int argc, char **) { return guarded(argc); }\n";
    (void)state;
    sample s = analyse(sample_build("g++", "exceptions", "cc", source, "-O2"));
    const cfg_proc *p = whole_proc(&s, "guarded");
    unsigned pads = count_blocks(&s, p, CFG_BLOCK_LANDING);
    for (uint32_t i = 0; i < s.program->proc_count; i++) /* gcc puts them into a part of its own */
        if (s.program->procs[i].name && strcmp(s.program->procs[i].name, "guarded.cold") == 0) {
            assert_int_equal(s.program->procs[i].status, CFG_PROC_WHOLE);
            pads += count_blocks(&s, &s.program->procs[i], CFG_BLOCK_LANDING);
        }
    assert_true(pads >= 2);
    drop(&s);
}

static unsigned whole_share(const sample *s)
{
    uint64_t all = 0, whole = 0;
    for (uint32_t i = 0; i < s->program->proc_count; i++) {
        const cfg_proc *p = &s->program->procs[i];
        all += p->size;
        if (p->status == CFG_PROC_WHOLE) whole += p->size;
    }
    return all ? (unsigned)(100 * whole / all) : 0;
}

static void check_unwind_ranges(const sample *s)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(s->image, &r), found = 0;
    for (size_t i = 0; i < count; i++) found += cfg_proc_covering(s->program, r[i].addr) != CFG_NONE;
    assert_true(found * 100 >= count * 99);
}

static void test_static_and_stripped(void **state)
{
    static const char *const flags[] = {"-O2 -static", "-O2 -static-pie", "-O2 -static -s", "-O2 -s"};
    (void)state;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        sample s = analyse(sample_build("gcc", "static", "c", switches_c, flags[i]));
        assert_true(whole_share(&s) >= 95);
        check_unwind_ranges(&s);
        drop(&s);
    }
}

/* What compilers do not write. */
static const char odd_s[] =
    ".text\n"
    ".globl main\n.type main,@function\nmain: call skips; call splits; call jumps; call constants; xor %eax,%eax; ret\n"
    ".size main,.-main\n"
    ".type skips,@function\nskips: mov $0,%eax; cmpl $0,%fs:0x18; je 1f; lock; 1: cmpxchg %ecx,-8(%rsp); ret\n"
    ".size skips,.-skips\n"
    /* into an instruction: the immediate is an instruction too */
    ".type splits,@function\nsplits: test %edi,%edi; je splits_in+1; splits_in: mov $0xc3909090,%eax; ret\n"
    ".size splits,.-splits\n"
    ".type jumps,@function\njumps: test %edi,%edi; je 1f; lea 2f(%rip),%rax; shl $4,%rdi; add %rdi,%rax\n"
    "jmp *%rax; .p2align 4; 2: ret; 1: ret\n.size jumps,.-jumps\n"
    ".type constants,@function\nconstants: movdqu 1f(%rip),%xmm0; lea 1f(%rip),%rax; ret\n"
    ".p2align 4; 1: .quad 0x0606060606060606, 0xffffffffffffffff\n.size constants,.-constants\n"
    ".type wild,@function\nwild: adc 0x73545338(%rip),%ecx; ret\n.size wild,.-wild\n"
    /* constants of nobody's that make sense as code, up to a ret; and others, that only lead to a hlt */
    ".type masks,@function\nmasks: lea 1f(%rip),%r11; lea 16(%r11),%r11; jmp 2f; nop; 2: movdqu -16(%r11),%xmm0; ret\n"
    ".size masks,.-masks\n.p2align 4; 1: .quad 0x0101010101010101, 0x0808080808080808, 0xc3\n"
    ".type tables,@function\ntables: lea 1f(%rip),%rax; ret\n"
    ".size tables,.-tables\n.p2align 4; 1: .quad 0x50a7f45150a7f451\n"
    /* a handler may skip the first trap; behind the others there is text */
    ".type traps,@function\ntraps: test %edi,%edi; je 1f; ud2; mov $17,%eax; ret; 1: ud2; ud2; .asciz \"file.c\"\n"
    ".size traps,.-traps\n"
    ".section .note.GNU-stack,\"\",@progbits\n";

static void check_no_code_behind(const sample *s, const cfg_proc *p)
{
    assert_int_equal(cfg_block_at(s->program, (p->addr + p->size + 15) & ~15ull), CFG_NONE);
}

static void test_odd_code(void **state)
{
    (void)state;
    sample s = analyse(sample_build("gcc", "odd", "s", odd_s, ""));
    const cfg_proc *skips = whole_proc(&s, "skips");
    const cfg_block *jump = &s.program->blocks[skips->first_block];
    assert_int_equal(jump->edge_count, 2);
    const cfg_edge *e = &s.program->edges[jump->first_edge];
    assert_int_equal(e[0].to, e[1].to); /* the prefix is part of both */
    assert_int_equal(cfg_block_at(s.program, e[0].target + 1), e[0].to);

    const cfg_proc *splits = proc_named(&s, "splits");
    assert_int_equal(splits->status, CFG_PROC_PARTLY);
    assert_string_equal(splits->reason, "instructions overlap");
    const cfg_proc *jumps = proc_named(&s, "jumps");
    assert_int_equal(jumps->status, CFG_PROC_PARTLY);
    assert_int_equal(count_blocks(&s, jumps, CFG_BLOCK_UNRESOLVED), 1);
    assert_int_equal(whole_proc(&s, "constants")->block_count, 1); /* data in it is no code */
    const cfg_proc *wild = proc_named(&s, "wild");
    assert_int_equal(wild->status, CFG_PROC_PARTLY);
    assert_string_equal(wild->reason, "an operand far outside of the image");
    const cfg_proc *traps = whole_proc(&s, "traps");
    assert_int_equal(traps->block_count, 4);
    assert_int_equal(count_blocks(&s, traps, CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_RETURN), 1);
    check_no_code_behind(&s, whole_proc(&s, "masks"));
    check_no_code_behind(&s, whole_proc(&s, "tables"));
    whole_proc(&s, "main");
    drop(&s);
}

/* Of each slot that import stubs jump through: sets where it leads at first, if `to` is not 0, and tells the last. */
static uint64_t lead_slots(const char *path, uint64_t to)
{
    image *im = sample_open(path);
    const image_reloc *r;
    const image_segment *s;
    size_t count = image_relocs(im, &r), segments = image_segments(im, &s);
    FILE *f = fopen(path, "r+b");
    uint64_t last = 0;
    assert_non_null(f);
    for (size_t i = 0; i < count * segments; i++) {
        const image_segment *in = &s[i % segments];
        const uint64_t at = r[i / segments].offset;
        if (r[i / segments].kind != IMAGE_RELOC_SLOT || at - in->addr >= in->file_size) continue;
        fseek(f, (long)(at - in->addr + in->file_offset), SEEK_SET);
        if (to) assert_int_equal(fwrite(&to, sizeof to, 1, f), 1);
        else assert_int_equal(fread(&last, sizeof last, 1, f), 1);
    }
    fclose(f);
    image_close(im);
    return last;
}

static void check_enters(const char *path, uint64_t addr)
{
    sample s = analyse(path);
    uint32_t b = cfg_block_at(s.program, addr);
    if (b == CFG_NONE) fail_msg("%s: nothing at %#llx", path, (unsigned long long)addr);
    assert_int_equal(s.program->procs[s.program->blocks[b].proc].status, CFG_PROC_WHOLE);
    drop(&s);
}

/* Slots lead into stubs until they are bound, with section headers or without; or, as mold has it, in front of all. */
static void test_unbound_slots(void **state)
{
    (void)state;
    const char *path = sample_build("cc", "lazy", "c", sample_c, "-O1 -Wl,-z,lazy"), *bare = sample_path("bare");
    const uint64_t in_stub = lead_slots(path, 0);
    assert_true(in_stub);
    check_enters(path, in_stub);
    assert_true(sample_shell("cp '%s' '%s' && for at in 40 58; do head -c 6 /dev/zero | "
                             "dd of='%s' bs=1 seek=$at conv=notrunc status=none; done",
                             path, bare, bare));
    check_enters(bare, in_stub);
    sample s = analyse(path);
    const cfg_block *b = &s.program->blocks[cfg_block_at(s.program, in_stub)];
    assert_int_equal(b->edge_count, 1);
    const uint64_t front = s.program->edges[b->first_edge].target;
    drop(&s);
    lead_slots(path, front);
    check_enters(path, front);
}

/* by_itself, by_mask: the index is extended by `and`, as Free Pascal does. two_bases: where the table lies is kept in a
 * register, as for a loop, in which another address arrives from behind a call that does not return. round_about: it is
 * copied to and fro between registers in a loop, each way of many. */
static const char tables_s[] =
    "        .macro  table_of name, a, b, c, d\n"
    "        .section .rodata\n"
    "        .balign 4\n"
    "\\name:  .long   \\a - \\name, \\b - \\name, \\c - \\name, \\d - \\name, \\d - \\name - 1\n" /* the last is none */
    "        .text\n"
    "        .endm\n"
    "        .macro  procedure name\n"
    "        .balign 16\n"
    "        .globl  \\name\n"
    "        .type   \\name, @function\n"
    "\\name:\n"
    "        .endm\n"
    "        .macro  goes_by table\n" /* with the index in %rax */
    "        leaq \\table(%rip), %rdx\n"
    "        movslq (%rdx,%rax,4), %rax\n"
    "        addq %rdx, %rax\n"
    "        jmp *%rax\n"
    "1:      incl %edi\n"
    "2:      incl %edi\n"
    "3:      incl %edi\n"
    "4:      movl %edi, %eax\n"
    "        ret\n"
    "        .endm\n"
    "        table_of first, 1f, 2f, 3f, 4f\n"
    "        procedure by_itself\n"
    "        movl %edi, %eax\n"
    "        cmpl $3, %eax\n"
    "        ja 4f\n"
    "        andl %eax, %eax\n"
    "        goes_by first\n"
    "        .size by_itself, . - by_itself\n"
    "        table_of second, 1f, 2f, 3f, 4f\n"
    "        procedure by_mask\n"
    "        movl %edi, %eax\n"
    "        cmpb $3, %al\n"
    "        ja 4f\n"
    "        andl $0xff, %eax\n"
    "        goes_by second\n"
    "        .size by_mask, . - by_mask\n"
    "        table_of third, 1f, 2f, 3f, 4f\n"
    "        procedure two_bases\n"
    "        pushq %r13\n"
    "        leaq third(%rip), %r13\n"
    "1:      call getchar@plt\n"
    "        cmpl $3, %eax\n"
    "        ja 5f\n"
    "        movl %eax, %eax\n"
    "        movslq (%r13,%rax,4), %rax\n"
    "        addq %r13, %rax\n"
    "        jmp *%rax\n"
    "2:      call abort_by@plt\n"
    "3:      jmp 1b\n"
    "4:      popq %r13\n"
    "        ret\n"
    "5:      leaq text(%rip), %r13\n"
    "        movq %r13, %rdi\n"
    "        call *leaves(%rip)\n"
    "        jmp 1b\n"
    "        .size two_bases, . - two_bases\n"
    "        .macro  copy from, to\n"
    "        testl %edi, %edi\n"
    "        jz 9f\n"
    "        movq %\\from, %\\to\n"
    "9:\n"
    "        .endm\n"
    "        table_of fourth, 1f, 2f, 3f, 4f\n"
    "        procedure round_about\n"
    "        leaq fourth(%rip), %rbx\n"
    "        .irp to, rbp, r12, r13, r14, r15\n"
    "        movq %rbx, %\\to\n"
    "        .endr\n"
    "1:      call getchar@plt\n"
    "        .irp from, rbx, rbp, r12, r13, r14, r15\n"
    "        .irp to, r15, r14, r13, r12, rbp, rbx\n"
    "        copy \\from, \\to\n"
    "        .endr\n"
    "        .endr\n"
    "        cmpl $3, %eax\n"
    "        ja 4f\n"
    "        movl %eax, %eax\n"
    "        movslq (%r13,%rax,4), %rax\n"
    "        addq %r13, %rax\n"
    "        jmp *%rax\n"
    "2:      incl %edi\n"
    "3:      jmp 1b\n"
    "4:      ret\n"
    "        .size round_about, . - round_about\n"
    "        procedure one_of_two\n"
    "        leaq by_itself(%rip), %rax\n"
    "        leaq by_mask(%rip), %rcx\n"
    "        testl %edi, %edi\n"
    "        cmoveq %rcx, %rax\n"
    "        jmp *%rax\n"
    "        .size one_of_two, . - one_of_two\n"
    "        procedure main\n"
    "        subq $8, %rsp\n"
    "        call by_itself\n"
    "        call by_mask\n"
    "        call two_bases\n"
    "        call round_about\n"
    "        call one_of_two\n"
    "        addq $8, %rsp\n"
    "        ret\n"
    "        .size main, . - main\n"
    "        procedure abort_by\n"
    "        ret\n"
    "        .size abort_by, . - abort_by\n"
    "        .section .rodata\n"
    "text:   .asciz \"usage: one or two words\"\n"
    "        .data\n"
    "leaves: .quad exit\n"
    "        .section .note.GNU-stack, \"\", @progbits\n";

static void test_tables_by_hand(void **state)
{
    (void)state;
    sample s = analyse(sample_build("gcc", "tables", "s", tables_s, "-pie"));
    check_switch(&s, "by_itself", 4, 4);
    check_switch(&s, "by_mask", 4, 4);
    check_switch(&s, "two_bases", 4, 4);
    check_switch(&s, "round_about", 4, 4);
    assert_int_equal(count_blocks(&s, whole_proc(&s, "one_of_two"), CFG_BLOCK_TAIL_IND), 1);
    drop(&s);
}

static void test_errors(void **state)
{
    (void)state;
    cfg_program *p;
    inl_error e = {0};
    const char *data = sample_build("gcc", "data", "c", "int x = 1;", "-shared -nostdlib -Wl,--build-id=none");
    image *im = sample_open(data);
    inl_status st = cfg_program_analyse(im, NULL, &p, &e);
    if (st == INL_OK) cfg_program_free(p); /* some linkers put a stub in */
    else assert_non_null(strstr(e.text, "no executable code"));
    image_close(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gcc),
        cmocka_unit_test(test_clang),
        cmocka_unit_test(test_indirect_tail_call),
        cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_static_and_stripped),
        cmocka_unit_test(test_odd_code),
        cmocka_unit_test(test_unbound_slots),
        cmocka_unit_test(test_tables_by_hand),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
