/* Reading numbers and pointers as DWARF's unwind and exception tables encode them. A cursor never
 * moves past its end: every function answers false instead. */
#include "image/file.h"

bool image_take(image_cursor *c, void *out, size_t size)
{
    if ((size_t)(c->end - c->at) < size) return false;
    memcpy(out, c->at, size);
    c->at += size;
    c->addr += size;
    return true;
}

bool image_skip(image_cursor *c, uint64_t size)
{
    if ((uint64_t)(c->end - c->at) < size) return false;
    c->at += size;
    c->addr += size;
    return true;
}

bool image_take_leb(image_cursor *c, bool is_signed, uint64_t *out)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        if (!image_take(c, &byte, 1)) return false;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    if (is_signed && shift < 64 && byte & 64) value |= ~0ull << shift;
    *out = value;
    return true;
}

static bool take_fixed(image_cursor *c, size_t size, bool is_signed, uint64_t *out)
{
    uint64_t value = 0;
    if (!image_take(c, &value, size)) return false;
    if (is_signed && size < 8) {
        uint64_t sign = 1ull << (8 * size - 1);
        value = (value ^ sign) - sign;
    }
    *out = value;
    return true;
}

bool image_take_format(image_cursor *c, uint8_t encoding, uint64_t *out)
{
    switch (encoding & 0x0f) {
    case IMAGE_PE_ABSPTR:
    case IMAGE_PE_UDATA8:
    case IMAGE_PE_SDATA8: return take_fixed(c, 8, false, out);
    case IMAGE_PE_ULEB128: return image_take_leb(c, false, out);
    case IMAGE_PE_SLEB128: return image_take_leb(c, true, out);
    case IMAGE_PE_UDATA2: return take_fixed(c, 2, false, out);
    case IMAGE_PE_SDATA2: return take_fixed(c, 2, true, out);
    case IMAGE_PE_UDATA4: return take_fixed(c, 4, false, out);
    case IMAGE_PE_SDATA4: return take_fixed(c, 4, true, out);
    default: return false;
    }
}

bool image_take_pointer(image_cursor *c, uint8_t encoding, uint64_t data_base, uint64_t *out)
{
    uint64_t here = c->addr;
    if (encoding == IMAGE_PE_OMIT || !image_take_format(c, encoding, out) || encoding & IMAGE_PE_INDIRECT) return false;
    switch (encoding & IMAGE_PE_RELATIVE) {
    case 0: return true;
    case IMAGE_PE_PCREL: *out += here; return true;
    case IMAGE_PE_DATAREL: *out += data_base; return true;
    default: return false;
    }
}
