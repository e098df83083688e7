/* Where an image's thread-local variables lie, as seen from the thread pointer.
 *
 * The program's own block lies at a distance that its file says. That of a library is chosen by the dynamic linker; it
 * stands in the words by which the library's code (or another's) reaches variables without asking the linker
 * (R_..._TPOFF). A library that has no such word asks each time, and its blocks may come late: with its number, which
 * the linker writes where the library keeps it (R_..._DTPMOD). */
#include "image/file.h"

/* Of one of this image's variables; false: of another image's. */
static bool within_block(const image_symtab *t, const image_reloc *r, int64_t *at)
{
    Elf64_Sym s = {0};
    if (r->symbol >= t->count && r->symbol) return false;
    if (r->symbol) memcpy(&s, t->symbols + (size_t)r->symbol * sizeof s, sizeof s);
    *at = (int64_t)(s.st_value + r->addend);
    return !r->symbol || s.st_shndx != SHN_UNDEF;
}

bool image_tls_place(image *im, image_tls *out)
{
    const image_processor *m = image_processor_of(im);
    const Elf64_Phdr *p = &im->tls_header;
    const image_reloc *list;
    image_symtab t;
    *out = (image_tls){0};
    if (!m || !p->p_memsz) return false;
    uint64_t mask = (p->p_align ? p->p_align : 1) - 1;
    out->program = m->tls_above ? (int64_t)(m->tls_above + ((p->p_vaddr - m->tls_above) & mask))
                                : -(int64_t)(p->p_memsz + ((-p->p_vaddr - p->p_memsz) & mask));
    if (!image_find_dynsym(im, &t)) t.count = 0;
    out->table = m->tls_table;
    for (size_t k = 0, n = image_relocs(im, &list); k < n && !out->slot; k++) {
        int64_t at;
        if (list[k].type == m->tls_offset && within_block(&t, &list[k], &out->slot_of)) out->slot = list[k].offset;
        if (list[k].type == m->tls_module && within_block(&t, &list[k], &at)) out->module = list[k].offset;
    }
    return true;
}

uint64_t image_tls_initial(image *im, uint64_t *start)
{
    *start = im->tls_header.p_vaddr;
    return im->tls_header.p_filesz;
}
