/* What is inserted and removed in a mutator becomes so in the process, all at once: prepared while it runs, and made
 * while it stands still. */
#include "tool/mutator.h"
#include "base/page.h"
#include "tool/ahead.h"
#include "tool/code.h"
#include "tool/finders.h"

#include <inlay/process.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

/* So many pieces that nobody needs are worth a search for who is still in them. */
enum { ENOUGH_DEAD = 16 };

static inl_status no_memory(inl_error *e) { return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory"); }

/* --- what changes --- */

/* Has it gone, and come again to the same place? Then nothing of what is in force there is. */
static bool is_anew(mutatee *m, const mutated_image *mi)
{
    uint64_t at, value;
    uint8_t bytes[MOVE_MOST_PATCH];
    for (size_t k = 0; inl_map_next(&m->saved, &k, &at, &value);) {
        const mutator_saved *saved = (const mutator_saved *)(uintptr_t)value;
        if (at < mi->image->m->low || at >= mi->image->m->high) continue;
        struct iovec here = {bytes, saved->size}, there = {(void *)at, saved->size};
        return process_vm_readv(m->live.pid, &here, 1, &there, 1, 0) == saved->size &&
               !memcmp(bytes, saved->bytes, saved->size);
    }
    return false;
}

/* Libraries come and go. What is inserted in one that has gone waits: should it be mapped at its place again, the next
 * commit puts it in again. */
static void see_unmapped(mutatee *m)
{
    inl_error ignored;
    if (!m->images || live_read_maps(&m->live, &ignored) != INL_OK) return;
    for (mutated_image *mi = m->images; mi; mi = mi->next) {
        mi->is_gone = !live_has_image(&m->live, mi->image->m);
        bool is_new = !mi->is_gone && is_anew(m, mi);
        for (uint32_t i = 0; i < mi->cfg->proc_count; i++) {
            if (mi->is_gone && mi->wanted[i]) mi->why[i] = mutator_is_gone;
            if (is_new && mi->in[i]) mi->now[i] = ~mi->wanted[i];
        }
    }
}

static bool changes(const mutated_image *mi, uint32_t proc)
{
    return mi->is_gone ? mi->in[proc] != NULL : mi->wanted[proc] != mi->now[proc];
}

static inl_status change_images(mutatee *m, bool *changed, inl_error *e)
{
    inl_status s = INL_OK;
    *changed = false;
    for (mutated_image *mi = m->images; mi && s == INL_OK; mi = mi->next) {
        bool any = false;
        uint8_t *marked = calloc(mi->cfg->proc_count + 1u, 1);
        if (!marked) return no_memory(e);
        for (uint32_t i = 0; i < mi->cfg->proc_count; i++) any |= marked[i] = changes(mi, i);
        if (any) s = mutator_change_image(m, mi, marked, e);
        *changed |= any;
        free(marked);
    }
    return s;
}

static bool anything_changes(const mutatee *m)
{
    for (const mutated_image *mi = m->images; mi; mi = mi->next)
        for (uint32_t i = 0; i < mi->cfg->proc_count; i++)
            if (changes(mi, i)) return true;
    return false;
}

static bool push_data(mutatee *m, uint64_t at, const void *bytes, size_t size)
{
    return inl_vec_push(&m->change.data, (live_data){at, bytes, size});
}

/* What of the carried heap has been allocated since. */
static inl_status send_heap(mutatee *m, inl_error *e)
{
    uint64_t now = tool_heap()->next, high = inl_page_up(now);
    bool good = true;
    if (high > m->heap_mapped)
        good = inl_vec_push(
            &m->change.texts,
            (live_text){.at = m->heap_mapped, .room = high - m->heap_mapped, .prot = PROT_READ | PROT_WRITE});
    if (good && now > m->heap_sent)
        good = push_data(m, m->heap_sent, (const void *)(uintptr_t)m->heap_sent, now - m->heap_sent);
    return good ? INL_OK : no_memory(e);
}

static uint64_t slot_at(const mutator_piece *p) { return MUTATOR_AREA + p->slot * sizeof(moved_piece); }

/* The first place of the table that no piece has. */
static inl_status give_slot(mutatee *m, mutator_piece *p, inl_error *e)
{
    bool *used = calloc(m->slots + 2u, sizeof *used);
    if (!used) return no_memory(e);
    for (const mutator_piece *x = m->pieces; x; x = x->next)
        if (x->is_there) used[x->slot] = true;
    for (const mutator_piece *x = m->dead; x; x = x->next) used[x->slot] = true;
    for (p->slot = 0; used[p->slot];) p->slot++;
    free(used);
    if (p->slot >= m->slots) m->slots = p->slot + 1;
    if (m->slots > MUTATOR_PIECES)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d has too many pieces of new code", m->live.pid);
    p->is_there = true;
    return INL_OK;
}

/* The procedures of its map's entries. */
static bool list_procs(const mutated_image *mi, mutator_piece *p)
{
    const move_carried_map *map = (const void *)p->ro.data;
    const image_segment *s;
    image_segments(p->image->m->image, &s);
    p->in_procs = malloc((p->in_count + 1) * sizeof *p->in_procs);
    uint32_t b = 0;
    for (size_t k = 0; p->in_procs && k < p->in_count; k++) {
        uint64_t at = s[0].addr + map->entries[k].old_off;
        const cfg_block *next = b < mi->cfg->block_count ? &mi->cfg->blocks[b] : NULL; /* behind the last one's */
        if (!next || at - next->addr >= next->size) b = cfg_block_covering(mi->cfg, at);
        p->in_procs[k] = b == CFG_NONE ? CFG_NONE : mi->cfg->blocks[b].proc;
        b = b == CFG_NONE ? b : b + 1;
    }
    return p->in_procs != NULL;
}

static bool note_blocks(mutated_image *mi, mutator_piece *p)
{
    if (!p->in_procs && !list_procs(mi, p)) return false;
    for (size_t k = 0; k < p->in_count; k++)
        p->ro.data[p->in_at + k] = p->in_procs[k] != CFG_NONE && mi->in[p->in_procs[k]] == p;
    return true;
}

/* A new piece: its code, its tables, its place in the process's table. */
static inl_status send_new(mutatee *m, mutator_piece *p, inl_error *e)
{
    const image_segment *s;
    uint64_t bias = p->plan->bias, ro = p->ro.addr + bias;
    image_segments(p->image->m->image, &s);
    inl_status st = give_slot(m, p, e);
    if (st != INL_OK) return st;
    moved_piece *told = &p->told;
    told->image = (moved_image){.bias = bias,
                                .text = p->plan->text_addr,
                                .text_size = p->plan->text_size,
                                .map = (const void *)ro,
                                .map_base = bias + s[0].addr};
    told->unwind = p->unwind.header;
    told->shown = (run_debug_file){.at = p->unwind.at, .size = p->unwind.size};
    told->in = (const uint8_t *)ro + p->in_at;
    told->low = p->plan->text_addr;
    told->high = inl_page_up(inl_bytes_here(&p->ro) + bias);
    told->tables = (const void *)(ro + p->tables_at);
    told->table_count = p->table_count;
    told->patches = (const void *)(ro + p->patches_at);
    told->patch_count = p->patches.count;
    live_text text = {
        .at = p->plan->text_addr, .bytes = p->text, .size = p->plan->text_size, .prot = PROT_READ | PROT_EXEC};
    live_text tables = {.at = ro, .bytes = p->ro.data, .size = p->ro.size, .prot = PROT_READ};
    bool good = inl_vec_push(&m->change.texts, text) && inl_vec_push(&m->change.texts, tables) &&
                push_data(m, slot_at(p), told, sizeof *told);
    return good ? INL_OK : no_memory(e);
}

static inl_status send_pieces(mutatee *m, inl_error *e)
{
    inl_status s = INL_OK;
    for (mutator_piece *p = m->pieces; p && s == INL_OK; p = p->next) {
        mutated_image *mi = mutator_image(m, p->image);
        bool fresh = !p->is_there;
        if (!note_blocks(mi, p)) s = no_memory(e);
        else if (fresh) s = send_new(m, p, e);
        else if (!push_data(m, p->ro.addr + p->plan->bias + p->in_at, p->ro.data + p->in_at, p->in_count))
            s = no_memory(e);
    }
    return s;
}

/* --- what is not needed any more --- */

static void bury(mutatee *m)
{
    for (mutator_piece **at = &m->pieces; *at;) {
        mutator_piece *p = *at;
        if (p->procs) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = m->dead;
        m->dead = p;
    }
}

static inl_status send_dead(mutatee *m, unsigned enough, inl_error *e)
{
    unsigned n = 0;
    for (const mutator_piece *p = m->dead; p; p = p->next) n++;
    for (const mutator_piece *p = m->dead; p && n >= enough; p = p->next) {
        live_gone gone = {.low = p->plan->text_addr,
                          .high = inl_page_up(inl_bytes_here(&p->ro) + p->plan->bias),
                          .code_low = p->plan->text_addr,
                          .code_high = p->plan->text_addr + p->plan->text_size,
                          .clears = slot_at(p) + offsetof(moved_piece, image.text_size),
                          .hides = slot_at(p) + offsetof(moved_piece, shown.size)};
        if (!inl_vec_push(&m->change.gone, gone)) return no_memory(e);
    }
    return INL_OK;
}

static void drop_dead(mutatee *m, const bool *done)
{
    size_t k = 0, count = m->change.gone.count;
    for (mutator_piece **at = &m->dead; *at && k < count; k++) {
        mutator_piece *p = *at;
        if (!done[k]) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        mutator_piece_free(p);
    }
}

/* --- the whole --- */

/* What is mapped for new pieces is told in the process, so that it goes with the rest, should this process be killed
 * before they are there: *comes: words that have to become 1, at the moment from which on it stays. */
static inl_status tell_rooms(mutatee *m, const moved_pieces *all, uint64_t *comes, size_t *count, inl_error *e)
{
    remote *r = &m->live.threads.items[0];
    inl_status s = all ? remote_write(r, (uint64_t)(uintptr_t)&moved_pieces_now, all, sizeof *all, e) : INL_OK;
    size_t k = 0; /* as send_pieces has listed them: two mappings each */
    for (const mutator_piece *p = m->pieces; p && s == INL_OK && k < m->change.texts.count; p = p->next) {
        moved_piece room = {.low = p->told.low, .high = p->told.high};
        if (m->change.texts.items[k].at != room.low) continue;
        s = remote_write(r, slot_at(p), &room, sizeof room, e);
        if (comes) comes[k / 2] = slot_at(p) + offsetof(moved_piece, comes);
        k += 2;
    }
    *count = k / 2;
    return s;
}

static inl_status map(mutatee *m, void *arg, bool runs_on, inl_error *e)
{
    size_t count = 0;
    uint64_t *comes = calloc(m->change.texts.count / 2 + 1, sizeof *comes);
    if (!comes) return no_memory(e);
    inl_status s = live_change_map(&m->live, &m->change, e);
    if (s == INL_OK && runs_on) s = tell_rooms(m, arg, comes, &count, e);
    if (s == INL_OK) s = live_stays(&m->live, comes, count, e); /* all that is mapped */
    free(comes);
    return s;
}

static inl_status fill(mutatee *m, void *arg, inl_error *e)
{
    (void)arg;
    return live_change_fill(&m->live, &m->change, e);
}

static void unmap(mutatee *m, void *arg)
{
    (void)arg;
    tell_rooms(m, NULL, NULL, &(size_t){0}, &(inl_error){0});
    live_change_unmap(&m->live, &m->change);
}

static void drop_in(live_change *c, const module *x)
{
    size_t n = 0;
    for (size_t i = 0; i < c->patches.count; i++)
        if (c->patches.items[i].at - x->low >= x->high - x->low) c->patches.items[n++] = c->patches.items[i];
    c->patches.count = n;
}

/* It has been unmapped since the change was made ready: whatever is there now is something else. The next commit sees
 * that it has gone. */
static void skip_unmapped(mutatee *m)
{
    live_process now = {.pid = m->live.pid};
    inl_error ignored;
    if (m->change.patches.count && live_read_maps(&now, &ignored) == INL_OK)
        for (mutated_image *mi = m->images; mi; mi = mi->next)
            if (!mi->is_gone && !live_has_image(&now, mi->image->m)) drop_in(&m->change, mi->image->m);
    live_close(&now);
}

static inl_status make(mutatee *m, void *arg, void *answer, inl_error *e)
{
    bool *done = answer;
    (void)arg;
    skip_unmapped(m);
    inl_status s = live_change_make(&m->live, &m->change, e);
    for (size_t k = 0; k < m->change.gone.count; k++) done[k] = m->change.gone.items[k].done;
    return s;
}

/* The change in work is complete but for what goes. */
static inl_status carry_out(mutatee *m, unsigned enough, inl_error *e)
{
    moved_pieces pieces = {(const moved_piece *)MUTATOR_AREA, m->slots, (move_live *)MUTATOR_ASKED_AT};
    m->change.places = (uint64_t)(uintptr_t)moved_pieces_places;
    m->change.hides = (uint64_t)(uintptr_t)moved_pieces_shown;
    m->change.asked = MUTATOR_ASKED_AT;
    m->change.asked_size = MUTATOR_ASKED;
    m->change.stack = MUTATOR_STACK_TOP;
    m->change.own_low = MUTATOR_AREA;
    m->change.own_high = MUTATOR_STACK_TOP;
    inl_status s = send_dead(m, enough, e);
    if (s == INL_OK && !push_data(m, (uint64_t)(uintptr_t)&moved_pieces_now, &pieces, sizeof pieces)) s = no_memory(e);
    bool *done = calloc(m->change.gone.count + 1, sizeof *done);
    if (s == INL_OK && !done) s = no_memory(e);
    static const mutator_steps with_texts = {map, fill, unmap, make}, without = {.then = make};
    const mutator_steps *steps = m->change.texts.count ? &with_texts : &without;
    if (s == INL_OK) s = mutator_work_in_steps(m, steps, &pieces, done, m->change.gone.count * sizeof *done, e);
    if (s == INL_OK) drop_dead(m, done);
    tool_now->mutating.changes++;
    free(done);
    return s;
}

static void begin_change(mutatee *m)
{
    live_change_end(&m->change);
    m->change = (live_change){0};
    mutator_bytes_begin(m);
}

/* Because something is inserted there, or because it must know of new code. */
static bool is_to_be_analysed(const mutatee *m, const module *x, bool asked)
{
    const inlay_image *i = x->user;
    if (i && i->code) return false;
    if (i && tool_image_has_insertions(i)) return asked;
    return !asked && !m->has_tool && !x->is_vdso && (x->is_main || finders_are_in(&m->live, x, true));
}

/* In the order in which they are asked for, but for the first, which is analysed here meanwhile. */
static void analyse_ahead(const mutatee *m)
{
    size_t n = 0, room = 1;
    for (module *x = module_first(m->modules); x; x = x->next) room++;
    image **images = calloc(room, sizeof *images);
    for (int asked = 1; images && asked >= 0 && (asked || n); asked--)
        for (module *x = module_first(m->modules); x; x = x->next)
            if (is_to_be_analysed(m, x, asked)) images[n++] = x->image;
    if (n > 1) tool_ahead_begin(images + 1, n - 1);
    free(images);
}

static inl_status commit(mutatee *m, inl_error *e)
{
    bool changed;
    analyse_ahead(m);
    inl_status s = mutator_read_wanted(m, e);
    if (s == INL_OK) see_unmapped(m);
    if (s != INL_OK || !anything_changes(m)) {
        tool_ahead_end();
        return s;
    }
    if (!m->has_tool) s = mutator_put(m, e);
    tool_ahead_end();
    if (s == INL_OK) s = live_read_maps(&m->live, e);
    if (s != INL_OK) return s;
    begin_change(m);
    tool_now->mutating.changes++;
    m->is_broken = true; /* until all is done */
    s = change_images(m, &changed, e);
    if (s == INL_OK) s = send_pieces(m, e);
    if (s == INL_OK) s = send_heap(m, e);
    if (s == INL_OK) bury(m);
    if (s == INL_OK) s = carry_out(m, ENOUGH_DEAD, e);
    if (s != INL_OK) return s;
    m->is_broken = false;
    m->heap_sent = tool_heap()->next;
    if (inl_page_up(m->heap_sent) > m->heap_mapped) m->heap_mapped = inl_page_up(m->heap_sent);
    for (mutated_image *mi = m->images; mi; mi = mi->next)
        for (uint32_t i = 0; i < mi->cfg->proc_count; i++) mi->now[i] = mi->is_gone ? 0 : mi->wanted[i];
    return INL_OK;
}

inl_status mutator_drop_dead(mutatee *m, inl_error *e)
{
    inl_status s = live_read_maps(&m->live, e);
    if (s != INL_OK) return s;
    begin_change(m);
    return carry_out(m, 1, e);
}

bool inlay_process_commit(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (m->is_broken)
        return mutator_refuse(INL_ERR_USAGE, "process %d: an earlier change failed in its midst; let it go",
                              m->live.pid);
    if (m->has_execed)
        return mutator_refuse(INL_ERR_USAGE, "process %d has executed another program; let it go, and attach anew",
                              m->live.pid);
    tool_process_mean(p);
    if (commit(m, &e) == INL_OK) return true;
    mutator_is_ending(m); /* whoever asks next whether it runs is told */
    return mutator_fail(&e);
}

const char *inlay_proc_refused(const inlay_proc *p)
{
    mutatee *m = p ? mutatee_of(p->image->process) : NULL;
    mutated_image *mi = m ? mutator_image(m, p->image) : NULL;
    uint32_t k = mi ? cfg_proc_covering(mi->cfg, p->low - mi->image->bias) : CFG_NONE;
    return k == CFG_NONE ? NULL : mi->why[k];
}
