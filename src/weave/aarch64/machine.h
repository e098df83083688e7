/* Between the AArch64 files of the weaver: what the table (isa.c) is filled with, and how the frame is reached. */
#ifndef INL_WEAVE_AARCH64_MACHINE_H
#define INL_WEAVE_AARCH64_MACHINE_H

#include "isa/aarch64/emit.h"
#include "weave/aarch64/frame.h"
#include "weave/weaver.h"

extern const weave_isa weave_isa_aarch64;

enum {
    WEAVE_A64_ALL = 0xffffffff,
    WEAVE_A64_CALLER_SAVED = 0x7ffff, /* x0 to x18; a call itself writes x30 besides */
    WEAVE_A64_SVC_WRITES = 1,         /* x0, by the kernel */
};

/* `base` := an address near the field at `offset`, which lies at the answer from there. */
int32_t weave_a64_frame(isa_code *, unsigned base, int32_t offset);

/* The other members of the table do what weave/isa.h says of the member of their name. */
void weave_a64_frame_load(weaver *, unsigned dst, int32_t offset);
void weave_a64_frame_store(weaver *, int32_t offset, unsigned src);
void weave_a64_frame_address(isa_code *, unsigned dst, int32_t offset);

isa_label weave_a64_branch(isa_code *, unsigned cond, bool near);
isa_label weave_a64_branch_unless(isa_code *, unsigned cond, bool near);
isa_label weave_a64_branch_if_zero(weaver *, unsigned reg);
isa_label weave_a64_branch_if_not_zero(weaver *, unsigned reg);
isa_label weave_a64_jump(isa_code *, bool near);
void weave_a64_bind_to(isa_code *, isa_label, uint64_t target);
isa_label weave_a64_branch_unless_taken(weaver *, const isa_insn *);

void weave_a64_flags_save(weaver *);
void weave_a64_flags_restore(weaver *);
weave_val weave_a64_flags_value(weaver *, unsigned hint);

weave_val weave_a64_binary(weaver *, const snippet *, weave_val a, weave_val b, unsigned hint);
weave_val weave_a64_unary(weaver *, unsigned op, weave_val a, unsigned hint);
unsigned weave_a64_compare(weaver *, unsigned op, weave_val a, weave_val b);
weave_val weave_a64_cycles(weaver *);

void weave_a64_count(weaver *, int32_t at, int64_t amount);
void weave_a64_add_to(weaver *, unsigned size, unsigned base, unsigned reg);
void weave_a64_count_value(weaver *, int32_t at, weave_val);
isa_label weave_a64_branch_if_full(weaver *, unsigned reg, int32_t limit, weave_fixed *held);

bool weave_a64_may_fault(const isa_insn *);
cfg_need weave_a64_branch_reads(const isa_insn *);
cfg_need weave_a64_predicate_reads(const isa_insn *);
int weave_a64_predicate(const isa_insn *);
weave_val weave_a64_taken(weaver *, const isa_insn *, unsigned hint);
weave_val weave_a64_rep(weaver *, const isa_insn *, unsigned hint);
weave_val weave_a64_return_target(weaver *, const isa_insn *, unsigned hint);
weave_val weave_a64_return_address(weaver *, unsigned hint);
weave_val weave_a64_stack_argument(weaver *, unsigned index, bool at_call, unsigned hint);
weave_val weave_a64_address(weaver *, const isa_mem *, const weave_val *index, unsigned hint);
weave_val weave_a64_variable_size(weaver *, unsigned index, const isa_mem *);
weave_val weave_a64_context(weaver *, unsigned hint);
void weave_a64_save_masks(weaver *, const isa_insn *, const isa_mem *);
weave_val weave_a64_element_index(weaver *, const isa_mem *, unsigned element);
int weave_a64_element_condition(weaver *, const isa_mem *, unsigned element);
int weave_a64_copy_special(weaver *, const isa_insn *, weave_map_entry *, bool plain);

void weave_a64_note_routine(weave_routine *, const isa_insn *, const isa_effects *);
void weave_a64_form(const isa_insn *, struct weave_form *);
bool weave_a64_holds(unsigned cond, unsigned op, unsigned width, uint64_t a, uint64_t b, bool *yes);
bool weave_a64_can_rename(const isa_insn *, isa_regs *fixed);
bool weave_a64_takes_immediate(unsigned item_kind, unsigned op, unsigned width, uint64_t value);
bool weave_a64_is_far(const weaver *, uint64_t here, uint64_t address);
bool weave_a64_put_item(weaver *, const weave_naming *, const struct item *);

void weave_a64_call_plan(weaver *, weave_call_plan *);
void weave_a64_call_begin(weaver *, weave_call_plan *);
weave_val weave_a64_call_result(weaver *, weave_call_plan *);
void weave_a64_call_end(weaver *, weave_call_plan *);

#endif
