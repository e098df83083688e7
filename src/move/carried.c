/* The map of a plan as it goes with the code (carried.h). */
#include "move/isa.h"
#include "base/bytes.h"

/* The places of moved blocks. Blocks ascend by address, and so does the plan's map. */
static uint64_t put_blocks(const move_plan *p, uint64_t low, inl_bytes *to)
{
    const cfg_program *cfg = p->cfg;
    move_map_walk walk = move_map_from(p, 0);
    move_map m;
    uint64_t count = 0;
    bool more = move_map_next(&walk, &m);
    for (uint32_t i = 0; i < cfg->block_count && more; i++) {
        uint64_t old = cfg->blocks[i].addr + p->bias;
        while (more && m.old_addr < old) more = move_map_next(&walk, &m);
        if (!more || m.old_addr != old) continue;
        uint32_t entry[2] = {m.new_off, (uint32_t)(cfg->blocks[i].addr - low)};
        inl_bytes_put(to, entry, sizeof entry);
        count++;
    }
    return count;
}

void move_map_put(const move_plan *p, uint64_t low, inl_bytes *to)
{
    size_t at = inl_bytes_reserve(to, sizeof(move_carried_map));
    uint64_t count = put_blocks(p, low, to);
    inl_bytes_align(to, 8);
    move_carried_map head = {count, p->tells_states ? to->size - at : 0};
    inl_bytes_set(to, at, &head, sizeof head);
    if (p->tells_states) move_states_put(p, (assumed_addr){low + p->bias}, to);
}
