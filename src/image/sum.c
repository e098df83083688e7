/* What two images have in common whose analyses are the same. Bytes that are not mapped (debug information) are left
 * out: they may be many, and of them only the symbols matter, which may be in another file besides. */
#include "base/sum.h"
#include "image/file.h"

static uint64_t add_number(uint64_t sum, uint64_t number) { return inl_sum(&number, sizeof number, sum); }
static uint64_t add_text(uint64_t sum, const char *text) { return inl_sum(text, strlen(text), sum); }

static uint64_t add_segments(const image *im, uint64_t sum)
{
    for (size_t i = 0; i < im->segments.count; i++) {
        const image_segment *s = &im->segments.items[i];
        const uint8_t *bytes = image_view_bytes(&im->view, s->file_offset, s->file_size);
        sum = add_number(add_number(sum, s->addr), s->mem_size);
        sum = add_number(sum, (uint64_t)s->read | (uint64_t)s->write << 1 | (uint64_t)s->exec << 2);
        if (bytes) sum = inl_sum(bytes, s->file_size, sum);
    }
    return sum;
}

static uint64_t add_sections(image *im, uint64_t sum)
{
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++) {
        sum = add_text(add_number(add_number(sum, s[i].addr), s[i].size), s[i].name);
        sum = add_number(add_number(sum, s[i].type), s[i].flags);
    }
    return sum;
}

static uint64_t add_procedures(image *im, uint64_t sum)
{
    const image_proc *p;
    const image_code_symbol *s;
    size_t count = image_procs(im, &p);
    for (size_t i = 0; i < count; i++)
        sum = add_text(add_number(add_number(sum, p[i].addr), p[i].size << 8 | p[i].source), p[i].name);
    count = image_code_symbols(im, &s);
    for (size_t i = 0; i < count; i++) {
        uint64_t kind = (uint64_t)s[i].dynamic | (uint64_t)s[i].function << 1 | (uint64_t)s[i].resolver << 2;
        sum = add_text(add_number(add_number(sum, s[i].addr), s[i].size << 8 | kind), s[i].name);
    }
    return sum;
}

bool image_sum(image *im, uint64_t *out)
{
    if (im->in_memory) return false;
    uint64_t sum = inl_sum(&im->view.header, sizeof im->view.header, 5);
    *out = add_procedures(im, add_sections(im, add_segments(im, sum)));
    return true;
}
