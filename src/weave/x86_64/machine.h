/* Between the x86-64 files of the weaver: what the table (isa.c) is filled with, and short names. */
#ifndef INL_WEAVE_X86_64_MACHINE_H
#define INL_WEAVE_X86_64_MACHINE_H

#include "isa/x86_64/emit.h"
#include "weave/weaver.h"
#include "weave/x86_64/frame.h"

extern const weave_isa weave_isa_x86_64;

#define WEAVE_ALL_REGS     0xffffu
/* rax rcx rdx rsi rdi r8..r11: what a routine may clobber by the ABI */
#define WEAVE_CALLER_SAVED 0x0fc7u

static inline x86_addr weave_temp_addr(unsigned temp) { return x86_gs(WEAVE_OFF(temp) + 8 * (int32_t)temp); }
static inline x86_addr weave_slot_addr(unsigned reg) { return x86_gs(WEAVE_SLOT(reg)); }

/* Each does what weave/isa.h says of the member of its name. */
void weave_x86_flags_save(weaver *);
void weave_x86_flags_restore(weaver *);
weave_val weave_x86_flags_value(weaver *, unsigned hint);

weave_val weave_x86_binary(weaver *, const snippet *, weave_val a, weave_val b, unsigned hint);
weave_val weave_x86_unary(weaver *, unsigned op, weave_val a, unsigned hint);
unsigned weave_x86_compare(weaver *, unsigned op, weave_val a, weave_val b);
weave_val weave_x86_cycles(weaver *);
void weave_x86_thread_pointer(x86_code *, unsigned reg);

void weave_x86_count(weaver *, int32_t at, int64_t amount);
void weave_x86_add_to(weaver *, unsigned size, unsigned base, unsigned reg);
void weave_x86_count_value(weaver *, int32_t at, weave_val);
isa_label weave_x86_branch_if_beyond(weaver *, unsigned reg, int32_t limit);
isa_label weave_x86_branch_if_full(weaver *, unsigned reg, int32_t limit, weave_fixed *held);

bool weave_x86_may_fault(const isa_insn *);
cfg_need weave_x86_branch_reads(const isa_insn *);
cfg_need weave_x86_predicate_reads(const isa_insn *);
int weave_x86_predicate(const isa_insn *);
isa_label weave_x86_branch_unless_taken(weaver *, const isa_insn *);
weave_val weave_x86_taken(weaver *, const isa_insn *, unsigned hint);
weave_val weave_x86_rep_executes(weaver *, const isa_insn *, unsigned hint);
weave_val weave_x86_rep_count(weaver *, const isa_insn *, unsigned hint);
weave_val weave_x86_return_target(weaver *, const isa_insn *, unsigned hint);
weave_val weave_x86_return_address(weaver *, unsigned hint);
weave_val weave_x86_stack_argument(weaver *, unsigned index, bool at_call, unsigned hint);
weave_val weave_x86_address(weaver *, const isa_mem *, const weave_val *index, unsigned hint);
weave_val weave_x86_variable_size(weaver *, unsigned index, const isa_mem *);
weave_val weave_x86_context(weaver *, unsigned hint);
void weave_x86_save_masks(weaver *, const isa_insn *, const isa_mem *);
weave_val weave_x86_element_index(weaver *, const isa_mem *, unsigned element);
int weave_x86_element_condition(weaver *, const isa_mem *, unsigned element);
int weave_x86_copy_special(weaver *, const isa_insn *, weave_map_entry *, bool plain);
/* gs.c, for place.c too: where the prefixes end that are neither REX nor a part of the opcode; */
unsigned weave_x86_prefix_end(const isa_insn *);
/* writes `in` with its memory operand replaced by [reg], reg being one of WEAVE_LOW_REGS, and a vector index kept; */
bool weave_x86_put_with_base(weaver *, const isa_insn *, unsigned reg, bool vector_index);
/* likewise mov between rax (eax, ax, al) and an absolute address, and xlat; */
bool weave_x86_put_accumulator(weaver *, const isa_insn *, unsigned reg);
void weave_x86_put_without_segment(weaver *, const isa_insn *);
enum { /* [reg] needs ModRM alone */
       WEAVE_LOW_REGS = WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RCX) | WEAVE_BIT(X86_RDX) | WEAVE_BIT(X86_RBX) |
                        WEAVE_BIT(X86_RSI) | WEAVE_BIT(X86_RDI)
};
const char *weave_x86_placeable(const isa_insn *, const isa_mem *, unsigned *place);
bool weave_x86_copy_placed(weaver *, const isa_insn *, weave_map_entry *, unsigned places, bool plain);

void weave_x86_note_routine(weave_routine *, const isa_insn *, const isa_effects *);
void weave_x86_form(const isa_insn *, struct weave_form *);
bool weave_x86_holds(unsigned cond, unsigned op, unsigned width, uint64_t a, uint64_t b, bool *yes);
bool weave_x86_can_rename(const isa_insn *, isa_regs *fixed);
bool weave_x86_takes_immediate(unsigned item_kind, unsigned op, unsigned width, uint64_t value);
bool weave_x86_is_far(const weaver *, uint64_t here, uint64_t address);
bool weave_x86_put_item(weaver *, const weave_naming *, const struct item *);

void weave_x86_call_plan(weaver *, weave_call_plan *);
void weave_x86_call_begin(weaver *, weave_call_plan *);
weave_val weave_x86_call_result(weaver *, weave_call_plan *);
void weave_x86_call_end(weaver *, weave_call_plan *);

#endif
