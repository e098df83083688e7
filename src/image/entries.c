#include "image/entries.h"
#include "image/reader.h"
#include "base/search.h"

/* --- records --- */

bool image_record_at(image_cursor from, image_record *out)
{
    image_cursor c = from;
    uint32_t length, id;
    uint64_t size;
    if (!image_take(&c, &length, 4)) return false;
    size = length;
    if (length == 0xffffffff && !image_take(&c, &size, 8)) return false;
    if (size < 4) return false;
    uint64_t have = (uint64_t)(c.end - c.at), id_at = c.addr;
    *out = (image_record){.next = c.addr + size, .whole = size <= have};
    if (out->whole) c.end = c.at + size;
    if (!image_take(&c, &id, 4)) return false; /* four bytes in the long form too */
    out->body = c;
    out->is_common = id == 0;
    out->common = id_at - id;
    return true;
}

/* Of a personality it is enough to know where it is, or where the pointer to it stands. */
static bool take_personality(image_cursor *c, image_cie *cie)
{
    uint64_t here, value;
    if (!image_take(c, &cie->personality_encoding, 1)) return false;
    here = c->addr;
    if (cie->personality_encoding == IMAGE_PE_OMIT) return true;
    if (!image_take_format(c, cie->personality_encoding, &value)) return false;
    uint8_t base = cie->personality_encoding & IMAGE_PE_RELATIVE;
    cie->odd |= value && base && base != IMAGE_PE_PCREL;
    if (value) cie->personality = base == IMAGE_PE_PCREL ? value + here : value;
    return true;
}

/* What the letters of an augmentation string stand for, in their order. */
static bool take_letters(image_cursor *c, const char *letters, image_cie *cie)
{
    for (; *letters; letters++) {
        switch (*letters) {
        case 'R':
            if (!image_take(c, &cie->encoding, 1)) return false;
            break;
        case 'L':
            if (!image_take(c, &cie->lsda_encoding, 1)) return false;
            break;
        case 'P':
            if (!take_personality(c, cie)) return false;
            break;
        case 'S': cie->signal = true; break;
        case 'B': /* AArch64: return addresses are signed with the other key, or memory is tagged */
        case 'G': cie->odd = true; break;
        default: return false;
        }
    }
    return true;
}

static bool take_augmentation(image_cursor *c, const char *letters, image_cie *cie)
{
    uint64_t size;
    if (letters[0] == 0) return true;
    if (letters[0] != 'z' || !image_take_leb(c, false, &size) || size > (uint64_t)(c->end - c->at)) return false;
    image_cursor inner = *c;
    inner.end = c->at + size;
    image_skip(c, size);
    cie->has_augmentation = true;
    return take_letters(&inner, letters + 1, cie);
}

static bool take_text(image_cursor *c, char *out, size_t room)
{
    for (size_t i = 0; i < room; i++) {
        if (!image_take(c, &out[i], 1)) return false;
        if (!out[i]) return true;
    }
    return false;
}

bool image_cie_at(image_cursor from, image_cie *out)
{
    image_record r;
    uint8_t version, number;
    uint64_t data_align;
    char letters[16];
    *out = (image_cie){.addr = from.addr, .lsda_encoding = IMAGE_PE_OMIT, .personality_encoding = IMAGE_PE_OMIT};
    if (!image_record_at(from, &r) || !r.is_common || !r.whole) return false;
    image_cursor c = r.body;
    if (!image_take(&c, &version, 1) || (version != 1 && version != 3 && version != 4)) return false;
    if (!take_text(&c, letters, sizeof letters)) return false;
    if (version == 4 && !image_skip(&c, 2)) return false; /* address and segment selector size */
    if (!image_take_leb(&c, false, &out->code_align) || !image_take_leb(&c, true, &data_align)) return false;
    out->data_align = (int64_t)data_align;
    if (version > 1 && !image_take_leb(&c, false, &out->return_reg)) return false;
    if (version == 1) {
        if (!image_take(&c, &number, 1)) return false;
        out->return_reg = number;
    }
    if (!take_augmentation(&c, letters, out)) return false;
    out->program = c;
    return true;
}

/* A zero stands for no table, whatever it would be relative to. */
static void read_lsda(image_cursor c, uint8_t encoding, uint64_t data_base, image_range_entry *out)
{
    image_cursor raw = c;
    uint64_t number;
    if (encoding == IMAGE_PE_OMIT || (image_take_format(&raw, encoding, &number) && number == 0)) return;
    out->odd = !image_take_pointer(&c, encoding, data_base, &out->lsda);
    if (out->odd) out->lsda = 0;
}

bool image_entry_read(const image_record *r, const image_cie *cie, uint64_t data_base, image_range_entry *out)
{
    image_cursor c = r->body;
    uint64_t size;
    *out = (image_range_entry){0};
    if (!image_take_pointer(&c, cie->encoding, data_base, &out->addr)) return false;
    if (!image_take_format(&c, cie->encoding, &out->size)) return false;
    if (cie->has_augmentation) {
        if (!image_take_leb(&c, false, &size) || size > (uint64_t)(c.end - c.at)) return false;
        image_cursor inner = c;
        inner.end = c.at + size;
        if (size) read_lsda(inner, cie->lsda_encoding, data_base, out);
        image_skip(&c, size);
    }
    out->program = c;
    return true;
}

/* --- the search table --- */

/* Version 1, three encodings, the address of .eh_frame, a count, and a table. */
bool image_search_at(image_cursor from, image_search *out)
{
    image_cursor c = from;
    uint8_t head[4];
    *out = (image_search){.header = from.addr};
    if (!image_take(&c, head, 4) || head[0] != 1 || !image_take_pointer(&c, head[1], from.addr, &out->frame))
        return false;
    if (!image_take_pointer(&c, head[2], from.addr, &out->count)) {
        out->count = 0;
        return true;
    }
    out->table = c;
    out->encoding = head[3];
    return true;
}

bool image_search_next(image_search *s, uint64_t *addr, uint64_t *record)
{
    return image_take_pointer(&s->table, s->encoding, s->header, addr) &&
           image_take_pointer(&s->table, s->encoding, s->header, record);
}

static bool row_at(const image_search *s, size_t row, size_t size, uint64_t *addr, uint64_t *record)
{
    image_search at = *s;
    return image_skip(&at.table, row * size) && image_search_next(&at, addr, record);
}

static uint64_t begin_of(const image_search *s, size_t row, size_t size)
{
    uint64_t addr, record;
    return row_at(s, row, size, &addr, &record) ? addr : ~0ull;
}

bool image_search_find(const image_search *s, uint64_t addr, uint64_t *record, uint64_t *begin, uint64_t *behind)
{
    size_t size = 2 * image_format_size(s->encoding);
    uint64_t room = size ? (uint64_t)(s->table.end - s->table.at) / size : 0, next;
    size_t count = s->count < room ? s->count : room;
    size_t row = INL_FIRST(count, k, begin_of(s, k, size) > addr);
    *behind = row < count && row_at(s, row, size, behind, &next) ? *behind : 0;
    return row && row_at(s, row - 1, size, begin, record);
}
