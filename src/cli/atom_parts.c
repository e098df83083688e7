/* Parts of `inlay atom`: reading an object's symbols. */
#include "cli/atom.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file is the compiler's work; a wrong one is refused all the same. */

static bool within(size_t size, uint64_t at, uint64_t bytes) { return at <= size && bytes <= size - at; }

static bool collect(const char *file, size_t size, atom_symbols *out)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)file;
    if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64) return false;
    if (e->e_shentsize != sizeof(Elf64_Shdr) || !within(size, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
        return false;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + e->e_shoff);
    for (unsigned i = 0; i < e->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];
        if (s->sh_type != SHT_SYMTAB) continue;
        if (s->sh_link >= e->e_shnum || !within(size, s->sh_offset, s->sh_size)) return false;
        const Elf64_Shdr *text = &sections[s->sh_link];
        if (!within(size, text->sh_offset, text->sh_size) || !text->sh_size) return false;
        if (file[text->sh_offset + text->sh_size - 1]) return false;
        const Elf64_Sym *sym = (const Elf64_Sym *)(file + s->sh_offset);
        out->names = calloc(s->sh_size / sizeof *sym + 1, sizeof *out->names);
        out->strong = calloc(s->sh_size / sizeof *sym + 1, sizeof *out->strong);
        if (!out->names || !out->strong) return false;
        for (size_t k = 0; k < s->sh_size / sizeof *sym; k++) {
            unsigned bind = ELF64_ST_BIND(sym[k].st_info);
            if (sym[k].st_shndx == SHN_UNDEF || sym[k].st_name >= text->sh_size || bind == STB_LOCAL) continue;
            const char *name = strdup(file + text->sh_offset + sym[k].st_name);
            if (!name) return false;
            if (bind == STB_GLOBAL) out->strong[out->strong_count++] = name;
            if (ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC) out->names[out->count++] = name;
        }
        return true;
    }
    return true;
}

bool atom_symbols_read(const char *object, atom_symbols *out)
{
    struct stat st;
    bool good = false;
    int fd = open(object, O_RDONLY | O_CLOEXEC);
    *out = (atom_symbols){0};
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            good = collect(file, (size_t)st.st_size, out);
            munmap(file, (size_t)st.st_size);
        }
    }
    if (fd >= 0) close(fd);
    if (!good) cli_say("%s: not an object file with symbols", object);
    return good;
}

bool atom_symbols_have(const atom_symbols *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->names[i], name)) return true;
    return false;
}
