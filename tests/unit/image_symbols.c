/* Procedures, PLT names and unwind ranges, compared with what readelf and objdump say. */
#include "image_sample.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *libc_path(void)
{
    static char path[256];
    FILE *f = sample_output("cc -print-file-name=libc.so.6 | xargs readlink -f | tr -d '\\n'");
    assert_non_null(fgets(path, sizeof path, f));
    pclose(f);
    return path;
}

/* Sorted, apart, not empty, and found by every address and name. */
static void check_order(image *im)
{
    const image_proc *p;
    size_t count = image_procs(im, &p);
    for (size_t i = 0; i < count; i++) {
        assert_true(p[i].size > 0);
        assert_true(i == 0 || p[i].addr >= p[i - 1].addr + p[i - 1].size);
        assert_ptr_equal(image_proc_at(im, p[i].addr), &p[i]);
        assert_ptr_equal(image_proc_at(im, p[i].addr + p[i].size - 1), &p[i]);
        assert_true(p[i].name && p[i].name[0]);
        assert_non_null(image_proc_named(im, p[i].name));
        assert_true(p[i].aliases == NULL || p[i].aliases[0] != NULL);
    }
    assert_null(image_proc_at(im, 0));
    assert_null(image_proc_at(im, ~0ull));
}

/* Every function that readelf lists begins a procedure of its name. */
static size_t check_functions(image *im, const char *option, bool versioned)
{
    char line[4096], type[32], bind[32], index[32], name[2048];
    size_t seen = 0;
    unsigned long long addr;
    FILE *f = sample_output("LC_ALL=C readelf -W %s '%s' 2>/dev/null", option, image_path(im));
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, " %*d: %llx %*s %31s %31s %*s %31s %2047s", &addr, type, bind, index, name) != 5) continue;
        if ((strcmp(type, "FUNC") != 0 && strcmp(type, "IFUNC") != 0) || strcmp(index, "UND") == 0) continue;
        if (versioned && strchr(name, '@')) *strchr(name, '@') = 0;
        const image_proc *p = image_proc_at(im, addr);
        if (!p || p->addr != addr || !sample_has_name(p, name))
            fail_msg("%s: %s at %llx is %s", image_path(im), name, addr, p ? p->name : "missing");
        assert_non_null(image_proc_named(im, name));
        seen++;
    }
    pclose(f);
    return seen;
}

/* The entries that objdump names are named alike; IRELATIVE ones have no name of their own there. */
static size_t check_plt(image *im)
{
    char line[4096], name[2048];
    unsigned long long addr;
    size_t seen = 0;
    FILE *f = sample_output("LC_ALL=C objdump -d -j .plt -j .plt.sec -j .plt.got '%s' 2>/dev/null", image_path(im));
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx <%2047[^>]>:", &addr, name) != 2 || name[0] == '*') continue;
        const char *suffix = strstr(name, "@plt");
        if (!suffix || suffix[4]) continue; /* "free@plt-0x10" is the table's head */
        const image_proc *p = image_proc_at(im, addr);
        if (!p || p->addr != addr || strcmp(p->name, name) != 0 || p->source != IMAGE_PROC_PLT)
            fail_msg("%s: %s at %llx is %s", image_path(im), name, addr, p ? p->name : "missing");
        assert_int_equal(p->size <= 16, 1);
        seen++;
    }
    pclose(f);
    return seen;
}

static void check_unwind(image *im)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(im, &r), expected = 0;
    uint64_t bytes = 0, expected_bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += r[i].size;
    for (size_t i = 1; i < count; i++) assert_true(r[i].addr > r[i - 1].addr);
    char line[4096];
    unsigned long long low, high;
    FILE *f = sample_output("LC_ALL=C readelf --debug-dump=frames '%s' 2>/dev/null | "
                            "sed -n 's/.* FDE .*pc=/pc=/p'",
                            image_path(im));
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "pc=%llx..%llx", &low, &high) == 2 && high > low) expected++, expected_bytes += high - low;
    pclose(f);
    assert_int_equal(count, expected);
    assert_int_equal(bytes, expected_bytes);
}

static void check_all(const char *path, size_t least_dynsym, size_t least_plt)
{
    image *im = sample_open(path);
    check_order(im);
    assert_true(check_functions(im, "--dyn-syms", true) >= least_dynsym);
    check_functions(im, "-s", true);
    assert_true(check_plt(im) >= least_plt);
    check_unwind(im);
    image_close(im);
}

static void test_system_files(void **state)
{
    (void)state;
    check_all("/bin/ls", 0, 50);
    check_all(libc_path(), 2000, 10);
    image *im;
    if (image_open("/usr/bin/python3", &im, NULL) == INL_OK) {
        image_close(im);
        check_all("/usr/bin/python3", 1000, 100);
    }
}

static void test_link_styles(void **state)
{
    (void)state;
    static const char *const styles[][2] = {
        {"lazy", "-O1 -g -Wl,-z,lazy"},
        {"now", "-O1 -Wl,-z,now"},
        {"ibt", "-O1 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy"},
        {"nopie", "-O1 -no-pie -Wl,-z,lazy"},
        {"library", "-O1 -shared -fPIC"},
        {"sysv_hash", "-O1 -Wl,--hash-style=sysv"},
        {"static", "-static -no-pie"},
        {"static_pie", "-static-pie"},
    };
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        bool is_static = strncmp(styles[i][0], "static", 6) == 0;
        check_all(sample_build("cc", styles[i][0], "c", sample_c, styles[i][1]), 0, is_static ? 0 : 3);
    }
}

/* Clears the section table's place in the header and overwrites the table itself. */
static const char *without_sections(const char *from, const char *name)
{
    const char *to = sample_path(name);
    Elf64_Ehdr h;
    assert_true(sample_shell("cp '%s' '%s' && chmod u+w '%s'", from, to, to));
    FILE *f = fopen(to, "r+b");
    assert_int_equal(fread(&h, sizeof h, 1, f), 1);
    uint64_t at = h.e_shoff;
    unsigned count = h.e_shnum;
    h.e_shoff = h.e_shnum = h.e_shstrndx = 0;
    rewind(f);
    assert_int_equal(fwrite(&h, sizeof h, 1, f), 1);
    fseek(f, (long)at, SEEK_SET);
    for (unsigned i = 0; i < count * sizeof(Elf64_Shdr); i++) fputc(0xee, f);
    fclose(f);
    return to;
}

/* With no section headers all that the dynamic linker and the unwinder know is still found. */
static void test_no_section_headers(void **state)
{
    (void)state;
    const char *lazy = sample_build("cc", "kept", "c", sample_c, "-O1 -rdynamic -Wl,-z,lazy");
    const char *ibt = sample_build("cc", "kept_ibt", "c", sample_c,
                                   "-O1 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy");
    const char *sources[] = {lazy, ibt, "/bin/ls", libc_path()};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        image *full = sample_open(sources[i]);
        image *bare = sample_open(without_sections(sources[i], "bare"));
        const image_section *s;
        assert_int_equal(image_sections(bare, &s), 0);
        check_order(bare);
        const image_unwind_range *a, *b;
        size_t count = image_unwind_ranges(full, &a);
        assert_int_equal(image_unwind_ranges(bare, &b), count);
        assert_true(count > 0);
        assert_memory_equal(a, b, count * sizeof *a);
        const image_proc *p;
        count = image_procs(full, &p);
        for (size_t k = 0; k < count; k++) {
            const image_proc *q = image_proc_at(bare, p[k].addr);
            bool must = p[k].source == IMAGE_PROC_DYNSYM || p[k].source == IMAGE_PROC_PLT;
            if (must && (!q || q->addr != p[k].addr || !sample_has_name(q, p[k].name)))
                fail_msg("%s: %s is lost", sources[i], p[k].name);
        }
        image_close(full);
        image_close(bare);
    }
}

/* Stripped: functions are still there as unwind ranges, and the entry keeps its name. */
static void test_stripped(void **state)
{
    (void)state;
    const char *full_path = sample_build("cc", "whole", "c", sample_c, "-O1");
    const char *bare_path = sample_path("stripped");
    assert_true(sample_shell("strip -o '%s' '%s'", bare_path, full_path));
    image *full = sample_open(full_path), *bare = sample_open(bare_path);
    const image_proc *p = image_proc_named(full, "collatz");
    const image_proc *q = image_proc_at(bare, p->addr);
    assert_non_null(q);
    assert_int_equal(q->addr, p->addr);
    assert_int_equal(q->size, p->size);
    assert_int_equal(q->source, IMAGE_PROC_UNWIND);
    char name[32];
    snprintf(name, sizeof name, "sub_%llx", (unsigned long long)p->addr);
    assert_string_equal(q->name, name);
    assert_ptr_equal(image_proc_named(bare, name), q);
    q = image_proc_at(bare, image_entry(bare));
    assert_string_equal(q->name, "_start");
    assert_int_equal(q->source, IMAGE_PROC_ENTRY);
    image_close(full);
    image_close(bare);
}

#ifdef __x86_64__
static const char assembly[] = ".text\n"
                               ".globl outer, _outer_alias, inner, unsized, label, last, tail\n"
                               ".type outer,@function\n .type _outer_alias,@function\n .type inner,@function\n"
                               ".type unsized,@function\n .type last,@function\n"
                               "outer: _outer_alias: nop\n"
                               "label: nop\n" /* untyped, inside outer: no procedure */
                               "inner: nop\n nop\n .size inner, . - inner\n"
                               "nop\n ret\n"
                               ".size outer, . - outer\n .size _outer_alias, . - _outer_alias\n"
                               "unsized: nop\n nop\n ret\n"
                               "tail: ret\n" /* untyped, on its own: a procedure */
                               "local: ret\n"
                               "last: nop\n ret\n"
                               ".section .note.GNU-stack,\"\",@progbits\n";

static void test_overlaps_and_sizes(void **state)
{
    (void)state;
    image *im = sample_open(sample_build("cc", "ranges", "S", assembly, "-shared -nostdlib"));
    const image_proc *outer = image_proc_named(im, "outer");
    assert_non_null(outer);
    assert_string_equal(outer->name, "outer");
    assert_true(sample_has_name(outer, "_outer_alias"));
    assert_int_equal(outer->size, 2);
    const image_proc *inner = image_proc_named(im, "inner");
    assert_int_equal(inner->addr, outer->addr + 2);
    assert_int_equal(inner->size, 4); /* with the outer one's tail */
    assert_null(image_proc_named(im, "label"));
    const image_proc *unsized = image_proc_named(im, "unsized");
    assert_int_equal(unsized->addr, outer->addr + 6);
    assert_int_equal(unsized->size, 3);
    const image_proc *tail = image_proc_named(im, "tail");
    assert_int_equal(tail->size, 2);
    const image_proc *last = image_proc_named(im, "last");
    assert_int_equal(last->size, 2);
    check_order(im);
    image_close(im);
}
#endif

/* A default version wins over an older one of the same name. */
static void test_versions(void **state)
{
    (void)state;
    image *im = sample_open(libc_path());
    uint64_t addr;
    unsigned long long expected = 0;
    FILE *f = sample_output("LC_ALL=C readelf -W --dyn-syms '%s' | "
                            "awk '$8 ~ /^pthread_cond_wait@@/ {print $2; exit}'",
                            libc_path());
    int found = fscanf(f, "%llx", &expected);
    pclose(f);
    assert_true(image_symbol(im, "pthread_cond_wait", &addr, NULL));
    if (found == 1) assert_int_equal(addr, expected);
    image_close(im);
}

/* What Go's linker writes since 1.26: the table does not say where the text is, the module does. In front of the text
 * is what C's linker adds, and in front of the module what only looks like one. */
static const char go_s[] = ".text\n.globl _start\n_start: ret\n.balign 64\n"
                           "text: one: ret\n.balign 16\ntwo: ret\n.balign 16\nend: ret\n"
                           ".section .gopclntab,\"a\"\n.balign 8\n"
                           "table: .long 0xfffffff1, 0x08010000\n.quad 2, 0, 0, names - table, 0, 0, 0, list - table\n"
                           "names: .asciz \"main.one\"\n.asciz \"main.two\"\n.balign 8\n"
                           "list: .long one - text, info - list, two - text, info + 8 - list, end - text\n"
                           "info: .long 0, 0, two - text, 9\n"
                           ".data\n.balign 8\n.quad table, names, 0\n"
                           ".quad table, names\n.skip 112\n.quad list, 3, 3, _start, one, end, text, end\n.skip 200\n"
                           ".section .note.GNU-stack,\"\",%progbits\n";

static void test_go(void **state)
{
    (void)state;
    const char *styles[] = {"-nostdlib -static -no-pie -s", "-nostdlib -shared -s"};
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        image *im = sample_open(sample_build("cc", i ? "go_moved" : "go_fixed", "s", go_s, styles[i]));
        const image_proc *one = image_proc_named(im, "main.one"), *two = image_proc_named(im, "main.two");
        uint64_t start = image_entry(im);
        assert_true(image_is_go(im));
        assert_true(start || image_symbol(im, "_start", &start, NULL));
        assert_non_null(one);
        assert_non_null(two);
        assert_int_equal(two->addr - one->addr, 16);
        assert_int_equal(one->addr - 64, start);
        assert_int_equal(two->size, 16);
        image_close(im);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_go),
        cmocka_unit_test(test_system_files),
        cmocka_unit_test(test_link_styles),
        cmocka_unit_test(test_no_section_headers),
        cmocka_unit_test(test_stripped),
#ifdef __x86_64__
        cmocka_unit_test(test_overlaps_and_sizes),
#endif
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
