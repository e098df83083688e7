/* Jump tables stay as they are.
 *
 *     ldrb w0,[x0,w1,uxtw]          entries of one, two or four bytes, counted in instructions from a label in the
 *     adr x1,label                  middle of the old code: narrow ones do not reach the new
 *     add x0,x1,w0,sxtb #2
 *     br x0
 *
 * The label's address is the old one in the new code, too, so such a jump leads into old code, where each of the
 * table's targets is caught by a branch to its new place. There is room for that always: a branch is as long as any
 * instruction. It costs one direct branch a dispatch. */
#include "move/aarch64/machine.h"

bool move_a64_table_fits(const cfg_program *p, const cfg_table *t)
{
    (void)p, (void)t;
    return false;
}

bool move_a64_names_table_only(const cfg_program *p, const cfg_table *t)
{
    (void)p, (void)t;
    return false;
}

void move_a64_reaim(isa_insn *in, const move_reaim *r) { (void)in, (void)r; }
