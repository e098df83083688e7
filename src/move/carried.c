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

/* Does what a call pushes lead to no block's begin? There is none behind one that seems not to return, and padding in
 * front of one that is aligned. */
static bool returns_between(const cfg_block *b)
{
    return b->flags & CFG_BLOCK_NO_RETURN || (b->flags & CFG_BLOCK_CALL && (b->addr + b->size) % MOVE_ALIGNED == 0);
}

static uint64_t put_behind(const move_plan *p, uint64_t low, inl_bytes *to)
{
    const cfg_program *cfg = p->cfg;
    move_map_walk walk = move_map_from(p, 0);
    move_map m;
    uint64_t count = 0;
    bool more = move_map_next(&walk, &m);
    for (uint32_t i = 0; i < cfg->block_count && more; i++) {
        const cfg_block *b = &cfg->blocks[i];
        uint64_t old = b->addr + p->bias, end = old + b->size;
        if (!returns_between(b)) continue;
        uint32_t call = UINT32_MAX;
        for (; more && m.old_addr < end; more = move_map_next(&walk, &m))
            if (m.old_addr >= old) call = m.code_off;
        if (call == UINT32_MAX) continue;
        uint32_t entry[2] = {call, (uint32_t)(end - p->bias - low)};
        inl_bytes_put(to, entry, sizeof entry);
        count++;
    }
    return count;
}

void move_map_put(const move_plan *p, uint64_t low, inl_bytes *to)
{
    size_t at = inl_bytes_reserve(to, sizeof(move_carried_map));
    uint64_t count = put_blocks(p, low, to), behind = put_behind(p, low, to);
    inl_bytes_align(to, 8);
    move_carried_map head = {count, p->tells_states ? to->size - at : 0, behind};
    inl_bytes_set(to, at, &head, sizeof head);
    if (p->tells_states) move_states_put(p, (assumed_addr){low + p->bias}, to);
}
