/* Applies a plan to an ELF file: see elf.h for the picture. */
#include "elf/private.h"
#include "base/check.h"

inl_status elf_no_memory(const elf_writer *w, inl_error *e)
{
    return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(w->im));
}

inl_status elf_check_bytes(const elf_writer *w, const inl_bytes *b, inl_error *e)
{
    if (b->failed) return elf_no_memory(w, e);
    if (b->far)
        return inl_fail(e, INL_ERR_RANGE, "%s: something that its unwind tables refer to is out of reach",
                        image_path(w->im));
    return INL_OK;
}

void elf_notice(const elf_writer *w, const char *what)
{
    if (w->options->notice) w->options->notice(w->options->arg, what);
}

bool elf_add_edit(elf_writer *w, uint64_t offset, const void *bytes, size_t size)
{
    elf_edit edit = {offset, size, bytes};
    return inl_vec_push(&w->edits, edit);
}

bool elf_add_area(elf_writer *w, elf_area area) { return area.size == 0 || inl_vec_push(&w->areas, area); }

uint32_t elf_section_at(const elf_writer *w, uint64_t addr, uint32_t type)
{
    const image_view *v = &w->im->view;
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr s;
        image_view_section(v, i, &s);
        if (s.sh_addr == addr && s.sh_flags & SHF_ALLOC && s.sh_size && s.sh_type != SHT_NOBITS &&
            (type == SHT_NULL || s.sh_type == type))
            return i;
    }
    return 0;
}

bool elf_file_offset(const elf_writer *w, uint64_t addr, uint64_t size, uint64_t *offset)
{
    const image_segment *s;
    size_t count = image_segments(w->im, &s);
    for (size_t i = 0; i < count; i++) {
        if (addr < s[i].addr || addr - s[i].addr >= s[i].file_size) continue;
        *offset = s[i].file_offset + (addr - s[i].addr);
        return size <= s[i].file_size - (addr - s[i].addr) && *offset <= w->old_size && size <= w->old_size - *offset;
    }
    return false;
}

Elf64_Phdr *elf_phdr(elf_writer *w, uint32_t type)
{
    for (size_t i = 0; i < w->phdr_count; i++)
        if (w->phdrs[i].p_type == type) return &w->phdrs[i];
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const move_patch *)a)->at.at, y = ((const move_patch *)b)->at.at;
    return x < y ? -1 : x > y;
}

static inl_status take_patches(elf_writer *w, inl_error *e)
{
    elf_target *t = w->target;
    if (t->patches.count) qsort(t->patches.items, t->patches.count, sizeof *t->patches.items, by_address);
    for (size_t i = 0; i < t->patches.count; i++) {
        const move_patch *patch = &t->patches.items[i];
        uint64_t at = patch->at.at - w->plan->bias, offset;
        if (!elf_file_offset(w, at, patch->size, &offset))
            return inl_fail_at(e, INL_ERR_RANGE, at, "%s: 0x%lx is to be patched but not in the file",
                               image_path(w->im), at);
        INL_CHECK(!memcmp(w->old + offset, patch->before, patch->size), "0x%lx is not as it was when it was planned",
                  at);
        if (!elf_add_edit(w, offset, patch->now, patch->size)) return elf_no_memory(w, e);
    }
    return elf_clear_marks(w, e);
}

/* What the run time of the tool reads: without one nobody does. */
static inl_status put_map(elf_writer *w, inl_error *e)
{
    const image_segment *s;
    if (!w->options->has_tool) return INL_OK;
    image_segments(w->im, &s);
    inl_bytes_align(&w->ro, 8);
    w->map_addr = inl_bytes_here(&w->ro);
    size_t at = w->ro.size;
    move_map_put(w->plan, s[0].addr, &w->ro);
    if (w->ro.failed) return elf_no_memory(w, e);
    elf_area area = {.name = ".inlay.map",
                     .type = SHT_PROGBITS,
                     .flags = SHF_ALLOC,
                     .addr = w->map_addr,
                     .size = w->ro.size - at,
                     .align = 8};
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}

static inl_status put_text(elf_writer *w, inl_error *e)
{
    const elf_carry *carry = w->options->carry;
    const move_plan *p = w->plan;
    w->boot.addr = w->text_at + ((p->text_size + 63) & ~(size_t)63);
    elf_area text = {.name = ".inlay.text",
                     .type = SHT_PROGBITS,
                     .flags = SHF_ALLOC | SHF_EXECINSTR,
                     .addr = w->text_at,
                     .size = p->text_size,
                     .align = 64};
    bool good = elf_add_area(w, text);
    if (carry) {
        if (carry->boot_size < sizeof(move_boot_links) || carry->init_at >= carry->boot_size ||
            carry->entry_at >= carry->boot_size)
            return inl_fail(e, INL_ERR_USAGE, "the boot code is not whole");
        inl_bytes_put(&w->boot, carry->boot, carry->boot_size);
        elf_area boot = {.name = ".inlay.boot",
                         .type = SHT_PROGBITS,
                         .flags = SHF_ALLOC | SHF_EXECINSTR,
                         .addr = w->boot.addr,
                         .size = carry->boot_size,
                         .align = 64};
        good = good && elf_add_area(w, boot);
    }
    w->ro.addr = elf_page_up(w->boot.addr + w->boot.size);
    return good && !w->boot.failed ? INL_OK : elf_no_memory(w, e);
}

static inl_status put_carried(elf_writer *w, inl_error *e)
{
    const elf_carry *carry = w->options->carry;
    if (!carry) return INL_OK;
    inl_bytes_align(&w->ro, INL_PAGE); /* so that parts of it can be mapped by themselves */
    w->data_addr = inl_bytes_here(&w->ro);
    inl_bytes_put(&w->ro, carry->data, carry->data_size);
    elf_area area = {.name = ".inlay.data",
                     .type = SHT_PROGBITS,
                     .flags = SHF_ALLOC,
                     .addr = w->data_addr,
                     .size = carry->data_size,
                     .align = INL_PAGE};
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}

static uint64_t lowest_address(const elf_writer *w)
{
    const image_segment *s;
    image_segments(w->im, &s);
    return s[0].addr;
}

/* clang-format off */
static void fill_links(elf_writer *w) {
    const elf_carry *carry = w->options->carry;
    bool preinit = carry && w->dynamic.preinit;
    move_boot_links links = {
        .self = w->boot.addr, .data = w->data_addr, .data_size = carry ? carry->data_size : 0,
        .entry = w->im->view.header.e_entry, .text = w->text_at, .text_size = w->plan->text_size,
        .map = w->map_addr, .bias = w->plan->bias, .low = lowest_address(w), .set = w->options->set,
        .dynamic = preinit,
    };
    if (carry) {
        inl_bytes_set(&w->boot, 0, &links, sizeof links);
        if (!preinit) w->header.e_entry = w->boot.addr + carry->entry_at;
    }
    elf_fill_notes(w, links);
}
/* clang-format on */

/* --- program headers --- */

/* clang-format off */
static Elf64_Phdr segment(const elf_writer *w, uint32_t type, uint32_t flags, uint64_t addr,
                          uint64_t size, uint64_t align) {
    return (Elf64_Phdr){.p_type = type, .p_flags = flags, .p_offset = addr - w->shift, .p_vaddr = addr,
                        .p_paddr = addr, .p_filesz = size, .p_memsz = size, .p_align = align};
}
/* clang-format on */

static void insert_phdr(elf_writer *w, size_t at, Elf64_Phdr p)
{
    memmove(w->phdrs + at + 1, w->phdrs + at, (w->phdr_count - at) * sizeof p);
    w->phdrs[at] = p;
    w->phdr_count++;
}

static void replace_phdr(elf_writer *w, Elf64_Phdr p)
{
    Elf64_Phdr *old = elf_phdr(w, p.p_type);
    if (old) {
        p.p_align = old->p_align;
        p.p_flags = old->p_flags;
        *old = p;
    } else {
        insert_phdr(w, w->phdr_count, p);
    }
}

/* The new segments; where the next program header goes. */
static size_t add_loads(elf_writer *w)
{
    size_t at = 0;
    uint64_t text_size = w->boot.size ? w->boot.addr + w->boot.size - w->text_at : w->plan->text_size;
    for (size_t i = 0; i < w->phdr_count; i++)
        if (w->phdrs[i].p_type == PT_LOAD) at = i + 1;
    if (text_size && w->front.one_segment) text_size = inl_bytes_here(&w->ro) - w->text_at;
    if (text_size) insert_phdr(w, at++, segment(w, PT_LOAD, PF_R | PF_X, w->text_at, text_size, w->isa->page));
    if (!text_size || !w->front.one_segment)
        insert_phdr(w, at++, segment(w, PT_LOAD, PF_R, w->ro.addr, w->ro.size, w->isa->page));
    if (w->rw.size) insert_phdr(w, at++, segment(w, PT_LOAD, PF_R | PF_W, w->rw.addr, w->rw.size, w->isa->page));
    return at;
}

/* Inlay's notes, and those that stand behind them. */
static void add_notes(elf_writer *w)
{
    uint64_t at = w->ro.addr + w->notes_at;
    if (!w->front.notes) {
        insert_phdr(w, w->phdr_count, segment(w, PT_NOTE, PF_R, at, w->notes_size, 4));
        return;
    }
    for (size_t i = 0; i < w->phdr_count; i++) {
        Elf64_Phdr *p = &w->phdrs[i];
        if (p->p_type != PT_NOTE || p->p_vaddr != w->front.notes->to) continue;
        *p = segment(w, PT_NOTE, PF_R, at, p->p_vaddr + p->p_filesz - at, 4);
        return;
    }
}

/* clang-format off */
static inl_status fill_phdrs(elf_writer *w, inl_error *e) {
    add_loads(w);
    if (w->hdr_size) replace_phdr(w, segment(w, PT_GNU_EH_FRAME, PF_R, w->hdr_addr, w->hdr_size, 4));
    add_notes(w);
    const elf_area *a = w->areas.items;
    for (size_t i = 0; i < w->areas.count; i++)
        if (a[i].type == SHT_DYNAMIC)
            replace_phdr(w, segment(w, PT_DYNAMIC, PF_R | PF_W, a[i].addr, a[i].size, 8));
    Elf64_Phdr *own = elf_phdr(w, PT_PHDR);
    uint64_t size = w->phdr_count * sizeof *w->phdrs, addr = w->ro.addr;
    if (w->front.fits) {
        if (!elf_front_put(w, &addr)) return elf_no_memory(w, e);
        if (own) *own = (Elf64_Phdr){.p_type = PT_PHDR, .p_flags = own->p_flags, .p_offset = w->header.e_phoff,
                                     .p_vaddr = addr, .p_paddr = addr, .p_filesz = size, .p_memsz = size, .p_align = 8};
    } else {
        if (own) replace_phdr(w, segment(w, PT_PHDR, PF_R, addr, size, 8));
        w->header.e_phoff = addr - w->shift;
        inl_bytes_set(&w->ro, 0, w->phdrs, size);
    }
    w->header.e_phnum = (uint16_t)w->phdr_count;
    return INL_OK;
}
/* clang-format on */

static void progress(const elf_writer *w, const char *stage, uint64_t done, uint64_t of)
{
    if (w->options->progress) w->options->progress(w->options->arg, stage, done, of);
}

static inl_status lay_out(elf_writer *w, inl_error *e)
{
    inl_status st = take_patches(w, e);
    if (!st) st = put_text(w, e);
    if (st) return st;
    elf_front_plan(w);
    if (!w->front.fits) inl_bytes_reserve(&w->ro, w->phdr_room * sizeof *w->phdrs);
    elf_reserve_notes(w);
    elf_front_move(w);
    progress(w, "unwind tables", 0, 1);
    st = elf_unwind(w, e);
    progress(w, "unwind tables", 1, 1);
    if (!st) st = put_map(w, e);
    if (!st) st = elf_dynamic_begin(w, e);
    if (!st) st = put_carried(w, e);
    if (st) return st;
    if (w->ro.failed) return elf_no_memory(w, e);
    w->rw.addr = elf_page_up(inl_bytes_here(&w->ro));
    st = elf_dynamic_end(w, e);
    if (st) return st;
    fill_links(w);
    st = fill_phdrs(w, e);
    if (st) return st;
    w->tail.addr = (inl_bytes_here(w->rw.size ? &w->rw : &w->ro) - w->shift + 63) & ~63ull;
    st = elf_sections(w, e);
    if (!st && (w->ro.failed || w->rw.failed || w->boot.failed || w->tail.failed)) st = elf_no_memory(w, e);
    return st;
}

inl_status elf_write(elf_target *target, const move_plan *plan, const elf_write_options *options, const char *out,
                     inl_error *e)
{
    static const elf_write_options none;
    elf_writer w = {.target = target,
                    .plan = plan,
                    .isa = &elf_isa_here,
                    .options = options ? options : &none,
                    .im = plan->cfg->image};
    inl_status st = elf_check_output(&w, out, e);
    if (!st) st = elf_check_input(&w, e);
    if (!st) st = lay_out(&w, e);
    if (!st) {
        progress(&w, "writing", 0, 1);
        st = elf_write_file(&w, out, e);
        progress(&w, "writing", 1, 1);
    }
    free(w.phdrs);
    free(w.dynamic.entries);
    inl_vec_free(&w.edits);
    inl_vec_free(&w.areas);
    inl_bytes_free(&w.boot);
    inl_bytes_free(&w.ro);
    inl_bytes_free(&w.rw);
    inl_bytes_free(&w.tail);
    inl_arena_free(&w.arena);
    return st;
}
