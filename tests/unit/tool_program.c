/* Finding a program and telling why it cannot be run. */
#include "tool/tool.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/inlay-program-XXXXXX";

static const char *write_file(const char *name, const void *bytes, size_t size, mode_t mode)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (int)size);
    close(fd);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void expect(const char *path, program_kind kind, const char *text)
{
    inl_error e = {0};
    assert_int_equal(program_check(path, &e), kind);
    if (text && !strstr(e.text, text)) fail_msg("'%s' does not say '%s'", e.text, text);
}

static void finds_in_path(void **state)
{
    (void)state;
    char out[4096];
    inl_error e = {0};
    setenv("PATH", "/nonexistent:/bin:/usr/bin", 1);
    assert_int_equal(program_find("ls", out, &e), INL_OK);
    assert_string_equal(out, "/bin/ls");
    assert_int_equal(program_find("./ls", out, &e), INL_OK);
    assert_string_equal(out, "./ls");
    assert_int_equal(program_find("no-such-program", out, &e), INL_ERR_NOT_FOUND);
    assert_int_equal(program_find("", out, &e), INL_OK); /* refused by the check */
}

static void passes_over_what_is_not_executable(void **state)
{
    (void)state;
    char out[4096], path[256];
    inl_error e = {0};
    write_file("tool", "x", 1, 0600);
    setenv("PATH", folder, 1);
    assert_int_equal(program_find("tool", out, &e), INL_ERR_ACCESS);
    snprintf(path, sizeof path, "%s/sub", folder);
    mkdir(path, 0700);
    assert_int_equal(program_find("sub", out, &e), INL_ERR_NOT_FOUND);
}

static void tells_what_cannot_be_run(void **state)
{
    (void)state;
    expect("/bin/ls", PROGRAM_OK, NULL);
    expect("/nonexistent/program", PROGRAM_REFUSED, "not found");
    expect("/tmp", PROGRAM_REFUSED, "is a directory");
    expect("/etc/passwd", PROGRAM_REFUSED, "not executable");
    expect("/dev/null", PROGRAM_REFUSED, "not executable");
    expect("", PROGRAM_REFUSED, "not found");
    expect(write_file("text", "hello", 5, 0700), PROGRAM_REFUSED, "neither");
    expect(write_file("empty", "", 0, 0700), PROGRAM_REFUSED, "neither");
    expect(write_file("short", ELFMAG, 4, 0700), PROGRAM_REFUSED, "malformed");
}

static void tells_foreign_programs(void **state)
{
    (void)state;
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_DYN,
                    .e_machine = EM_RISCV,
                    .e_version = EV_CURRENT,
                    .e_phentsize = sizeof(Elf64_Phdr)};
    expect(write_file("riscv", &h, sizeof h, 0700), PROGRAM_FOREIGN, "another architecture");
    h.e_ident[EI_CLASS] = ELFCLASS32;
    expect(write_file("narrow", &h, sizeof h, 0700), PROGRAM_FOREIGN, "32-bit");
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_type = ET_REL;
    h.e_machine = EM_X86_64;
    expect(write_file("object", &h, sizeof h, 0700), PROGRAM_REFUSED, "not a program");
}

static void follows_scripts(void **state)
{
    (void)state;
    char line[256];
    const char good[] = "#! /bin/sh -e\n", none[] = "#!/nonexistent/sh\n", bare[] = "#!\n";
    expect(write_file("good", good, sizeof good - 1, 0700), PROGRAM_OK, NULL);
    expect(write_file("none", none, sizeof none - 1, 0700), PROGRAM_REFUSED, "interpreter");
    expect(write_file("bare", bare, sizeof bare - 1, 0700), PROGRAM_REFUSED, "neither");
    int n = snprintf(line, sizeof line, "#!%s/good\n", folder);
    expect(write_file("second", line, (size_t)n, 0700), PROGRAM_OK, NULL);
    n = snprintf(line, sizeof line, "#!%s/round\n", folder);
    expect(write_file("round", line, (size_t)n, 0700), PROGRAM_REFUSED, "too deep");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_in_path),
        cmocka_unit_test(passes_over_what_is_not_executable),
        cmocka_unit_test(tells_what_cannot_be_run),
        cmocka_unit_test(tells_foreign_programs),
        cmocka_unit_test(follows_scripts),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
