/* Pieces of new code: a plan of the procedures that are to be instrumented otherwise, put together with what is in
 * force already by the deltas of move/target.h. Nothing is written here: what the target is asked to do becomes a
 * change (live/change.h).
 *
 * A procedure that is made anew is taken out of the piece that it is in, and goes into another; threads leave the first
 * one by themselves. Where the jumps of two procedures would lie over the same bytes (both take the padding between
 * them), both are planned together. */
#include "tool/mutator.h"
#include "base/page.h"
#include "tool/code.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char mutator_is_gone[] = "it is not mapped any more";
static const char too_deep[] = "a snippet needs more registers than there are, or is too deep";

static inl_status no_memory(inl_error *e) { return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory"); }

/* --- the target: everything is recorded --- */

static size_t read_bytes(void *arg, link_addr at, const uint8_t **bytes)
{
    mutator_piece *p = arg;
    return p->live.target.read(&p->live, at, bytes);
}

static link_addr room(void *arg)
{
    mutator_piece *p = arg;
    return live_target_room(&p->live, p->bytes);
}

static inl_status place(void *arg, const move_delta *d, inl_error *e)
{
    mutator_piece *p = arg;
    (void)e;
    memcpy(p->text + (d->at.at - p->plan->text_addr), d->text, d->size);
    return INL_OK;
}

static inl_status record_links(mutator_piece *p, const move_delta *d, inl_error *e)
{
    for (size_t i = 0; i < d->link_count; i++) {
        const move_patch *x = &d->links[i];
        live_patch one = {.at = x->at.at, .size = x->size};
        memcpy(one.bytes, x->now, x->size);
        memcpy(p->text + (x->at.at - p->plan->text_addr), x->now, x->size);
        if (p->is_there && !inl_vec_push(&p->of->change.links, one)) return no_memory(e);
    }
    return INL_OK;
}

static inl_status put_patch(mutator_piece *p, const move_patch *x, inl_error *e)
{
    mutatee *m = p->of;
    mutator_saved *saved = malloc(sizeof *saved);
    live_patch one = {.at = x->at.at, .size = x->size};
    memcpy(one.bytes, x->now, x->size);
    if (!saved) return no_memory(e);
    saved->size = x->size;
    if (!mutator_original(m, x->at.at, saved->bytes, x->size)) {
        free(saved);
        return inl_fail_at(e, INL_ERR_SYSTEM, x->at.at, "process %d cannot be read at 0x%llx: it has ended, perhaps",
                           m->live.pid, (unsigned long long)x->at.at);
    }
    bool good = inl_map_put(&m->saved, x->at.at, (uint64_t)(uintptr_t)saved) && inl_vec_push(&m->change.patches, one);
    if (good) good = mutator_own(m, x->at.at, x->size, x->proc);
    if (p->is_there) return good ? INL_OK : no_memory(e); /* it has been told of this one */
    move_told_patch told = {.at = x->at.at, .size = x->size};
    memcpy(told.now, x->now, x->size);
    memcpy(told.before, saved->bytes, x->size);
    return good && inl_vec_push(&p->patches, told) ? INL_OK : no_memory(e);
}

static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    mutator_piece *p = arg;
    inl_status s = INL_OK;
    for (size_t i = 0; i < d->patch_count && s == INL_OK; i++) s = put_patch(p, &d->patches[i], e);
    return s == INL_OK ? record_links(p, d, e) : s;
}

/* writes: false where the image is not there any more. */
static inl_status restore(mutatee *m, const move_patch *x, bool writes, inl_error *e)
{
    uint64_t found;
    if (!inl_map_get(&m->saved, x->at.at, &found)) return inl_fail(e, INL_ERR_USAGE, "a patch is not there");
    mutator_saved *saved = (mutator_saved *)(uintptr_t)found;
    live_patch one = {.at = x->at.at, .size = saved->size};
    memcpy(one.bytes, saved->bytes, saved->size);
    bool good = !writes || inl_vec_push(&m->change.patches, one);
    mutator_disown(m, x->at.at, saved->bytes, saved->size);
    inl_map_remove(&m->saved, x->at.at);
    free(saved);
    return good ? INL_OK : no_memory(e);
}

static inl_status take_back(void *arg, const move_delta *d, inl_error *e)
{
    mutator_piece *p = arg;
    inl_status s = INL_OK;
    bool writes = !mutator_image(p->of, p->image)->is_gone;
    for (size_t i = 0; i < d->patch_count && s == INL_OK; i++) s = restore(p->of, &d->patches[i], writes, e);
    return s == INL_OK ? record_links(p, d, e) : s;
}

/* --- a piece --- */

void mutator_piece_free(mutator_piece *p)
{
    move_applied_end(p->applied);
    if (p->plan) move_plan_free(p->plan);
    live_keep_room(&p->of->live, p->live.room, 0);
    live_target_end(&p->live);
    inl_bytes_free(&p->ro);
    inl_vec_free(&p->patches);
    free(p->in_procs);
    free(p->text);
    free(p);
}

typedef struct planning {
    mutated_image *mi;
    const uint8_t *marked;
} planning;

static bool is_fixed(const mutated_image *mi, uint32_t proc) { return mi->fixed && mi->fixed->procs[proc].new_addr; }

static bool is_wanted(void *arg, const cfg_program *cfg, uint32_t proc)
{
    const planning *p = arg;
    (void)cfg;
    return p->marked[proc] && p->mi->wanted[proc] && !p->mi->is_gone && !is_fixed(p->mi, proc);
}

static void instrument(void *arg, const cfg_program *cfg, uint32_t proc, weave_run *run)
{
    const planning *p = arg;
    tool_client_instrument(run);
    if (!rewriter_wrap(run, cfg, proc, p->mi->image)) p->mi->why[proc] = "out of memory";
}

static mutator_piece *new_piece(mutatee *m, mutated_image *mi)
{
    mutator_piece *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->of = m;
    p->image = mi->image;
    live_target_begin(&p->live, &m->live, mi->image->m, false);
    p->target = p->live.target;
    p->target.arg = p;
    p->target.read = read_bytes;
    p->target.room = room;
    p->target.one_by_one = true;
    p->target.place = place;
    p->target.commit = commit;
    p->target.take_back = take_back;
    return p;
}

static uint64_t bytes_of(const cfg_program *cfg, uint32_t proc)
{
    const cfg_proc *p = &cfg->procs[proc];
    uint64_t sum = 0;
    for (uint32_t b = p->first_block; b < p->first_block + p->block_count; b++) sum += cfg->blocks[b].size;
    return sum;
}

static inl_status plan_piece(mutatee *m, mutated_image *mi, const uint8_t *marked, mutator_piece **out, inl_error *e)
{
    planning of = {mi, marked};
    move_client client = {.arg = &of,
                          .wanted = is_wanted,
                          .instrument = instrument,
                          .gate = {.at = (int32_t)MOVED_GATE, .matters = moved_syscall_matters}};
    mutator_piece *p = *out = new_piece(m, mi);
    if (!p) return no_memory(e);
    for (uint32_t i = 0; i < mi->cfg->proc_count; i++)
        if (is_wanted(&of, mi->cfg, i)) p->bytes += bytes_of(mi->cfg, i);
    inl_status s = move_plan_make(mi->cfg, mi->image->bias, &p->target, &client, &p->plan, e);
    p->text = s == INL_OK ? malloc(p->plan->text_size + 1) : NULL;
    if (s == INL_OK && !p->text) s = no_memory(e);
    if (s == INL_OK) {
        memcpy(p->text, p->plan->text, p->plan->text_size);
        return INL_OK;
    }
    mutator_piece_free(p);
    *out = NULL;
    return s;
}

/* Whoever has patches where the plan's lie is planned with it. True: there are such. */
static bool mark_neighbours(const mutatee *m, const move_plan *plan, uint8_t *marked)
{
    bool any = false;
    for (size_t i = 0; i < plan->patch_count; i++) {
        const move_patch *x = &plan->patches[i];
        uint64_t at = x->at.at;
        uint32_t proc;
        while (mutator_next_owner(m, &at, x->at.at + x->size, &proc)) {
            if (proc == MUTATOR_FINDERS) { /* a finder's: it stays, this one does */
                any = any || marked[x->proc];
                marked[x->proc] = 0;
            } else if (!marked[proc]) {
                marked[proc] = 1;
                any = true;
            }
        }
    }
    return any;
}

/* What leads back from copies of jump tables, when the mutator's file leaves the process. */
static void put_copies(mutator_piece *p)
{
    size_t n = move_table_copies(p->plan, NULL, 0);
    move_table_copy *copies = calloc(n + 1, sizeof *copies);
    p->table_count = copies ? move_table_copies(p->plan, copies, n) : 0;
    inl_bytes_align(&p->ro, sizeof(uint64_t));
    p->tables_at = p->ro.size;
    for (size_t k = 0; k < p->table_count; k++) {
        move_told_table t = {copies[k].now.at, copies[k].old.at};
        inl_bytes_put(&p->ro, &t, sizeof t);
    }
    if (!copies) p->ro.failed = true;
    free(copies);
}

static int by_address(const void *x, const void *y)
{
    const move_told_patch *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* What is under its jumps: whoever takes the mutator's file out when the mutator has ended puts it back. */
static void put_patches(mutator_piece *p)
{
    inl_bytes_align(&p->ro, sizeof(uint64_t));
    p->patches_at = p->ro.size;
    if (!p->patches.count) return;
    qsort(p->patches.items, p->patches.count, sizeof *p->patches.items, by_address);
    inl_bytes_put(&p->ro, p->patches.items, p->patches.count * sizeof *p->patches.items);
}

/* Code that is reached through the file's tables or names is told of when the piece is asked by its address. */
static inl_status put_tables(mutator_piece *p, const mutated_image *mi, inl_error *e)
{
    const image_segment *s;
    uint64_t bias = p->plan->bias;
    image_segments(p->image->m->image, &s);
    p->ro = (inl_bytes){.addr = inl_page_up(p->plan->text_addr + p->plan->text_size) - bias};
    move_map_put(p->plan, s[0].addr, &p->ro);
    const move_carried_map *map = (const void *)p->ro.data;
    if (p->ro.failed) return no_memory(e);
    p->in_count = map->count;
    inl_status st = live_unwind_put(p->plan, true, &p->ro, &p->unwind, e);
    if (st != INL_OK) return st;
    p->in_at = inl_bytes_reserve(&p->ro, p->in_count + 1);
    put_copies(p);
    put_patches(p);
    if (p->ro.failed) return no_memory(e);
    uint64_t end = inl_bytes_here(&p->ro) + bias;
    if (end > p->live.room + p->live.room_size)
        return inl_fail(e, INL_ERR_RANGE, "%s: its new code is too large", mi->image->path);
    live_keep_room(&p->of->live, p->live.room, end - p->live.room);
    return INL_OK;
}

/* --- what is in force --- */

static inl_status with_all(mutated_image *mi, mutator_piece *p, const uint8_t *marked, bool in, inl_error *e)
{
    uint32_t n = 0, *procs = malloc((mi->cfg->proc_count + 1u) * sizeof *procs);
    if (!procs) return no_memory(e);
    for (uint32_t i = 0; i < mi->cfg->proc_count; i++)
        if (in ? p->plan->procs[i].new_addr != 0 : mi->in[i] == p && (!marked || marked[i])) procs[n++] = i;
    inl_status s = !n ? INL_OK : in ? move_apply(p->applied, procs, n, e) : move_take_back(p->applied, procs, n, e);
    for (uint32_t k = 0; k < n && s == INL_OK; k++) mi->in[procs[k]] = in ? p : NULL;
    if (s == INL_OK) p->procs = in ? p->procs + n : p->procs - n;
    free(procs);
    return s;
}

/* Where one cannot go alone the whole piece does; *more: there were such. */
static inl_status take_out(mutatee *m, mutated_image *mi, uint8_t *marked, bool *more, inl_error *e)
{
    inl_status s = INL_OK;
    for (mutator_piece *p = m->pieces; p && s == INL_OK; p = p->next) {
        if (p->image != mi->image) continue;
        s = with_all(mi, p, marked, false, e);
        if (s != INL_ERR_UNSUPPORTED) continue;
        for (uint32_t i = 0; i < mi->cfg->proc_count; i++)
            if (mi->in[i] == p) marked[i] = *more = 1;
        s = with_all(mi, p, NULL, false, e);
    }
    return s;
}

static bool any_wanted(const mutated_image *mi, const uint8_t *marked)
{
    planning of = {(mutated_image *)mi, marked};
    for (uint32_t i = 0; i < mi->cfg->proc_count; i++)
        if (is_wanted(&of, mi->cfg, i)) return true;
    return false;
}

/* `marked` were planned anew. Those that have moved may lack a snippet that could not be woven. */
static void say_why(mutated_image *mi, const mutator_piece *p, const uint8_t *marked)
{
    for (uint32_t i = 0; i < mi->cfg->proc_count; i++) {
        if (!marked[i] && !(mi->wanted[i] && is_fixed(mi, i))) continue;
        mi->why[i] = p && p->plan->procs[i].refused ? too_deep : NULL;
        if (!mi->wanted[i] || (p && p->plan->procs[i].new_addr)) continue;
        mi->why[i] = is_fixed(mi, i) ? "unwinders ask it for new code, so it has moved for good" : NULL;
        if (mi->is_gone) mi->why[i] = mutator_is_gone;
        if (!mi->why[i] && p) mi->why[i] = p->plan->procs[i].reason;
        if (!mi->why[i]) mi->why[i] = "its jump would lie where another's lies";
    }
}

static inl_status put_piece(mutatee *m, mutated_image *mi, mutator_piece *p, inl_error *e)
{
    inl_status s = INL_OK;
    if (p->is_there) mutator_revive(m, p);
    else s = move_applied_begin(p->plan, &p->target, &p->applied, e);
    if (s == INL_OK) s = with_all(mi, p, NULL, true, e);
    if (s == INL_OK && !p->is_there) s = put_tables(p, mi, e);
    p->next = m->pieces;
    m->pieces = p;
    return s;
}

/* What nothing was led to yet. */
static void drop(mutator_piece **p)
{
    if (*p && !(*p)->is_there) mutator_piece_free(*p);
    *p = NULL;
}

/* In a piece that is in the process already, or in a new one. */
static inl_status find_piece(mutatee *m, mutated_image *mi, const uint8_t *marked, const uint64_t key[2],
                             mutator_piece **p, inl_error *e)
{
    *p = mutator_find_dead(m, mi, key[1], marked);
    if (*p) return INL_OK;
    inl_status s = plan_piece(m, mi, marked, p, e);
    if (s == INL_OK) memcpy((*p)->keys, key, sizeof(*p)->keys);
    return s;
}

/* Until those are marked whose jumps would lie over each other. */
static inl_status choose_piece(mutatee *m, mutated_image *mi, uint8_t *marked, const uint64_t *contents,
                               mutator_piece **p, inl_error *e)
{
    enum { ROUNDS = 16 };
    inl_status s = INL_OK;
    uint64_t key[2] = {mutator_key(mi, contents, marked), 0};
    bool again = true;
    for (int round = 0; again && s == INL_OK; round++) {
        drop(p);
        if (round == ROUNDS) return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: no room for jumps", mi->image->path);
        again = false;
        key[1] = mutator_key(mi, contents, marked);
        if (any_wanted(mi, marked)) s = find_piece(m, mi, marked, key, p, e);
        if (s == INL_OK && *p) again = mark_neighbours(m, (*p)->plan, marked);
        if (s == INL_OK && !again) s = take_out(m, mi, marked, &again, e);
    }
    return s;
}

inl_status mutator_change_image(mutatee *m, mutated_image *mi, uint8_t *marked, inl_error *e)
{
    mutator_piece *p = NULL;
    uint64_t *contents = NULL;
    if (any_wanted(mi, marked) && !mutator_contents(mi, &contents)) return no_memory(e);
    inl_status s = choose_piece(m, mi, marked, contents, &p, e);
    free(contents);
    if (s == INL_OK) say_why(mi, p, marked);
    if (s == INL_OK && p && !p->plan->text_size) drop(&p); /* none could move */
    if (s == INL_OK && p) s = put_piece(m, mi, p, e);
    return s;
}
