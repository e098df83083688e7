/* Snippets that read registers or flags which the instruction at their point perhaps does not use, and those that set
 * registers. They have a file of their own so that a tool which is linked without it is known not to look at such
 * values: what the program does not need any more may then be destroyed (jit/wanted.c). Nothing that each tool is
 * linked with may need this file. */
#include "tool/regs.h"
#include "tool/state.h"

const char tool_reads_registers = 1;

static inlay_expr leaf(snippet_kind kind, uint32_t index)
{
    snippet *s = tool_snippet(kind);
    if (s) s->index = index;
    return s;
}

inlay_expr tool_register(snippet_kind kind, unsigned reg, inlay_expr a)
{
    snippet *s = tool_snippet(kind);
    if (!s) return NULL;
    s->reg = (uint8_t)reg;
    s->a = a;
    return s;
}

inlay_expr inlay_flags(void) { return leaf(SNIPPET_FLAGS, 0); }
inlay_expr inlay_argument(unsigned n)
{
    enum { MOST = 4096 };
    if (n < MOST) return leaf(SNIPPET_ARG, n);
    tool_mistake("inlay_argument(%u): they are numbered from 0 to %u", n, (unsigned)MOST - 1);
    return NULL;
}

inlay_expr inlay_return_value(void) { return leaf(SNIPPET_RETVAL, 0); }
inlay_expr inlay_return_address(void) { return leaf(SNIPPET_RETADDR, 0); }
inlay_expr inlay_context_arg(void) { return leaf(SNIPPET_CONTEXT, 0); }

/* --- as expressions --- */

static uint64_t mask_of(inlay_reg reg)
{
    unsigned bits = inlay_reg_bits(reg);
    return bits < 64 ? (1ull << bits) - 1 : ~0ull;
}

static inlay_expr whole_value(inlay_reg whole)
{
    if (whole == tool_reg_thread_pointer) return inlay_thread_pointer();
    switch (inlay_reg_kind_of(whole)) {
    case INLAY_REG_PC: return inlay_pc();
    case INLAY_REG_FLAGS: return inlay_flags();
    default: return tool_register(SNIPPET_REG, whole, NULL);
    }
}

static inlay_expr refuse(inlay_reg reg, const char *what, const char *way)
{
    if (inlay_reg_kind_of(reg) == INLAY_REG_NONE) way = "there is no such register";
    tool_say_limited("register %s (0x%x) cannot be %s: %s", inlay_reg_name(reg), reg, what, way);
    tool_mistake("register %s cannot be %s", inlay_reg_name(reg), what);
    return NULL;
}

/* How else to get at it. */
static const char *way_to(inlay_reg reg)
{
    switch (inlay_reg_kind_of(reg)) {
    case INLAY_REG_VECTOR:
        return "inlay_vector_register hands its low 64 bits to a routine, inlay_context_arg all of it";
    case INLAY_REG_SEGMENT: return "inlay_context_arg hands the bases of segments to a routine";
    case INLAY_REG_CONTROL: return "it is not among what a point knows";
    default: return "inlay_context_arg hands it to a routine";
    }
}

inlay_expr inlay_register(inlay_reg reg)
{
    unsigned shift;
    if (!inlay_reg_is_value(reg)) return refuse(reg, "read in an expression", way_to(reg));
    inlay_expr value = whole_value(inlay_reg_whole(reg, &shift));
    if (shift) value = inlay_binary(INLAY_SHR, value, inlay_const(shift));
    return inlay_reg_bits(reg) < 64 ? inlay_binary(INLAY_AND, value, inlay_const(mask_of(reg))) : value;
}

inlay_expr inlay_set_register(inlay_reg reg, inlay_expr value)
{
    unsigned shift, bits = inlay_reg_bits(reg);
    if (!value) tool_mistake("inlay_set_register: its value is NULL");
    if (!value) return NULL;
    if (inlay_reg_kind_of(reg) != INLAY_REG_GENERAL)
        return refuse(reg, "set", "only general registers and parts of them can");
    inlay_reg whole = inlay_reg_whole(reg, &shift);
    if (bits < 64) value = inlay_binary(INLAY_AND, value, inlay_const(mask_of(reg)));
    if (bits < 32) {
        inlay_expr rest = inlay_const(~(mask_of(reg) << shift));
        if (shift) value = inlay_binary(INLAY_SHL, value, inlay_const(shift));
        value = inlay_binary(INLAY_OR, inlay_binary(INLAY_AND, whole_value(whole), rest), value);
    }
    return value ? tool_register(SNIPPET_SET_REG, whole, value) : NULL;
}

inlay_expr inlay_register_ref(inlay_reg reg)
{
    if (inlay_reg_kind_of(reg) != INLAY_REG_GENERAL || inlay_reg_whole(reg, NULL) != reg)
        return refuse(reg, "handed to a routine by its address", "only whole general registers can");
    return tool_register(SNIPPET_REG_REF, reg, NULL);
}
