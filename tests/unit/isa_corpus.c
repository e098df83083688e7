/* Inlay's decoder against Zydis over the machine's own programs and libraries.
 *
 *     unit_isa_corpus            a sample of the largest files, a fixed time at most; CORPUS_FILES in the environment
 *                                says how many
 *     unit_isa_corpus --all      every executable section under /usr/bin and /usr/lib
 *     unit_isa_corpus FILE...    these
 */
#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "isa_zydis.h"

enum { SAMPLE_FILES = 48, SAMPLE_SECONDS = 20, SAMPLE_BYTES = 1 << 20 };

typedef struct file {
    char *path;
    off_t size;
} file;
static file *files;
static size_t file_count, file_room;

static int collect(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    if (kind != FTW_F || st->st_size < (off_t)sizeof(Elf64_Ehdr)) return 0;
    if (file_count == file_room) {
        file_room = file_room ? file_room * 2 : 1024;
        files = realloc(files, file_room * sizeof *files);
        if (!files) abort();
    }
    files[file_count++] = (file){strdup(path), st->st_size};
    return 0;
}

static int larger_first(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return strcmp(x->path, y->path);
}

static void compare_range(const uint8_t *code, size_t size, uint64_t addr, isa_tally *t)
{
    for (size_t at = 0; at < size;) at += isa_zydis_compare(code + at, size - at, addr + at, t);
}

/* Sections when there are any, executable segments otherwise. */
static bool compare_elf(const uint8_t *map, size_t size, size_t limit, isa_tally *t)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)map;
    bool any = false;
    if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != EM_X86_64)
        return false;
    if (e->e_shoff && e->e_shoff + (uint64_t)e->e_shnum * sizeof(Elf64_Shdr) <= size) {
        const Elf64_Shdr *s = (const Elf64_Shdr *)(map + e->e_shoff);
        for (unsigned i = 0; i < e->e_shnum; i++) {
            if (!(s[i].sh_flags & SHF_EXECINSTR) || s[i].sh_type != SHT_PROGBITS || s[i].sh_offset > size ||
                s[i].sh_size > size - s[i].sh_offset)
                continue;
            compare_range(map + s[i].sh_offset, s[i].sh_size < limit ? s[i].sh_size : limit, s[i].sh_addr, t);
            any = true;
        }
    }
    const Elf64_Phdr *p = (const Elf64_Phdr *)(map + e->e_phoff);
    for (unsigned i = 0; !any && i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && p[i].p_offset + p[i].p_filesz <= size)
            compare_range(map + p[i].p_offset, p[i].p_filesz < limit ? p[i].p_filesz : limit, p[i].p_vaddr, t);
    return true;
}

static bool compare_file(const char *path, size_t limit, isa_tally *t)
{
    struct stat st;
    bool done = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(Elf64_Ehdr)) {
        void *map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            uint64_t before = t->differences;
            done = compare_elf(map, st.st_size, limit, t);
            munmap(map, st.st_size);
            if (t->differences != before) printf("  ^ %" PRIu64 " differences in %s\n", t->differences - before, path);
        }
    }
    close(fd);
    return done;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    bool all = argc == 2 && !strcmp(argv[1], "--all");
    const char *given = getenv("CORPUS_FILES");
    size_t most = given ? strtoul(given, NULL, 10) : SAMPLE_FILES;
    size_t limit = all || argc > 1 ? SIZE_MAX : SAMPLE_BYTES, used = 0;
    isa_tally t = {.limit = 40};
    double start = now();
    isa_zydis_init();
    if (argc > 1 && !all) {
        for (int i = 1; i < argc; i++) used += compare_file(argv[i], limit, &t);
    } else {
        nftw("/usr/bin", collect, 32, FTW_PHYS);
        nftw("/usr/lib", collect, 32, FTW_PHYS);
        if (file_count) qsort(files, file_count, sizeof *files, larger_first);
        for (size_t i = 0; i < file_count; i++) {
            if (!all && (used >= most || now() - start > SAMPLE_SECONDS)) break;
            used += compare_file(files[i].path, limit, &t);
        }
    }
    printf("%zu files, %" PRIu64 " instructions, %" PRIu64 " known, %" PRIu64 " unknown, %" PRIu64 " invalid, %" PRIu64
           " differences, %.0f s\n",
           used, t.compared, t.known, t.unknown, t.rejected, t.differences, now() - start);
    return t.differences || !used;
}
