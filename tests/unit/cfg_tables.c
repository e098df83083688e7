/* What bounds a jump table, where tables end, and what else a mistake in the analysis would let through: small
 * procedures in assembly, each with a way to believe too much. */
#include "image_sample.h"

#include "cfg/flow.h"
#include "cfg/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A procedure: what stands in front of the dispatch by %rdi (and `9:`, where a default goes), and a table of eight
 * entries, of which code knows nothing but what the procedure does. */
#define PROC(name, guard) PROC_WITH(name, guard, EIGHT(name))
#define PROC_WITH(name, guard, entries)                                                                                \
    ".text\n.p2align 4\n.globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n" guard "lea " name      \
    "_table(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n" CASE(name, "0") CASE(name, "1")         \
        CASE(name, "2") CASE(name, "3") CASE(name, "4") CASE(name, "5") CASE(name, "6")                                \
            CASE(name, "7") "9: xor %eax,%eax\nret\n.cfi_endproc\n" name "_end:\n.size " name ",.-" name "\n"          \
                            ".section .rodata\n.p2align 2\n" name "_table:\n" entries
#define CASE(name, n)  name "_" n ": mov $" n ",%eax\nret\n"
#define ENTRY(name, n) ".long " name "_" n " - " name "_table\n"
#define FOUR(name)     ENTRY(name, "0") ENTRY(name, "1") ENTRY(name, "2") ENTRY(name, "3")
#define EIGHT(name)    FOUR(name) ENTRY(name, "4") ENTRY(name, "5") ENTRY(name, "6") ENTRY(name, "7")
#define NUMBERS        ".long 0x12345678, 0x12345678\n"

/* One whose dispatch is written otherwise; what it reads lies behind it. */
#define PROC_AS(name, dispatch, entries)                                                                               \
    ".text\n.p2align 4\n.globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n" dispatch CASE(         \
        name, "0") CASE(name, "1") CASE(name, "2") CASE(name, "3") "9: xor %eax,%eax\nret\n.cfi_endproc\n.size " name  \
                                                                   ",.-" name "\n.p2align 4\n" entries
#define WORD(name, n) ".word " name "_" n " - " name "_base\n"
#define LONG(name, n) ".long " name "_" n " - " name "_table + 8\n"
/* A register and another one hold the same by turns: a way of more copies than are followed one inside the other. */
#define COPIES(n)     ".rept " n "\nmov %rdx,%rcx\nmov %rcx,%rdx\n.endr\n"

/* A procedure that no unwind table describes, and that jumps to where a pointer says. */
#define BARE(name, code)                                                                                               \
    ".text\n.p2align 4\n.globl " name "\n.type " name ",@function\n" name ":\n" code ".size " name ",.-" name "\n"
#define JUMPS(name, before) BARE(name, before "mov 8(%rdi),%rax\njmp *%rax\n")

/* With what was kept beside its target, or nearly; on a stack that is given, or on its own. */
#define RESTORES                                                                                                       \
    JUMPS("restores", "mov (%rdi),%rbx\nmov 16(%rdi),%r12\nmov 24(%rdi),%rcx\ntest %esi,%esi\njne 1f\nnop\n1: mov "    \
                      "32(%rdi),%rbp\nror $17,%rcx\nmov %rcx,%rsp\n")                                                  \
    JUMPS("restores_frame", "push %rbp\nmov %rsp,%rbp\nmov 16(%rdi),%rcx\nmov 32(%rdi),%rsp\nmov %rcx,%rbp\n")         \
    JUMPS("restores_stack", "push %rbx\npush %r12\npush %rbp\nmov 24(%rdi),%rsp\n")                                    \
    JUMPS("restores_from_two", "mov (%rdi),%rbx\nmov 16(%rdi),%r12\nmov 32(%rdi),%rbp\nmov 24(%rsi),%rsp\n")           \
    BARE("switches", "mov %rdi,%rsp\n" SWITCHED "mov 24(%rsp),%rcx\nlea 32(%rsp),%rsp\njmp *%rcx\n")                   \
    BARE("switches_to", "mov %rdi,%rsp\n" SWITCHED "mov %rsi,%rcx\nadd $32,%rsp\njmp *%rcx\n")                         \
    BARE("restores_own", "push %rbp\nmov %rsp,%rbp\nsub $64,%rsp\nmov -8(%rbp),%rbx\nmov -16(%rbp),%rsp\n"             \
                         "jmp *-24(%rbp)\n")                                                                           \
    BARE("switches_none", "push %rdi\nmov %rsp,%rax\nmov %rax,%rsp\n" SWITCHED "mov 24(%rsp),%rcx\njmp *%rcx\n")
#define SWITCHED "mov (%rsp),%rbx\nmov 8(%rsp),%r12\nmov 16(%rsp),%rbp\n"

/* A piece of a procedure, or what may be one: nobody calls it, nobody has its address. */
#define PIECE(name, cases, entries)                                                                                    \
    ".text\n.p2align 4\n.type " name ",@function\n" name ":\n.cfi_startproc\nlea " name                                \
    "_table(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n" cases ".cfi_endproc\n.size " name       \
    ",.-" name "\n.section .rodata\n.p2align 2\n" name "_table:\n" entries
#define PIECE_ENTRY(n) ".long split_" n " - split_piece_table\n"

/* One that jumps to what it takes from the stack. */
#define TAKES(name, before)                                                                                            \
    ".text\n.p2align 4\n.globl " name "\n.type " name ",@function\n" name ":\n" before                                 \
    "pop %rcx\njmp *%rcx\n.size " name ",.-" name "\n"

static const char source[] =
    /* conditions, one by one */
    PROC("above", "cmp $5,%edi\nja 9f\nmov %edi,%edi\n") PROC("not_below", "cmp $5,%edi\njae 9f\nmov %edi,%edi\n")
        PROC("below_or_equal", "cmp $5,%edi\njbe 1f\njmp 9f\n1: mov %edi,%edi\n")
            PROC("below", "cmp $5,%edi\njb 1f\njmp 9f\n1: mov %edi,%edi\n") PROC(
                "equal", "cmp $5,%edi\nje 1f\njmp 9f\n1: mov %edi,%edi\n") PROC("not_equal",
                                                                                "cmp $5,%edi\njne 9f\nmov %edi,%edi\n")
                PROC("only_above", "cmp $3,%edi\nja 1f\njmp 9f\n1: mov %edi,%edi\n")
                    PROC("only_not_below", "cmp $3,%edi\njae 1f\njmp 9f\n1: mov %edi,%edi\n")
                        PROC("never_below", "cmp $3,%edi\njb 9f\nmov %edi,%edi\n")
                            PROC("never_equal", "cmp $3,%edi\nje 9f\nmov %edi,%edi\n")
                                PROC("constant", "mov $5,%ecx\ncmp %ecx,%edi\nja 9f\nmov %edi,%edi\n")
                                    PROC("copied", "mov %edi,%ecx\ncmp $5,%ecx\nja 9f\nmov %edi,%edi\n") PROC(
                                        "spilled", "mov %edi,-8(%rsp)\ncmpl $5,-8(%rsp)\nja 9f\nmov -8(%rsp),%edi\n")
                                        PROC("around",
                                             "cmp $5,%edi\nja 9f\nmov %edi,%edi\nmov $3,%ecx\n1: dec %ecx\njns 1b\n")
    /* what bounds nothing, or less */
    PROC("narrow", "cmp $3,%dil\nja 9f\nmov %edi,%edi\n")
        PROC("changed", "cmp $3,%edi\nlea 4(%rdi),%edi\nja 9f\nmov %edi,%edi\n")
            PROC("overwritten", "cmp $3,%edi\nja 9f\nmov (%rsi),%edi\n")
                PROC("other", "cmp $3,%esi\nja 9f\nmov %edi,%edi\n")
                    PROC("signed", "cmp $3,%edi\njg 9f\nmov %edi,%edi\n")
                        PROC("one_way", "test %esi,%esi\nje 1f\ncmp $3,%edi\nja 9f\n1: mov %edi,%edi\n")
                            PROC("goes_round", "cmp $9,%edi\nja 9f\nlea -4(%rdi),%eax\nmovzbl %al,%edi\n")
    /* masks and the like */
    PROC("masked", "and $5,%edi\n") PROC("shifted", "shr $30,%edi\n") PROC("mask_with_end", "and $15,%edi\n")
        PROC_WITH("byte", "movzbl (%rsi),%edi\n", FOUR("byte") NUMBERS)
            PROC("extended", "movzbl (%rsi),%edi\ncmp $5,%dil\nja 9f\n")
                PROC("extended_copy", "movzbl (%rsi),%ecx\nmov %ecx,%edi\ncmp $5,%dil\nja 9f\n")
                    PROC("half_extended",
                         "movzbl (%rsi),%edi\ntest %eax,%eax\nje 1f\nmov %eax,%edi\n1: cmp $3,%dil\nja 9f\n")
                        PROC("maybe_extended", "test %eax,%eax\nje 1f\nmovzbl (%rsi),%edi\n1: cmp $3,%dil\nja 9f\n")
                            PROC("extended_from_more", "movzwl (%rsi),%edi\ncmp $3,%dil\nja 9f\n")
    /* where the table is */
    PROC_AS("far_base",
            "and $3,%edi\nlea far_base_table(%rip),%rdx\n" COPIES(
                "16") "1: mov %rdx,-8(%rsp)\nmov -8(%rsp),%rdx\ndec %esi\njns 1b\nmovslq (%rdx,%rdi,4),%rax\nadd "
                      "%rdx,%rax\n"
                      "jmp *%rax\n",
            "far_base_table:\n" FOUR(
                "far_base")) PROC_AS("counts",
                                     "and $3,%edi\nlea counts_table(%rip),%rdx\n1: add $4,%rdx\ndec %esi\njns 1b\n"
                                     "movslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n",
                                     "counts_table:\n" FOUR("counts"))
        PROC_AS("words",
                "words_base: and $3,%edi\nlea words_base(%rip),%rdx\nmovzwl words_table-words_base(%rdx,%rdi,2),%eax\n"
                "add %rdx,%rax\njmp *%rax\n",
                "words_table:\n" WORD("words", "0") WORD("words", "1") WORD("words", "2") WORD("words", "3"))
            PROC_AS("sums",
                    "sums_base: and $3,%edi\nlea sums_base(%rip),%rdx\nmovslq sums_table-sums_base(%rdx,%rdi,4),%rax\n"
                    "lea sums_table-sums_base-8(%rdx,%rax),%rax\njmp *%rax\n",
                    "sums_table:\n" LONG("sums", "0") LONG("sums", "1") LONG("sums", "2") LONG("sums", "3"))
    /* the first entries are another's, as the index is never so small */
    PROC_WITH("begins_late", "mov %edi,%edi\n", NUMBERS EIGHT("begins_late"))
    /* no unwind table describes it */
    ".text\n.p2align 4\n.globl by_hand\n.type by_hand,@function\nby_hand: tzcnt %edi,%edi\nlea "
    "by_hand_table(%rip),%rdx\n"
    "movslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n" CASE("by_hand", "0") CASE("by_hand", "1")
        CASE("by_hand", "2")
            CASE("by_hand", "3") ".size by_hand,.-by_hand\n.p2align 4\nby_hand_table:\n" FOUR("by_hand")
    /* holes, and entries that are none */
    PROC_WITH("hole", "and $7,%edi\n",
              ENTRY("hole", "0") ENTRY("hole", "end") ENTRY("hole", "2") ENTRY("hole", "3") ENTRY("hole", "end")
                  ENTRY("hole", "5") ENTRY("hole", "6") ENTRY("hole", "7"))
        PROC_WITH("middle", "cmp $8,%edi\nja 9f\nmov %edi,%edi\n",
                  EIGHT("middle") ".long middle_0 - 1 - middle_table\n")
            PROC_WITH("middle_open", "mov %edi,%edi\n",
                      FOUR("middle_open") ".long middle_open_3 + 1 - middle_open_table\n" NUMBERS)
                PROC_WITH("short", "mov %edi,%edi\n", FOUR("short") NUMBERS) /* code is left that nothing leads to */
    ".data\n.quad above, not_below, below_or_equal, below, equal, not_equal\n"
    ".quad only_above, only_not_below, never_below, never_equal, constant, copied, spilled, around, narrow, changed\n"
    ".quad overwritten, other, signed, one_way, goes_round, masked, shifted, mask_with_end, byte, hole, middle\n"
    ".quad middle_open, short, asks, answers, extended, extended_copy, half_extended, maybe_extended, "
    "extended_from_more\n"
    ".quad far_base, counts, words, sums, begins_late, held, held_inner, no_pointer, by_hand\n"
    /* what would be read behind the table's end leads to bytes that might be code, but something surely begins inside
     */
    PROC_AS("held",
            "mov %edi,%edi\nlea held_table(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n"
            "held_stray: .byte 0x66\nheld_inner: mov $2,%eax\nret\n",
            "held_table:\n" ENTRY("held", "0") ENTRY("held", "1")
                ENTRY("held", "3") ".long held_stray - held_table\n" NUMBERS)
    /* what compares stands in one piece, the dispatch in another, and so do the cases */
    ".text\n.p2align 4\n.globl split\n.type split,@function\nsplit:\n.cfi_startproc\ncmp $5,%edi\nja 9f\nmov "
    "%edi,%edi\n"
    "jmp split_piece\n" CASE("split", "2") CASE("split", "3") CASE("split", "4")
        CASE("split", "5") "9: xor %eax,%eax\nret\n.cfi_endproc\n.size split,.-split\n" PIECE(
            "split_piece", CASE("split", "0") CASE("split", "1"),
            PIECE_ENTRY("0") PIECE_ENTRY("1") PIECE_ENTRY("2") PIECE_ENTRY("3") PIECE_ENTRY("4") PIECE_ENTRY("5")
                NUMBERS)
            PIECE("stray", CASE("stray", "0") CASE("stray", "1"), ENTRY("stray", "0") ENTRY("stray", "1") NUMBERS)
    /* flags that cross from one procedure into the middle of another */
    ".text\n.p2align 4\n.globl asks\n.type asks,@function\nasks: cmp %esi,%edi\njmp inner\n.size asks,.-asks\n"
    ".p2align 4\n.globl answers\n.type answers,@function\nanswers: xor %eax,%eax\ninner: setb %al\nret\n"
    ".size answers,.-answers\n"
    /* the stack as it was at the entry, or not */
    JUMPS("no_pointer",
          "xor %eax,%eax\ntest %rdi,%rdi\nje no_pointer_jump\nmov (%rdi),%rax\nno_pointer_jump: jmp *%rax\n")
        JUMPS("pops", "push %rbx\npush %rcx\npop %rcx\npop %rbx\n") JUMPS("pops_first", "pop %rbx\npush %rbx\n") JUMPS(
            "adds", "sub $24,%rsp\nadd $24,%rsp\n") JUMPS("leaves", "push %rbp\nmov %rsp,%rbp\nsub $40,%rsp\nleave\n")
            JUMPS("copies", "lea -16(%rsp),%rcx\nsub $80,%rsp\nlea 16(%rcx),%rsp\n") JUMPS("pushes", "push %rbx\n")
                JUMPS("pops_less", "push %rbx\npush %rcx\npop %rcx\n") JUMPS(
                    "pops_more", "push %rbx\npop %rbx\npop %rcx\n") JUMPS("adds_less", "sub $24,%rsp\nadd $16,%rsp\n")
                    JUMPS("keeps_frame", "push %rbp\nmov %rsp,%rbp\nsub $40,%rsp\nmov %rbp,%rsp\n")
                        RESTORES JUMPS("pops_stack", "push %rsp\npop %rsp\n")
                            JUMPS("far_frame", "mov %rdi,%rsp\npop %rcx\n") TAKES("returns", "")
                                TAKES("far_return", "push %rbp\nmov %rdi,%rsp\n") TAKES("takes_less", "push %rbx\n"
                                                                                                      "push %rcx\n")
                                    TAKES("takes_pushed", "push %rdi\n") ".section .note.GNU-stack,\"\",@progbits\n";

typedef struct sample {
    image *image;
    cfg_program *program;
} sample;

static sample open_sample(void)
{
    sample s = {.image = sample_open(sample_build("gcc", "guards", "s", source, "-shared -nostdlib"))};
    inl_error e;
    if (cfg_program_analyse(s.image, NULL, &s.program, &e) != INL_OK) fail_msg("%s", e.text);
    return s;
}

static void drop(sample *s)
{
    cfg_program_free(s->program);
    image_close(s->image);
}

static uint64_t symbol(const sample *s, const char *name)
{
    uint64_t addr, size;
    if (!image_symbol(s->image, name, &addr, &size)) fail_msg("no symbol %s", name);
    return addr;
}

static const cfg_proc *proc_named(const sample *s, const char *name)
{
    uint32_t i = cfg_proc_covering(s->program, symbol(s, name));
    assert_int_not_equal(i, CFG_NONE);
    return &s->program->procs[i];
}

static const cfg_table *table_of(const sample *s, const char *name)
{
    const cfg_proc *p = proc_named(s, name);
    for (uint32_t i = 0; i < s->program->table_count; i++)
        if (s->program->tables[i].jump - p->addr < p->size) return &s->program->tables[i];
    fail_msg("%s has no table", name);
    return NULL;
}

/* The table has so many entries, which is certain, and the procedure is wholly known. */
static void has(const sample *s, const char *name, uint32_t entries)
{
    const cfg_table *t = table_of(s, name);
    const cfg_proc *p = proc_named(s, name);
    if (t->count != entries) fail_msg("%s: %u entries instead of %u", name, t->count, entries);
    if (!t->exact) fail_msg("%s: not exact", name);
    if (p->status != CFG_PROC_WHOLE) fail_msg("%s is not whole: %s", name, p->reason);
}

static void comparisons_bound(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "above", 6);
    has(&s, "not_below", 5);
    has(&s, "below_or_equal", 6);
    has(&s, "below", 5);
    has(&s, "equal", 6);
    has(&s, "not_equal", 6);
    has(&s, "constant", 6);
    has(&s, "copied", 6);
    has(&s, "spilled", 6);
    has(&s, "around", 6);
    drop(&s);
}

/* The next table's name ends these, and nothing sooner. */
static void what_bounds_nothing(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "narrow", 8);
    has(&s, "changed", 8);
    has(&s, "overwritten", 8);
    has(&s, "other", 8);
    has(&s, "signed", 8);
    has(&s, "only_above", 8);
    has(&s, "only_not_below", 8);
    has(&s, "never_below", 8);
    has(&s, "never_equal", 8);
    has(&s, "one_way", 8);
    has(&s, "goes_round", 8);
    drop(&s);
}

static void masks_bound(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "masked", 6);
    has(&s, "shifted", 4);
    has(&s, "mask_with_end", 8);
    drop(&s);
}

static void bytes_that_are_extended_bound(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "extended", 6);
    has(&s, "extended_copy", 6);
    has(&s, "half_extended", 8);
    has(&s, "maybe_extended", 8);
    has(&s, "extended_from_more", 8);
    drop(&s);
}

static void tables_are_found(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "far_base", 4);
    has(&s, "words", 4);
    has(&s, "sums", 4);
    has(&s, "begins_late", 8);
    assert_int_equal(table_of(&s, "begins_late")->table, table_of(&s, "begins_late")->base + 8);
    assert_int_not_equal(proc_named(&s, "counts")->status, CFG_PROC_WHOLE);
    drop(&s);
}

/* Nothing says how long it is, and who writes by hand leaves the first entries out of tables. */
static void tables_by_hand_have_no_known_end(void **state)
{
    sample s = open_sample();
    (void)state;
    assert_int_not_equal(proc_named(&s, "by_hand")->status, CFG_PROC_WHOLE);
    drop(&s);
}

/* An address that a relocation holds is the begin of an instruction, if it is code. */
static void held_addresses_begin_instructions(void **state)
{
    enum { STRAY = 18 };
    sample s = open_sample();
    (void)state;
    assert_int_equal(table_of(&s, "held")->count, 3);
    assert_int_equal(cfg_block_at(s.program, symbol(&s, "held") + STRAY), CFG_NONE);
    assert_int_not_equal(cfg_block_at(s.program, symbol(&s, "held") + STRAY + 1), CFG_NONE);
    drop(&s);
}

static void holes_are_entries(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "hole", 8);
    drop(&s);
}

static bool leads_into_middle(const sample *s, const char *name, const char *label)
{
    const cfg_proc *p = proc_named(s, name);
    return p->status == CFG_PROC_WHOLE && cfg_block_at(s->program, symbol(s, label) + 1) != CFG_NONE;
}

/* An entry into an instruction: where a comparison says that it is one, the procedure is not understood; where
 * nothing does, the table has ended. */
static void middles_are_no_entries(void **state)
{
    sample s = open_sample();
    (void)state;
    assert_int_not_equal(proc_named(&s, "middle")->status, CFG_PROC_WHOLE);
    assert_false(leads_into_middle(&s, "middle_open", "middle_open_3"));
    assert_true(table_of(&s, "middle_open")->count <= 4 && !table_of(&s, "middle_open")->exact);
    assert_int_not_equal(proc_named(&s, "middle_open")->status, CFG_PROC_WHOLE);
    drop(&s);
}

/* Cases that no known entry leads to: the table may be longer than what was read. */
static void unexplained_bytes_are_doubt(void **state)
{
    sample s = open_sample();
    (void)state;
    assert_int_not_equal(proc_named(&s, "short")->status, CFG_PROC_WHOLE);
    assert_false(table_of(&s, "short")->exact);
    assert_int_not_equal(proc_named(&s, "byte")->status, CFG_PROC_WHOLE);
    drop(&s);
}

/* Entries lead to the other piece, of which nothing says where it ends. */
static void pieces_have_a_table_together(void **state)
{
    sample s = open_sample();
    (void)state;
    has(&s, "split_piece", 6);
    assert_int_equal(proc_named(&s, "split")->status, CFG_PROC_WHOLE);
    assert_false(table_of(&s, "stray")->exact);
    drop(&s);
}

static void flags_cross_into_the_middle(void **state)
{
    enum { CARRY = 1 };
    sample s = open_sample();
    cfg_facts facts;
    (void)state;
    assert_true(cfg_facts_find(s.program, &facts));
    uint32_t inner = cfg_block_at(s.program, symbol(&s, "answers") + 2);
    uint32_t asks = cfg_block_at(s.program, symbol(&s, "asks"));
    assert_int_not_equal(inner, CFG_NONE);
    assert_true(s.program->blocks[inner].flags & CFG_BLOCK_OUTSIDE);
    assert_true(facts.flags_at_outside & CARRY);
    assert_false(facts.flags_at_entry & CARRY);
    assert_true(cfg_flow_at_block(s.program, &facts, inner).flags & CARRY);
    assert_false(cfg_flow_at_block(s.program, &facts, asks).flags & CARRY);
    drop(&s);
}

static void leaves(const sample *s, const char *name, bool wanted)
{
    uint32_t block = cfg_block_at(s->program, symbol(s, name));
    assert_int_not_equal(block, CFG_NONE);
    bool does = s->program->blocks[block].flags & CFG_BLOCK_TAIL_IND;
    if (does != wanted) fail_msg("%s: %s", name, does ? "leaves, as is believed" : "does not leave");
}

static void leaves_at_end(const sample *s, const char *name)
{
    const cfg_proc *p = proc_named(s, name);
    assert_true(p->block_count > 1);
    assert_true(s->program->blocks[p->first_block + p->block_count - 1].flags & CFG_BLOCK_TAIL_IND);
}

static void heights_of_the_stack(void **state)
{
    sample s = open_sample();
    (void)state;
    leaves(&s, "pops", true);
    leaves(&s, "pops_first", true);
    leaves(&s, "adds", true);
    leaves(&s, "leaves", true);
    leaves(&s, "copies", true);
    leaves(&s, "pushes", false);
    leaves(&s, "pops_less", false);
    leaves(&s, "pops_more", false);
    leaves(&s, "adds_less", false);
    leaves(&s, "keeps_frame", false);
    leaves(&s, "pops_stack", false);
    leaves(&s, "far_frame", false);
    leaves_at_end(&s, "restores");
    leaves(&s, "restores_frame", true);
    leaves(&s, "switches", true);
    leaves(&s, "switches_to", true);
    leaves(&s, "switches_none", false);
    leaves(&s, "restores_own", false);
    leaves(&s, "restores_stack", false);
    leaves(&s, "restores_from_two", false);
    leaves(&s, "returns", true);
    leaves(&s, "far_return", true);
    leaves(&s, "takes_less", false);
    leaves(&s, "takes_pushed", true);
    leaves_at_end(&s, "no_pointer");
    drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_bound),
        cmocka_unit_test(what_bounds_nothing),
        cmocka_unit_test(masks_bound),
        cmocka_unit_test(bytes_that_are_extended_bound),
        cmocka_unit_test(tables_are_found),
        cmocka_unit_test(tables_by_hand_have_no_known_end),
        cmocka_unit_test(held_addresses_begin_instructions),
        cmocka_unit_test(holes_are_entries),
        cmocka_unit_test(middles_are_no_entries),
        cmocka_unit_test(unexplained_bytes_are_doubt),
        cmocka_unit_test(pieces_have_a_table_together),
        cmocka_unit_test(flags_cross_into_the_middle),
        cmocka_unit_test(heights_of_the_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
