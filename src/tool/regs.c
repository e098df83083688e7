/* Registers by name and number. */
#include "tool/regs.h"

static const tool_reg_group *group_of(inlay_reg reg)
{
    for (unsigned i = 0; i < tool_reg_group_count; i++) {
        const tool_reg_group *g = &tool_reg_groups[i];
        if (reg - g->first < g->count && g->names[reg - g->first]) return g;
    }
    return NULL;
}

const char *inlay_reg_name(unsigned reg)
{
    const tool_reg_group *g = group_of(reg);
    return g ? g->names[reg - g->first] : "?";
}

inlay_reg_kind inlay_reg_kind_of(inlay_reg reg)
{
    const tool_reg_group *g = group_of(reg);
    return g ? g->kind : INLAY_REG_NONE;
}

unsigned inlay_reg_bits(inlay_reg reg)
{
    const tool_reg_group *g = group_of(reg);
    return g ? g->bits : 0;
}

inlay_reg inlay_reg_whole(inlay_reg reg, unsigned *shift)
{
    const tool_reg_group *g = group_of(reg);
    unsigned k = g ? reg - g->first : 0;
    if (shift) *shift = g ? g->shift + k * g->shift_step : 0;
    return g ? g->whole + k * g->step : reg;
}

bool inlay_reg_is_value(inlay_reg reg)
{
    inlay_reg_kind k = inlay_reg_kind_of(reg);
    return k == INLAY_REG_GENERAL || k == INLAY_REG_PC || k == INLAY_REG_FLAGS || reg == tool_reg_thread_pointer;
}
