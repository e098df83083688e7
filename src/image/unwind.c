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
#include "image/private.h"

#include <stdlib.h>

enum { /* DW_EH_PE_*: the low four bits are the format, the next three what it is relative to */
    pe_absptr = 0x00,
    pe_uleb128 = 0x01,
    pe_udata2 = 0x02,
    pe_udata4 = 0x03,
    pe_udata8 = 0x04,
    pe_sleb128 = 0x09,
    pe_sdata2 = 0x0a,
    pe_sdata4 = 0x0b,
    pe_sdata8 = 0x0c,
    pe_relative = 0x70,
    pe_pcrel = 0x10,
    pe_datarel = 0x30,
    pe_indirect = 0x80,
    pe_omit = 0xff,
};

typedef struct cursor {
    const uint8_t *at, *end;
    uint64_t addr; /* of `at` */
} cursor;

typedef struct cie {
    uint64_t addr; /* 0: none cached */
    uint8_t pointer_encoding, lsda_encoding;
    bool has_augmentation, usable;
} cie;

typedef struct reader {
    image *im;
    uint64_t header; /* address of .eh_frame_hdr, base of data-relative pointers */
    uint64_t start, size; /* .eh_frame */
    cie last;
} reader;

static bool take(cursor *c, void *out, size_t size) {
    if ((size_t)(c->end - c->at) < size) return false;
    memcpy(out, c->at, size);
    c->at += size;
    c->addr += size;
    return true;
}

static bool skip(cursor *c, uint64_t size) {
    if ((uint64_t)(c->end - c->at) < size) return false;
    c->at += size;
    c->addr += size;
    return true;
}

static bool take_leb(cursor *c, bool is_signed, uint64_t *out) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        if (!take(c, &byte, 1)) return false;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    if (is_signed && shift < 64 && byte & 64) value |= ~0ull << shift;
    *out = value;
    return true;
}

static bool take_fixed(cursor *c, size_t size, bool is_signed, uint64_t *out) {
    uint64_t value = 0;
    if (!take(c, &value, size)) return false;
    if (is_signed && size < 8) {
        uint64_t sign = 1ull << (8 * size - 1);
        value = (value ^ sign) - sign;
    }
    *out = value;
    return true;
}

static bool take_format(cursor *c, uint8_t encoding, uint64_t *out) {
    switch (encoding & 0x0f) {
    case pe_absptr:
    case pe_udata8:
    case pe_sdata8: return take_fixed(c, 8, false, out);
    case pe_uleb128: return take_leb(c, false, out);
    case pe_sleb128: return take_leb(c, true, out);
    case pe_udata2: return take_fixed(c, 2, false, out);
    case pe_sdata2: return take_fixed(c, 2, true, out);
    case pe_udata4: return take_fixed(c, 4, false, out);
    case pe_sdata4: return take_fixed(c, 4, true, out);
    default: return false;
    }
}

/* A pointer; false for what cannot be known from the file (text-relative, indirect). */
static bool take_pointer(const reader *r, cursor *c, uint8_t encoding, uint64_t *out) {
    uint64_t here = c->addr;
    if (encoding == pe_omit || !take_format(c, encoding, out) || encoding & pe_indirect)
        return false;
    switch (encoding & pe_relative) {
    case 0: return true;
    case pe_pcrel: *out += here; return true;
    case pe_datarel: *out += r->header; return true;
    default: return false;
    }
}

/* The record at `addr`: its body after the id. False at the end or when it does not fit. */
static bool record_at(const image *im, uint64_t addr, uint64_t limit, cursor *body, uint64_t *id,
                      uint64_t *id_addr) {
    const uint8_t *bytes;
    size_t have = image_bytes(im, addr, &bytes);
    if (have > limit) have = limit;
    cursor c = {bytes, bytes + have, addr};
    uint32_t length;
    uint64_t size, value = 0;
    if (have == 0 || !take(&c, &length, 4)) return false;
    size = length;
    if (length == 0xffffffff && !take(&c, &size, 8)) return false;
    if (size < 4 || size > (uint64_t)(c.end - c.at)) return false;
    c.end = c.at + size;
    *id_addr = c.addr;
    if (!take(&c, &value, 4)) return false; /* four bytes in the long form too */
    *id = value;
    *body = c;
    return true;
}

/* The letters that may stand in an augmentation string after 'z'. */
static bool read_augmentation(const reader *r, cursor *c, const char *letters, cie *out) {
    uint64_t size, personality;
    if (!take_leb(c, false, &size) || size > (uint64_t)(c->end - c->at)) return false;
    out->has_augmentation = true;
    for (; *letters; letters++) {
        uint8_t encoding;
        switch (*letters) {
        case 'R':
            if (!take(c, &out->pointer_encoding, 1)) return false;
            break;
        case 'L':
            if (!take(c, &out->lsda_encoding, 1)) return false;
            break;
        case 'P':
            if (!take(c, &encoding, 1)) return false;
            take_pointer(r, c, encoding, &personality); /* its value is of no interest here */
            break;
        case 'S': /* a signal frame */
        case 'B': /* AArch64: return addresses are signed */
        case 'G': break;
        default: return false;
        }
    }
    return true;
}

static bool read_cie(const reader *r, uint64_t addr, cie *out) {
    cursor c;
    uint64_t id, id_addr, number;
    uint8_t version;
    char letters[16] = "";
    *out = (cie){.addr = addr, .lsda_encoding = pe_omit};
    if (!record_at(r->im, addr, ~0ull, &c, &id, &id_addr) || id != 0) return false;
    if (!take(&c, &version, 1) || (version != 1 && version != 3 && version != 4)) return false;
    for (size_t i = 0;; i++) {
        if (i == sizeof letters || !take(&c, &letters[i], 1)) return false;
        if (!letters[i]) break;
    }
    if (version == 4 && !skip(&c, 2)) return false; /* address and segment selector size */
    if (!take_leb(&c, false, &number) || !take_leb(&c, true, &number)) return false;
    if (version == 1 ? !skip(&c, 1) : !take_leb(&c, false, &number)) return false;
    if (letters[0] == 0) return out->usable = true;
    if (letters[0] != 'z') return false;
    return out->usable = read_augmentation(r, &c, letters + 1, out);
}

static bool add_fde(reader *r, uint64_t fde, cursor c, uint64_t cie_addr) {
    image_unwind_range range = {.fde = fde};
    if (r->last.addr != cie_addr) read_cie(r, cie_addr, &r->last);
    if (!r->last.usable) return true;
    uint8_t encoding = r->last.pointer_encoding;
    uint64_t size, end;
    if (!take_pointer(r, &c, encoding, &range.addr) || !take_format(&c, encoding, &range.size))
        return true;
    if (range.size == 0 || !image_executable(r->im, range.addr, &end)) return true;
    if (range.size > end - range.addr) range.size = end - range.addr;
    if (r->last.has_augmentation && take_leb(&c, false, &size) &&
        size <= (uint64_t)(c.end - c.at) && size > 0) {
        cursor raw = c; /* a zero stands for no table, whatever it would be relative to */
        uint64_t zero;
        if (take_format(&raw, r->last.lsda_encoding, &zero) && zero != 0 &&
            !take_pointer(r, &c, r->last.lsda_encoding, &range.lsda))
            range.lsda = 0;
    }
    return inl_vec_push(&r->im->unwind, range);
}

static void read_section(reader *r, bool stops_at_zero) {
    uint64_t addr = r->start, left = r->size;
    while (left >= 4) {
        cursor body;
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
    cursor table;
    uint8_t encoding;
} search_header;

static bool read_search_header(reader *r, search_header *out) {
    const uint8_t *bytes;
    uint8_t head[4];
    *out = (search_header){0};
    r->header = r->im->unwind_header.p_vaddr;
    if (r->im->unwind_header.p_memsz == 0) return false;
    size_t have = image_bytes(r->im, r->header, &bytes);
    if (have == 0) return false;
    cursor c = {bytes, bytes + have, r->header};
    if (!take(&c, head, 4) || head[0] != 1 || !take_pointer(r, &c, head[1], &out->frame))
        return false;
    if (take_pointer(r, &c, head[2], &out->count)) {
        out->table = c;
        out->encoding = head[3];
    } else {
        out->count = 0;
    }
    return true;
}

static void read_table(reader *r, search_header *h) {
    for (uint64_t i = 0; i < h->count; i++) {
        uint64_t addr, fde, id, id_addr;
        cursor body;
        if (!take_pointer(r, &h->table, h->encoding, &addr) ||
            !take_pointer(r, &h->table, h->encoding, &fde))
            return;
        if (record_at(r->im, fde, ~0ull, &body, &id, &id_addr) && id != 0 &&
            !add_fde(r, fde, body, id_addr - id))
            return;
    }
}

static int by_addr(const void *a, const void *b) {
    const image_unwind_range *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->fde < y->fde ? -1 : x->fde > y->fde;
}

static void sort_ranges(image_range_list *v) {
    size_t kept = 0;
    if (v->count == 0) return;
    qsort(v->items, v->count, sizeof *v->items, by_addr);
    for (size_t i = 1; i < v->count; i++)
        if (v->items[i].addr != v->items[kept].addr) v->items[++kept] = v->items[i];
    v->count = kept + 1;
}

size_t image_unwind_ranges(image *im, const image_unwind_range **out) {
    if (!im->has_unwind) {
        im->has_unwind = true;
        reader r = {.im = im};
        search_header h;
        Elf64_Shdr s;
        const uint8_t *bytes;
        bool searchable = read_search_header(&r, &h);
        bool has_section = image_view_find(&im->view, SHT_NULL, ".eh_frame", &s) &&
                           s.sh_type != SHT_NOBITS && s.sh_flags & SHF_ALLOC;
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
