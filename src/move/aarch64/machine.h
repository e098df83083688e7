/* What the files of AArch64 give to its table (lower.c); see move/isa.h for what each is to do. */
#ifndef INL_MOVE_AARCH64_MACHINE_H
#define INL_MOVE_AARCH64_MACHINE_H

#include "move/isa.h"

/* stack.c */
int move_a64_checks_stack(const uint8_t *bytes, uint32_t size);
/* tables.c */
bool move_a64_table_fits(const cfg_program *, const cfg_table *);
bool move_a64_names_table_only(const cfg_program *, const cfg_table *);
void move_a64_reaim(isa_insn *, const move_reaim *);
/* syscall.c: copied, or by way of the gate. */
bool move_a64_lower_syscall(move_work *, isa_code *, const weave_run *, uint32_t i);

#endif
