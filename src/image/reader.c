#include "image/reader.h"

image_reader image_reader_at(const image *im, uint64_t addr)
{
    const uint8_t *bytes = NULL;
    size_t have = image_bytes(im, addr, &bytes);
    return (image_reader){{bytes, bytes ? bytes + have : bytes, addr}, have == 0};
}

bool image_reader_more(const image_reader *r) { return !r->bad && r->c.at < r->c.end; }

size_t image_reader_left(const image_reader *r) { return (size_t)(r->c.end - r->c.at); }

uint64_t image_next(image_reader *r, size_t size)
{
    uint64_t value = 0;
    r->bad = r->bad || !image_take(&r->c, &value, size);
    return r->bad ? 0 : value;
}

void image_next_skip(image_reader *r, uint64_t size) { r->bad = r->bad || !image_skip(&r->c, size); }

uint64_t image_next_uleb(image_reader *r)
{
    uint64_t value;
    r->bad = r->bad || !image_take_leb(&r->c, false, &value);
    return r->bad ? 0 : value;
}

int64_t image_next_sleb(image_reader *r)
{
    uint64_t value;
    r->bad = r->bad || !image_take_leb(&r->c, true, &value);
    return r->bad ? 0 : (int64_t)value;
}

uint64_t image_next_format(image_reader *r, uint8_t encoding)
{
    uint64_t value;
    r->bad = r->bad || !image_take_format(&r->c, encoding, &value);
    return r->bad ? 0 : value;
}

uint64_t image_next_pointer(image_reader *r, uint8_t encoding)
{
    uint64_t here = r->c.addr;
    if (encoding == IMAGE_PE_OMIT) return 0;
    uint64_t value = image_next_format(r, encoding);
    uint8_t base = encoding & IMAGE_PE_RELATIVE;
    if (value == 0) return 0;
    if (base == IMAGE_PE_PCREL) return value + here;
    if (base != 0) r->bad = true;
    return value;
}

size_t image_format_size(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case IMAGE_PE_ABSPTR:
    case IMAGE_PE_UDATA8:
    case IMAGE_PE_SDATA8: return 8;
    case IMAGE_PE_UDATA2:
    case IMAGE_PE_SDATA2: return 2;
    case IMAGE_PE_UDATA4:
    case IMAGE_PE_SDATA4: return 4;
    default: return 0;
    }
}
