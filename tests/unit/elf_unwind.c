/* The unwind and exception tables that the rewriter writes, instruction by instruction: at every moved
 * instruction (and where its snippets begin) elfutils must read the same call frame from the new file as
 * it reads from the original at the original address; and the instruction must belong to the same call
 * site, with the same actions and with landing pads that are the original's, moved. What stayed in place
 * must unwind as before too. Files: a few of the system's, of C and C++; those that are missing are skipped.
 */
#include "elf/elf.h"
#include "base/search.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* One unwind entry over two procedures, with rows that belong to code that is never reached and whose effect
 * (r12) lasts: what is moved must have all of it in force. */
__asm__(".text\n.p2align 4\n.type odd_rows, @function\nodd_rows:\n.cfi_startproc\n"
        "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\njmp 1f\n"
        "push %r12\n.cfi_def_cfa_offset 24\n.cfi_offset r12, -24\npop %rax\n.cfi_def_cfa_offset 16\n"
        "1: pop %rbx\n.cfi_def_cfa_offset 8\n.cfi_restore rbx\nret\n.size odd_rows, . - odd_rows\n"
        ".p2align 4\n.type odd_second, @function\nodd_second:\nlea 1(%rdi), %eax\nadd %edi, %eax\nret\n"
        ".size odd_second, . - odd_second\n.cfi_endproc\n");

enum { registers = 17 }; /* and the return address */

typedef struct side { /* one of the two files */
    image *im;
    int fd;
    Elf *elf;
    Dwarf_CFI *cfi;
    const image_unwind_range *ranges;
    size_t range_count;
    image_lsda lsda;
    const image_unwind_range *lsda_of;
} side;

typedef struct sample {
    cfg_program *cfg;
    move_plan *plan;
    side old, now;
    size_t rows, sites;
} sample;

static void open_side(side *s, const char *path)
{
    inl_error e = {0};
    if (image_open(path, &s->im, &e)) fail_msg("%s", e.text);
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    s->elf = elf_begin(s->fd, ELF_C_READ_MMAP, NULL);
    assert_non_null(s->elf);
    s->cfi = dwarf_getcfi_elf(s->elf);
    s->range_count = image_unwind_ranges(s->im, &s->ranges);
}

static void close_side(side *s)
{
    dwarf_cfi_end(s->cfi);
    elf_end(s->elf);
    close(s->fd);
    image_lsda_free(&s->lsda);
    image_close(s->im);
}

static const image_unwind_range *range_at(const side *s, uint64_t addr)
{
    size_t behind = INL_FIRST(s->range_count, k, s->ranges[k].addr > addr);
    return behind && addr - s->ranges[behind - 1].addr < s->ranges[behind - 1].size ? &s->ranges[behind - 1] : NULL;
}

static bool same_ops(const Dwarf_Op *a, size_t a_count, const Dwarf_Op *b, size_t b_count)
{
    if (a_count != b_count) return false;
    for (size_t i = 0; i < a_count; i++)
        if (a[i].atom != b[i].atom || a[i].number != b[i].number || a[i].number2 != b[i].number2) return false;
    return true;
}

/* A frame address that is worked out from the program counter: its value there, with the stack pointer at 0. */
static bool value_at(const Dwarf_Op *ops, size_t count, uint64_t pc, int64_t *value)
{
    int64_t stack[8];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const Dwarf_Op *op = &ops[i];
        if (n == 8 || (n < 2 && op->atom >= DW_OP_and && op->atom < DW_OP_lit0)) return false;
        if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) stack[n++] = op->atom - DW_OP_lit0;
        else if (op->atom == DW_OP_breg7) stack[n++] = (int64_t)op->number;
        else if (op->atom == DW_OP_bregx && op->number == 7) stack[n++] = (int64_t)op->number2;
        else if (op->atom == DW_OP_breg16) stack[n++] = (int64_t)(pc + op->number);
        else if (op->atom == DW_OP_and) n--, stack[n - 1] &= stack[n];
        else if (op->atom == DW_OP_ge) n--, stack[n - 1] = stack[n - 1] >= stack[n];
        else if (op->atom == DW_OP_shl) n--, stack[n - 1] <<= stack[n];
        else if (op->atom == DW_OP_plus) n--, stack[n - 1] += stack[n];
        else return false;
    }
    *value = n == 1 ? stack[0] : 0;
    return n == 1;
}

static bool same_place(const Dwarf_Op *a, size_t a_count, uint64_t at_a, const Dwarf_Op *b, size_t b_count,
                       uint64_t at_b)
{
    int64_t x, y;
    bool by_pc = false;
    for (size_t i = 0; i < a_count; i++) by_pc |= a[i].atom == DW_OP_breg16;
    if (!by_pc || at_a == at_b) return same_ops(a, a_count, b, b_count);
    return value_at(a, a_count, at_a, &x) && value_at(b, b_count, at_b, &y) && x == y;
}

static void compare_frames(sample *s, uint64_t old, uint64_t now)
{
    Dwarf_Frame *a = NULL, *b = NULL;
    Dwarf_Op *ops_a, *ops_b, room_a[3], room_b[3];
    size_t count_a, count_b;
    bool has_a = dwarf_cfi_addrframe(s->old.cfi, old, &a) == 0;
    bool has_b = dwarf_cfi_addrframe(s->now.cfi, now, &b) == 0;
    if (has_a != has_b) fail_msg("%#lx: unwinds %d, moved to %#lx: %d", old, has_a, now, has_b);
    if (!has_a) return;
    bool signal_a, signal_b;
    assert_int_equal(dwarf_frame_info(a, NULL, NULL, &signal_a), dwarf_frame_info(b, NULL, NULL, &signal_b));
    assert_int_equal(signal_a, signal_b);
    assert_int_equal(dwarf_frame_cfa(a, &ops_a, &count_a), 0);
    assert_int_equal(dwarf_frame_cfa(b, &ops_b, &count_b), 0);
    if (!same_place(ops_a, count_a, old, ops_b, count_b, now)) fail_msg("%#lx: another frame at %#lx", old, now);
    for (int r = 0; r < registers; r++) {
        int end_a = dwarf_frame_register(a, r, room_a, &ops_a, &count_a);
        int end_b = dwarf_frame_register(b, r, room_b, &ops_b, &count_b);
        if (end_a != end_b || !same_ops(ops_a, count_a, ops_b, count_b) || (count_a == 0 && !ops_a != !ops_b))
            fail_msg("%#lx: register %d is elsewhere at %#lx", old, r, now);
    }
    free(a);
    free(b);
    s->rows++;
}

static const image_lsda *lsda_at(side *s, uint64_t addr)
{
    const image_unwind_range *r = range_at(s, addr);
    if (!r || !r->lsda) return NULL;
    if (r != s->lsda_of && !image_lsda_read(s->im, r->lsda, r->addr, &s->lsda))
        fail_msg("%#lx: exception table not understood", r->lsda);
    s->lsda_of = r;
    return &s->lsda;
}

static const image_call_site *site_at(const image_lsda *l, uint64_t addr)
{
    for (size_t i = 0; i < l->count; i++)
        if (addr - l->sites[i].start < l->sites[i].length) return &l->sites[i];
    return NULL;
}

/* The actions' bytes are copied: filters and distances agree as far as the chain goes. */
static void compare_actions(sample *s, const image_lsda *a, const image_lsda *b, uint64_t action)
{
    const uint8_t *x, *y;
    if (action == 0) return;
    size_t have_x = image_bytes(s->old.im, a->actions_at + action - 1, &x);
    size_t have_y = image_bytes(s->now.im, b->actions_at + action - 1, &y);
    assert_true(have_x >= 2 && have_y >= 2);
    assert_memory_equal(x, y, 2);
}

static void compare_sites(sample *s, uint64_t old, uint64_t now)
{
    const image_lsda *a = lsda_at(&s->old, old), *b = lsda_at(&s->now, now);
    if (!a != !b) fail_msg("%#lx has%s an exception table, %#lx otherwise", old, a ? "" : " not", now);
    if (!a) return;
    const image_call_site *x = site_at(a, old), *y = site_at(b, now);
    if (!x != !y) fail_msg("%#lx is in%s call site, %#lx otherwise", old, x ? " a" : " no", now);
    if (!x) return;
    uint64_t bias = s->plan->bias, pad = 0;
    if (x->landing_pad) {
        pad = move_new_address(s->plan, (assumed_addr){x->landing_pad + bias}, false).at;
        pad = pad ? pad - bias : x->landing_pad;
    }
    if (pad != y->landing_pad) fail_msg("%#lx: landing pad %#lx instead of %#lx", old, y->landing_pad, pad);
    assert_int_equal(x->action, y->action);
    compare_actions(s, a, b, x->action);
    s->sites++;
}

static void compare_all(sample *s)
{
    const move_plan *p = s->plan;
    uint64_t text = p->text_addr - p->bias;
    size_t step = p->map_count / 60000 + 1; /* large files: a part of it */
    for (size_t i = 0; i < p->map_count; i += step) {
        move_map m = move_map_at(p, i);
        uint64_t old = m.old_addr - p->bias;
        compare_frames(s, old, text + m.new_off);
        compare_frames(s, old, text + m.code_off);
        compare_sites(s, old, text + m.code_off);
    }
    for (size_t i = 0; i < s->old.range_count; i += step) {
        const image_unwind_range *r = &s->old.ranges[i];
        compare_frames(s, r->addr, r->addr);
        compare_frames(s, r->addr + r->size - 1, r->addr + r->size - 1);
        s->old.lsda_of = s->now.lsda_of = NULL;
        if (r->lsda) assert_int_equal(lsda_at(&s->now, r->addr)->sites_at, lsda_at(&s->old, r->addr)->sites_at);
    }
}

static void check_odd(sample *s)
{
    static const char *const names[] = {"odd_rows", "odd_second"};
    for (int i = 0; i < 2; i++) {
        uint64_t addr, size;
        assert_true(image_symbol(s->old.im, names[i], &addr, &size));
        for (uint64_t at = addr; at < addr + size; at++) {
            uint64_t now = move_new_address(s->plan, (assumed_addr){at + s->plan->bias}, true).at;
            if (at == addr && !now) fail_msg("%s has not been moved", names[i]);
            if (now) compare_frames(s, at, now - s->plan->bias);
        }
    }
}

static void check_file(const char *path, size_t at_least_sites)
{
    if (access(path, R_OK) != 0) {
        print_message("%s is not here\n", path);
        return;
    }
    sample s = {0};
    inl_error e = {0};
    char out[] = "/tmp/inlay-unwind-XXXXXX";
    move_client client = {0};
    elf_target target;
    image *im;
    close(mkstemp(out));
    if (image_open(path, &im, &e)) fail_msg("%s", e.text);
    elf_target_begin(&target, im);
    if (cfg_program_analyse(im, NULL, &s.cfg, &e) ||
        move_plan_make(s.cfg, 0x555555554000, &target.target, &client, &s.plan, &e) ||
        move_commit(s.plan, &target.target, &e) || elf_write(&target, s.plan, NULL, out, &e))
        fail_msg("%s", e.text);
    elf_target_end(&target);
    open_side(&s.old, path);
    open_side(&s.now, out);
    unlink(out);
    assert_true(s.plan->map_count > 100);
    compare_all(&s);
    print_message("%s: %zu rows, %zu places in call sites\n", path, s.rows, s.sites);
    assert_true(s.rows > 200 && s.sites >= at_least_sites);
    if (strcmp(path, "/proc/self/exe") == 0) check_odd(&s);
    close_side(&s.old);
    close_side(&s.now);
    move_plan_free(s.plan);
    cfg_program_free(s.cfg);
    image_close(im);
}

static void c_program(void **state)
{
    (void)state;
    check_file("/bin/ls", 0);
}
static void c_library(void **state)
{
    (void)state;
    check_file("/lib/x86_64-linux-gnu/libc.so.6", 0);
}
static void cxx_library(void **state)
{
    (void)state;
    check_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 100);
}
static void itself(void **state)
{
    (void)state;
    check_file("/proc/self/exe", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_program),
        cmocka_unit_test(c_library),
        cmocka_unit_test(cxx_library),
        cmocka_unit_test(itself),
    };
    elf_version(EV_CURRENT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
