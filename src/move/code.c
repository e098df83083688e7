/* One procedure's new code: decoded into a run, shown to the client, its blocks copied or woven in the
 * order of their addresses, its branches resolved.
 *
 * Length of branches: a procedure without snippets, or with few, keeps the forms it has; where one then does not reach
 * it is made long and the procedure is emitted again. With more snippets, forward branches are long at first,
 * and a second emission shortens those that turned out to reach. Branches are known by their number in the
 * order of emission, which is the same each time.
 *
 *     [tables] block | block | ... gap | code out of line       side exits, buffers that are full
 *
 * Blocks of which each falls into the next, and which nothing else leads to, are woven as one run. The
 * first emission leaves far too much room in front of the code out of line, the second about enough.
 */
#include "move/isa.h"

#include <string.h>

enum {
    MAX_GROUP = 32,
    MAX_PASSES = 8,
    FEW_POINTS = 3,
    SLACK = 16 /* alignment may differ from one pass to the next */
};

bool move_text_reserve(move_work *w, size_t bytes)
{
    if (bytes <= w->text_room - w->plan.text_size) return true;
    size_t room = w->text_room + w->text_room / 2 + bytes + 65536;
    uint8_t *bigger = room > 0x7fff0000 ? NULL : realloc(w->plan.text, room);
    if (!bigger) return false;
    w->plan.text = bigger;
    w->text_room = room;
    return true;
}

/* --- branches --- */

static uint32_t block_of(const move_work *w, uint64_t target)
{
    return cfg_block_at(move_cfg(w), target - w->plan.bias);
}

bool move_branch_is_short(move_work *w, uint64_t target, size_t from, unsigned form, bool was_short, uint32_t *site)
{
    uint32_t b = block_of(w, target);
    *site = w->sites++;
    if (w->forms.count <= *site) {
        uint8_t first = w->hopes && was_short ? MOVE_SHORT : MOVE_LONG;
        if (!inl_vec_push(&w->forms, first)) return false;
    }
    if (b == CFG_NONE || move_cfg(w)->blocks[b].proc != w->proc) return false;
    if (w->forms.items[*site] == MOVE_PINNED) return false;
    if (w->new_at[b] != MOVE_NOWHERE) return from - w->new_at[b] <= (uint64_t)-w->isa->forms[form].low;
    return w->forms.items[*site] == MOVE_SHORT;
}

bool move_link(move_work *w, uint32_t at, unsigned form, uint64_t target)
{
    return w->isa->link(w->plan.text + at, w->plan.text_addr + at, form, target);
}

static bool leads_to_old(const move_work *w, uint32_t b)
{
    const cfg_program *p = move_cfg(w);
    const move_client *c = w->client;
    uint32_t proc = p->blocks[b].proc;
    return c && c->keeps_entry && p->procs[proc].addr == p->blocks[b].addr && c->keeps_entry(c->arg, p, proc);
}

bool move_note_branch(move_work *w, uint64_t target, size_t at, unsigned form, uint32_t site)
{
    const cfg_program *p = move_cfg(w);
    uint32_t b = block_of(w, target);
    move_fixup fix = {(uint32_t)at, b, site, (uint8_t)form, false};
    if (b != CFG_NONE && p->blocks[b].proc == w->proc) return inl_vec_push(&w->near, fix);
    if (b != CFG_NONE && move_is_moved(w, p->blocks[b].proc) && !leads_to_old(w, b)) return inl_vec_push(&w->far, fix);
    if (b == CFG_NONE) {
        uint32_t in = cfg_block_covering(p, target - w->plan.bias);
        if (in != CFG_NONE && move_is_moved(w, p->blocks[in].proc)) w->bad_branch = true;
    }
    return move_link(w, (uint32_t)at, form, target);
}

/* Fills in the branches within the procedure. False: some have to change their form. */
static bool resolve(move_work *w)
{
    bool done = true;
    for (size_t i = 0; i < w->near.count; i++) {
        const move_fixup *f = &w->near.items[i];
        bool reaches = move_link(w, f->at, f->form, w->plan.text_addr + move_fix_target(w, f));
        if (reaches) continue;
        if (w->isa->forms[f->form].is_short) w->forms.items[f->site] = MOVE_PINNED;
        else w->unreached = true;
        done = false;
    }
    return done;
}

/* Long branches that would reach in the short form: how many. */
static uint32_t shorten(move_work *w)
{
    uint32_t any = 0;
    for (size_t i = 0; i < w->near.count; i++) {
        const move_fixup *f = &w->near.items[i];
        const move_form *form = &w->isa->forms[f->form];
        int64_t d = (int64_t)move_fix_target(w, f) - (int64_t)(f->at + form->from);
        if (f->site == MOVE_NO_SITE || form->shorter == MOVE_NO_FORM) continue;
        if (d < 0 || d > w->isa->forms[form->shorter].high - SLACK) continue;
        if (w->forms.items[f->site] != MOVE_LONG) continue;
        w->forms.items[f->site] = MOVE_SHORT;
        any++;
    }
    return any;
}

/* --- decoding --- */

static inl_status bad_block(move_work *w, const cfg_block *b)
{
    return inl_fail_at(w->error, INL_ERR_FORMAT, b->addr, "the code at %#llx does not decode as analysed",
                       (unsigned long long)b->addr);
}

inl_status move_decode_block(move_work *w, const cfg_block *b, weave_insn *to, uint32_t index)
{
    const cfg_program *p = move_cfg(w);
    const uint8_t *bytes;
    size_t avail = image_bytes(p->image, b->addr, &bytes), at = 0;
    if (avail < b->size) return bad_block(w, b);
    for (uint32_t i = 0; i < b->insn_count; i++) {
        isa_insn *in = &to[i].in;
        isa_result r = p->isa->decode(bytes + at, avail - at, move_assumed(w, b->addr + at), in);
        if (r == ISA_TRUNCATED || (r == ISA_INVALID && in->flow != ISA_FLOW_TRAP)) return bad_block(w, b);
        to[i].run = &w->run;
        to[i].block = w->run.block_count;
        to[i].index = index + i;
        at += in->len;
    }
    return at == b->size ? INL_OK : bad_block(w, b);
}

static inl_status decode(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[w->proc];
    uint32_t n = 0, behind = move_behind(w, w->proc);
    for (uint32_t k = 0; k < of->block_count; k++) n += p->blocks[of->first_block + k].insn_count;
    w->run = (weave_run){.isa = p->isa, .arena = &w->arena, .engine = w};
    w->run.insns = inl_arena_alloc(&w->arena, (n + behind) * sizeof *w->run.insns);
    w->run.blocks = inl_arena_alloc(&w->arena, of->block_count * sizeof *w->run.blocks);
    if (!w->run.insns || !w->run.blocks) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    w->run.insn_count = n;
    n = 0;
    for (uint32_t k = 0; k < of->block_count; k++) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        inl_status status = move_decode_block(w, b, w->run.insns + n, n);
        if (status) return status;
        w->run.blocks[w->run.block_count++] = (weave_block){.run = &w->run,
                                                            .first = n,
                                                            .count = b->insn_count,
                                                            .head = true,
                                                            .fallen_into = move_is_fallen_into(w, of->first_block + k)};
        n += b->insn_count;
    }
    return move_look_behind(w);
}

/* --- what was inserted --- */

static bool block_is_plain(const move_work *w, const weave_block *b)
{
    if (b->anywhere.first) return false;
    for (uint32_t i = b->first; i < b->first + b->count; i++) {
        const weave_insn *n = &w->run.insns[i];
        if (n->before.first || n->after.first || n->taken.first) return false;
        if (w->instruments && w->isa->needs_weaver(&n->in)) return false;
    }
    return true;
}

static void add_need(cfg_need *to, const weave_insn *n, const weave_list *list)
{
    if (!list->first) return;
    weave_need need = weave_list_reads(n->run, n, list);
    to->regs |= need.regs;
    to->flags |= need.flags;
}

/* Labels inside whose address is taken, and no jump that could go to them: a fault's handler compares addresses
 * with them, or goes on there. It may look at any register. */
static bool has_labels(const move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[w->proc];
    bool found = false;
    for (uint32_t i = 0; i < w->run.insn_count; i++)
        if (w->run.insns[i].in.flow == ISA_FLOW_JUMP_IND) return false;
    for (uint32_t k = 1; k < of->block_count; k++)
        found |= (p->blocks[of->first_block + k].flags & CFG_BLOCK_ADDRESS_TAKEN) != 0;
    return found;
}

/* Do snippets look at flags that the instruction itself does not ask for? */
static bool shows_flags(const move_work *w, const cfg_need *before, const cfg_need *after)
{
    for (uint32_t i = 0; i < w->run.insn_count; i++) {
        isa_effects fx;
        move_cfg(w)->isa->effects(&w->run.insns[i].in, &fx);
        if (after[i].flags || before[i].flags & ~fx.flags_read) return true;
    }
    return false;
}

/* What is live at the blocks' entries, snippets' needs included. Whoever looks at flags is to see the program's also
 * where the program has no use for them, at entries of procedures and behind calls: none is dead there from then on. */
static bool find_live(move_work *w)
{
    static const cfg_need everything = {~0ull, ~0u};
    uint32_t n = w->run.insn_count;
    cfg_need *before = inl_arena_alloc(&w->arena, n * sizeof *before);
    cfg_need *after = inl_arena_alloc(&w->arena, n * sizeof *after);
    if (!before || !after) return false;
    w->has_labels = has_labels(w);
    for (uint32_t i = 0; i < n; i++) {
        const weave_insn *insn = &w->run.insns[i];
        add_need(&before[i], insn, &insn->before);
        add_need(&before[i], insn, &insn->after);
        add_need(&after[i], insn, &insn->after);
        add_need(&before[i], insn, &insn->taken);
    }
    for (uint32_t k = 0; k < w->run.block_count; k++) {
        const weave_block *b = &w->run.blocks[k];
        add_need(&before[b->first], &w->run.insns[b->first], &b->anywhere);
        add_need(&before[b->first], &w->run.insns[b->first], &b->entry);
    }
    if (shows_flags(w, before, after)) w->facts = (cfg_facts){~0u, ~0u, ~0u};
    for (uint32_t i = 0; w->has_labels && i < n; i++)
        if (w->run.insns[i].in.bits & ISA_BIT_MEM) before[i] = everything;
    cfg_flow_code code = {&w->run.insns[0].in, sizeof *w->run.insns, before, after};
    w->live = cfg_flow_solve(move_cfg(w), &w->facts, w->proc, &code, &w->arena);
    return w->live != NULL;
}

static inl_status show(move_work *w)
{
    move_proc *of = &w->plan.procs[w->proc];
    w->live = NULL;
    if (!w->instruments || (w->runs_early && w->runs_early[w->proc])) return INL_OK;
    bool wanted = !w->client->wanted || w->client->wanted(w->client->arg, move_cfg(w), w->proc);
    if (wanted) w->client->instrument(w->client->arg, move_cfg(w), w->proc, &w->run);
    if (!move_return_anywhere(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    for (uint32_t i = 0; i < w->run.insn_count; i++) of->points += weave_insn_length(&w->run.insns[i]);
    for (uint32_t i = 0; i < w->run.block_count; i++)
        of->points += weave_list_length(&w->run.blocks[i].anywhere) + weave_list_length(&w->run.blocks[i].entry);
    if (of->points && (!move_settle_heads(w) || !move_place_counts(w)))
        return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory or counters are used up");
    if (of->points && !find_live(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    return INL_OK;
}

static void reaim(move_work *w)
{
    for (size_t r = 0; r < w->reaims.count; r++)
        for (uint32_t i = 0; i < w->run.insn_count; i++)
            if (w->run.insns[i].in.addr == w->reaims.items[r].named_at)
                w->isa->reaim(&w->run.insns[i].in, &w->reaims.items[r]);
}

/* --- emission --- */

static bool align_to(move_work *w, uint64_t old, unsigned to, bool same)
{
    uint64_t now = w->plan.text_addr + w->plan.text_size;
    uint64_t pad = same ? (old - now) & (to - 1) : -now & (to - 1);
    return move_pad(w, (uint32_t)pad);
}

static bool has_loops(const move_work *w)
{
    const cfg_proc *of = &move_cfg(w)->procs[w->proc];
    for (uint32_t k = 0; k < of->block_count; k++)
        if (move_cfg(w)->blocks[of->first_block + k].flags & CFG_BLOCK_LOOP_HEAD) return true;
    return false;
}

/* Where the old block was aligned, the new one is; code without snippets keeps its place in its line. */
static bool align_block(move_work *w, const cfg_block *b, bool first, uint64_t reached_from)
{
    uint64_t old = move_assumed(w, b->addr);
    if (w->plain && first) return align_to(w, old, has_loops(w) ? 64 : MOVE_ALIGNED, true);
    if (w->plain) return reached_from == b->addr || align_to(w, old, MOVE_ALIGNED, true);
    if (old % MOVE_ALIGNED || !(first || b->flags & CFG_BLOCK_LOOP_HEAD)) return true;
    return align_to(w, old, MOVE_ALIGNED, false);
}

static bool give_up_head(move_work *w, uint32_t k)
{
    w->plan.procs[w->proc].refused += weave_list_length(&w->run.blocks[k].entry);
    w->run.blocks[k].entry = (weave_list){0};
    return true;
}

static bool give_up_points(move_work *w, uint32_t k, uint32_t blocks, uint64_t at)
{
    if (!blocks) return give_up_head(w, k);
    uint32_t n = weave_give_up(&w->run, k, blocks, at);
    w->plan.procs[w->proc].refused += n;
    return n > 0;
}

static inl_status try_blocks(move_work *w, uint32_t k, uint32_t blocks, inl_error *e)
{
    const weave_block *b = &w->run.blocks[k];
    if (!blocks) return move_has_head(w, k) ? move_weave_head(w, k, e) : INL_OK;
    if (blocks == 1 && block_is_plain(w, b)) return move_copy_block(w, b->first, b->count, e);
    return move_weave_blocks(w, k, blocks, e);
}

/* More room where there was too little. False: there is none, or what is in the way is the code out of
 * line, which has to begin further on. */
static bool make_room(move_work *w, size_t *room)
{
    *room *= 2;
    size_t used = w->cold_base ? w->cold_base + w->cold.at - w->plan.text_size : 0;
    if (w->cold_base && !w->cold.full) return false;
    return move_text_reserve(w, used + *room);
}

/* Blocks that are woven as one run, with room made as it is needed and hopeless snippets left out; none: the head
 * of block k. */
static inl_status emit_blocks(move_work *w, uint32_t k, uint32_t blocks)
{
    size_t near = w->near.count, far = w->far.count, map = w->plan.map_count, cold = w->cold.at;
    const weave_block *first = &w->run.blocks[k], *last = first + (blocks ? blocks - 1 : 0);
    size_t room = 512 + 32 * (size_t)(last->first + last->count - first->first);
    uint32_t sites = w->sites;
    w->head_faults = w->faults.count;
    w->head_inlined = w->inlined.count;
    w->head_switches = w->switches.count;
    if (!move_text_reserve(w, room)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "the new code becomes too large");
    for (;;) {
        inl_error e = {0};
        inl_status status = try_blocks(w, k, blocks, &e);
        if (!status) return INL_OK;
        bool found = status == INL_ERR_RANGE && make_room(w, &room);
        w->near.count = near, w->far.count = far, w->sites = sites;
        move_map_cut(w, map);
        w->cold.at = cold;
        if (found || (status == INL_ERR_UNSUPPORTED && give_up_points(w, k, blocks, e.address))) continue;
        if (status == INL_ERR_RANGE && w->cold_base && !w->cold.full) return status;
        return inl_fail_at(w->error, status, e.address, "%s", e.text[0] ? e.text : "memory is used up");
    }
}

/* May block k of the procedure be woven together with the one before it? Only that one leads there. */
static bool joins(const move_work *w, uint32_t k)
{
    const cfg_block *b = &move_cfg(w)->blocks[move_cfg(w)->procs[w->proc].first_block + k];
    const weave_block *before = &w->run.blocks[k - 1];
    unsigned flow = w->run.insns[before->first + before->count - 1].in.flow;
    bool falls = flow == ISA_FLOW_NEXT || flow == ISA_FLOW_COND || flow == ISA_FLOW_COND_REG;
    const unsigned entered = CFG_BLOCK_ENTRY | CFG_BLOCK_TABLE | CFG_BLOCK_LANDING | CFG_BLOCK_OUTSIDE |
                             CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_LOOP_HEAD;
    return falls && b[-1].addr + b[-1].size == b->addr && w->preds[k] == 1 && !(b->flags & entered) &&
           !w->block_bits[b - move_cfg(w)->blocks] && !block_is_plain(w, &w->run.blocks[k]) && !move_has_head(w, k);
}

static uint32_t group_at(const move_work *w, uint32_t k)
{
    uint32_t n = 1;
    if (w->plain || block_is_plain(w, &w->run.blocks[k])) return 1;
    while (n < MAX_GROUP && k + n < w->run.block_count && joins(w, k + n)) n++;
    return n;
}

static bool falls_out(const move_work *w, uint32_t k)
{
    const weave_block *b = &w->run.blocks[k];
    return w->run.insns[b->first + b->count - 1].in.flow == ISA_FLOW_NEXT;
}

/* Block k begins here: what is executed where one does, if that is code of its own. */
static inl_status emit_head(move_work *w, uint32_t k)
{
    uint32_t block = move_cfg(w)->procs[w->proc].first_block + k;
    w->new_at[block] = (uint32_t)w->plan.text_size;
    inl_map_remove(&w->bodies, block);
    if (!move_has_head(w, k)) return INL_OK;
    w->block = block;
    w->head_at = (uint32_t)w->plan.text_size;
    inl_status status = emit_blocks(w, k, 0);
    if (status || w->plan.text_size == w->head_at) return status;
    w->head_of = move_assumed(w, move_cfg(w)->blocks[block].addr);
    if (!inl_map_put(&w->bodies, block, w->plan.text_size))
        return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    return INL_OK;
}

static inl_status emit(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[w->proc];
    uint64_t reached_from = 0;
    for (uint32_t k = 0; k < of->block_count; k++) w->new_at[of->first_block + k] = MOVE_NOWHERE;
    w->sites = 0;
    w->near.count = 0;
    w->cold.at = 0;
    for (uint32_t k = 0, n; k < of->block_count; k += n) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        if (w->cold_base && w->cold_base < w->plan.text_size + 32) return INL_ERR_RANGE;
        if (!move_text_reserve(w, 128) || !align_block(w, b, k == 0, reached_from))
            return inl_fail(w->error, INL_ERR_NO_MEMORY, "the new code becomes too large");
        inl_status status = emit_head(w, k);
        if (status) return status;
        n = group_at(w, k);
        w->block = of->first_block + k + n - 1;
        bool apart = move_has_head(w, k + n) && w->run.blocks[k + n].fallen_into && falls_out(w, k + n - 1);
        w->follows = k + n < of->block_count && !apart ? move_assumed(w, b[n].addr) : 0;
        status = emit_blocks(w, k, n);
        w->head_of = 0;
        if (status) return status;
        reached_from = b[n - 1].addr + b[n - 1].size;
    }
    return INL_OK;
}

static bool is_plain(const move_work *w)
{
    for (uint32_t k = 0; k < w->run.block_count; k++)
        if (!block_is_plain(w, &w->run.blocks[k]) || move_has_head(w, k)) return false;
    return true;
}

static bool count_preds(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[w->proc];
    w->preds = inl_arena_alloc(&w->arena, of->block_count);
    if (!w->preds) return false;
    for (uint32_t k = 0; k < of->block_count; k++) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        for (uint32_t i = b->first_edge; i < b->first_edge + b->edge_count; i++) {
            uint32_t to = p->edges[i].to - of->first_block;
            if (to < of->block_count && w->preds[to] < 255) w->preds[to]++;
        }
    }
    return true;
}

/* Code out of line begins `distance` behind the procedure's begin. */
static bool set_cold(move_work *w, size_t text, size_t distance)
{
    w->cold_base = 0;
    w->cold.at = 0;
    w->cold.full = false;
    if (w->plain) return true;
    if (!move_text_reserve(w, distance + 4096)) return false;
    w->cold_base = (uint32_t)(text + distance + (-(text + distance) & (w->isa->unit - 1u)));
    return true;
}

/* Closes the gap between the procedure's code and what of it is out of line. */
static void close_cold(move_work *w)
{
    if (w->cold_base && w->cold.at) {
        memset(w->plan.text + w->plan.text_size, w->isa->filler, w->cold_base - w->plan.text_size);
        w->plan.text_size = w->cold_base + w->cold.at;
    }
    w->cold_base = 0;
}

static inl_status emit_until_stable(move_work *w)
{
    size_t text = w->plan.text_size, far = w->far.count, map = w->plan.map_count;
    size_t distance = 1024 + 48 * (size_t)w->run.insn_count;
    w->forms.count = 0;
    w->plain = is_plain(w);
    w->hopes = w->plain || w->plan.procs[w->proc].points <= FEW_POINTS;
    if (!w->plain && !count_preds(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    for (unsigned pass = 0;;) {
        w->plan.text_size = text, w->far.count = far, w->head_faults = w->head_inlined = w->head_switches = 0;
        move_map_cut(w, map);
        if (!set_cold(w, text, distance))
            return inl_fail(w->error, INL_ERR_NO_MEMORY, "the new code becomes too large");
        inl_status status = emit(w);
        if (status == INL_ERR_RANGE) {
            distance += distance / 2 + 256;
            continue;
        }
        if (status) return status;
        uint32_t shorter = pass == 0 && !w->hopes ? shorten(w) : 0;
        if (pass++ == 0 && !w->plain && (shorter || w->cold.at)) {
            distance = w->plan.text_size - text + 48 - 3 * (size_t)shorter; /* at least so much shorter */
            continue;
        }
        if (resolve(w)) break;
        if (w->unreached) return inl_fail(w->error, INL_ERR_RANGE, "the new code is too large for its branches");
        if (pass < MAX_PASSES) continue;
        for (size_t i = 0; i < w->forms.count; i++) w->forms.items[i] = MOVE_PINNED;
    }
    close_cold(w);
    return INL_OK;
}

inl_status move_proc_code(move_work *w, uint32_t proc)
{
    const cfg_proc *of = &move_cfg(w)->procs[proc];
    move_proc *to = &w->plan.procs[proc];
    w->proc = proc;
    inl_arena_reset(&w->arena);
    w->weights = NULL;
    inl_status status = decode(w);
    if (!status) status = show(w);
    if (status) return status;
    if (!move_place_tables(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    reaim(w);
    status = emit_until_stable(w);
    if (status) return status;
    uint32_t start = w->new_at[of->first_block];
    to->new_addr = w->plan.text_addr + start;
    to->new_size = (uint32_t)w->plan.text_size - start;
    w->plan.moved_procs++;
    for (uint32_t k = 0; k < of->block_count; k++) w->plan.moved_bytes += move_cfg(w)->blocks[of->first_block + k].size;
    return INL_OK;
}
