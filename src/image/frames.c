/* Reading .eh_frame so that it can be written anew.
 *
 * Which entries there are is image_unwind_ranges's answer; here each is decoded as far as is needed to
 * write it at another place, with other pointer encodings, for other addresses: the common entry it
 * refers to, and its program cut into rows. A row is the instructions between two advances; it holds
 * from an address on. The state at a row is what the common entry's instructions and those of all rows
 * up to it make, so a row's state is established anywhere by running them without the advances.
 *
 * What cannot be decoded is never left out: code without unwind entries ends the program when an exception passes
 * it. Such an entry stays where it is, with its common entry; the search table leads there, and the code that it
 * describes does not move (src/move/faults.c).
 */
#include "image/frames.h"
#include "image/reader.h"

/* False: it is not understood, or there is no memory. */
static bool find_cie(image_frames *f, uint64_t addr, uint32_t *index, bool *memory)
{
    uint64_t known;
    if (inl_map_get(&f->cie_at, addr, &known)) {
        *index = (uint32_t)known;
        return true;
    }
    image_cie cie;
    if (!image_cie_at(image_reader_at(f->im, addr).c, &cie) || cie.odd) return false;
    *index = (uint32_t)f->cies.count;
    return *memory = inl_vec_push(&f->cies, cie) && inl_map_put(&f->cie_at, addr, *index);
}

/* Pointers that the dynamic linker would have to relocate stand as zeroes or unrelocated addresses in
 * the file and cannot be told from their values. */
static bool is_relocated(const image *im, uint8_t encoding)
{
    return encoding != IMAGE_PE_OMIT && (encoding & IMAGE_PE_RELATIVE) == IMAGE_PE_ABSPTR &&
           im->view.header.e_type == ET_DYN;
}

static const char odd_entry[] = "its unwind entry is not understood";

/* What is wrong with it; NULL: nothing. */
static const char *read_fde(image_frames *f, const image_unwind_range *range, image_fde *fde, bool *memory)
{
    image_record record;
    image_range_entry entry;
    if (!image_record_at(image_reader_at(f->im, range->fde).c, &record) || !record.whole || record.is_common)
        return odd_entry;
    if (!find_cie(f, record.common, &fde->cie, memory)) return odd_entry;
    const image_cie *cie = &f->cies.items[fde->cie];
    if (is_relocated(f->im, cie->encoding) || is_relocated(f->im, cie->personality_encoding) ||
        is_relocated(f->im, cie->lsda_encoding))
        return "its unwind entry holds addresses to be relocated";
    if (!image_entry_read(&record, cie, f->im->unwind_header.p_vaddr, &entry) || entry.odd) return odd_entry;
    fde->lsda = entry.lsda;
    fde->program = entry.program;
    return NULL;
}

enum { /* DW_CFA_*: the top two bits, or the whole byte */
       CFA_ADVANCE = 0x40,
       CFA_OFFSET = 0x80,
       CFA_RESTORE = 0xc0,
       CFA_SET_LOC = 0x01,
       CFA_ADVANCE1 = 0x02,
       CFA_ADVANCE2 = 0x03,
       CFA_ADVANCE4 = 0x04,
       CFA_ADVANCE8 = 0x1d,
};

/* The operands of the instructions that do not advance: u, an unsigned number; s, signed; b, a block;
 * NULL: not an instruction. */
static const char *operands_of(uint8_t op)
{
    static const char *const table[] = {
        [0x00] = "",   [0x05] = "uu", [0x06] = "u",  [0x07] = "u",  [0x08] = "u",  [0x09] = "uu",
        [0x0a] = "",   [0x0b] = "",   [0x0c] = "uu", [0x0d] = "u",  [0x0e] = "u",  [0x0f] = "b",
        [0x10] = "ub", [0x11] = "us", [0x12] = "us", [0x13] = "s",  [0x14] = "uu", [0x15] = "us",
        [0x16] = "ub", [0x2d] = "",   [0x2e] = "u",  [0x2f] = "uu",
    };
    if ((op & 0xc0) == CFA_OFFSET) return "u";
    if ((op & 0xc0) == CFA_RESTORE) return "";
    return op < sizeof table / sizeof table[0] ? table[op] : NULL;
}

static void skip_operands(image_reader *r, const char *kinds)
{
    if (!kinds) r->bad = true;
    for (; kinds && *kinds; kinds++) {
        uint64_t value = image_next_uleb(r); /* a signed one is as long */
        if (*kinds == 'b') image_next_skip(r, value);
    }
}

/* The address after an advancing instruction; false when it is not one. */
static bool advance(image_reader *r, const image_cie *cie, uint8_t op, uint64_t *addr)
{
    switch (op) {
    case CFA_SET_LOC: *addr = image_next_pointer(r, cie->encoding); return true;
    case CFA_ADVANCE1: *addr += image_next(r, 1) * cie->code_align; return true;
    case CFA_ADVANCE2: *addr += image_next(r, 2) * cie->code_align; return true;
    case CFA_ADVANCE4: *addr += image_next(r, 4) * cie->code_align; return true;
    case CFA_ADVANCE8: *addr += image_next(r, 8) * cie->code_align; return true;
    default:
        if ((op & 0xc0) != CFA_ADVANCE) return false;
        *addr += (op & 0x3f) * cie->code_align;
        return true;
    }
}

/* Adds the rows; false when the program makes no sense. Trailing padding goes with the last row. */
static bool cut_rows(image_frames *f, const image_fde *fde, const image_cie *cie, bool *memory)
{
    image_reader r = {fde->program, false};
    image_row row = {fde->addr, r.c.at, 0};
    uint64_t addr = fde->addr;
    while (image_reader_more(&r)) {
        uint8_t op = (uint8_t)image_next(&r, 1);
        if (!advance(&r, cie, op, &addr)) {
            skip_operands(&r, operands_of(op));
            if (op != 0) row.size = (size_t)(r.c.at - row.bytes); /* a nop at the end is dropped */
            continue;
        }
        if (r.bad || addr < row.addr) return false;
        if (addr == row.addr && row.size == 0) {
            row.bytes = r.c.at;
            continue;
        }
        if (!(*memory = inl_vec_push(&f->rows, row))) return false;
        row = (image_row){addr, r.c.at, 0};
    }
    return !r.bad && (*memory = inl_vec_push(&f->rows, row));
}

inl_status image_frames_rows(image_frames *f, const image_fde *fde, inl_error *e)
{
    bool memory = true;
    f->rows.count = 0;
    if (!fde->fault && cut_rows(f, fde, &f->cies.items[fde->cie], &memory)) return INL_OK;
    if (!memory) return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(f->im));
    return inl_fail_at(e, INL_ERR_FORMAT, fde->addr, "%s: the unwind entry of 0x%lx is not understood",
                       image_path(f->im), fde->addr);
}

bool image_frames_read(image *im, image_frames *f)
{
    const image_unwind_range *ranges;
    size_t count = image_unwind_ranges(im, &ranges);
    bool memory = true;
    *f = (image_frames){.im = im};
    for (size_t i = 0; i < count && memory; i++) {
        image_fde fde = {.addr = ranges[i].addr, .size = ranges[i].size, .record = ranges[i].fde};
        fde.fault = read_fde(f, &ranges[i], &fde, &memory);
        f->rows.count = 0;
        if (memory && !fde.fault && !cut_rows(f, &fde, &f->cies.items[fde.cie], &memory)) fde.fault = odd_entry;
        memory = memory && inl_vec_push(&f->fdes, fde);
    }
    return memory;
}

void image_frames_free(image_frames *f)
{
    inl_vec_free(&f->cies);
    inl_map_free(&f->cie_at);
    inl_vec_free(&f->fdes);
    inl_vec_free(&f->rows);
}
