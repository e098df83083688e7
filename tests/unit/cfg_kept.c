/* Analyses that are kept: read back they are what was written; anything else is none, or at least within its bounds. */
#include "image_sample.h"

#include "base/sum.h"
#include "cfg/kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct kept {
    image *im;
    cfg_program *program;
    char key[CFG_KEPT_KEY];
    inl_bytes bytes;
} kept;

static const char switch_c[] = "int puts(const char *);\n"
                               "int main(int n, char **v) {\n"
                               "    switch (n) { case 1: puts(\"a\"); case 2: puts(\"b\"); break; case 3: return 7;\n"
                               "    case 4: return puts(*v); case 5: return n * 9; case 6: return puts(\"d\"); }\n"
                               "    return n; }\n";
static const char fixed_s[] = /* a prefix that is skipped, and a jump that leads nowhere known */
    ".globl _start\n.text\n_start: cmpl $0,%gs:0; je 1f; lock\n1: incl (%rdi); call f; jmp *%rax\n"
    "f: mov (%rsi),%rcx; jmp *%rcx\n.section .note.GNU-stack,\"\",@progbits\n";

static kept make(const char *path)
{
    kept k = {.im = sample_open(path)};
    inl_error e;
    if (cfg_program_analyse(k.im, NULL, &k.program, &e) != INL_OK) fail_msg("%s", e.text);
    assert_true(cfg_kept_key(k.im, k.key));
    assert_true(cfg_kept_write(k.program, k.key, &k.bytes));
    return k;
}

static void drop(kept *k)
{
    cfg_program_free(k->program);
    image_close(k->im);
    inl_bytes_free(&k->bytes);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static void check_same(const cfg_program *a, const cfg_program *b)
{
    assert_int_equal(a->proc_count, b->proc_count);
    assert_int_equal(a->block_count, b->block_count);
    assert_int_equal(a->edge_count, b->edge_count);
    assert_int_equal(a->table_count, b->table_count);
    assert_int_equal(a->text_bytes, b->text_bytes);
    assert_int_equal(a->covered_bytes, b->covered_bytes);
    for (uint32_t i = 0; i < a->proc_count; i++) {
        cfg_proc p = a->procs[i], q = b->procs[i];
        if (!same_text(p.name, q.name) || !same_text(p.reason, q.reason)) fail_msg("procedure %u", i);
        assert_true(p.addr == q.addr && p.size == q.size && p.first_block == q.first_block);
        assert_true(p.block_count == q.block_count && p.padding == q.padding && p.status == q.status);
        assert_true(p.source == q.source && p.flags == q.flags);
    }
    for (uint32_t i = 0; i < a->block_count; i++) {
        cfg_block p = a->blocks[i], q = b->blocks[i];
        assert_true(p.addr == q.addr && p.size == q.size && p.proc == q.proc && p.first_edge == q.first_edge);
        assert_true(p.edge_count == q.edge_count && p.insn_count == q.insn_count && p.flags == q.flags);
    }
    for (uint32_t i = 0; i < a->edge_count; i++) {
        cfg_edge p = a->edges[i], q = b->edges[i];
        assert_true(p.target == q.target && p.kind == q.kind && p.back == q.back && p.from == q.from && p.to == q.to);
    }
    for (uint32_t i = 0; i < a->table_count; i++) {
        cfg_table p = a->tables[i], q = b->tables[i];
        assert_true(p.jump == q.jump && p.table == q.table && p.base == q.base && p.named_at == q.named_at);
        assert_true(p.read_at == q.read_at && p.count == q.count && p.kind == q.kind && p.exact == q.exact &&
                    p.block == q.block);
    }
}

/* Every address of the text means the same block. */
static void check_places(const cfg_program *a, const cfg_program *b)
{
    uint64_t addr, end, other, other_end;
    for (size_t i = 0; cfg_text_stretch(a, i, &addr, &end); i++) {
        assert_true(cfg_text_stretch(b, i, &other, &other_end) && addr == other && end == other_end);
        for (; addr < end; addr++)
            if (cfg_block_at(a, addr) != cfg_block_at(b, addr)) fail_msg("at %llx", (unsigned long long)addr);
    }
}

static void test_same(void **state)
{
    (void)state;
    const char *paths[] = {
        sample_build("gcc", "kept", "c", switch_c, "-O2"),
        sample_build("gcc", "kept-fixed", "s", fixed_s, "-nostdlib -static -no-pie -Wl,--build-id=none"),
        "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        kept k = make(paths[i]);
        cfg_program *again = cfg_kept_read(k.im, k.key, k.bytes.data, k.bytes.size);
        assert_non_null(again);
        check_same(k.program, again);
        check_places(k.program, again);
        assert_true(k.bytes.size < 30 * ((size_t)again->block_count + again->edge_count) + 4096);
        cfg_program_free(again);
        drop(&k);
    }
}

/* A byte of code, a symbol's name: another key. */
static void test_keys(void **state)
{
    (void)state;
    char other[CFG_KEPT_KEY];
    static const char *const sources[] = {"int main(void) { return 3; }", "int main(void) { return 4; }",
                                          "int f(void) { return 3; }\nint main(void) { return 3; }"};
    kept k = make(sample_build("gcc", "kept-key", "c", sources[0], "-O1 -Wl,--build-id=0x1234"));
    assert_null(cfg_kept_read(k.im, "another key", k.bytes.data, k.bytes.size));
    for (size_t i = 0; i < 3; i++) {
        image *im = sample_open(sample_build("gcc", "kept-key", "c", sources[i], "-O1 -Wl,--build-id=0x1234"));
        assert_true(cfg_kept_key(im, other));
        assert_int_equal(strcmp(other, k.key) == 0, i == 0);
        image_close(im);
    }
    drop(&k);
}

static void test_damaged(void **state)
{
    (void)state;
    kept k = make(sample_build("gcc", "kept", "c", switch_c, "-O2"));
    srand(3);
    for (size_t i = 0; i < k.bytes.size; i++) {
        const uint8_t bit = (uint8_t)(1 << rand() % 8);
        k.bytes.data[i] ^= bit;
        assert_null(cfg_kept_read(k.im, k.key, k.bytes.data, k.bytes.size));
        k.bytes.data[i] ^= bit;
    }
    cfg_program *whole = cfg_kept_read(k.im, k.key, k.bytes.data, k.bytes.size);
    assert_non_null(whole);
    cfg_program_free(whole);
    for (size_t size = 0; size < k.bytes.size; size += 1 + size / 9)
        assert_null(cfg_kept_read(k.im, k.key, k.bytes.data, size));
    drop(&k);
}

static void seal(uint8_t *bytes, size_t size)
{
    cfg_kept_head h;
    memcpy(&h, bytes, sizeof h);
    h.sum = 0;
    h.sum = inl_sum(bytes + sizeof h, size - sizeof h, inl_sum(&h, sizeof h, 7));
    memcpy(bytes, &h, sizeof h);
}

static void check_bounds(const cfg_program *p)
{
    for (uint32_t i = 0; i < p->proc_count; i++)
        assert_true((uint64_t)p->procs[i].first_block + p->procs[i].block_count <= p->block_count);
    for (uint32_t i = 0; i < p->block_count; i++) {
        const cfg_block *b = &p->blocks[i];
        assert_true(b->proc < p->proc_count && (uint64_t)b->first_edge + b->edge_count <= p->edge_count);
        assert_int_equal(cfg_block_at(p, b->addr), i);
    }
    for (uint32_t i = 0; i < p->edge_count; i++)
        assert_true(p->edges[i].from < p->block_count &&
                    (p->edges[i].to < p->block_count || p->edges[i].to == CFG_NONE));
    for (uint32_t i = 0; i < p->table_count; i++) assert_true(p->tables[i].block < p->block_count);
}

/* Bytes whose sum is right, though they are not what was written. */
static void test_sealed(void **state)
{
    (void)state;
    kept k = make(sample_build("gcc", "kept", "c", switch_c, "-O2"));
    size_t from = sizeof(cfg_kept_head) + strlen(k.key), read = 0;
    uint8_t *bytes = malloc(k.bytes.size);
    srand(4);
    for (unsigned i = 0; i < 20000; i++) {
        memcpy(bytes, k.bytes.data, k.bytes.size);
        for (int n = 1 + rand() % 3; n; n--) bytes[from + (size_t)rand() % (k.bytes.size - from)] = (uint8_t)rand();
        seal(bytes, k.bytes.size);
        cfg_program *p = cfg_kept_read(k.im, k.key, bytes, k.bytes.size);
        if (!p) continue;
        check_bounds(p);
        cfg_program_free(p);
        read++;
    }
    assert_true(read > 100 && read < 19000);
    free(bytes);
    drop(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
