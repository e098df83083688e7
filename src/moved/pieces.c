#include "moved/pieces.h"

#include "moved/states.h"

#include <stdatomic.h>

moved_pieces moved_pieces_now;

const moved_piece *moved_piece_at(uint64_t pc)
{
    for (uint64_t k = 0; k < moved_pieces_now.count; k++) {
        const moved_piece *p = &moved_pieces_now.all[k];
        if (pc - p->image.text < p->image.text_size) return p;
    }
    return NULL;
}

bool moved_pieces_have(uint64_t at)
{
    for (uint64_t k = 0; k < moved_pieces_now.count; k++) {
        const moved_piece *p = &moved_pieces_now.all[k];
        if (p->image.text_size && at - p->low < p->high - p->low) return true;
    }
    return false;
}

static uint64_t place_in(const moved_piece *p, uint64_t pc)
{
    const moved_image *i = &p->image;
    moved_spot spot;
    if (!i->text_size || !i->map->states || pc - i->map_base > UINT32_MAX) return 0;
    const move_carried_states *s = (const void *)((const char *)i->map + i->map->states);
    if (!moved_states_find_old(s, (uint32_t)(pc - i->map_base), &spot)) return 0;
    uint32_t block = moved_block_of(i, spot.new_off);
    return block != UINT32_MAX && p->in[block] ? i->text + spot.new_off : 0;
}

/* All threads may be stopped anywhere in here, and pieces unmapped that nothing leads into (live/in_use.c). What is
 * looked at stays: from before it is asked whether it is there, a word of the stack leads into its text. */
uint64_t moved_piece_to(uint64_t pc)
{
    volatile uint64_t leads_there = 0;
    uint64_t to = 0;
    for (uint64_t k = moved_pieces_now.count; k-- > 0 && !to;) {
        leads_there = moved_pieces_now.all[k].image.text;
        atomic_signal_fence(memory_order_seq_cst);
        to = place_in(&moved_pieces_now.all[k], pc);
    }
    (void)leads_there;
    return to;
}

static run_thread *thread_of(uint64_t tid)
{
    run_thread *t = run_here.threads;
    while (t && (uint64_t)t->tid != tid) t = t->next;
    return t;
}

void moved_pieces_places(void)
{
    move_live *asked = moved_pieces_now.asked;
    for (uint64_t i = 0; i < asked->thread_count; i++) {
        move_live_thread *as = &asked->threads[i];
        run_thread *t = thread_of(as->tid);
        uint64_t to = t && t->where == RUN_IN_CODE && !t->frame.in_tool ? moved_to((real_addr){as->ctx.pc}).at : 0;
        as->block = 0;
        if (!to || !moved_piece_at(to)) continue;
        moved_enter_run(t, to, true);
        as->block = (uint64_t)(uintptr_t)t;
        as->ctx.pc = to;
    }
    moved_pieces_shown();
    asked->started = MOVE_LIVE_STARTED;
}
