/* What of a written file a running process needs as well: the unwind table of moved code. */
#include "elf/private.h"

inl_status elf_unwind_table(const move_plan *plan, inl_bytes *to, uint64_t *header, inl_error *e)
{
    static const elf_write_options none;
    elf_writer w = {.plan = plan,
                    .isa = &elf_isa_here,
                    .options = &none,
                    .im = plan->cfg->image,
                    .text_at = plan->text_addr - plan->bias,
                    .only_moved = true,
                    .ro = *to};
    inl_status s = elf_unwind(&w, e);
    if (!s) s = elf_check_bytes(&w, &w.ro, e);
    *to = w.ro;
    *header = w.hdr_addr;
    inl_vec_free(&w.areas);
    inl_arena_free(&w.arena);
    return s;
}
