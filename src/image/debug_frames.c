/* Frames by .debug_frame, which is all that Go's code has: for who reads a procedure's variables, where it has no entry
 * in .eh_frame. */
#include "image/units.h"

#include <dwarf.h>
#include <stdlib.h>

static bool by_debug_frame(image *im, uint64_t addr, unsigned *reg, int64_t *offset)
{
    image_lines *l = image_units(im);
    Dwarf_CFI *table = l ? dwarf_getcfi(l->dwarf) : NULL;
    Dwarf_Frame *frame;
    Dwarf_Op *ops;
    size_t n;
    if (!table || dwarf_cfi_addrframe(table, addr, &frame)) return false;
    bool known = dwarf_frame_cfa(frame, &ops, &n) == 0 && n == 1;
    bool named = known && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31;
    known = known && (named || ops[0].atom == DW_OP_bregx);
    if (known) *reg = named ? (unsigned)(ops[0].atom - DW_OP_breg0) : (unsigned)ops[0].number;
    if (known) *offset = (int64_t)(named ? ops[0].number : ops[0].number2);
    free(frame);
    return known;
}

bool image_frame_told(image *im, uint64_t addr, unsigned *reg, int64_t *offset)
{
    return image_frame_at(im, addr, reg, offset) || by_debug_frame(im, addr, reg, offset);
}
