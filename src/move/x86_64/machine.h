/* What the files of x86-64 give to its table (lower.c); see move/isa.h for what each is to do. */
#ifndef INL_MOVE_X86_64_MACHINE_H
#define INL_MOVE_X86_64_MACHINE_H

#include "move/isa.h"

/* stack.c */
int move_x86_checks_stack(const uint8_t *bytes, uint32_t size);
bool move_x86_checks_limit(const uint8_t *bytes, uint32_t size);
bool move_x86_keeps_everything(const uint8_t *bytes, uint32_t size);
bool move_x86_asks_piece(const uint8_t *bytes, uint32_t size);
/* taken.c */
bool move_x86_takes_return(const uint8_t *bytes, size_t size);
/* tables.c */
bool move_x86_names_table(const cfg_program *, const cfg_table *, uint32_t block, const isa_insn *, bool *only);
bool move_x86_table_fits(const cfg_program *, const cfg_table *);
bool move_x86_names_table_only(const cfg_program *, const cfg_table *);
void move_x86_reaim(isa_insn *, const move_reaim *);
/* names.c */
move_reloc move_x86_reloc(uint32_t type);
size_t move_x86_find_name(const uint8_t *bytes, size_t size, size_t i, uint64_t addr, uint64_t *named);
bool move_x86_is_name(const isa_insn *, uint64_t at);
void move_x86_aim(uint8_t *bytes, const isa_insn *, uint64_t target);
size_t move_x86_mark_size(const uint8_t *bytes, size_t size);

#endif
