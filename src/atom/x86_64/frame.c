/* How a procedure of x86-64 makes its frame: push and sub of the stack pointer, as far as its first block goes.
 *
 *     push rbp        saved, and the stack pointer moves first here
 *     mov  rbp, rsp   the base
 *     sub  rsp, n     the prologue ends behind the last of these */
#include "atom/isa.h"

#include <string.h>

/* sub rsp, n with REX: /5 ib, /5 id; 0: something else. */
static long taken_off(const inlay_insn *i)
{
    const uint8_t *raw = inlay_insn_bytes(i);
    unsigned n = inlay_insn_size(i);
    int32_t amount;
    if (inlay_insn_regs_written(i) != 1ull << inlay_reg_stack_pointer()) return 0;
    if (n == 4 && raw[1] == 0x83) return (int8_t)raw[3];
    if (n != 7 || raw[1] != 0x81) return 0;
    memcpy(&amount, raw + 3, sizeof amount);
    return amount;
}

static bool sets_base(const inlay_insn *i, const char *name)
{
    return !strcmp(name, "mov") && inlay_insn_regs_written(i) == 1ull << INLAY_RBP &&
           inlay_insn_regs_read(i) == 1ull << INLAY_RSP && !inlay_insn_memory_count(i);
}

atom_frame atom_isa_frame(inlay_proc *p)
{
    atom_frame f = {.base = REG_SP};
    inlay_block *b = inlay_proc_block_first(p);
    for (inlay_insn *i = b ? inlay_block_first(b) : NULL; i; i = inlay_insn_next(i)) {
        const char *name = inlay_opcode_name(inlay_insn_opcode(i));
        long behind = (long)(inlay_insn_address(i) + inlay_insn_size(i) - inlay_proc_address(p)), less = 0;
        if (!strcmp(name, "push")) {
            uint64_t saved = inlay_insn_regs_read(i) & ~(1ull << inlay_reg_stack_pointer());
            f.saved |= saved;
            f.saved_bytes += saved && f.saved_bytes == f.size ? 8 : 0;
            less = 8;
        } else if (!strcmp(name, "sub")) {
            less = taken_off(i);
        } else if (sets_base(i, name)) {
            f.base = (RegvType)INLAY_RBP;
            f.base_set = f.ready = behind;
        }
        f.size += less;
        if (less) f.ready = behind;
        if (less && !f.set) f.set = behind;
    }
    return f;
}

unsigned atom_isa_return_bytes(void) { return 8; }
