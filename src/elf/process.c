/* What of a written file a running process needs as well: the unwind table of moved code, and the one of the boot code.
 */
#include "elf/private.h"

inl_status elf_unwind_table(const move_plan *plan, inl_bytes *to, elf_unwind_place *place, inl_error *e)
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
    *place = (elf_unwind_place){.header = w.hdr_addr, .frames = w.eh_frame_addr};
    for (size_t i = 0; i < w.areas.count; i++)
        if (w.areas.items[i].addr == w.eh_frame_addr) place->frames_size = w.areas.items[i].size;
    inl_vec_free(&w.areas);
    inl_arena_free(&w.arena);
    return s;
}

inl_status elf_unwind_boot(const elf_carry *carry, uint64_t boot, inl_bytes *to, uint64_t *header, inl_error *e)
{
    elf_write_options options = {.carry = carry};
    elf_writer w = {.isa = &elf_isa_here, .options = &options, .boot = {.addr = boot}, .ro = *to};
    inl_status s = elf_unwind_of_return(&w, e);
    *to = w.ro;
    *header = w.hdr_addr;
    return s;
}
