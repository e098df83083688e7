/* A first stack, built of what this program was given, is what the kernel made. */
#include "base/first_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

static char **given_argv, **given_envp;

static const Elf64_auxv_t *given_auxv(void)
{
    char **p = given_envp;
    while (*p) p++;
    return (const Elf64_auxv_t *)(p + 1);
}

static size_t count(char **list)
{
    size_t n = 0;
    while (list[n]) n++;
    return n;
}

static inl_first_stack of_this(void)
{
    inl_first_stack s = {
        .argv = (const char *const *)given_argv,
        .envp = (const char *const *)given_envp,
        .name = (const char *)getauxval(AT_EXECFN),
        .platform = (const char *)getauxval(AT_PLATFORM),
        .auxv = given_auxv(),
    };
    s.top = (uint64_t)(uintptr_t)s.name + strlen(s.name) + 1 + 8;
    memcpy(s.random, (const void *)getauxval(AT_RANDOM), sizeof s.random);
    return s;
}

static void test_as_kernel(void **unused)
{
    (void)unused;
    inl_first_stack s = of_this();
    uint64_t sp = inl_first_stack_sp(&s);
    size_t size = s.top - sp, argc = count(given_argv), envc = count(given_envp);
    uint64_t *v = malloc(size + 16);
    memset((char *)v + size, 0x5a, 16);
    inl_first_stack_build(&s, v);
    assert_int_equal(sp % 16, 0);
    for (int i = 0; i < 16; i++) assert_int_equal(((char *)v)[size + (size_t)i], 0x5a);

    assert_int_equal(v[0], argc);
    assert_memory_equal(v + 1, given_argv, (argc + 1) * sizeof *v); /* the strings lie where the kernel's do */
    assert_memory_equal(v + 1 + argc + 1, given_envp, (envc + 1) * sizeof *v);
    uint64_t strings = v[1], offset = strings - sp;
    assert_memory_equal((char *)v + offset, given_argv[0], s.top - strings);

    const Elf64_auxv_t *a = (const Elf64_auxv_t *)(v + 1 + argc + 1 + envc + 1), *real = given_auxv();
    for (;; a++, real++) {
        assert_int_equal(a->a_type, real->a_type);
        if (a->a_type == AT_NULL) break;
        const char *text = (const char *)((uintptr_t)v + (a->a_un.a_val - sp)); /* where it is a place */
        if (a->a_type == AT_RANDOM) assert_memory_equal(text, s.random, 16);
        else if (a->a_type == AT_PLATFORM) assert_string_equal(text, s.platform);
        else assert_int_equal(a->a_un.a_val, real->a_un.a_val);
    }
    free(v);
}

static uint64_t value_of(const uint64_t *v, uint64_t type)
{
    v += 1 + v[0] + 1;
    while (*v++) {}
    for (; *v; v += 2)
        if (*v == type) return v[1];
    return ~0ull;
}

static void test_changes(void **unused)
{
    (void)unused;
    static const char *const nothing[] = {NULL}, *const one[] = {"tool", NULL};
    static const Elf64_auxv_t auxv[] = {{AT_ENTRY, {1}}, {AT_PHDR, {2}}, {AT_UID, {3}}, {AT_BASE, {4}}, {AT_NULL, {0}}};
    const Elf64_Ehdr h = {.e_phoff = 64, .e_entry = 0x100};
    inl_first_stack s = {.top = 0x10000, .argv = one, .envp = nothing, .name = "x", .auxv = auxv};
    inl_first_stack_image(&s, &h, 0x5000);
    uint64_t sp = inl_first_stack_sp(&s), v[64];
    assert_true(s.top - sp <= sizeof v && sp % 16 == 0);
    inl_first_stack_build(&s, v);
    assert_int_equal(value_of(v, AT_ENTRY), 0x5100);
    assert_int_equal(value_of(v, AT_PHDR), 0x5040);
    assert_int_equal(value_of(v, AT_UID), 3);
    assert_int_equal(value_of(v, AT_BASE), 0);
    assert_int_equal(value_of(v, AT_SECURE), ~0ull); /* what is not there does not come */
}

static void test_environment(void **unused)
{
    (void)unused;
    static const char *const envp[] = {"A=1", "LD_PRELOAD=x", "GLIBC_TUNABLES=y", "MALLOC_ARENA_MAX=1", "LDX=2", NULL};
    const char *to[7];
    inl_environment_of_tool(envp, to);
    assert_ptr_equal(to[0], inl_environment_tunables);
    assert_ptr_equal(to[1], envp[0]);
    assert_ptr_equal(to[2], envp[4]);
    assert_null(to[3]);
}

int main(int argc, char **argv)
{
    (void)argc;
    given_argv = argv;
    given_envp = environ;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_kernel), cmocka_unit_test(test_changes),
                                       cmocka_unit_test(test_environment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
