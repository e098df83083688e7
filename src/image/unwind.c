/* The ranges of .eh_frame (entries.h), read without section headers where need be.
 *
 * The section is read from its start to its end. Where sections are stripped, .eh_frame_hdr
 * (PT_GNU_EH_FRAME) leads to its start, and a zero length ends it. Should that give fewer entries
 * than the header's search table counts, the table's entries are read as well.
 */
#include "image/entries.h"
#include "base/search.h"

#include <stdlib.h>

typedef struct reader {
    image *im;
    uint64_t header;      /* address of .eh_frame_hdr, base of data-relative pointers */
    uint64_t start, size; /* .eh_frame */
    bool has_last, usable;
    image_cie last; /* the common entry that was read last */
} reader;

/* The bytes from an address on. */
static image_cursor bytes_at(const image *im, uint64_t addr, uint64_t limit)
{
    const uint8_t *bytes = NULL;
    size_t have = image_bytes(im, addr, &bytes);
    if (have > limit) have = limit;
    return (image_cursor){bytes, bytes ? bytes + have : bytes, addr};
}

/* False at the end or when it does not fit. */
static bool record_at(const image *im, uint64_t addr, uint64_t limit, image_record *out)
{
    return image_record_at(bytes_at(im, addr, limit), out) && out->whole;
}

static bool add_entry(reader *r, uint64_t at, const image_record *record)
{
    image_range_entry entry;
    uint64_t end;
    if (!r->has_last || r->last.addr != record->common) {
        r->has_last = true;
        r->usable = image_cie_at(bytes_at(r->im, record->common, ~0ull), &r->last);
    }
    if (!r->usable || !image_entry_read(record, &r->last, r->header, &entry)) return true;
    image_unwind_range range = {.addr = entry.addr, .size = entry.size, .lsda = entry.lsda, .fde = at};
    if (range.size == 0 || !image_executable(r->im, range.addr, &end)) return true;
    if (range.size > end - range.addr) range.size = end - range.addr;
    return inl_vec_push(&r->im->unwind, range);
}

static void read_section(reader *r, bool stops_at_zero)
{
    uint64_t addr = r->start, left = r->size;
    while (left >= 4) {
        image_record record;
        if (!record_at(r->im, addr, left, &record)) {
            uint32_t length = 1;
            image_read(r->im, addr, &length, 4);
            if (length != 0 || stops_at_zero) return;
            addr += 4, left -= 4; /* a terminator between the parts of several objects */
            continue;
        }
        if (!record.is_common && !add_entry(r, addr, &record)) return;
        left -= record.next - addr;
        addr = record.next;
    }
}

static bool read_search_header(reader *r, image_search *out)
{
    r->header = r->im->unwind_header.p_vaddr;
    if (r->im->unwind_header.p_memsz == 0) return false;
    return image_search_at(bytes_at(r->im, r->header, ~0ull), out);
}

static void read_table(reader *r, image_search *h)
{
    for (uint64_t i = 0; i < h->count; i++) {
        uint64_t addr, at;
        image_record record;
        if (!image_search_next(h, &addr, &at)) return;
        if (record_at(r->im, at, ~0ull, &record) && !record.is_common && !add_entry(r, at, &record)) return;
    }
}

static int by_addr(const void *a, const void *b)
{
    const image_unwind_range *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->fde < y->fde ? -1 : x->fde > y->fde;
}

/* Is it the one that unwinders find, who go by the search table? */
static bool is_found(const image_search *table, const image_unwind_range *range)
{
    uint64_t record, begin, behind;
    return table && image_search_find(table, range->addr, &record, &begin, &behind) && begin == range->addr &&
           record == range->fde;
}

/* Of those that begin at one address one is kept: that of the search table, if any. BOLT leaves the entries there that
 * a procedure had before it changed it. */
static void sort_ranges(image_range_list *v, const image_search *table)
{
    size_t kept = 0;
    if (v->count == 0) return;
    qsort(v->items, v->count, sizeof *v->items, by_addr);
    for (size_t i = 1; i < v->count; i++) {
        if (v->items[i].addr != v->items[kept].addr) v->items[++kept] = v->items[i];
        else if (is_found(table, &v->items[i])) v->items[kept] = v->items[i];
    }
    v->count = kept + 1;
}

static void read_rest(reader *r, image_search *h)
{
    for (uint64_t i = 0; i < h->count; i++) {
        image_unwind_range range = {0};
        uint64_t end;
        if (!image_search_next(h, &range.addr, &range.fde)) break;
        const image_unwind_range *known = image_unwind_at(r->im, range.addr);
        if ((known && known->addr == range.addr) || !image_executable(r->im, range.addr, &end)) continue;
        if (!inl_vec_push(&r->im->unread, range)) break;
    }
    sort_ranges(&r->im->unread, NULL);
}

size_t image_unwind_unread(image *im, const image_unwind_range **out)
{
    if (!im->has_unread) {
        im->has_unread = true;
        reader r = {.im = im};
        image_search h;
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
        image_search h = {0};
        Elf64_Shdr s;
        const uint8_t *bytes;
        bool searchable = read_search_header(&r, &h);
        const image_search table = h;
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
        sort_ranges(&im->unwind, searchable ? &table : NULL);
    }
    *out = im->unwind.items;
    return im->unwind.count;
}

bool image_frame_code(image *im, const image_unwind_range *range, image_frame *out)
{
    image_record record;
    image_cie from;
    image_range_entry entry;
    if (!record_at(im, range->fde, ~0ull, &record) || record.is_common) return false;
    if (!image_cie_at(bytes_at(im, record.common, ~0ull), &from)) return false;
    if (!image_entry_read(&record, &from, im->unwind_header.p_vaddr, &entry)) return false;
    *out = (image_frame){from.program, entry.program, from.code_align, from.data_align};
    return true;
}

const image_unwind_range *image_unwind_at(image *im, uint64_t addr)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(im, &r), behind = INL_FIRST(count, k, r[k].addr > addr);
    return behind && addr - r[behind - 1].addr < r[behind - 1].size ? &r[behind - 1] : NULL;
}
