/* Source lines, compared with addr2line: in the file itself, compressed, in separate debug files. */
#include "image_sample.h"
#include "image/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* Asks both for every byte of the named procedure. Returns how many lines were known. */
static size_t compare(image *im, const char *debug_path, const char *proc)
{
    const image_proc *p = image_proc_named(im, proc);
    assert_non_null(p);
    FILE *f = sample_output("for i in $(seq 0 %u); do printf '%%x\\n' $((%llu + i)); done | "
                            "LC_ALL=C addr2line -e '%s'",
                            (unsigned)p->size - 1, (unsigned long long)p->addr, debug_path);
    char text[4096];
    size_t known = 0;
    for (uint64_t addr = p->addr; fgets(text, sizeof text, f); addr++) {
        const char *file;
        unsigned line, expected = 0;
        char *colon = strrchr(text, ':');
        assert_non_null(colon);
        *colon = 0;
        if (sscanf(colon + 1, "%u", &expected) != 1 || expected == 0) {
            assert_false(image_line_at(im, addr, &file, &line));
            continue;
        }
        if (!image_line_at(im, addr, &file, &line))
            fail_msg("%llx: no line, not %s:%u", (unsigned long long)addr, text, expected);
        assert_string_equal(file, text);
        assert_int_equal(line, expected);
        known++;
    }
    pclose(f);
    return known;
}

/* Headers of sections are in a segment in some programs (Go's), which memory is compared with. */
static void assert_as_file(const image *im, const char *path)
{
    size_t size;
    void *map = image_map_file(path, &size);
    assert_non_null(map);
    assert_int_equal(im->view.size, size);
    assert_memory_equal(im->view.data, map, size);
    munmap(map, size);
}

static void check_build(const char *compiler, const char *name, const char *flags)
{
    const char *path = sample_build(compiler, name, "c", sample_c, flags);
    image *im = sample_open(path);
    const image_proc *p = image_proc_named(im, "collatz");
    assert_true(compare(im, path, "collatz") > p->size / 2);
    assert_true(compare(im, path, "main") > 0);
    const char *file;
    unsigned line;
    assert_true(image_line_at(im, p->addr, &file, &line));
    assert_true(line >= 10 && line <= 16);
    assert_string_equal(strrchr(file, '.'), ".c");
    assert_false(image_line_at(im, 0, &file, &line));
    assert_false(image_line_at(im, ~0ull, &file, &line));
    assert_as_file(im, path);
    image_close(im);
}

static void test_as_addr2line(void **state)
{
    (void)state;
    check_build("cc", "o0", "-g -O0");
    check_build("cc", "o2", "-g -O2");
    check_build("cc", "dwarf4", "-gdwarf-4 -O1");
    check_build("cc", "static", "-g -O1 -static -no-pie");
    check_build("cc", "static_pie", "-g -O1 -static-pie");
}

static void test_compressed(void **state)
{
    (void)state;
    check_build("cc", "gz", "-g -O1 -gz=zlib");
    check_build("cc", "gz_gnu", "-g -O1 -Wl,--compress-debug-sections=zlib-gnu");
}

static void test_clang(void **state)
{
    (void)state;
    if (!sample_shell("command -v clang >/dev/null")) skip();
    check_build("clang", "clang", "-g -O1"); /* writes no .debug_aranges */
}

/* Splits the debug information off `name`, with a debug link; returns the stripped file's path. */
static const char *split(const char *name, const char *flags, const char *debug_name)
{
    const char *path = sample_build("cc", name, "c", sample_c, flags);
    const char *debug = sample_path(debug_name);
    assert_true(sample_shell("objcopy --only-keep-debug '%s' '%s' && "
                             "objcopy --strip-all --add-gnu-debuglink='%s' '%s'",
                             path, debug, debug, path));
    return path;
}

static void test_separate_file(void **state)
{
    (void)state;
    static const char *const ids[] = {"-Wl,--build-id=sha1", "-Wl,--build-id=none"};
    for (int i = 0; i < 2; i++) {
        char flags[100], name[32], debug[32];
        snprintf(flags, sizeof flags, "-g -O1 %s", ids[i]);
        snprintf(name, sizeof name, "split%d", i);
        snprintf(debug, sizeof debug, "split%d.debug", i);
        const char *path = split(name, flags, debug);
        image *im = sample_open(path);
        assert_int_equal(image_build_id(im) != NULL, i == 0);
        assert_true(compare(im, sample_path(debug), "collatz") > 0);
        assert_int_equal(image_proc_named(im, "collatz")->source, IMAGE_PROC_SYMTAB);
        image_close(im);

        /* Also from the .debug folder beside it. */
        assert_true(sample_shell("mkdir -p '%s' && mv '%s' '%s'", sample_path(".debug"), sample_path(debug),
                                 sample_path(".debug")));
        im = sample_open(path);
        assert_non_null(image_proc_named(im, "collatz"));
        image_close(im);
    }
}

/* A debug file of another build is worse than none. */
static void test_wrong_debug_file(void **state)
{
    (void)state;
    static const char *const ids[] = {"-Wl,--build-id=sha1", "-Wl,--build-id=none"};
    for (int i = 0; i < 2; i++) {
        char flags[100];
        snprintf(flags, sizeof flags, "-g -O1 %s", ids[i]);
        const char *right = split("right", flags, "right.debug");
        snprintf(flags, sizeof flags, "-g -O2 -Dhalf=third %s", ids[i]);
        split("wrong", flags, "wrong.debug");
        assert_true(sample_shell("mv '%s' '%s'", sample_path("wrong.debug"), sample_path("right.debug")));
        image *im = sample_open(right);
        const char *file;
        unsigned line;
        assert_null(image_proc_named(im, "collatz"));
        assert_false(image_line_at(im, image_entry(im), &file, &line));
        image_close(im);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_addr2line),  cmocka_unit_test(test_compressed),       cmocka_unit_test(test_clang),
        cmocka_unit_test(test_separate_file), cmocka_unit_test(test_wrong_debug_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
