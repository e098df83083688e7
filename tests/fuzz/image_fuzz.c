/* Feeds damaged ELF files to the image part: `image_fuzz COUNT SEED FILE...`.
 *
 * Each input is one of the files with its headers, section table, dynamic section, symbols, hash
 * tables, unwind tables, relocations or debug sections damaged, or cut short. Everything the part
 * offers is then asked of it, as a file and as an image in memory. Built with the sanitizers; what
 * must hold besides is that procedures are sorted, apart and not empty. The same seed gives the
 * same inputs; a failing one is left in image_fuzz.bad.
 */
#include "damage.h"
#include "image/ctype.h"
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long opened, procedures, lines, types; /* so that one sees that inputs get somewhere */

static void check_procs(image *im)
{
    const image_proc *p;
    size_t count = image_procs(im, &p);
    procedures += count;
    for (size_t i = 0; i < count; i++) {
        if (p[i].size == 0 || p[i].addr + p[i].size < p[i].addr) fuzz_fail("an empty procedure");
        if (i && p[i].addr < p[i - 1].addr + p[i - 1].size) fuzz_fail("overlapping procedures");
        if (image_proc_at(im, p[i].addr + p[i].size - 1) != &p[i]) fuzz_fail("a procedure is not found");
        for (const char *const *a = p[i].aliases; a && *a; a++)
            if (strlen(*a) == 0) fuzz_fail("an empty alias");
    }
    for (size_t i = 0; i < 4 && count; i++) {
        const image_proc *q = &p[fuzz_below(count)];
        const char *file;
        unsigned line;
        char text[64];
        image_proc_named(im, q->name);
        image_demangle(q->name, text, sizeof text);
        if (!image_line_at(im, q->addr, &file, &line)) continue;
        if (strlen(file) == 0) fuzz_fail("an empty file name");
        lines++;
    }
}

/* Spelled out, with what its members are. */
static void look_at(const image_ctype *t, unsigned depth)
{
    const image_member *m;
    char text[100];
    if (!t || !depth) return;
    image_ctype_text(t, text, sizeof text);
    size_t n = image_ctype_members(t, &m);
    for (size_t i = 0; i < n; i++)
        if (m[i].type) look_at(m[i].type, depth - 1);
    if (t->of) look_at(t->of, depth - 1);
    types++;
}

static void look_at_listed(void *arg, const image_listed *v)
{
    (void)arg;
    look_at(v->type, 1);
}

static void check_types(image *im, uint64_t pc)
{
    static const char *const names[] = {"argc", "argv", "text", "n", "i", "values", "table", "main"};
    image_variable v;
    const char *why;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (image_local(im, pc + i, names[i], &v, &why)) look_at(v.type, 3);
        if (image_global(im, pc, names[i], &v, &why)) look_at(v.type, 3);
    }
    image_locals(im, pc, pc & 1, look_at_listed, NULL);
    image_globals(im, look_at_listed, NULL);
    look_at(image_proc_type(im, pc), 3);
    look_at(image_ctype_named(im, pc, "size_t"), 3);
    look_at(image_ctype_named(im, pc, "struct record"), 3);
}

static void exercise(image *im)
{
    const image_section *s;
    const image_segment *g;
    const image_unwind_range *r;
    const uint8_t *bytes;
    uint64_t addr, size;
    opened++;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++) {
        size_t have = image_bytes(im, s[i].addr, &bytes);
        if (strlen(s[i].name) > 4 << 20 || (have && bytes[have - 1] + 1 == 0)) fuzz_fail("unreadable");
    }
    count = image_segments(im, &g);
    for (size_t i = 0; i < count; i++) {
        size_t have = image_bytes(im, g[i].addr, &bytes);
        if (have && bytes[0] + bytes[have - 1] < 0) fuzz_fail("unreadable");
    }
    count = image_unwind_ranges(im, &r);
    for (size_t i = 1; i < count; i++)
        if (r[i].addr <= r[i - 1].addr) fuzz_fail("unwind ranges out of order");
    check_procs(im);
    if (image_symbol(im, "main", &addr, &size)) {
        const char *file;
        unsigned line;
        for (uint64_t i = 0; i < 64; i++) lines += image_line_at(im, addr + i, &file, &line);
        check_types(im, addr);
    }
    image_symbol(im, "stdout", &addr, &size);
}

static void run_one(const fuzz_file *f, int fd, const char *path)
{
    static uint8_t bytes[FUZZ_FILE_SIZE];
    image *im;
    size_t size = fuzz_damage(f, bytes);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) fuzz_fail("no room");
    if (image_open(path, &im, NULL) == INL_OK) {
        exercise(im);
        image_close(im);
    }
    if (fuzz_below(4) == 0 && image_open_memory(bytes, size, "memory", &im, NULL) == INL_OK) {
        exercise(im);
        image_close(im);
    }
}

int main(int argc, char **argv)
{
    fuzz_file files[8];
    size_t count = 0;
    char path[64];
    if (argc < 4) return 2;
    unsigned long runs = strtoul(argv[1], NULL, 10);
    fuzz_begin("image_fuzz", strtoull(argv[2], NULL, 10));
    for (int i = 3; i < argc && count < 8; i++) fuzz_load(&files[count++], argv[i], false);
    int fd = memfd_create("image_fuzz", MFD_CLOEXEC);
    if (fd < 0) return 2;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (unsigned long i = 0; i < runs; i++) {
        alarm(20); /* one input takes milliseconds */
        run_one(&files[fuzz_below(count)], fd, path);
    }
    for (size_t i = 0; i < count; i++) free(files[i].bytes);
    printf("%lu inputs, %lu opened, %lu procedures, %lu lines, %lu types\n", runs, opened, procedures, lines, types);
    return 0;
}
