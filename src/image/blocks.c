/* Location expressions that stand in a block, as Go writes them also where the version of DWARF has a form of their
 * own: libdw does not take those for expressions. Of one operation each. */
#include "image/units.h"

#include <dwarf.h>

static bool read_block(const Dwarf_Block *block, Dwarf_Op *out)
{
    image_cursor c = {.at = block->data, .end = block->data + block->length};
    uint64_t value = 0;
    uint8_t op;
    if (!image_take(&c, &op, 1)) return false;
    *out = (Dwarf_Op){.atom = op};
    bool plain = op == DW_OP_call_frame_cfa || (op >= DW_OP_reg0 && op <= DW_OP_reg31);
    bool counts = op == DW_OP_fbreg || (op >= DW_OP_breg0 && op <= DW_OP_breg31);
    bool good = plain || (counts && image_take_leb(&c, true, &value)) ||
                (op == DW_OP_addr && image_take(&c, &value, sizeof value));
    out->number = value;
    return good && c.at == c.end;
}

bool image_operations(image *im, Dwarf_Attribute *attr, uint64_t pc, Dwarf_Op **ops, size_t *n)
{
    Dwarf_Block block;
    if (dwarf_getlocation_addr(attr, pc, ops, n, 1) == 1) return true;
    if (dwarf_whatform(attr) != DW_FORM_block1 || dwarf_formblock(attr, &block)) return false;
    *n = 1;
    *ops = inl_arena_alloc(&im->arena, sizeof **ops);
    return *ops && read_block(&block, *ops);
}
