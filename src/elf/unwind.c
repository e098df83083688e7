/* The new unwind table: entries for moved code, and the original's for what stayed.
 *
 * The original .eh_frame stays where it is (code may know its address: __register_frame_info in static
 * programs) and is not referred to any more: the new section holds all of its entries again, in one
 * encoding, since gdb reads one section only, and then the new ones; .eh_frame_hdr finds all of them, and in
 * the old section those that are not understood.
 * A program that had no .eh_frame_hdr gets one: the C run time looks there for what was not registered.
 *
 * The new code is walked in order of new addresses. It falls into *pieces*: runs of instructions of one
 * moved procedure that one original entry describes and whose rows do not go backwards. Each piece gets an
 * entry of its own; where its first instruction is not the entry's first, its program begins with all that
 * the original's says up to there. Snippets never move the stack pointer, so what holds before an
 * instruction holds during its snippets: a row begins where the snippets before its instruction do.
 */
#include "elf/unwind.h"
#include "base/search.h"

#include <stdlib.h>

/* The place of an address among ascending procedures of the new code. */
typedef struct span {
    uint64_t start, end;
} span;

static int span_order(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static span *moved_spans(const move_plan *p, size_t *count)
{
    span *spans = malloc(((size_t)p->cfg->proc_count + 1) * sizeof *spans);
    *count = 0;
    if (!spans) return NULL;
    for (uint32_t i = 0; i < p->cfg->proc_count; i++) {
        const move_proc *proc = &p->procs[i];
        if (proc->new_addr == 0 || proc->new_size == 0) continue;
        uint64_t at = proc->new_addr - p->bias;
        spans[(*count)++] = (span){at, at + proc->new_size};
    }
    qsort(spans, *count, sizeof *spans, span_order);
    return spans;
}

/* The original entry that covers an address, or NULL. `hint` is where the last one was. */
static const image_fde *covering(const elf_frames *f, uint64_t addr, size_t *hint)
{
    size_t count = f->old.fdes.count;
    const image_fde *items = f->old.fdes.items;
    if (*hint < count && addr >= items[*hint].addr && addr - items[*hint].addr < items[*hint].size &&
        (*hint + 1 == count || addr < items[*hint + 1].addr))
        return &items[*hint];
    size_t behind = INL_FIRST(count, k, items[k].addr > addr);
    if (behind == 0 || addr - items[behind - 1].addr >= items[behind - 1].size) return NULL;
    *hint = behind - 1;
    return &items[behind - 1];
}

static size_t row_of(const image_rows *rows, uint64_t addr, size_t from)
{
    if (rows->items[from].addr > addr) from = 0;
    while (from + 1 < rows->count && rows->items[from + 1].addr <= addr) from++;
    return from;
}

typedef struct walk {
    elf_frames *f;
    span *spans;
    size_t span_count, span;
    size_t hint; /* entry */
    size_t row;  /* of the instruction before */
    const image_fde *open, *rows_of;
    elf_piece piece;
} walk;

static bool close_piece(walk *k, size_t next, uint64_t end)
{
    if (!k->open) return true;
    k->piece.last = next;
    k->piece.end = end;
    k->open = NULL;
    return k->piece.end <= k->piece.start || inl_vec_push(&k->f->pieces, k->piece);
}

static inl_status visit(walk *k, size_t i, const move_map *m, inl_error *e)
{
    elf_frames *f = k->f;
    uint64_t at = f->w->text_at + m->new_off, old = m->old_addr - f->w->plan->bias;
    uint64_t end = at;
    bool left = false;
    while (k->span < k->span_count && k->spans[k->span].end <= at) {
        if (k->open && !left) end = k->spans[k->span].end;
        left = true;
        k->span++;
    }
    if (left && k->open && !close_piece(k, i, end)) return elf_no_memory(f->w, e);
    const image_fde *fde = covering(f, old, &k->hint);
    if (fde != k->open && !close_piece(k, i, at)) return elf_no_memory(f->w, e);
    if (!fde) return INL_OK;
    if (fde != k->rows_of) {
        inl_status st = image_frames_rows(&f->old, fde, e);
        if (st) return st;
        k->rows_of = fde;
        k->row = 0;
    }
    size_t row = row_of(&f->old.rows, old, k->row);
    if (k->open && row < k->row && !close_piece(k, i, at)) return elf_no_memory(f->w, e);
    k->row = row;
    if (!k->open) {
        k->open = fde;
        k->piece = (elf_piece){.start = at, .first = i, .fde = (uint32_t)(fde - f->old.fdes.items)};
    }
    return INL_OK;
}

static inl_status find_pieces(elf_frames *f, inl_error *e)
{
    const move_plan *p = f->w->plan;
    walk k = {.f = f};
    inl_status st = INL_OK;
    k.spans = moved_spans(p, &k.span_count);
    if (!k.spans) return elf_no_memory(f->w, e);
    move_map_walk all = move_map_from(p, 0);
    move_map m;
    for (size_t i = 0; !st && move_map_next(&all, &m); i++) st = visit(&k, i, &m, e);
    uint64_t end = f->w->text_at + p->text_size;
    if (k.span < k.span_count) end = k.spans[k.span].end;
    if (!st && !close_piece(&k, p->map_count, end)) st = elf_no_memory(f->w, e);
    free(k.spans);
    return st;
}

/* --- writing --- */

static void put_cie(elf_frames *f, uint32_t index)
{
    const image_cie *cie = &f->old.cies.items[index];
    inl_bytes *b = &f->w->ro;
    char letters[8] = "z";
    size_t n = 1, start = b->size, size_at;
    f->cie_at[index] = start;
    if (cie->personality) letters[n++] = 'P';
    if (cie->lsda_encoding != IMAGE_PE_OMIT) letters[n++] = 'L';
    letters[n++] = 'R';
    if (cie->signal) letters[n++] = 'S';
    inl_bytes_reserve(b, 4 + 4);
    inl_bytes_number(b, cie->return_reg < 256 ? 1 : 3, 1);
    inl_bytes_put(b, letters, n + 1);
    inl_bytes_uleb(b, 1); /* distances are in bytes */
    inl_bytes_sleb(b, cie->data_align);
    if (cie->return_reg < 256) inl_bytes_number(b, cie->return_reg, 1);
    else inl_bytes_uleb(b, cie->return_reg);
    size_at = inl_bytes_reserve(b, 1);
    if (cie->personality) {
        inl_bytes_number(b, IMAGE_PE_PCREL | IMAGE_PE_SDATA4 | (cie->personality_encoding & IMAGE_PE_INDIRECT), 1);
        inl_bytes_relative(b, cie->personality);
    }
    if (cie->lsda_encoding != IMAGE_PE_OMIT) inl_bytes_number(b, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, 1);
    inl_bytes_number(b, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, 1);
    uint8_t augmentation = (uint8_t)(b->size - size_at - 1);
    inl_bytes_set(b, size_at, &augmentation, 1);
    inl_bytes_put(b, cie->program.at, (size_t)(cie->program.end - cie->program.at));
    inl_bytes_align(b, 8);
    uint32_t size = (uint32_t)(b->size - start - 4);
    inl_bytes_set(b, start, &size, 4);
}

/* All up to the program; the record's offset. */
static size_t begin_fde(elf_frames *f, uint32_t index, uint64_t addr, uint64_t size, uint64_t lsda)
{
    const image_cie *cie = &f->old.cies.items[index];
    inl_bytes *b = &f->w->ro;
    if (f->cie_at[index] == SIZE_MAX) put_cie(f, index);
    size_t start = inl_bytes_reserve(b, 4);
    inl_bytes_number(b, b->size - f->cie_at[index], 4);
    inl_bytes_relative(b, addr);
    if (size > UINT32_MAX / 2) b->far = true;
    inl_bytes_number(b, size, 4);
    bool has_lsda = cie->lsda_encoding != IMAGE_PE_OMIT;
    inl_bytes_uleb(b, has_lsda ? 4 : 0);
    if (has_lsda && lsda) inl_bytes_relative(b, lsda);
    else if (has_lsda) inl_bytes_number(b, 0, 4);
    return start;
}

static void end_fde(inl_bytes *b, size_t start)
{
    inl_bytes_align(b, 8);
    uint32_t size = (uint32_t)(b->size - start - 4);
    inl_bytes_set(b, start, &size, 4);
}

static void put_advance(inl_bytes *b, uint64_t by)
{
    if (by == 0) return;
    if (by < 0x40) {
        inl_bytes_number(b, 0x40 | by, 1);
    } else if (by < 0x100) {
        inl_bytes_number(b, 0x02 | by << 8, 2);
    } else if (by < 0x10000) {
        inl_bytes_number(b, 0x03 | by << 8, 3);
    } else {
        if (by > UINT32_MAX) b->far = true;
        inl_bytes_number(b, 0x04 | by << 8, 5);
    }
}

static inl_status put_old(elf_frames *f, const image_fde *fde, inl_error *e)
{
    inl_bytes *b = &f->w->ro;
    uint64_t at = fde->addr;
    inl_status st = image_frames_rows(&f->old, fde, e);
    if (st) return st;
    size_t number = (size_t)(fde - f->old.fdes.items);
    uint64_t again = number < f->old_lsdas.count ? f->old_lsdas.items[number] : 0;
    size_t start = begin_fde(f, fde->cie, fde->addr, fde->size, again ? again : fde->lsda);
    for (size_t i = 0; i < f->old.rows.count; i++) {
        const image_row *row = &f->old.rows.items[i];
        put_advance(b, row->addr - at);
        inl_bytes_put(b, row->bytes, row->size);
        at = row->addr;
    }
    end_fde(b, start);
    return INL_OK;
}

static inl_status put_piece(elf_frames *f, const elf_piece *piece, inl_error *e)
{
    const image_fde *fde = &f->old.fdes.items[piece->fde];
    const move_plan *p = f->w->plan;
    inl_bytes *b = &f->w->ro;
    inl_status st = image_frames_rows(&f->old, fde, e);
    if (st) return st;
    size_t start = begin_fde(f, fde->cie, piece->start, piece->end - piece->start, piece->lsda);
    size_t done = 0, row = 0; /* rows that are in force; the one of the instruction before */
    uint64_t at = piece->start;
    move_map_walk insns = move_map_from(p, piece->first);
    for (move_map m; insns.next < piece->last && move_map_next(&insns, &m);) {
        row = row_of(&f->old.rows, m.old_addr - p->bias, row);
        bool stub = f->w->isa->is_stub_row(&f->old.rows.items[row]);
        if (done > row && !stub) continue;
        uint64_t here = f->w->text_at + m.new_off;
        put_advance(b, here - at);
        at = here;
        for (; done < row + !stub; done++)
            inl_bytes_put(b, f->old.rows.items[done].bytes, f->old.rows.items[done].size);
        if (stub) f->w->isa->put_stub_row(b, &f->old.rows.items[row], m.old_addr - p->bias);
    }
    end_fde(b, start);
    return INL_OK;
}

typedef struct search_entry {
    uint64_t addr, fde;
} search_entry;

static int search_order(const void *a, const void *b)
{
    const search_entry *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return x->fde < y->fde ? -1 : x->fde > y->fde;
}

static void put_header(elf_writer *w, const search_entry *entries, size_t count)
{
    inl_bytes *b = &w->ro;
    static const uint8_t head[4] = {1, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, 0x03 /* udata4 */,
                                    IMAGE_PE_DATAREL | IMAGE_PE_SDATA4};
    inl_bytes_align(b, 4);
    w->hdr_addr = inl_bytes_here(b);
    inl_bytes_put(b, head, sizeof head);
    inl_bytes_relative(b, w->eh_frame_addr);
    inl_bytes_number(b, count, 4);
    for (size_t i = 0; i < count; i++) {
        int64_t addr = (int64_t)(entries[i].addr - w->hdr_addr);
        int64_t fde = (int64_t)(entries[i].fde - w->hdr_addr);
        if (addr != (int32_t)addr || fde != (int32_t)fde) b->far = true;
        inl_bytes_number(b, (uint64_t)addr, 4);
        inl_bytes_number(b, (uint64_t)fde, 4);
    }
    w->hdr_size = inl_bytes_here(b) - w->hdr_addr;
}

static bool has_return(const elf_writer *w) { return w->options->carry && w->options->carry->return_size; }

static inl_status put_frames(elf_frames *f, search_entry *entries, size_t *written, inl_error *e)
{
    elf_writer *w = f->w;
    size_t count = 0;
    inl_bytes_align(&w->ro, 8);
    w->eh_frame_addr = inl_bytes_here(&w->ro);
    for (size_t i = 0; i < f->old.fdes.count && !w->only_moved; i++) {
        if (f->old.fdes.items[i].fault) continue;
        inl_status st = put_old(f, &f->old.fdes.items[i], e);
        if (st) return st;
        entries[count++].addr = f->old.fdes.items[i].addr;
    }
    for (size_t i = 0; i < f->pieces.count; i++) {
        inl_status st = put_piece(f, &f->pieces.items[i], e);
        if (st) return st;
        entries[count++].addr = f->pieces.items[i].start;
    }
    if (has_return(w)) {
        const elf_carry *carry = w->options->carry;
        entries[count++].addr = w->boot.addr + carry->return_at;
        w->isa->put_return(&w->ro, w->boot.addr + carry->return_at, carry->return_size);
    }
    inl_bytes_number(&w->ro, 0, 4); /* ends the table */
    *written = count;
    return INL_OK;
}

/* Entries that stay where they are; how many entries there are then. */
static size_t add_others(const elf_frames *f, search_entry *entries, size_t count)
{
    const image_unwind_range *unread;
    size_t n = image_unwind_unread(f->w->im, &unread);
    if (f->w->only_moved) return count;
    for (size_t i = 0; i < f->old.fdes.count; i++)
        if (f->old.fdes.items[i].fault)
            entries[count++] = (search_entry){f->old.fdes.items[i].addr, f->old.fdes.items[i].record};
    for (size_t i = 0; i < n; i++) entries[count++] = (search_entry){unread[i].addr, unread[i].fde};
    return count;
}

/* The records' addresses, in the order in which put_frames wrote them. */
static void note_records(const elf_writer *w, search_entry *entries)
{
    size_t at = (size_t)(w->eh_frame_addr - w->ro.addr);
    for (size_t i = 0;;) {
        uint32_t size, id;
        memcpy(&size, w->ro.data + at, 4);
        if (size == 0) break;
        memcpy(&id, w->ro.data + at + 4, 4);
        if (id != 0) entries[i++].fde = w->ro.addr + at;
        at += 4 + (size_t)size;
    }
}

/* Tables for old code that has moved, for whoever comes by with an original address. */
static inl_status put_old_lsdas(elf_frames *f, inl_error *e)
{
    const move_plan *p = f->w->plan;
    for (size_t i = 0; i < f->old.fdes.count; i++) {
        const image_fde *fde = &f->old.fdes.items[i];
        elf_piece old = {.start = fde->addr, .end = fde->addr + fde->size, .fde = (uint32_t)i, .is_old = true};
        inl_status st = INL_OK;
        bool moved = move_new_address(p, move_assume(p, (link_addr){fde->addr}), false).at != 0;
        if (fde->lsda && moved) st = elf_put_lsda(f, &old, e);
        if (st) return st;
        if (!inl_vec_push(&f->old_lsdas, old.lsda)) return elf_no_memory(f->w, e);
    }
    return INL_OK;
}

static inl_status put_lsdas(elf_frames *f, inl_error *e)
{
    elf_writer *w = f->w;
    inl_bytes_align(&w->ro, 4);
    uint64_t from = inl_bytes_here(&w->ro);
    for (size_t i = 0; i < f->pieces.count; i++) {
        if (!f->old.fdes.items[f->pieces.items[i].fde].lsda) continue;
        inl_status st = elf_put_lsda(f, &f->pieces.items[i], e);
        if (st) return st;
    }
    inl_status st = f->w->plan->tells_states && !w->only_moved ? put_old_lsdas(f, e) : INL_OK;
    if (st) return st;
    elf_area area = {.name = ".inlay.except",
                     .type = SHT_PROGBITS,
                     .flags = SHF_ALLOC,
                     .addr = from,
                     .size = inl_bytes_here(&w->ro) - from,
                     .align = 4};
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}

/* clang-format off */
static inl_status put_all(elf_frames *f, inl_error *e) {
    elf_writer *w = f->w;
    const image_unwind_range *unread;
    size_t count = f->old.fdes.count + f->pieces.count + image_unwind_unread(w->im, &unread);
    inl_status st = put_lsdas(f, e);
    if (st) return st;
    search_entry *entries = calloc(count + 2, sizeof *entries);
    if (!entries) return elf_no_memory(w, e);
    st = put_frames(f, entries, &count, e);
    uint64_t frame_size = inl_bytes_here(&w->ro) - w->eh_frame_addr;
    if (!st) st = elf_check_bytes(w, &w->ro, e);
    if (!st) {
        note_records(w, entries);
        count = add_others(f, entries, count);
        qsort(entries, count, sizeof *entries, search_order);
        put_header(w, entries, count);
        elf_area frame = {.name = ".eh_frame", .type = SHT_PROGBITS, .flags = SHF_ALLOC,
                              .addr = w->eh_frame_addr, .size = frame_size, .align = 8};
        elf_area header = {.name = ".eh_frame_hdr", .type = SHT_PROGBITS, .flags = SHF_ALLOC,
                               .addr = w->hdr_addr, .size = w->hdr_size, .align = 4};
        const Elf64_Phdr *old = elf_phdr(w, PT_GNU_EH_FRAME);
        if (old) header.replaces = elf_section_at(w, old->p_vaddr, SHT_NULL);
        if (!elf_add_area(w, frame) || !elf_add_area(w, header)) st = elf_no_memory(w, e);
    }
    free(entries);
    return st;
}
/* clang-format on */

static inl_status write_frames(elf_frames *f, inl_error *e)
{
    size_t cies = f->old.cies.count;
    f->cie_at = inl_arena_alloc(&f->w->arena, (cies + 1) * sizeof *f->cie_at);
    if (!f->cie_at) return elf_no_memory(f->w, e);
    memset(f->cie_at, 0xff, cies * sizeof *f->cie_at);
    inl_status st = find_pieces(f, e);
    return st ? st : put_all(f, e);
}

inl_status elf_unwind_of_return(elf_writer *w, inl_error *e)
{
    elf_frames f = {.w = w};
    search_entry entry;
    size_t count;
    inl_status st = put_frames(&f, &entry, &count, e);
    if (st) return st;
    note_records(w, &entry);
    put_header(w, &entry, count);
    return elf_check_bytes(w, &w->ro, e);
}

inl_status elf_unwind(elf_writer *w, inl_error *e)
{
    elf_frames f = {.w = w};
    inl_status st = image_frames_read(w->im, &f.old) ? INL_OK : elf_no_memory(w, e);
    if (!st && f.old.fdes.count) st = write_frames(&f, e);
    inl_vec_free(&f.pieces);
    inl_vec_free(&f.old_lsdas);
    image_frames_free(&f.old);
    return st;
}
