/* The table of AArch64 (weave/isa.h), and what of it is one instruction. */
#include "weave/aarch64/machine.h"

static const uint8_t arg_regs[] = {0, 1, 2, 3, 4, 5, 6, 7};

enum { RESULT = 0, SYSCALL_NUMBER = A64_X8, UNSCALED_REACH = 256 };

static void move(isa_code *c, unsigned dst, unsigned src) { a64_mov_rr(c, 8, dst, src); }

static void add(isa_code *c, unsigned dst, unsigned src, int32_t amount)
{
    if (!a64_add_ri(c, dst, src, amount)) c->unreachable = true;
}

static void truncate_to_32(isa_code *c, unsigned reg) { a64_extend(c, 4, false, reg, reg); }

static bool reaches(int64_t disp) { return disp >= -UNSCALED_REACH && disp < UNSCALED_REACH; } /* for every size */

static void load(isa_code *c, unsigned size, bool is_signed, unsigned dst, unsigned base, int32_t disp)
{
    if (is_signed) a64_load_sx(c, size, dst, a64_at(base, disp));
    else a64_load(c, size, dst, a64_at(base, disp));
}

static void store(isa_code *c, unsigned size, unsigned base, int32_t disp, unsigned src)
{
    a64_store(c, size, a64_at(base, disp), src);
}

static bool store_constant(isa_code *c, unsigned size, unsigned base, int32_t disp, uint64_t value)
{
    if (value) return false;
    a64_store(c, size, a64_at(base, disp), A64_ZR);
    return true;
}

static void condition(isa_code *c, unsigned cond, unsigned reg) { a64_cset(c, reg, (enum a64_cond)cond); }

/* The emitter keeps no fix-ups yet: code that was written with a list for them can be used nowhere else, and says so.
 */
static void fix_relocated(isa_code *c, const isa_insn *in) { (void)c, (void)in; }

static bool place(const isa_fixups *all, uint8_t *code, uint64_t exec, uint64_t low, uint64_t high)
{
    (void)all, (void)code, (void)exec, (void)low, (void)high;
    return false;
}

const weave_isa weave_isa_aarch64 = {
    .isa = &isa_aarch64,
    .abi = {.args = arg_regs,
            .arg_count = sizeof arg_regs,
            .result = RESULT,
            .syscall_number = SYSCALL_NUMBER,
            .caller_saved = WEAVE_A64_CALLER_SAVED,
            .syscall_writes = WEAVE_A64_SVC_WRITES,
            .vec_args = 8,
            .return_address = WEAVE_BIT(A64_LR)},
    .frame = {.thread_number = WEAVE_OFF(thread_number),
              .slot = WEAVE_OFF(slot),
              .temp = WEAVE_OFF(temp),
              .buffers = WEAVE_OFF(buffers),
              .locals = WEAVE_OFF(locals),
              .own_cycles = WEAVE_OFF(own_cycles),
              .counters = WEAVE_COUNTERS,
              .temps = WEAVE_TEMPS,
              .buffer_count = WEAVE_BUFFERS},
    .reg_count = A64_REGS,
    .all = WEAVE_A64_ALL,
    .reserved = WEAVE_BIT(A64_SP),
    .copied_first = WEAVE_BIT(A64_SP),
    .park_from = 16,
    .inline_regs = 26,
    .pc_reach = 0xffff0000,
    .near_items = 64,
    .zero_reg = ISA_NO_REG,
    .flags = A64_NZCV,
    .count_regs = 2,
    .move = move,
    .set = a64_mov_ri,
    .add = add,
    .truncate = truncate_to_32,
    .extend = a64_extend,
    .frame_load = weave_a64_frame_load,
    .frame_store = weave_a64_frame_store,
    .frame_address = weave_a64_frame_address,
    .reaches = reaches,
    .load = load,
    .store = store,
    .add_to = weave_a64_add_to,
    .store_constant = store_constant,
    .condition_flags = a64_cond_flags,
    .branch = weave_a64_branch,
    .branch_unless = weave_a64_branch_unless,
    .branch_if_zero = weave_a64_branch_if_zero,
    .branch_if_not_zero = weave_a64_branch_if_not_zero,
    .jump = weave_a64_jump,
    .jump_to = a64_b,
    .bind = a64_bind,
    .bind_to = weave_a64_bind_to,
    .fix_relocated = fix_relocated,
    .place = place,
    .flags_save = weave_a64_flags_save,
    .flags_restore = weave_a64_flags_restore,
    .flags_value = weave_a64_flags_value,
    .binary = weave_a64_binary,
    .unary = weave_a64_unary,
    .compare = weave_a64_compare,
    .condition = condition,
    .cycles = weave_a64_cycles,
    .thread_pointer = a64_read_tls,
    .count = weave_a64_count,
    .count_value = weave_a64_count_value,
    .branch_if_full = weave_a64_branch_if_full,
    .may_fault = weave_a64_may_fault,
    .branch_reads = weave_a64_branch_reads,
    .predicate_reads = weave_a64_predicate_reads,
    .predicate = weave_a64_predicate,
    .branch_unless_taken = weave_a64_branch_unless_taken,
    .taken = weave_a64_taken,
    .rep_executes = weave_a64_rep,
    .rep_count = weave_a64_rep,
    .return_target = weave_a64_return_target,
    .return_address = weave_a64_return_address,
    .stack_argument = weave_a64_stack_argument,
    .address = weave_a64_address,
    .variable_size = weave_a64_variable_size,
    .context = weave_a64_context,
    .save_masks = weave_a64_save_masks,
    .element_index = weave_a64_element_index,
    .element_condition = weave_a64_element_condition,
    .copy_special = weave_a64_copy_special,
    .note_routine = weave_a64_note_routine,
    .form = weave_a64_form,
    .holds = weave_a64_holds,
    .can_rename = weave_a64_can_rename,
    .takes_immediate = weave_a64_takes_immediate,
    .is_far = weave_a64_is_far,
    .put_item = weave_a64_put_item,
    .call_plan = weave_a64_call_plan,
    .call_begin = weave_a64_call_begin,
    .call_result = weave_a64_call_result,
    .call_end = weave_a64_call_end,
};
