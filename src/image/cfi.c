/* Where the frame of a procedure begins at one of its instructions: runs its call frame instructions up to
 * there, and keeps the rule for the CFA; for who walks up the stack, also where registers are saved. Neither takes
 * memory: it may be asked by a signal handler. */
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
    cfa_negate_ra_state = 0x2d, /* AArch64: the return address is signed, or no longer */
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
    int64_t data_align;
    int64_t most; /* `offset` from the first register so far */
    uint64_t first;
    image_saved *saved; /* NULL: nobody asks */
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
    if (m->saved && m->depth == IMAGE_SAVED_DEPTH) return false;
    if (m->saved) m->saved->remembered[m->depth] = m->saved->now;
    m->remembered[m->depth++] = m->now;
    return true;
}

static bool recall(machine *m)
{
    if (m->depth == 0) return false;
    m->now = m->remembered[--m->depth];
    if (m->saved) m->saved->now = m->saved->remembered[m->depth];
    return true;
}

static void set_rule(machine *m, uint64_t reg, image_saved_how how, int64_t offset)
{
    if (m->saved && reg < IMAGE_SAVED_REGS) {
        m->saved->now.how[reg] = (uint8_t)how;
        m->saved->now.offset[reg] = (int32_t)offset;
    }
}

/* Register number and factored offset from the CFA. */
static bool take_offset(machine *m, image_cursor *c, uint64_t reg, bool has_reg, bool is_signed)
{
    uint64_t offset;
    if (has_reg && !image_take_leb(c, false, &reg)) return false;
    if (!image_take_leb(c, is_signed, &offset)) return false;
    set_rule(m, reg, IMAGE_SAVED_AT, (int64_t)offset * m->data_align);
    return true;
}

static bool take_rule(machine *m, image_cursor *c, image_saved_how how)
{
    uint64_t reg;
    if (!image_take_leb(c, false, &reg)) return false;
    set_rule(m, reg, how, 0);
    return true;
}

static void restore(machine *m, uint64_t reg)
{
    if (!m->saved || reg >= IMAGE_SAVED_REGS) return;
    set_rule(m, reg, m->saved->common.how[reg], m->saved->common.offset[reg]);
}

/* One instruction; false when it cannot be understood. */
static bool step(machine *m, image_cursor *c, uint8_t op)
{
    rule *r = &m->now;
    uint64_t reg;
    switch (op >> 6) {
    case cfa_advance: m->at += (op & 63) * m->code_align; return true;
    case cfa_offset: return take_offset(m, c, op & 63, false, false);
    case cfa_restore: restore(m, op & 63); return true;
    default: break;
    }
    switch (op) {
    case cfa_nop:
    case cfa_negate_ra_state: return true;
    case cfa_advance1: return advance(m, c, 1);
    case cfa_advance2: return advance(m, c, 2);
    case cfa_advance4: return advance(m, c, 4);
    case cfa_args_size: return skip_numbers(c, 1);
    case cfa_restore_extended:
        if (!image_take_leb(c, false, &reg)) return false;
        restore(m, reg);
        return true;
    case cfa_undefined: return take_rule(m, c, IMAGE_SAVED_LOST);
    case cfa_same_value: return take_rule(m, c, IMAGE_SAVED_SAME);
    case cfa_offset_extended: return take_offset(m, c, 0, true, false);
    case cfa_offset_extended_sf: return take_offset(m, c, 0, true, true);
    case cfa_register:
    case cfa_val_offset:
    case cfa_val_offset_sf: return take_rule(m, c, IMAGE_SAVED_LOST) && skip_numbers(c, 1);
    case cfa_remember: return remember(m);
    case cfa_recall: return recall(m);
    case cfa_def: r->known = true; return image_take_leb(c, false, &r->reg) && image_take_leb(c, false, &r->offset);
    case cfa_def_register: return image_take_leb(c, false, &r->reg);
    case cfa_def_offset: return image_take_leb(c, false, &r->offset);
    case cfa_def_expression: r->known = false; return skip_block(c);
    case cfa_expression:
    case cfa_val_expression: return take_rule(m, c, IMAGE_SAVED_LOST) && skip_block(c);
    default: return false; /* also what is factored: no compiler uses it for the CFA here */
    }
}

static bool run(machine *m, image_cursor c)
{
    uint8_t op;
    while (m->at <= m->wanted && image_take(&c, &op, 1)) {
        machine before = *m;
        if (!step(m, &c, op)) return false;
        if (m->now.known && m->now.reg == m->first && (int64_t)m->now.offset > m->most)
            m->most = (int64_t)m->now.offset;
        if (m->at > m->wanted) m->now = before.now;
    }
    return true;
}

bool image_frame_registers(const image_frame *f, uint64_t start, uint64_t addr, image_saved *out)
{
    machine m = {.at = start, .wanted = addr, .code_align = f->code_align, .data_align = f->data_align, .saved = out};
    memset(out, 0, sizeof *out);
    if (!run(&m, f->common)) return false;
    out->common = out->now;
    if (!run(&m, f->own) || !m.now.known) return false;
    out->cfa_reg = (unsigned)m.now.reg;
    out->cfa_offset = (int64_t)m.now.offset;
    return out->cfa_reg < IMAGE_SAVED_REGS;
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

bool image_frame_most(image *im, uint64_t addr, int64_t *offset)
{
    const image_unwind_range *range = image_unwind_at(im, addr);
    image_frame f;
    if (!range || !image_frame_code(im, range, &f)) return false;
    machine m = {.at = range->addr, .wanted = range->addr + range->size, .code_align = f.code_align};
    if (!run(&m, f.common) || !m.now.known) return false;
    m.first = m.now.reg;
    m.most = (int64_t)m.now.offset;
    if (!run(&m, f.own)) return false;
    *offset = m.most;
    return true;
}
