/* Where the frame of a procedure begins at one of its instructions: runs its call frame instructions up to
 * there, and keeps nothing of them but the rule for the CFA. */
#include "image/file.h"

enum {
    cfa_advance = 1, /* the upper two bits */
    cfa_offset = 2,
    cfa_restore = 3,
    cfa_nop = 0x00,
    cfa_advance1 = 0x02,
    cfa_advance2 = 0x03,
    cfa_advance4 = 0x04,
    cfa_offset_extended = 0x05,
    cfa_restore_extended = 0x06,
    cfa_undefined = 0x07,
    cfa_same_value = 0x08,
    cfa_register = 0x09,
    cfa_remember = 0x0a,
    cfa_recall = 0x0b,
    cfa_def = 0x0c,
    cfa_def_register = 0x0d,
    cfa_def_offset = 0x0e,
    cfa_def_expression = 0x0f,
    cfa_expression = 0x10,
    cfa_offset_extended_sf = 0x11,
    cfa_val_offset = 0x14,
    cfa_val_offset_sf = 0x15,
    cfa_val_expression = 0x16,
    cfa_args_size = 0x2e,
    max_remembered = 16,
};

typedef struct rule {
    uint64_t reg, offset;
    bool known;
} rule;

typedef struct machine {
    rule now, remembered[max_remembered];
    unsigned depth;
    uint64_t at, wanted, code_align;
} machine;

static bool skip_block(image_cursor *c)
{
    uint64_t size;
    return image_take_leb(c, false, &size) && image_skip(c, size);
}

static bool skip_numbers(image_cursor *c, int count)
{
    uint64_t number;
    while (count-- > 0)
        if (!image_take_leb(c, false, &number)) return false;
    return true;
}

static bool advance(machine *m, image_cursor *c, size_t bytes)
{
    uint64_t delta = 0;
    if (!image_take(c, &delta, bytes)) return false;
    m->at += delta * m->code_align;
    return true;
}

static bool remember(machine *m)
{
    if (m->depth == max_remembered) return false;
    m->remembered[m->depth++] = m->now;
    return true;
}

static bool recall(machine *m)
{
    if (m->depth == 0) return false;
    m->now = m->remembered[--m->depth];
    return true;
}

/* One instruction; false when it cannot be understood. */
static bool step(machine *m, image_cursor *c, uint8_t op)
{
    rule *r = &m->now;
    switch (op >> 6) {
    case cfa_advance: m->at += (op & 63) * m->code_align; return true;
    case cfa_offset: return skip_numbers(c, 1);
    case cfa_restore: return true;
    default: break;
    }
    switch (op) {
    case cfa_nop: return true;
    case cfa_advance1: return advance(m, c, 1);
    case cfa_advance2: return advance(m, c, 2);
    case cfa_advance4: return advance(m, c, 4);
    case cfa_restore_extended:
    case cfa_undefined:
    case cfa_same_value:
    case cfa_args_size: return skip_numbers(c, 1);
    case cfa_offset_extended:
    case cfa_register:
    case cfa_offset_extended_sf:
    case cfa_val_offset:
    case cfa_val_offset_sf: return skip_numbers(c, 2);
    case cfa_remember: return remember(m);
    case cfa_recall: return recall(m);
    case cfa_def: r->known = true; return image_take_leb(c, false, &r->reg) && image_take_leb(c, false, &r->offset);
    case cfa_def_register: return image_take_leb(c, false, &r->reg);
    case cfa_def_offset: return image_take_leb(c, false, &r->offset);
    case cfa_def_expression: r->known = false; return skip_block(c);
    case cfa_expression:
    case cfa_val_expression: return skip_numbers(c, 1) && skip_block(c);
    default: return false; /* also what is factored: no compiler uses it for the CFA here */
    }
}

static bool run(machine *m, image_cursor c)
{
    uint8_t op;
    while (m->at <= m->wanted && image_take(&c, &op, 1)) {
        machine before = *m;
        if (!step(m, &c, op)) return false;
        if (m->at > m->wanted) m->now = before.now;
    }
    return true;
}

bool image_frame_at(image *im, uint64_t addr, unsigned *reg, int64_t *offset)
{
    const image_unwind_range *range = image_unwind_at(im, addr);
    image_frame f;
    if (!range || !image_frame_code(im, range, &f)) return false;
    machine m = {.at = range->addr, .wanted = addr, .code_align = f.code_align};
    if (!run(&m, f.common) || !run(&m, f.own) || !m.now.known) return false;
    *reg = (unsigned)m.now.reg;
    *offset = (int64_t)m.now.offset;
    return true;
}
