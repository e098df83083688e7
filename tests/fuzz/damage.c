#include "damage.h"

#include "image/file.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fuzz_input fuzz_input;
static uint64_t state;

uint64_t fuzz_next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

uint64_t fuzz_below(uint64_t n) { return fuzz_next() % n; }

static void keep_input(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s.bad", fuzz_input.fuzzer);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || write(fd, fuzz_input.bytes, fuzz_input.size) < 0) _exit(1);
    close(fd);
}

static void on_signal(int sig)
{
    static const char text[] = "the input is in the file .bad\n";
    keep_input();
    if (write(2, text, sizeof text - 1) < 0) _exit(1);
    signal(sig, SIG_DFL);
    raise(sig);
}

void fuzz_fail(const char *why)
{
    fprintf(stderr, "%s: %s\n", fuzz_input.fuzzer, why);
    abort();
}

/* The sanitizers call this before they end the program. */
void __asan_on_error(void);
void __asan_on_error(void) { keep_input(); }

void fuzz_begin(const char *fuzzer, uint64_t seed)
{
    fuzz_input.fuzzer = fuzzer;
    state = seed * 0x9e3779b97f4a7c15 + 1;
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    signal(SIGFPE, on_signal);
}

static void add_region(fuzz_file *f, uint64_t offset, uint64_t size, fuzz_kind kind)
{
    if (offset >= f->size || size == 0 || f->region_count == FUZZ_REGIONS) return;
    if (size > f->size - offset) size = f->size - offset;
    f->regions[f->region_count++] = (fuzz_region){offset, size, kind};
}

static fuzz_kind kind_of(const Elf64_Shdr *s, const char *name)
{
    if (s->sh_type == SHT_RELA) return FUZZ_RELOCS;
    if (s->sh_type == SHT_DYNAMIC) return FUZZ_DYNAMIC;
    if (s->sh_type == SHT_NOTE) return FUZZ_NOTES;
    if (strcmp(name, ".eh_frame") == 0) return FUZZ_FRAMES;
    return strncmp(name, ".gcc_except", 11) == 0 ? FUZZ_EXCEPT : FUZZ_BYTES;
}

void fuzz_load(fuzz_file *f, const char *path, bool code)
{
    FILE *in = fopen(path, "rb");
    image_view v;
    *f = (fuzz_file){.bytes = malloc(FUZZ_FILE_SIZE)};
    if (in && f->bytes) f->size = fread(f->bytes, 1, FUZZ_FILE_SIZE, in);
    if (in) fclose(in);
    if (!f->size || image_view_open(&v, f->bytes, f->size, path, NULL) != INL_OK) {
        fprintf(stderr, "%s: %s: not usable\n", fuzz_input.fuzzer, path);
        exit(2);
    }
    const Elf64_Ehdr *h = &v.header;
    add_region(f, 0, sizeof *h, FUZZ_BYTES);
    add_region(f, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr), FUZZ_BYTES);
    add_region(f, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), FUZZ_BYTES);
    for (uint32_t i = 1; i < v.section_count; i++) {
        Elf64_Shdr s;
        image_view_section(&v, i, &s);
        const char *name = image_view_section_name(&v, &s);
        if (s.sh_type != SHT_NOBITS && (code || strcmp(name, ".text") != 0))
            add_region(f, s.sh_offset, s.sh_size, kind_of(&s, name));
    }
}

/* clang-format off */
static uint64_t odd_number(void) {
    static const uint64_t odd[] = {0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0xffff,
                                   0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                   0x7fffffffffffffff, 0x8000000000000000, ~0ull, ~0ull - 7,
                                   ~0ull << 12};
    return odd[fuzz_below(sizeof odd / sizeof *odd)];
}
/* clang-format on */

/* --- records: still well formed but for one field --- */

typedef struct span {
    uint8_t *at;
    size_t size;
} span;

/* A number of `size` bytes becomes an odd one, or one nearby. */
static void damage_number(span s, size_t at, size_t size)
{
    uint64_t value = 0;
    if (size > s.size || at > s.size - size) return;
    memcpy(&value, s.at + at, size);
    value = fuzz_below(3) ? value + fuzz_below(65) - 32 : odd_number();
    memcpy(s.at + at, &value, size);
}

/* A call frame record: its length, what it refers to, its pointers, a letter, an instruction. */
static void damage_frames(span s)
{
    size_t at = 0, skip = fuzz_below(64);
    uint32_t length;
    for (; at + 4 <= s.size; at += 4 + (size_t)length) {
        memcpy(&length, s.at + at, 4);
        if (length == 0 || length > s.size - at - 4 || skip-- == 0) break;
    }
    if (at + 24 > s.size) return;
    static const uint8_t odd[] = {0,    1,    2,   4,   0x0d, 0x0f, 0x10, 0x16, 0x1d, 0x2d, 0x2f, 0x40, 0x80,
                                  0xc0, 0xff, 'z', 'P', 'L',  'R',  'S',  'B',  0x1b, 0x9b, 0x3b, 0x50};
    switch (fuzz_below(4)) {
    case 0: damage_number(s, at + 4 * fuzz_below(4), 4); return;
    case 1: damage_number(s, at, 4); return;
    default: s.at[at + 8 + fuzz_below(s.size - at - 8 < 40 ? s.size - at - 8 : 40)] = odd[fuzz_below(sizeof odd)];
    }
}

/* An entry of fixed size: what kind of thing it is, or one of its numbers. */
static void damage_entry(span s, size_t size, size_t kind_at, const uint8_t *kinds, size_t kind_count)
{
    if (s.size < size) return;
    size_t at = fuzz_below(s.size / size) * size, other = fuzz_below(s.size / size) * size;
    switch (fuzz_below(4)) {
    case 0: s.at[at + kind_at] = kinds[fuzz_below(kind_count)]; return;
    case 1: memcpy(s.at + at + 8 * (size / 8 - 1), s.at + other + 8 * (size / 8 - 1), 8); return;
    case 2: memcpy(s.at + at, s.at + other, 8); return;
    default: damage_number(s, at + 8 * fuzz_below(size / 8), 8);
    }
}

static void damage_record(span s, fuzz_kind kind)
{
    static const uint8_t relocs[] = {R_X86_64_NONE,     R_X86_64_64,       R_X86_64_PC32,
                                     R_X86_64_COPY,     R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT,
                                     R_X86_64_RELATIVE, R_X86_64_DTPMOD64, R_X86_64_IRELATIVE};
    static const uint8_t tags[] = {
        DT_NULL,    DT_NEEDED,     DT_HASH,         DT_STRTAB,  DT_SYMTAB, DT_RELA,          DT_RELASZ,
        DT_RELAENT, DT_STRSZ,      DT_INIT,         DT_FINI,    DT_SONAME, DT_RPATH,         DT_TEXTREL,
        DT_JMPREL,  DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_RUNPATH, DT_FLAGS,  DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ};
    switch (kind) {
    case FUZZ_FRAMES: damage_frames(s); return;
    case FUZZ_RELOCS: damage_entry(s, 24, 8, relocs, sizeof relocs); return;
    case FUZZ_DYNAMIC: damage_entry(s, 16, 0, tags, sizeof tags); return;
    case FUZZ_NOTES: damage_number(s, 4 * fuzz_below(4), 4); return;
    default: damage_number(s, fuzz_below(s.size), 1);
    }
}

/* One place; structures are more often hit than bulk, at their fields. */
static void damage_place(uint8_t *bytes, const fuzz_file *f)
{
    const fuzz_region *r = &f->regions[fuzz_below(fuzz_below(8) ? f->region_count : 3)];
    if (r->kind != FUZZ_BYTES && fuzz_below(4)) {
        damage_record((span){bytes + r->offset, r->size}, r->kind);
        return;
    }
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

size_t fuzz_damage(const fuzz_file *f, uint8_t *out)
{
    size_t size = f->size;
    memcpy(out, f->bytes, size);
    for (uint64_t n = 1 + fuzz_below(6); n > 0; n--) damage_place(out, f);
    if (fuzz_below(8) == 0) size = fuzz_below(2) ? fuzz_below(size) : fuzz_below(4096);
    fuzz_input.bytes = out;
    fuzz_input.size = size;
    return size;
}
