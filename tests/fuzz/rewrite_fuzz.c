/* Feeds damaged ELF files to the whole rewriter: `rewrite_fuzz COUNT SEED FILE...`.
 *
 * Each input is one of the files with its headers, sections or code damaged, or cut short. It is analysed,
 * planned without a tool, checked and written. What must come of it: an output that is an ELF file again,
 * or an error with a text and no output, and in no case a file of another name. The same seed gives the
 * same inputs; a failing one is left in rewrite_fuzz.bad. Most of what is planned must be written: a writer that
 * refuses everything would pass otherwise.
 */
#include "damage.h"
#include "elf/elf.h"
#include "move/boot.h"
#include "move/plan.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long opened, planned, written;

static inl_status rewrite_image(image *im, const char *out, inl_error *e)
{
    static const uint8_t boot[256];
    cfg_program *cfg;
    move_plan *plan;
    move_client client = {0};
    elf_target target;
    elf_carry carry = {
        .boot = boot, .boot_size = sizeof boot, .init_at = 64, .entry_at = 128, .data = boot, .data_size = 100};
    elf_write_options options = {.carry = fuzz_below(2) ? &carry : NULL, .run_path = fuzz_below(2) ? "$ORIGIN" : NULL};
    inl_status st = cfg_program_analyse(im, NULL, &cfg, e);
    if (st) return st;
    elf_target_begin(&target, im);
    st = move_plan_make(cfg, fuzz_below(2) ? 0x555555554000 : 0, &target.target, &client, &plan, e);
    if (!st) {
        planned++;
        if (move_plan_check(plan, e)) fuzz_fail(e->text);
        st = move_commit(plan, &target.target, e);
        if (!st) st = elf_write(&target, plan, &options, out, e);
        move_plan_free(plan);
    }
    elf_target_end(&target);
    cfg_program_free(cfg);
    return st;
}

static void check_output(const char *out)
{
    image *im;
    inl_error e = {0};
    const image_unwind_range *ranges;
    const image_section *sections;
    if (image_open(out, &im, &e)) fuzz_fail(e.text);
    image_unwind_ranges(im, &ranges);
    if (image_sections(im, &sections) == 0) fuzz_fail("no sections written");
    image_close(im);
    unlink(out);
    written++;
}

static void run_one(const fuzz_file *f, int fd, const char *path, const char *folder)
{
    static uint8_t bytes[FUZZ_FILE_SIZE];
    char out[128];
    image *im;
    inl_error e = {0};
    size_t size = fuzz_damage(f, bytes);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) fuzz_fail("no room");
    if (image_open(path, &im, NULL)) return;
    opened++;
    snprintf(out, sizeof out, "%s/out", folder);
    inl_status st = rewrite_image(im, out, &e);
    if (st && e.text[0] == 0) fuzz_fail("an error without a text");
    if (st && access(out, F_OK) == 0) fuzz_fail("an error and an output");
    if (!st) check_output(out);
    image_close(im);
}

int main(int argc, char **argv)
{
    fuzz_file files[8];
    size_t count = 0;
    char path[64], folder[] = "/tmp/rewrite_fuzz-XXXXXX";
    if (argc < 4 || !mkdtemp(folder)) return 2;
    unsigned long runs = strtoul(argv[1], NULL, 10);
    fuzz_begin("rewrite_fuzz", strtoull(argv[2], NULL, 10));
    for (int i = 3; i < argc && count < 8; i++) fuzz_load(&files[count++], argv[i], true);
    int fd = memfd_create("rewrite_fuzz", MFD_CLOEXEC);
    if (fd < 0) return 2;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (unsigned long i = 0; i < runs; i++) {
        alarm(20); /* one input takes milliseconds */
        run_one(&files[fuzz_below(count)], fd, path, folder);
    }
    if (rmdir(folder) != 0) fuzz_fail("something was left in the output's folder");
    for (size_t i = 0; i < count; i++) free(files[i].bytes);
    if (written < planned - planned / 4 || written == 0) fuzz_fail("hardly anything is written");
    printf("%lu inputs, %lu opened, %lu planned, %lu written\n", runs, opened, planned, written);
    return 0;
}
