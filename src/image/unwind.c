/* The ranges of .eh_frame, read without section headers where need be.
 *
 *     length  id      body                     id 0: a CIE; else an FDE, its CIE stands at
 *     4       4       length - 4               (address of id) - id
 *
 * The section is read from its start to its end. Where sections are stripped, .eh_frame_hdr
 * (PT_GNU_EH_FRAME) leads to its start, and a zero length ends it. Should that give fewer entries
 * than the header's search table counts, the table's entries are read as well. Only what is needed
 * for ranges is decoded: pointer encodings and the address of the exception table.
 */
#include "image/file.h"
#include "base/search.h"

#include <stdlib.h>

typedef struct cie {
    uint64_t addr; /* 0: none cached */
    uint8_t pointer_encoding, lsda_encoding;
    bool has_augmentation, usable;
    uint64_t code_align, data_align; /* the second one is signed */
    image_cursor program;
} cie;

typedef struct reader {
    image *im;
    uint64_t header;      /* address of .eh_frame_hdr, base of data-relative pointers */
    uint64_t start, size; /* .eh_frame */
    cie last;
} reader;

/* The record at `addr`: its body after the id. False at the end or when it does not fit. */
static bool record_at(const image *im, uint64_t addr, uint64_t limit, image_cursor *body, uint64_t *id,
                      uint64_t *id_addr)
{
    const uint8_t *bytes;
    size_t have = image_bytes(im, addr, &bytes);
    if (have > limit) have = limit;
    image_cursor c = {bytes, bytes + have, addr};
    uint32_t length;
    uint64_t size, value = 0;
    if (have == 0 || !image_take(&c, &length, 4)) return false;
    size = length;
    if (length == 0xffffffff && !image_take(&c, &size, 8)) return false;
    if (size < 4 || size > (uint64_t)(c.end - c.at)) return false;
    c.end = c.at + size;
    *id_addr = c.addr;
    if (!image_take(&c, &value, 4)) return false; /* four bytes in the long form too */
    *id = value;
    *body = c;
    return true;
}

/* The letters that may stand in an augmentation string after 'z'. */
static bool read_augmentation(const reader *r, image_cursor *c, const char *letters, cie *out)
{
    uint64_t size, personality;
    if (!image_take_leb(c, false, &size) || size > (uint64_t)(c->end - c->at)) return false;
    out->has_augmentation = true;
    out->program = *c;
    image_skip(&out->program, size);
    for (; *letters; letters++) {
        uint8_t encoding;
        switch (*letters) {
        case 'R':
            if (!image_take(c, &out->pointer_encoding, 1)) return false;
            break;
        case 'L':
            if (!image_take(c, &out->lsda_encoding, 1)) return false;
            break;
        case 'P':
            if (!image_take(c, &encoding, 1)) return false;
            image_take_pointer(c, encoding, r->header, &personality); /* its value is of no use */
            break;
        case 'S': /* a signal frame */
        case 'B': /* AArch64: return addresses are signed */
        case 'G': break;
        default: return false;
        }
    }
    return true;
}

static bool read_cie(const reader *r, uint64_t addr, cie *out)
{
    image_cursor c;
    uint64_t id, id_addr, number;
    uint8_t version;
    char letters[16] = "";
    *out = (cie){.addr = addr, .lsda_encoding = IMAGE_PE_OMIT};
    if (!record_at(r->im, addr, ~0ull, &c, &id, &id_addr) || id != 0) return false;
    if (!image_take(&c, &version, 1) || (version != 1 && version != 3 && version != 4)) return false;
    for (size_t i = 0;; i++) {
        if (i == sizeof letters || !image_take(&c, &letters[i], 1)) return false;
        if (!letters[i]) break;
    }
    if (version == 4 && !image_skip(&c, 2)) return false; /* address and segment selector size */
    if (!image_take_leb(&c, false, &out->code_align) || !image_take_leb(&c, true, &out->data_align)) return false;
    if (version == 1 ? !image_skip(&c, 1) : !image_take_leb(&c, false, &number)) return false;
    out->program = c;
    if (letters[0] == 0) return out->usable = true;
    if (letters[0] != 'z') return false;
    return out->usable = read_augmentation(r, &c, letters + 1, out);
}

static bool add_fde(reader *r, uint64_t fde, image_cursor c, uint64_t cie_addr)
{
    image_unwind_range range = {.fde = fde};
    if (r->last.addr != cie_addr) read_cie(r, cie_addr, &r->last);
    if (!r->last.usable) return true;
    uint8_t encoding = r->last.pointer_encoding;
    uint64_t size, end;
    if (!image_take_pointer(&c, encoding, r->header, &range.addr) || !image_take_format(&c, encoding, &range.size))
        return true;
    if (range.size == 0 || !image_executable(r->im, range.addr, &end)) return true;
    if (range.size > end - range.addr) range.size = end - range.addr;
    if (r->last.has_augmentation && image_take_leb(&c, false, &size) && size <= (uint64_t)(c.end - c.at) && size > 0) {
        image_cursor raw = c; /* a zero stands for no table, whatever it would be relative to */
        uint64_t zero;
        if (image_take_format(&raw, r->last.lsda_encoding, &zero) && zero != 0 &&
            !image_take_pointer(&c, r->last.lsda_encoding, r->header, &range.lsda))
            range.lsda = 0;
    }
    return inl_vec_push(&r->im->unwind, range);
}

static void read_section(reader *r, bool stops_at_zero)
{
    uint64_t addr = r->start, left = r->size;
    while (left >= 4) {
        image_cursor body;
        uint64_t id, id_addr;
        if (!record_at(r->im, addr, left, &body, &id, &id_addr)) {
            uint32_t length = 1;
            image_read(r->im, addr, &length, 4);
            if (length != 0 || stops_at_zero) return;
            addr += 4, left -= 4; /* a terminator between the parts of several objects */
            continue;
        }
        if (id != 0 && !add_fde(r, addr, body, id_addr - id)) return;
        uint64_t size = body.addr - addr + (uint64_t)(body.end - body.at);
        addr += size;
        left -= size;
    }
}

/* .eh_frame_hdr: version 1, three encodings, the address of .eh_frame, a count, and a table. */
typedef struct search_header {
    uint64_t frame, count;
    image_cursor table;
    uint8_t encoding;
} search_header;

static bool read_search_header(reader *r, search_header *out)
{
    const uint8_t *bytes;
    uint8_t head[4];
    *out = (search_header){0};
    r->header = r->im->unwind_header.p_vaddr;
    if (r->im->unwind_header.p_memsz == 0) return false;
    size_t have = image_bytes(r->im, r->header, &bytes);
    if (have == 0) return false;
    image_cursor c = {bytes, bytes + have, r->header};
    if (!image_take(&c, head, 4) || head[0] != 1 || !image_take_pointer(&c, head[1], r->header, &out->frame))
        return false;
    if (image_take_pointer(&c, head[2], r->header, &out->count)) {
        out->table = c;
        out->encoding = head[3];
    } else {
        out->count = 0;
    }
    return true;
}

static void read_table(reader *r, search_header *h)
{
    for (uint64_t i = 0; i < h->count; i++) {
        uint64_t addr, fde, id, id_addr;
        image_cursor body;
        if (!image_take_pointer(&h->table, h->encoding, r->header, &addr) ||
            !image_take_pointer(&h->table, h->encoding, r->header, &fde))
            return;
        if (record_at(r->im, fde, ~0ull, &body, &id, &id_addr) && id != 0 && !add_fde(r, fde, body, id_addr - id))
            return;
    }
}

static int by_addr(const void *a, const void *b)
{
    const image_unwind_range *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->fde < y->fde ? -1 : x->fde > y->fde;
}

static void sort_ranges(image_range_list *v)
{
    size_t kept = 0;
    if (v->count == 0) return;
    qsort(v->items, v->count, sizeof *v->items, by_addr);
    for (size_t i = 1; i < v->count; i++)
        if (v->items[i].addr != v->items[kept].addr) v->items[++kept] = v->items[i];
    v->count = kept + 1;
}

static void read_rest(reader *r, search_header *h)
{
    for (uint64_t i = 0; i < h->count; i++) {
        image_unwind_range range = {0};
        uint64_t end;
        if (!image_take_pointer(&h->table, h->encoding, r->header, &range.addr) ||
            !image_take_pointer(&h->table, h->encoding, r->header, &range.fde))
            break;
        const image_unwind_range *known = image_unwind_at(r->im, range.addr);
        if ((known && known->addr == range.addr) || !image_executable(r->im, range.addr, &end)) continue;
        if (!inl_vec_push(&r->im->unread, range)) break;
    }
    sort_ranges(&r->im->unread);
}

size_t image_unwind_unread(image *im, const image_unwind_range **out)
{
    if (!im->has_unread) {
        im->has_unread = true;
        reader r = {.im = im};
        search_header h;
        if (read_search_header(&r, &h)) read_rest(&r, &h);
    }
    *out = im->unread.items;
    return im->unread.count;
}

size_t image_unwind_ranges(image *im, const image_unwind_range **out)
{
    if (!im->has_unwind) {
        im->has_unwind = true;
        reader r = {.im = im};
        search_header h;
        Elf64_Shdr s;
        const uint8_t *bytes;
        bool searchable = read_search_header(&r, &h);
        bool has_section = image_view_find(&im->view, SHT_NULL, ".eh_frame", &s) && s.sh_type != SHT_NOBITS &&
                           s.sh_flags & SHF_ALLOC;
        if (has_section) {
            r.start = s.sh_addr;
            r.size = s.sh_size;
        } else if (searchable) {
            r.start = h.frame;
            r.size = image_bytes(im, h.frame, &bytes);
        }
        read_section(&r, !has_section);
        if (searchable && im->unwind.count < h.count) read_table(&r, &h);
        sort_ranges(&im->unwind);
    }
    *out = im->unwind.items;
    return im->unwind.count;
}

bool image_frame_code(image *im, const image_unwind_range *range, image_frame *out)
{
    reader r = {.im = im, .header = im->unwind_header.p_vaddr};
    image_cursor c;
    uint64_t id, id_addr, value;
    cie from;
    if (!record_at(im, range->fde, ~0ull, &c, &id, &id_addr) || id == 0) return false;
    if (!read_cie(&r, id_addr - id, &from)) return false;
    if (!image_take_format(&c, from.pointer_encoding, &value) || !image_take_format(&c, from.pointer_encoding, &value))
        return false;
    if (from.has_augmentation && (!image_take_leb(&c, false, &value) || !image_skip(&c, value))) return false;
    *out = (image_frame){from.program, c, from.code_align, (int64_t)from.data_align};
    return true;
}

const image_unwind_range *image_unwind_at(image *im, uint64_t addr)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(im, &r), behind = INL_FIRST(count, k, r[k].addr > addr);
    return behind && addr - r[behind - 1].addr < r[behind - 1].size ? &r[behind - 1] : NULL;
}
