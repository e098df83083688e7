/* Feeds damaged ELF files to the image part: `image_fuzz COUNT SEED FILE...`.
 *
 * Each input is one of the files with its headers, section table, dynamic section, symbols, hash
 * tables, unwind tables, relocations or debug sections damaged, or cut short. Everything the part
 * offers is then asked of it, as a file and as an image in memory. Built with the sanitizers; what
 * must hold besides is that procedures are sorted, apart and not empty. The same seed gives the
 * same inputs; a failing one is left in image_fuzz.bad.
 */
#include "image/image.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct region {
    uint64_t offset, size;
} region;

typedef struct seed_file {
    uint8_t *bytes;
    size_t size;
    region regions[64];
    size_t region_count;
} seed_file;

static uint64_t state;
static const uint8_t *current;
static size_t current_size;
static unsigned long opened, procedures, lines; /* so that one sees that inputs get somewhere */

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t n) { return next() % n; }

static void keep_input(void) {
    int fd = open("image_fuzz.bad", O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || write(fd, current, current_size) < 0) _exit(1);
    close(fd);
}

static void on_signal(int sig) {
    static const char text[] = "image_fuzz: the input is in image_fuzz.bad\n";
    keep_input();
    if (write(2, text, sizeof text - 1) < 0) _exit(1);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void fail(const char *why) {
    fprintf(stderr, "image_fuzz: %s\n", why);
    abort();
}

static void add_region(seed_file *f, uint64_t offset, uint64_t size) {
    if (offset >= f->size || size == 0 || f->region_count == 64) return;
    if (size > f->size - offset) size = f->size - offset;
    f->regions[f->region_count++] = (region){offset, size};
}

static void load(seed_file *f, const char *path) {
    FILE *in = fopen(path, "rb");
    image *im;
    *f = (seed_file){0};
    if (!in || image_open(path, &im, NULL) != INL_OK) {
        fprintf(stderr, "image_fuzz: %s: not usable\n", path);
        exit(2);
    }
    f->bytes = malloc(4 << 20);
    f->size = fread(f->bytes, 1, 4 << 20, in);
    fclose(in);
    Elf64_Ehdr h;
    memcpy(&h, f->bytes, sizeof h);
    add_region(f, 0, sizeof h);
    add_region(f, h.e_phoff, (uint64_t)h.e_phnum * sizeof(Elf64_Phdr));
    add_region(f, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr));
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++)
        if (s[i].type != SHT_NOBITS && strcmp(s[i].name, ".text") != 0)
            add_region(f, s[i].file_offset, s[i].size);
    image_close(im);
}

static uint64_t odd_number(void) {
    static const uint64_t odd[] = {0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0xffff,
                                   0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                   0x7fffffffffffffff, 0x8000000000000000, ~0ull, ~0ull - 7,
                                   ~0ull << 12};
    return odd[below(sizeof odd / sizeof *odd)];
}

/* Damages one place of the file; structures are more often hit than bulk, at their fields. */
static void damage(uint8_t *bytes, const seed_file *f) {
    const region *r = &f->regions[below(below(8) ? f->region_count : 3)];
    uint64_t at = r->offset + below(r->size), value, width = 1ull << below(4);
    switch (below(4)) {
    case 0: bytes[at] ^= (uint8_t)(1u << below(8)); return;
    case 1: value = odd_number(); break;
    case 2: value = next(); break;
    default: /* nearly right */
        value = 0;
        at -= (at - r->offset) % width;
        memcpy(&value, bytes + at, width < f->size - at ? width : f->size - at);
        value += below(33) - 16;
    }
    at -= (at - r->offset) % width;
    memcpy(bytes + at, &value, width < f->size - at ? width : f->size - at);
}

static void check_procs(image *im) {
    const image_proc *p;
    size_t count = image_procs(im, &p);
    procedures += count;
    for (size_t i = 0; i < count; i++) {
        if (p[i].size == 0 || p[i].addr + p[i].size < p[i].addr) fail("an empty procedure");
        if (i && p[i].addr < p[i - 1].addr + p[i - 1].size) fail("overlapping procedures");
        if (image_proc_at(im, p[i].addr + p[i].size - 1) != &p[i]) fail("a procedure is not found");
        for (const char *const *a = p[i].aliases; a && *a; a++)
            if (strlen(*a) == 0) fail("an empty alias");
    }
    for (size_t i = 0; i < 4 && count; i++) {
        const image_proc *q = &p[below(count)];
        const char *file;
        unsigned line;
        char text[64];
        image_proc_named(im, q->name);
        image_demangle(q->name, text, sizeof text);
        if (!image_line_at(im, q->addr, &file, &line)) continue;
        if (strlen(file) == 0) fail("an empty file name");
        lines++;
    }
}

static void exercise(image *im) {
    const image_section *s;
    const image_segment *g;
    const image_unwind_range *r;
    const uint8_t *bytes;
    uint64_t addr, size;
    opened++;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++) {
        size_t have = image_bytes(im, s[i].addr, &bytes);
        if (strlen(s[i].name) > 4 << 20 || (have && bytes[have - 1] + 1 == 0)) fail("unreadable");
    }
    count = image_segments(im, &g);
    for (size_t i = 0; i < count; i++) {
        size_t have = image_bytes(im, g[i].addr, &bytes);
        if (have && bytes[0] + bytes[have - 1] < 0) fail("unreadable");
    }
    count = image_unwind_ranges(im, &r);
    for (size_t i = 1; i < count; i++)
        if (r[i].addr <= r[i - 1].addr) fail("unwind ranges out of order");
    check_procs(im);
    if (image_symbol(im, "main", &addr, &size)) {
        const char *file;
        unsigned line;
        for (uint64_t i = 0; i < 64; i++) lines += image_line_at(im, addr + i, &file, &line);
    }
    image_symbol(im, "stdout", &addr, &size);
}

static void run_one(const seed_file *f, int fd, const char *path) {
    static uint8_t bytes[4 << 20];
    image *im;
    size_t size = f->size;
    memcpy(bytes, f->bytes, size);
    for (uint64_t n = 1 + below(6); n > 0; n--) damage(bytes, f);
    if (below(8) == 0) size = below(2) ? below(size) : below(4096);
    current = bytes;
    current_size = size;
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) fail("no room");
    if (image_open(path, &im, NULL) == INL_OK) {
        exercise(im);
        image_close(im);
    }
    if (below(4) == 0 && image_open_memory(bytes, size, "memory", &im, NULL) == INL_OK) {
        exercise(im);
        image_close(im);
    }
}

/* The sanitizers call this before they end the program. */
void __asan_on_error(void);
void __asan_on_error(void) { keep_input(); }

int main(int argc, char **argv) {
    seed_file files[8];
    size_t count = 0;
    char path[64];
    if (argc < 4) return 2;
    unsigned long runs = strtoul(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    for (int i = 3; i < argc && count < 8; i++) load(&files[count++], argv[i]);
    int fd = memfd_create("image_fuzz", MFD_CLOEXEC);
    if (fd < 0) return 2;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    signal(SIGFPE, on_signal);
    for (unsigned long i = 0; i < runs; i++) {
        alarm(20); /* one input takes milliseconds */
        run_one(&files[below(count)], fd, path);
    }
    for (size_t i = 0; i < count; i++) free(files[i].bytes);
    printf("%lu inputs, %lu opened, %lu procedures, %lu lines\n", runs, opened, procedures, lines);
    return 0;
}
