/* The module set: what this process has mapped, and mappings that come and go. */
#include "image/module.h"

#include "image_sample.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cmocka.h>

typedef struct seen {
    module_set *set;
    size_t count;
} seen;

static int check_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
    seen *s = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        module *m = module_at(s->set, info->dlpi_addr + p->p_vaddr);
        if (!m) fail_msg("%s is missing", info->dlpi_name);
        assert_int_equal(m->bias, info->dlpi_addr);
        assert_true(m->low <= info->dlpi_addr + p->p_vaddr);
        assert_true(m->high >= info->dlpi_addr + p->p_vaddr + p->p_memsz);
        s->count++;
        break;
    }
    return 0;
}

static size_t count_modules(const module_set *s)
{
    size_t n = 0;
    for (module *m = module_first(s); m; m = m->next) n++;
    return n;
}

static void test_scan_as_dl_iterate_phdr(void **state)
{
    (void)state;
    module_set *s = module_set_new();
    inl_error e;
    assert_int_equal(module_set_scan(s, NULL, NULL, &e), INL_OK);
    seen found = {s, 0};
    dl_iterate_phdr(check_loaded, &found);
    assert_int_equal(found.count, count_modules(s));

    size_t mains = 0, interps = 0, vdsos = 0;
    uint32_t id = 0;
    for (module *m = module_first(s); m; m = m->next) {
        mains += m->is_main, interps += m->is_interp, vdsos += m->is_vdso;
        assert_int_equal(m->id, ++id);
    }
    assert_int_equal(mains, 1);
    assert_int_equal(interps, 1);
    assert_int_equal(vdsos, getauxval(AT_SYSINFO_EHDR) ? 1 : 0);
    uint64_t here = (uint64_t)(uintptr_t)&count_modules;
    module *program = module_at(s, here);
    assert_true(program->is_main);
    const image_proc *p = image_proc_at(program->image, here - program->bias);
    assert_string_equal(p->name, "count_modules");
    assert_true(module_at(s, getauxval(AT_BASE))->is_interp);
    assert_null(module_at(s, 0));
    assert_null(module_at(s, ~0ull));

    assert_int_equal(module_set_scan(s, NULL, NULL, &e), INL_OK); /* nothing comes twice */
    assert_int_equal(found.count, count_modules(s));
    module_set_free(s);
}

static bool skip_program(uint64_t low, uint64_t high, void *arg)
{
    uint64_t addr = (uint64_t)(uintptr_t)arg;
    return addr >= low && addr < high;
}

static void test_skip(void **state)
{
    (void)state;
    module_set *s = module_set_new();
    void *here = (void *)(uintptr_t)&count_modules;
    assert_int_equal(module_set_scan(s, skip_program, here, NULL), INL_OK);
    assert_null(module_at(s, (uint64_t)(uintptr_t)here));
    assert_true(count_modules(s) > 1);
    module_set_free(s);
}

static const char library[] = "int odd_name_function(int a) { return a + 1; }\n";

static void test_odd_names(void **state)
{
    (void)state;
    const char *built = sample_build(SAMPLE_CC, "odd.so", "c", library, "-shared -fPIC");
    const char *odd = sample_path("a b\nc \\ (deleted).so");
    assert_true(sample_shell("mv '%s' '%s'", built, odd));
    void *handle = dlopen(odd, RTLD_NOW);
    assert_non_null(handle);
    uint64_t addr = (uint64_t)(uintptr_t)dlsym(handle, "odd_name_function");
    module_set *s = module_set_new();
    assert_int_equal(module_set_scan(s, NULL, NULL, NULL), INL_OK);
    module *m = module_at(s, addr);
    assert_non_null(m);
    assert_string_equal(image_path(m->image), odd);
    assert_non_null(image_proc_named(m->image, "odd_name_function"));
    module_set_free(s);

    assert_int_equal(remove(odd), 0); /* a deleted file is not there to be read */
    s = module_set_new();
    assert_int_equal(module_set_scan(s, NULL, NULL, NULL), INL_OK);
    assert_null(module_at(s, addr));
    module_set_free(s);
    dlclose(handle);
}

typedef struct losses {
    unsigned count;
    uint32_t last;
} losses;

static void note_loss(module *m, void *arg)
{
    losses *l = arg;
    l->count++;
    l->last = m->id;
}

static image_segment exec_segment(const char *path)
{
    image *im = sample_open(path);
    const image_segment *s;
    size_t count = image_segments(im, &s);
    image_segment found = {0};
    for (size_t i = 0; i < count && !found.exec; i++) found = s[i];
    assert_true(found.exec);
    image_close(im);
    return found;
}

static void test_map_and_unmap(void **state)
{
    (void)state;
    const char *path = sample_build(SAMPLE_CC, "mapped.so", "c", library, "-shared -fPIC -Wl,-z,separate-code");
    image_segment s = exec_segment(path);
    uint64_t offset = s.file_offset & ~4095ull, at = s.addr & ~4095ull;
    uint64_t one = 0x100000000000, two = 0x200000000000;
    int code = PROT_READ | PROT_EXEC;
    module_set *set = module_set_new();
    losses lost = {0};

    assert_null(module_set_mapped(set, path, one, 4096, 0, PROT_READ));
    module *a = module_set_mapped(set, path, one + at, 4096, offset, code);
    assert_non_null(a);
    assert_int_equal(a->bias, one);
    assert_int_equal(a->low, one);
    assert_null(module_set_mapped(set, path, one + at, 4096, offset, code)); /* the same again */
    module *b = module_set_mapped(set, path, two + at, 4096, offset, code);
    assert_non_null(b);
    assert_int_equal(b->bias, two);
    assert_ptr_equal(module_at(set, one + at), a);
    assert_ptr_equal(module_at(set, two + at), b);
    assert_ptr_equal(module_at(set, a->low), a);
    assert_ptr_equal(module_at(set, a->high - 1), a);
    assert_null(module_at(set, a->high)); /* the first byte behind it */
    assert_null(module_at(set, a->low - 1));
    assert_null(module_at(set, b->low - 1));
    assert_ptr_equal(module_first(set), a);
    assert_ptr_equal(a->next, b);

    module_set_unmapped(set, one, 4096, note_loss, &lost); /* only its headers */
    assert_int_equal(lost.count, at ? 0 : 1);
    module_set_unmapped(set, one + at + 4096, 4096, note_loss, &lost);
    assert_int_equal(lost.count, 0);
    module_set_unmapped(set, one, two - one, note_loss, &lost);
    assert_int_equal(lost.count, 1);
    assert_int_equal(lost.last, 1);
    assert_null(module_at(set, one + at));
    assert_ptr_equal(module_first(set), b);
    module *c = module_set_mapped(set, path, one + at, 4096, offset, code);
    assert_int_equal(c->id, 3); /* numbers are not used again */
    assert_ptr_equal(b->next, c);
    module_set_unmapped(set, 0, ~0ull, note_loss, &lost);
    assert_int_equal(lost.count, 3);
    assert_null(module_first(set));
    module_set_free(set);
}

/* A large executable segment that is unmapped piece by piece. */
static void test_unmapped_in_pieces(void **state)
{
    (void)state;
    module_set *set = module_set_new();
    image_segment s = exec_segment("/proc/self/exe");
    uint64_t offset = s.file_offset & ~4095ull, at = 0x300000000000 + (s.addr & ~4095ull);
    losses lost = {0};
    assert_non_null(module_set_mapped(set, "/proc/self/exe", at, 0x5000, offset, PROT_EXEC));
    module_set_unmapped(set, at + 0x1000, 0x1000, note_loss, &lost);
    module_set_unmapped(set, at + 0x3000, 0x2000, note_loss, &lost);
    module_set_unmapped(set, at, 0x1000, note_loss, &lost);
    assert_int_equal(lost.count, 0);
    assert_non_null(module_at(set, at + 0x2000));
    module_set_unmapped(set, at + 0x2000, 1, note_loss, &lost);
    module_set_unmapped(set, at + 0x2001, 0xfff, note_loss, &lost);
    assert_int_equal(lost.count, 1);
    module_set_free(set);
}

static void test_not_modules(void **state)
{
    (void)state;
    module_set *set = module_set_new();
    int code = PROT_READ | PROT_EXEC;
    assert_null(module_set_mapped(set, "/etc/passwd", 0x1000, 4096, 0, code));
    assert_null(module_set_mapped(set, "/no/such/file", 0x1000, 4096, 0, code));
    assert_null(module_set_mapped(set, "/dev/zero", 0x1000, 4096, 0, code));
    assert_null(module_set_mapped(set, "", 0x1000, 4096, 0, code));
    assert_null(module_set_mapped(set, "/bin/ls", 0x1000, 4096, 0x7ffff000, code));
    assert_null(module_first(set));
    module_set_free(set);
    module_set_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_as_dl_iterate_phdr),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_map_and_unmap),
        cmocka_unit_test(test_unmapped_in_pieces),
        cmocka_unit_test(test_not_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
