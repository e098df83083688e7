/* The table of x86-64 (weave/isa.h), and what of it is one instruction. */
#include "weave/x86_64/machine.h"

static const uint8_t arg_regs[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9};

static void move(isa_code *c, unsigned dst, unsigned src) { x86_mov_rr(c, 8, dst, src); }

static void add(isa_code *c, unsigned dst, unsigned src, int32_t amount) { x86_lea(c, dst, x86_at(src, amount)); }

static void truncate_to_32(isa_code *c, unsigned reg) { x86_movzx_rr(c, 4, reg, reg); }

static void extend(isa_code *c, unsigned size, bool is_signed, unsigned dst, unsigned src)
{
    if (size == 8) x86_mov_rr(c, 8, dst, src);
    else if (is_signed) x86_movsx_rr(c, size, dst, src);
    else x86_movzx_rr(c, size, dst, src);
}

static void frame_load(weaver *w, unsigned dst, int32_t offset) { x86_load(w->c, 8, dst, x86_gs(offset)); }

static void frame_store(weaver *w, int32_t offset, unsigned src) { x86_store(w->c, 8, x86_gs(offset), src); }

static void frame_address(isa_code *c, unsigned dst, int32_t offset)
{
    x86_load(c, 8, dst, x86_gs(WEAVE_OFF(self)));
    x86_lea(c, dst, x86_at(dst, offset));
}

static bool reaches(int64_t disp) { return disp == (int32_t)disp; }

static void load(isa_code *c, unsigned size, bool is_signed, unsigned dst, unsigned base, int32_t disp)
{
    if (is_signed) x86_load_sx(c, size, dst, x86_at(base, disp));
    else x86_load(c, size, dst, x86_at(base, disp));
}

static void store(isa_code *c, unsigned size, unsigned base, int32_t disp, unsigned src)
{
    x86_store(c, size, x86_at(base, disp), src);
}

static bool store_constant(isa_code *c, unsigned size, unsigned base, int32_t disp, uint64_t value)
{
    return x86_store_imm(c, size, x86_at(base, disp), (int64_t)value);
}

static isa_label branch(isa_code *c, unsigned cond, bool near) { return x86_jcc_label(c, cond, near ? 1 : 4); }

static isa_label branch_unless(isa_code *c, unsigned cond, bool near) { return branch(c, cond ^ 1u, near); }

static isa_label jump(isa_code *c, bool near) { return x86_jmp_label(c, near ? 1 : 4); }

/*     test r, r ; jz zero                                   flags free
 *     jrcxz hop ; jmp on ; hop: jmp zero ; on:              flags live
 */
static isa_label branch_if_zero(weaver *w, unsigned reg)
{
    if (reg != X86_RCX || weave_flags_free(w)) {
        weave_flags_clobber(w);
        x86_test_rr(w->c, 8, reg, reg);
        return branch(w->c, X86_E, false);
    }
    x86_label hop = x86_jrcxz_label(w->c);
    x86_label on = x86_jmp_label(w->c, 1);
    x86_bind(w->c, hop);
    x86_label zero = x86_jmp_label(w->c, 4);
    x86_bind(w->c, on);
    return zero;
}

static isa_label branch_if_not_zero(weaver *w, unsigned reg)
{
    if (reg != X86_RCX || weave_flags_free(w)) {
        weave_flags_clobber(w);
        x86_test_rr(w->c, 8, reg, reg);
        return branch(w->c, X86_NE, false);
    }
    x86_label zero = x86_jrcxz_label(w->c);
    x86_label other = x86_jmp_label(w->c, 4);
    x86_bind(w->c, zero);
    return other;
}

/* A short jump to what follows it, which leads away, or over that. */
static isa_label jump_if_off(isa_code *c, bool on, weave_switch *s)
{
    enum { LONG_JUMP = 5 };
    const uint8_t jump[] = {0xeb, on ? LONG_JUMP : 0};
    isa_put(c, jump, sizeof jump);
    s->exec = isa_here(c) - 1;
    s->on = LONG_JUMP, s->off = 0;
    return x86_jmp_label(c, 4);
}

static void jump_to(isa_code *c, uint64_t target) { x86_jmp_to(c, target); }

static void bind(isa_code *c, isa_label l) { x86_bind(c, l); }

static void bind_to(isa_code *c, isa_label l, uint64_t target)
{
    if (c->full || l.kind != 4) return;
    if (!x86_patch_rel32(c->write + l.at, c->exec + l.at, target)) c->unreachable = true;
    isa_fix_later(c, l.at, 0, target);
}

static void condition(isa_code *c, unsigned cond, unsigned reg)
{
    x86_setcc(c, cond, reg);
    x86_movzx_rr(c, 1, reg, reg);
}

const weave_isa weave_isa_x86_64 = {
    .isa = &isa_x86_64,
    .abi = {.args = arg_regs,
            .arg_count = sizeof arg_regs,
            .result = X86_RAX,
            .syscall_number = X86_RAX,
            .caller_saved = WEAVE_CALLER_SAVED,
            .syscall_writes = WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RCX) | WEAVE_BIT(X86_R11),
            .vec_args = 8,
            .return_address = WEAVE_BIT(X86_RSP)},
    .frame = {.thread_number = WEAVE_OFF(thread_number),
              .slot = WEAVE_OFF(slot),
              .temp = WEAVE_OFF(temp),
              .buffers = WEAVE_OFF(buffers),
              .locals = WEAVE_OFF(locals),
              .own_cycles = WEAVE_OFF(own_cycles),
              .counters = WEAVE_COUNTERS,
              .temps = WEAVE_TEMPS,
              .buffer_count = WEAVE_BUFFERS},
    .reg_count = X86_REGS,
    .all = WEAVE_ALL_REGS,
    .reserved = WEAVE_BIT(X86_RSP),
    .park_from = 7,
    .inline_regs = 13,
    .pc_reach = 0x7ff00000,
    .near_items = 8, /* of 15 bytes at most */
    .zero_reg = X86_RCX,
    .flags = X86_ARITH,
    .count_flags = X86_ARITH,
    /* Multiplications, divisions and bit scans leave "undefined" flags as they were on some processors. (Logic and
     * shifts compute them.) */
    .flags_unsettled = X86_SF,
    .count_reg = WEAVE_BIT(X86_RCX),
    .size_regs = WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RDX),
    .size_word = 520, /* of an image of XSAVE's: its top bit tells the form */
    .move = move,
    .set = x86_mov_ri,
    .add = add,
    .truncate = truncate_to_32,
    .extend = extend,
    .frame_load = frame_load,
    .frame_store = frame_store,
    .frame_address = frame_address,
    .reaches = reaches,
    .load = load,
    .store = store,
    .add_to = weave_x86_add_to,
    .store_constant = store_constant,
    .condition_flags = x86_cond_flags,
    .branch = branch,
    .branch_unless = branch_unless,
    .branch_if_zero = branch_if_zero,
    .branch_if_not_zero = branch_if_not_zero,
    .jump = jump,
    .jump_if_off = jump_if_off,
    .jump_to = jump_to,
    .bind = bind,
    .bind_to = bind_to,
    .fix_relocated = x86_fix_relocated,
    .place = x86_place,
    .flags_save = weave_x86_flags_save,
    .flags_restore = weave_x86_flags_restore,
    .flags_value = weave_x86_flags_value,
    .binary = weave_x86_binary,
    .unary = weave_x86_unary,
    .compare = weave_x86_compare,
    .condition = condition,
    .cycles = weave_x86_cycles,
    .thread_pointer = weave_x86_thread_pointer,
    .count = weave_x86_count,
    .count_value = weave_x86_count_value,
    .branch_if_full = weave_x86_branch_if_full,
    .branch_if_beyond = weave_x86_branch_if_beyond,
    .full_borrows = WEAVE_BIT(X86_RCX),
    .may_fault = weave_x86_may_fault,
    .branch_reads = weave_x86_branch_reads,
    .predicate_reads = weave_x86_predicate_reads,
    .predicate = weave_x86_predicate,
    .branch_unless_taken = weave_x86_branch_unless_taken,
    .taken = weave_x86_taken,
    .rep_executes = weave_x86_rep_executes,
    .rep_count = weave_x86_rep_count,
    .return_target = weave_x86_return_target,
    .return_address = weave_x86_return_address,
    .stack_argument = weave_x86_stack_argument,
    .address = weave_x86_address,
    .variable_size = weave_x86_variable_size,
    .context = weave_x86_context,
    .save_masks = weave_x86_save_masks,
    .element_index = weave_x86_element_index,
    .element_condition = weave_x86_element_condition,
    .placeable = weave_x86_placeable,
    .copy_placed = weave_x86_copy_placed,
    .copy_special = weave_x86_copy_special,
    .note_routine = weave_x86_note_routine,
    .form = weave_x86_form,
    .holds = weave_x86_holds,
    .can_rename = weave_x86_can_rename,
    .takes_immediate = weave_x86_takes_immediate,
    .is_far = weave_x86_is_far,
    .put_item = weave_x86_put_item,
    .call_plan = weave_x86_call_plan,
    .call_begin = weave_x86_call_begin,
    .call_result = weave_x86_call_result,
    .call_end = weave_x86_call_end,
};
