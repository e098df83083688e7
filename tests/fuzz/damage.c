#include "damage.h"

#include "image/image.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fuzz_input fuzz_input;
static uint64_t state;

uint64_t fuzz_next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

uint64_t fuzz_below(uint64_t n) { return fuzz_next() % n; }

static void keep_input(void) {
    char path[64];
    snprintf(path, sizeof path, "%s.bad", fuzz_input.fuzzer);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || write(fd, fuzz_input.bytes, fuzz_input.size) < 0) _exit(1);
    close(fd);
}

static void on_signal(int sig) {
    static const char text[] = "the input is in the file .bad\n";
    keep_input();
    if (write(2, text, sizeof text - 1) < 0) _exit(1);
    signal(sig, SIG_DFL);
    raise(sig);
}

void fuzz_fail(const char *why) {
    fprintf(stderr, "%s: %s\n", fuzz_input.fuzzer, why);
    abort();
}

/* The sanitizers call this before they end the program. */
void __asan_on_error(void);
void __asan_on_error(void) { keep_input(); }

void fuzz_begin(const char *fuzzer, uint64_t seed) {
    fuzz_input.fuzzer = fuzzer;
    state = seed * 0x9e3779b97f4a7c15 + 1;
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    signal(SIGFPE, on_signal);
}

static void add_region(fuzz_file *f, uint64_t offset, uint64_t size) {
    if (offset >= f->size || size == 0 || f->region_count == FUZZ_REGIONS) return;
    if (size > f->size - offset) size = f->size - offset;
    f->regions[f->region_count++] = (fuzz_region){offset, size};
}

void fuzz_load(fuzz_file *f, const char *path, bool code) {
    FILE *in = fopen(path, "rb");
    image *im;
    *f = (fuzz_file){0};
    if (!in || image_open(path, &im, NULL) != INL_OK) {
        fprintf(stderr, "%s: %s: not usable\n", fuzz_input.fuzzer, path);
        exit(2);
    }
    f->bytes = malloc(FUZZ_FILE_SIZE);
    f->size = fread(f->bytes, 1, FUZZ_FILE_SIZE, in);
    fclose(in);
    Elf64_Ehdr h;
    memcpy(&h, f->bytes, sizeof h);
    add_region(f, 0, sizeof h);
    add_region(f, h.e_phoff, (uint64_t)h.e_phnum * sizeof(Elf64_Phdr));
    add_region(f, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr));
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++)
        if (s[i].type != SHT_NOBITS && (code || strcmp(s[i].name, ".text") != 0))
            add_region(f, s[i].file_offset, s[i].size);
    image_close(im);
}

static uint64_t odd_number(void) {
    static const uint64_t odd[] = {0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0xffff,
                                   0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                   0x7fffffffffffffff, 0x8000000000000000, ~0ull, ~0ull - 7,
                                   ~0ull << 12};
    return odd[fuzz_below(sizeof odd / sizeof *odd)];
}

/* One place; structures are more often hit than bulk, at their fields. */
static void damage_place(uint8_t *bytes, const fuzz_file *f) {
    const fuzz_region *r = &f->regions[fuzz_below(fuzz_below(8) ? f->region_count : 3)];
    uint64_t at = r->offset + fuzz_below(r->size), value, width = 1ull << fuzz_below(4);
    switch (fuzz_below(4)) {
    case 0: bytes[at] ^= (uint8_t)(1u << fuzz_below(8)); return;
    case 1: value = odd_number(); break;
    case 2: value = fuzz_next(); break;
    default: /* nearly right */
        value = 0;
        at -= (at - r->offset) % width;
        memcpy(&value, bytes + at, width < f->size - at ? width : f->size - at);
        value += fuzz_below(33) - 16;
    }
    at -= (at - r->offset) % width;
    memcpy(bytes + at, &value, width < f->size - at ? width : f->size - at);
}

size_t fuzz_damage(const fuzz_file *f, uint8_t *out) {
    size_t size = f->size;
    memcpy(out, f->bytes, size);
    for (uint64_t n = 1 + fuzz_below(6); n > 0; n--) damage_place(out, f);
    if (fuzz_below(8) == 0) size = fuzz_below(2) ? fuzz_below(size) : fuzz_below(4096);
    fuzz_input.bytes = out;
    fuzz_input.size = size;
    return size;
}
