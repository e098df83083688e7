/* What the file of an object says of it: its segments, how it was linked, how its symbols are bound. */
#include "atom/state.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct view {
    const char *bytes;
    size_t size;
} view;

/* Of no file, and of one that is not as it should be: nothing, which every question answers with 0. */
static view map_file(inlay_image *i)
{
    view v = {NULL, 0};
    struct stat st;
    int fd = open(inlay_image_path(i), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof(Elf64_Ehdr)) {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) v = (view){at, (size_t)st.st_size};
    }
    if (fd >= 0) close(fd);
    return v;
}

static void unmap(view v)
{
    if (v.bytes) munmap((void *)v.bytes, v.size);
}

static const void *at(view v, uint64_t offset, uint64_t bytes)
{
    return offset <= v.size && bytes <= v.size - offset ? v.bytes + offset : NULL;
}

/* --- segments, linking --- */

static void add_load(atom_file *f, const Elf64_Phdr *h, uint64_t bias)
{
    uint64_t from = h->p_vaddr + bias;
    if (h->p_flags & PF_X && !f->text_size) {
        f->text = from;
        f->text_size = h->p_memsz;
    } else if (h->p_flags & PF_W && !f->data_size) {
        f->data = from;
        f->data_size = h->p_filesz;
        f->bss = from + h->p_filesz;
        f->bss_size = h->p_memsz - h->p_filesz;
    }
}

static bool is_symbolic(view v, const Elf64_Phdr *h)
{
    const Elf64_Dyn *d = at(v, h->p_offset, h->p_filesz);
    for (size_t k = 0; d && k < h->p_filesz / sizeof *d && d[k].d_tag != DT_NULL; k++)
        if (d[k].d_tag == DT_SYMBOLIC || (d[k].d_tag == DT_FLAGS && d[k].d_un.d_val & DF_SYMBOLIC)) return true;
    return false;
}

atom_file atom_file_of(inlay_image *i)
{
    atom_file f = {0};
    view v = map_file(i);
    const Elf64_Ehdr *e = at(v, 0, sizeof *e);
    for (unsigned k = 0; e && k < e->e_phnum; k++) {
        const Elf64_Phdr *h = at(v, e->e_phoff + k * sizeof *h, sizeof *h);
        if (!h) break;
        if (h->p_type == PT_LOAD) add_load(&f, h, inlay_image_bias(i));
        if (h->p_type == PT_INTERP) f.interpreted = true;
        if (h->p_type == PT_DYNAMIC) f.symbolic = is_symbolic(v, h);
    }
    unmap(v);
    return f;
}

/* --- symbols --- */

static ProcSymResType kind_of(const Elf64_Sym *s)
{
    if (s->st_shndx == SHN_UNDEF) return SYMRES_EXTERN;
    if (ELF64_ST_BIND(s->st_info) == STB_WEAK) return SYMRES_EXPORT_WEAK;
    return ELF64_ST_BIND(s->st_info) == STB_LOCAL ? SYMRES_STATIC : SYMRES_EXPORT;
}

/* In one table of symbols; SYMRES_NONE: not there. */
static ProcSymResType look_up(view v, const Elf64_Shdr *table, const Elf64_Shdr *names, const char *name)
{
    const Elf64_Sym *s = at(v, table->sh_offset, table->sh_size);
    const char *text = at(v, names->sh_offset, names->sh_size);
    if (!s || !text || !names->sh_size || text[names->sh_size - 1]) return SYMRES_NONE;
    for (size_t k = 0; k < table->sh_size / sizeof *s; k++)
        if (s[k].st_name < names->sh_size && !strcmp(text + s[k].st_name, name)) return kind_of(&s[k]);
    return SYMRES_NONE;
}

ProcSymResType atom_file_binding(inlay_image *i, const char *name)
{
    ProcSymResType found = SYMRES_NONE;
    view v = map_file(i);
    const Elf64_Ehdr *e = at(v, 0, sizeof *e);
    const Elf64_Shdr *h = e ? at(v, e->e_shoff, (uint64_t)e->e_shnum * sizeof *h) : NULL;
    for (unsigned k = 0; h && k < e->e_shnum && found == SYMRES_NONE; k++)
        if ((h[k].sh_type == SHT_SYMTAB || h[k].sh_type == SHT_DYNSYM) && h[k].sh_link < e->e_shnum)
            found = look_up(v, &h[k], &h[h[k].sh_link], name);
    unmap(v);
    return found;
}
