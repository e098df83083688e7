/* Exceptions that are on their way when the tool is taken out. What an unwinder has of new code besides return
 * addresses (back.c):
 *
 *     where it is to land              the C++ library keeps it on the heap while destructors run
 *     where a procedure begins         both are the beginning of an instruction in new code
 *     a procedure's exception table    the language's part of the unwinder is handed it; its counterpart is
 *                                      that of the procedure's old code
 *     the last byte of a call          what it asks about a frame; while it waits for a lock, too
 *     what it reads just then          within tables, for less than a microsecond mostly
 *
 * All but the last become what they are in old code, wherever such words are found. For the last there is no
 * counterpart, and a search that has been begun for new code must not go on for old: who has one of the last two in
 * registers, or on its stack not far above its pointer, goes on for a moment, unless it sleeps, in front of the search.
 * What unwinders have left on stacks looks the same, but stays as it is. */
#include "moved/pieces.h"
#include "base/search.h"
#include "image/entries.h"
#include "image/reader.h"
#include INL_ARCH_HEADER(run, abi)

/* Behind new code: exception tables, entries, the index of them. */
typedef struct tables {
    uint64_t low, header;
} tables;

static bool tables_in(const move_live_image *i, uint64_t word, tables *out)
{
    *out = (tables){i->links.text + i->links.bias + i->links.text_size, i->unwind};
    return i->unwind && word - out->low < out->header - out->low;
}

static bool tables_at(uint64_t word, tables *out)
{
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    for (uint64_t k = 0; k < count; k++)
        if (tables_in(&images[k], word, out)) return true;
    for (const moved_later *l = moved_later_first(); l; l = l->next)
        if (tables_in(&l->told, word, out)) return true;
    for (const moved_piece *p = moved_pieces_now.all, *end = p + moved_pieces_now.count; p < end; p++) {
        *out = (tables){p->image.text + p->image.text_size, p->unwind};
        if (p->unwind && word - out->low < out->header - out->low) return true;
    }
    return false;
}

static image_cursor bytes(uint64_t at, uint64_t end)
{
    return (image_cursor){(const uint8_t *)at, (const uint8_t *)end, at};
}

/* Rows are of two numbers of four bytes (elf/unwind.c). */
static bool row_of(const image_search *s, uint64_t row, uint64_t *addr, uint64_t *record)
{
    image_search at = *s;
    return image_skip(&at.table, row * 2 * image_format_size(s->encoding)) && image_search_next(&at, addr, record);
}

/* Of the first row from `row` on that has one: its exception table; ~0: none has. */
static uint64_t lsda_from(const image_search *s, uint64_t row, uint64_t *begin)
{
    for (uint64_t record; row < s->count; row++) {
        image_record r;
        image_cie common;
        image_range_entry entry;
        if (!row_of(s, row, begin, &record)) break;
        if (!image_record_at(bytes(record, s->header), &r) || r.is_common) continue;
        if (!image_cie_at(bytes(r.common, s->header), &common)) continue;
        if (image_entry_read(&r, &common, s->header, &entry) && entry.lsda) return entry.lsda;
    }
    return ~0ull;
}

uint64_t moved_index_size(uint64_t header)
{
    enum { HEAD = 12, ROW = 8 };
    return HEAD + *(const uint32_t *)(header + HEAD - 4) * (uint64_t)ROW;
}

/* Exception tables are written in the order of the code that they are for. */
static uint64_t begin_by_lsda(const tables *t, uint64_t lsda)
{
    image_search s;
    uint64_t begin = 0;
    if (!image_search_at(bytes(t->header, t->header + moved_index_size(t->header)), &s) || lsda >= s.frame) return 0;
    uint64_t row = INL_FIRST(s.count, k, lsda_from(&s, k, &begin) >= lsda);
    return row < s.count && lsda_from(&s, row, &begin) == lsda ? begin : 0;
}

/* The exception table of the old code of the procedure that this is a new one for. */
static uint64_t lsda_of(uint64_t word)
{
    tables t;
    uint64_t begin = tables_at(word, &t) ? begin_by_lsda(&t, word) : 0, old_begin, old;
    if (!begin) return 0;
    moved_where at;
    moved_locate(begin, NULL, 0, false, &at);
    const moved_image *i = at.known ? moved_image_at(at.pc) : NULL;
    return i && moved_unwind_entry(i, at.pc, &old_begin, &old) ? old : 0;
}

/* Where an instruction begins; a call's end is taken for what returns there. */
static uint64_t instruction_of(uint64_t word)
{
    const moved_image *i = moved_at(word);
    moved_spot spot;
    if (!i || !i->map || !i->map->states) return 0;
    const move_carried_states *states = (const void *)((const char *)i->map + i->map->states);
    if (!moved_states_find(states, (uint32_t)(word - i->text), &spot) || i->text + spot.new_off != word) return 0;
    return i->map_base + spot.old_off;
}

static uint64_t counterpart(uint64_t word)
{
    uint64_t old = moved_back(word), site;
    if (!old) old = instruction_of(word);
    if (old || !moved_is_new(word)) return old;
    if (moved_site_original(word, false, &site) && site) return site; /* what a system call leaves in a register */
    return lsda_of(word);
}

uint64_t moved_old_word(uint64_t word)
{
    uint64_t old = counterpart(word), behind = old || !moved_is_new(word) ? 0 : moved_back(word + 1);
    return behind ? behind - 1 : old;
}

/* Words that have no counterpart, by where they are and what. */
static uint64_t add_unsettled(uint64_t seen, const uint64_t *words, size_t count, uint64_t place)
{
    for (size_t k = 0; k < count; k++)
        if (moved_is_new(words[k]) && !counterpart(words[k]))
            seen = ((seen ^ words[k]) * 0x9e3779b97f4a7c15u ^ (place + k)) | 1;
    return seen;
}

/* From `from` on, of a stack that is looked at from `low` to `end`. */
static uint64_t add_stack(uint64_t seen, uint64_t from, uint64_t low, uint64_t end)
{
    if (end - low > MOVE_ASK_WINDOW || from - low > end - low) return seen;
    if (end - from > MOVE_ASK_DEEP) end = from + MOVE_ASK_DEEP;
    return add_unsettled(seen, (const uint64_t *)from, (end - from) / 8, from);
}

/* What a handler has interrupted goes on where it was. */
static uint64_t add_interrupted(uint64_t seen, run_thread *t, uint64_t low, uint64_t end)
{
    const run_frame *f;
    if (end - low > MOVE_ASK_WINDOW) return seen;
    for (uint64_t at = low; at < end; at += 8) {
        weave_context c;
        if (!(f = moved_frame_on(at, end))) continue;
        run_uc_context(&f->flags, t, 0, &c);
        seen = add_unsettled(seen, c.gpr, sizeof c.gpr / sizeof *c.gpr, at);
        seen = add_stack(seen, run_sp(&c) & ~7ull, low, end);
    }
    return seen;
}

uint64_t moved_unwinds(run_thread *t, const weave_context *c, uint64_t end, uint64_t slot, bool *interrupted)
{
    const uint64_t low = run_sp(c) & ~7ull;
    moved_words vectors[2];
    const unsigned n = moved_park_vectors(slot, vectors);
    const uint64_t before = t ? add_interrupted(0, t, low, end) : 0;
    uint64_t seen = add_unsettled(before, c->gpr, sizeof c->gpr / sizeof *c->gpr, 0);
    seen = add_stack(seen, low, low, end);
    for (unsigned k = 0; k < n; k++) seen = add_unsettled(seen, vectors[k].at, vectors[k].count, k);
    *interrupted = before != 0;
    return seen;
}
