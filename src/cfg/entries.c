/* Reading a jump table: its entries, and where it ends.
 *
 *     table:  .long a - table        goes somewhere: code of the procedure, or a part of it that lies elsewhere
 *             .long end - table      a hole: a value that the program says never to occur
 *             .long b - table
 *     next:   .long c - next         named by other code: the end of what stands before
 *
 * How many there are is said by a comparison that the index has passed; else by what surely begins behind the
 * table, or by a word that leads out of the procedure. A mask, a shift or a narrow type says how many there are
 * at most, since the program may know more (a tag of three bits of which five values exist), and so does a
 * comparison when something else begins before that. What only may end earlier is read late, and the code of
 * each entry is explored before the next is looked at: it may name what lies behind the table.
 *
 * `exact` means that no entry is missing. It is shown by a bound or a name; or by a word that leads elsewhere, if
 * besides all of the procedure's bytes are explained (build.c), as a part of them would be missing. Where a procedure
 * is in pieces, entries lead to its other pieces too, and the comparison may stand in one of these. */
#include "cfg/work.h"

uint64_t cfg_read_target(image *im, const cfg_table *t, uint32_t i, bool *ok)
{
    const uint8_t *p;
    uint64_t at = t->table + (uint64_t)i * t->entry_size, value = 0;
    *ok = t->kind == CFG_TABLE_CODE;
    if (*ok) return at;
    if (t->kind == CFG_TABLE_ABSOLUTE && t->relocated) {
        const image_reloc *r = image_reloc_at(im, at);
        *ok = r != NULL;
        return r ? r->value : 0;
    }
    if (image_bytes(im, at, &p) < t->entry_size) return 0;
    *ok = true;
    __builtin_memcpy(&value, p, t->entry_size);
    if (t->kind == CFG_TABLE_ABSOLUTE) return value;
    unsigned unused = 64 - 8u * t->entry_size;
    int64_t offset = t->unsigned_entry ? (int64_t)value : (int64_t)(value << unused) >> unused;
    return t->base + ((uint64_t)offset << t->shift);
}

static bool is_part(const cfg_draft *p) /* of another procedure, put elsewhere: nobody calls it */
{
    return !(p->flags & (CFG_PROC_CALLED | CFG_PROC_EXPORTED));
}

/* Was the view's procedure taken out of the other one? Then it jumps back among that one's instructions. */
static bool was_taken_from(const cfg_view *v, const cfg_draft *other)
{
    if (!is_part(&v->work->procs.items[v->proc])) return false;
    for (size_t i = 0; i < v->edges.count; i++) {
        const cfg_view_edge *e = &v->edges.items[i];
        if (e->to == CFG_NONE && e->target != other->addr && cfg_inside(other, e->target)) return true;
    }
    return false;
}

/* Is the view's procedure a piece into which the other one jumps, or a piece of that one? */
static bool comes_from(const cfg_view *v, uint32_t other)
{
    enum { MOST_PIECES = 64 };
    const cfg_draft *procs = v->work->procs.items;
    uint32_t at = v->proc;
    for (unsigned i = 0; i < MOST_PIECES && at != CFG_NONE && is_part(&procs[at]); i++) {
        at = procs[at].origin;
        if (at == other) return true;
    }
    return false;
}

bool cfg_has_unknown_origin(const cfg_draft *p)
{
    return is_part(p) && !(p->flags & CFG_PROC_ADDRESS_TAKEN) && p->origin == CFG_NONE;
}

bool cfg_is_hole(const cfg_work *w, uint32_t proc, uint64_t target)
{
    const uint8_t *m = cfg_mark(w, target);
    uint32_t number = m && target ? cfg_proc_near(w, target - 1) : CFG_NONE;
    if (number == CFG_NONE || (*m & (MARK_INSN | MARK_BODY) && !(*m & MARK_ENTRY))) return false;
    const cfg_draft *p = &w->procs.items[number];
    if (p->end != target || (number != proc && !is_part(p))) return false;
    if (!(*m & MARK_ENTRY)) return p->sized;
    const image_unwind_range *r = image_unwind_at(w->image, target - 1);
    return r && r->addr + r->size == target; /* a label in the middle of one would be no end */
}

typedef enum entry_kind {
    ENTRY_GOES,
    ENTRY_HOLE,
    ENTRY_ELSEWHERE, /* to nothing of the procedure's */
    ENTRY_DOUBTFUL,  /* to what may be a procedure or a piece of this one */
    ENTRY_WRONG,     /* into an instruction, or to what is no code */
} entry_kind;

/* Pointers to procedures look like a table of addresses, and pieces of a procedure like procedures. Pieces have
 * the frame of the jump that leads to them, as unwind tables tell; where it is a procedure's at its entry, who knows.
 */
static entry_kind kind_of_begin(const cfg_work *w, const cfg_table *t, uint64_t target)
{
    unsigned here, there;
    int64_t from, to;
    if (!image_frame_at(w->image, t->jump, &here, &from) || !image_frame_at(w->image, target, &there, &to))
        return ENTRY_ELSEWHERE;
    if (here != there || from != to) return ENTRY_ELSEWHERE;
    return there == w->machine->dwarf_stack && to == w->machine->pushed ? ENTRY_DOUBTFUL : ENTRY_GOES;
}

/* Does it begin a piece of the view's procedure, and nothing else? */
static bool begins_piece(const cfg_view *v, const cfg_table *t, uint64_t target)
{
    const uint32_t other = cfg_proc_near(v->work, target);
    return other != CFG_NONE && other != v->proc && is_part(&v->work->procs.items[other]) &&
           kind_of_begin(v->work, t, target) == ENTRY_GOES;
}

static entry_kind kind_of(const cfg_view *v, const cfg_table *t, uint64_t target, bool firm)
{
    const cfg_work *w = v->work;
    const uint8_t *m = cfg_mark(w, target);
    if (!m) return ENTRY_ELSEWHERE;
    bool middle = (*m & (MARK_BODY | MARK_INSN)) == MARK_BODY;
    if (cfg_inside(&w->procs.items[v->proc], target)) return middle ? ENTRY_WRONG : ENTRY_GOES;
    if (cfg_is_hole(w, v->proc, target)) return ENTRY_HOLE;
    if (firm) return middle ? ENTRY_WRONG : ENTRY_GOES;
    uint32_t other = cfg_proc_near(w, target);
    if (other == CFG_NONE || !cfg_inside(&w->procs.items[other], target) || middle) return ENTRY_ELSEWHERE;
    const cfg_draft *to = &w->procs.items[other];
    if (t->kind == CFG_TABLE_ABSOLUTE && *m & MARK_ENTRY)
        return is_part(to) ? kind_of_begin(w, t, target) : ENTRY_ELSEWHERE;
    return is_part(to) || was_taken_from(v, to) || comes_from(v, other) ? ENTRY_GOES : ENTRY_ELSEWHERE;
}

uint32_t cfg_first_inside(const cfg_view *v, const cfg_table *t, bool *own)
{
    enum { furthest = 128 };
    for (uint32_t i = 0; i <= furthest; i++) {
        bool ok;
        uint64_t target = cfg_read_target(v->work->image, t, i, &ok);
        if (!ok && i == 0) break;
        const entry_kind kind = ok ? kind_of(v, t, target, false) : ENTRY_ELSEWHERE;
        if (kind == ENTRY_ELSEWHERE || kind == ENTRY_DOUBTFUL) continue;
        const uint32_t near = cfg_proc_near(v->work, target);
        *own = near == v->proc || (near != CFG_NONE && was_taken_from(v, &v->work->procs.items[near]));
        return i;
    }
    return CFG_NONE;
}

uint32_t cfg_first_code(const cfg_view *v, const cfg_table *t)
{
    enum { furthest = 8 };
    for (uint32_t i = 0; i <= furthest; i++) {
        bool ok;
        const uint8_t *m = cfg_mark(v->work, cfg_read_target(v->work->image, t, i, &ok));
        if (!ok) break;
        if (m && (*m & (MARK_BODY | MARK_INSN)) != MARK_BODY) return i;
    }
    return CFG_NONE;
}

/* The code that an entry leads to. False, and nothing is changed, when it is none. */
static bool follow_entry(cfg_view *v, uint64_t target, bool firm)
{
    cfg_work *w = v->work;
    uint8_t *m = cfg_mark(w, target);
    bool inside = cfg_inside(&w->procs.items[v->proc], target);
    uint32_t number = inside ? v->proc : cfg_proc_near(w, target);
    if (*m & MARK_BLOCK && *m & MARK_INSN && (inside || *m & (MARK_ROOT | MARK_ENTRY))) return true;
    if (!firm && !(*m & MARK_INSN)) {
        if (number == CFG_NONE || !cfg_try(w, number, target) || !(*m & MARK_INSN)) return false;
    }
    if (!inside) cfg_enter(w, target, CFG_BLOCK_OUTSIDE);
    else cfg_keep(w, &w->todo, target);
    return true;
}

/* One more entry; false: there is none, for the reason *why. */
static bool take_entry(cfg_view *v, cfg_table *t, bool firm, bool *inner, entry_kind *why)
{
    cfg_work *w = v->work;
    bool ok;
    uint64_t target = cfg_read_target(w->image, t, t->count, &ok);
    *why = ok ? kind_of(v, t, target, firm) : ENTRY_ELSEWHERE;
    if (*why == ENTRY_HOLE) return true;
    if (*why != ENTRY_GOES) return false;
    bool entry = *cfg_mark(w, target) & MARK_ENTRY && !begins_piece(v, t, target);
    if (t->count == 0 && entry && t->kind == CFG_TABLE_ABSOLUTE && !firm) {
        *why = ENTRY_ELSEWHERE;
        return false;
    }
    if (!follow_entry(v, target, firm)) {
        *why = ENTRY_WRONG;
        return false;
    }
    *inner |= !entry;
    return true;
}

/* Nothing bounded the index to what was read. */
static void judge_end(const cfg_work *w, cfg_table *t, entry_kind why)
{
    uint64_t last = t->table + (uint64_t)(t->count - 1) * t->entry_size, end = last + t->entry_size;
    t->ends = why == ENTRY_ELSEWHERE;
    t->exact = cfg_has_name(w, last, end, true) || (t->ends && cfg_has_name(w, last, end, false));
}

cfg_limit cfg_limit_of_table(const cfg_work *w, const cfg_table *t, cfg_limit limit)
{
    uint64_t end = t->table + limit.count * t->entry_size;
    if (limit.kind == CFG_LIMIT_COMPARED && cfg_has_name(w, t->table, end - 1, true)) limit.kind = CFG_LIMIT_DISPUTED;
    return limit;
}

bool cfg_read_table(cfg_view *v, cfg_table *t, cfg_limit limit)
{
    enum { longest = 1 << 16 };
    cfg_work *w = v->work;
    bool firm = limit.kind == CFG_LIMIT_COMPARED, inner = false;
    uint64_t most = limit.kind && limit.count < longest ? limit.count : longest;
    entry_kind why = ENTRY_GOES;
    t->relocated = t->kind == CFG_TABLE_ABSOLUTE && image_reloc_at(w->image, t->table);
    t->exact = t->ends = false;
    for (t->count = 0; t->count < most; t->count++) {
        uint64_t at = t->table + (uint64_t)t->count * t->entry_size;
        if (!firm && t->count && cfg_has_name(w, t->table, at, true)) break;
        if (!take_entry(v, t, firm, &inner, &why)) break;
        if (!firm) cfg_explore(w);
    }
    t->broken = firm && t->count < most && why == ENTRY_WRONG;
    if (t->count == most) t->exact = most < longest;
    else if (t->count) judge_end(w, t, why);
    if (limit.kind == CFG_LIMIT_DISPUTED && t->count < most) t->exact = false;
    return t->count != 0 && (inner || t->kind == CFG_TABLE_RELATIVE);
}

bool cfg_may_be_pointers(const cfg_view *v, const cfg_table *t)
{
    enum { look = 8 };
    const cfg_work *w = v->work;
    cfg_table all = *t;
    for (uint32_t i = 0; i < look; i++) {
        bool ok;
        uint64_t target = cfg_read_target(w->image, &all, i, &ok);
        const uint8_t *m = ok ? cfg_mark(w, target) : NULL;
        if (m && !(*m & MARK_ENTRY) && cfg_inside(&w->procs.items[v->proc], target)) return false;
    }
    return true;
}
