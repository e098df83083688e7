/* Is the input a file that can be rewritten? Everything that the layout takes for granted is looked at
 * here, since the file is not to be trusted: the original's segments stay as they are, so they must be
 * ones that a loader accepts. And where new segments can begin.
 */
#include "elf/private.h"

enum {
    /* New offsets agree with addresses as long as that makes the file, or the address space it takes, no
     * larger than this. */
    hole_limit = 64 << 20,
    gap_limit = 1 << 30,
};
#define SIZE_LIMIT (1ull << 40) /* of a segment, and the highest address */

/* Address - offset of the first segment; false where new segments cannot follow it. */
static bool placement(const image *im, uint64_t *text_at, uint64_t *offset)
{
    const image_segment *s;
    size_t count = image_segments(im, &s);
    uint64_t high = 0, file_end = elf_page_up(im->view.size);
    for (size_t i = 0; i < count; i++) {
        uint64_t end = s[i].addr + s[i].mem_size;
        if (s[i].mem_size > SIZE_LIMIT || end > 1ull << 47) return false;
        if (end > high) high = end;
    }
    high = elf_page_up(high);
    uint64_t shift = inl_page_down(s[0].addr) - inl_page_down(s[0].file_offset);
    uint64_t behind_file = file_end + shift;
    if (behind_file > 1ull << 47) behind_file = high; /* addresses below offsets: cannot agree */
    if (behind_file > high && behind_file - high <= gap_limit) high = behind_file;
    *text_at = high;
    *offset = high - shift;
    bool agree = shift % elf_isa_here.page == 0;
    if (!agree || *offset < file_end || *offset - file_end > hole_limit) *offset = file_end;
    return true;
}

uint64_t elf_new_base(const image *im)
{
    uint64_t text_at, offset;
    return placement(im, &text_at, &offset) ? text_at : 0;
}

/* A run that was saved as a program (unexec: GCL, old Emacs): what was its heap is now among its data, in sections that
 * all have the name of the first. Such a program relies on its new heap's beginning right behind these. */
static bool is_saved_run(image *im)
{
    const image_section *s;
    size_t count = image_sections(im, &s), data = 0;
    for (size_t i = 0; i < count; i++) data += s[i].flags & SHF_ALLOC && !strcmp(s[i].name, ".data");
    return image_type(im) == ET_EXEC && data > 1;
}

/* It may lie anywhere, and no table says how it is relocated: it does that itself, or unpacks itself (UPX), by its own
 * headers, which move. */
static bool places_itself(image *im)
{
    return image_type(im) == ET_DYN && image_is_program(im) && !image_dynamic_info(im)->present;
}

const char *elf_refuses(image *im)
{
    if (elf_isa_here.machine != image_machine(im)) return "it is for another architecture";
    if (!elf_isa_here.linked && (image_interp(im) || !image_is_program(im)))
        return "it is linked dynamically, and for this architecture only static programs can be rewritten yet";
    if (is_saved_run(im))
        return "it is a run that was saved as a program (several sections .data), whose heap must begin right behind "
               "its "
               "data, where new code would lie; use inlay run";
    if (places_itself(im))
        return "it may lie anywhere and has no dynamic section: it relocates or unpacks itself by its headers, which "
               "would "
               "move; use inlay run";
    return NULL;
}

static inl_status check_loads(elf_writer *w, inl_error *e)
{
    const char *path = image_path(w->im);
    uint64_t end = 0;
    for (size_t i = 0; i < w->phdr_count; i++) {
        const Elf64_Phdr *p = &w->phdrs[i];
        if (p->p_type != PT_LOAD) continue;
        if (p->p_memsz > SIZE_LIMIT || p->p_vaddr + p->p_memsz > 1ull << 47)
            return inl_fail_at(e, INL_ERR_FORMAT, p->p_vaddr, "%s: a segment of absurd size", path);
        if (p->p_filesz > p->p_memsz)
            return inl_fail_at(e, INL_ERR_FORMAT, p->p_vaddr,
                               "%s: the segment at 0x%lx is larger in the file than in memory", path, p->p_vaddr);
        if (p->p_filesz && (p->p_offset > w->old_size || p->p_filesz > w->old_size - p->p_offset))
            return inl_fail_at(e, INL_ERR_FORMAT, p->p_vaddr,
                               "%s: cut short: the segment at 0x%lx is "
                               "not all there",
                               path, p->p_vaddr);
        if ((p->p_vaddr - p->p_offset) % INL_PAGE && p->p_memsz)
            return inl_fail_at(e, INL_ERR_FORMAT, p->p_vaddr,
                               "%s: the segment at 0x%lx cannot be mapped: address and file offset "
                               "disagree",
                               path, p->p_vaddr);
        if (p->p_memsz && p->p_vaddr < end)
            return inl_fail_at(e, INL_ERR_FORMAT, p->p_vaddr,
                               "%s: the segment at 0x%lx overlaps another or is out of order", path, p->p_vaddr);
        if (p->p_memsz) end = p->p_vaddr + p->p_memsz;
    }
    return INL_OK;
}

static inl_status check_plan(const elf_writer *w, inl_error *e)
{
    const move_plan *p = w->plan;
    uint64_t base = elf_new_base(w->im);
    if (base == 0) return inl_fail(e, INL_ERR_FORMAT, "%s: a segment of absurd size", image_path(w->im));
    if (w->text_at < base || w->text_at % INL_PAGE || w->text_at > 1ull << 47 || p->text_size > INT32_MAX)
        return inl_fail_at(e, INL_ERR_RANGE, w->text_at, "%s: no room for the new code at 0x%lx", image_path(w->im),
                           w->text_at);
    move_map_walk walk = move_map_from(p, 0);
    uint32_t before = 0;
    for (move_map m; move_map_next(&walk, &m); before = m.new_off)
        if (m.new_off >= p->text_size || m.new_off < before)
            return inl_fail(e, INL_ERR_USAGE, "%s: the plan's map is not in order", image_path(w->im));
    return INL_OK;
}

inl_status elf_check_input(elf_writer *w, inl_error *e)
{
    const image_view *v = &w->im->view;
    const char *why = elf_refuses(w->im);
    if (why) return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: %s", image_path(w->im), why);
    if (w->im->in_memory) return inl_fail(e, INL_ERR_USAGE, "%s: not a file", image_path(w->im));
    w->old = v->data;
    w->old_size = v->size;
    w->header = v->header;
    w->text_at = w->plan->text_addr - w->plan->bias;
    w->phdr_count = v->header.e_phnum;
    w->phdr_room = w->phdr_count + 6;
    w->phdrs = calloc(w->phdr_room, sizeof *w->phdrs);
    if (!w->phdrs) return elf_no_memory(w, e);
    const uint8_t *table = image_view_bytes(v, v->header.e_phoff, w->phdr_count * sizeof *w->phdrs);
    if (!table || w->phdr_room * sizeof *w->phdrs > 65536)
        return inl_fail(e, INL_ERR_FORMAT, "%s: no usable program headers", image_path(w->im));
    memcpy(w->phdrs, table, w->phdr_count * sizeof *w->phdrs);
    inl_status st = check_loads(w, e);
    if (!st) st = check_plan(w, e);
    if (st) return st;
    uint64_t text_at, offset;
    placement(w->im, &text_at, &offset);
    w->shift = text_at - offset;
    return INL_OK;
}
