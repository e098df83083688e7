/* Unwind entries of stubs: each is what the original's entry says at the addresses that its instructions had. They name
 * no exception table: a call that one would catch is not displaced (room.c). */
#include "base/search.h"
#include "image/frames.h"
#include "object/file.h"

typedef struct frame_maker {
    object_plan *p;
    image_frames old;
    inl_bytes *out; /* .eh_frame */
    uint32_t section;
    size_t *cie_at; /* by common entry: offset + 1 */
} frame_maker;

static void put_length(inl_bytes *b, size_t start)
{
    inl_bytes_align(b, 8);
    uint32_t size = (uint32_t)(b->size - start - 4);
    inl_bytes_set(b, start, &size, 4);
}

static size_t common(frame_maker *f, uint32_t index)
{
    const image_cie *cie = &f->old.cies.items[index];
    inl_bytes *b = f->out;
    if (f->cie_at[index]) return f->cie_at[index] - 1;
    size_t start = inl_bytes_reserve(b, 4 + 4);
    inl_bytes_number(b, 1, 1);
    inl_bytes_put(b, cie->signal ? "zRS" : "zR", cie->signal ? 4 : 3);
    inl_bytes_uleb(b, 1); /* distances are in bytes */
    inl_bytes_sleb(b, cie->data_align);
    inl_bytes_number(b, cie->return_reg, 1);
    inl_bytes_uleb(b, 1);
    inl_bytes_number(b, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, 1);
    inl_bytes_put(b, cie->program.at, (size_t)(cie->program.end - cie->program.at));
    put_length(b, start);
    f->cie_at[index] = start + 1;
    return start;
}

static const image_fde *covering(const frame_maker *f, uint64_t addr)
{
    size_t behind = INL_FIRST(f->old.fdes.count, k, f->old.fdes.items[k].addr > addr);
    const image_fde *fde = behind ? &f->old.fdes.items[behind - 1] : NULL;
    return fde && addr - fde->addr < fde->size && !fde->fault ? fde : NULL;
}

static void put_advance(inl_bytes *b, uint64_t by)
{
    enum { ADVANCE4 = 4 };
    if (by == 0) return;
    inl_bytes_number(b, ADVANCE4, 1);
    inl_bytes_number(b, by, 4);
}

static inl_status put_entry(frame_maker *f, const object_stub *s, inl_error *e)
{
    object_file *o = f->p->o;
    const image_fde *fde = covering(f, s->places.items[0].old);
    inl_status st = fde ? image_frames_rows(&f->old, fde, e) : INL_OK;
    if (!fde || st) return st;
    size_t parent = common(f, fde->cie);
    inl_bytes *b = f->out;
    size_t start = inl_bytes_reserve(b, 4);
    inl_bytes_number(b, b->size - parent, 4);
    if (!object_add_rela(o, f->section, b->size, o->isa->relative32, object_section_symbol(o, s->section),
                         (int64_t)s->begin))
        return object_no_memory(o, e);
    inl_bytes_number(b, 0, 4);
    inl_bytes_number(b, s->end - s->begin, 4);
    inl_bytes_uleb(b, 0);
    uint64_t at = s->begin;
    for (size_t i = 0, done = 0; i < s->places.count; i++) {
        const object_place *k = &s->places.items[i];
        if (k->old - fde->addr >= fde->size) break;
        if (done == f->old.rows.count || f->old.rows.items[done].addr > k->old) continue;
        put_advance(b, k->offset - at);
        at = k->offset;
        for (; done < f->old.rows.count && f->old.rows.items[done].addr <= k->old; done++)
            inl_bytes_put(b, f->old.rows.items[done].bytes, f->old.rows.items[done].size);
    }
    put_length(b, start);
    return INL_OK;
}

inl_status object_put_frames(object_plan *p, const object_stubs *s, inl_error *e)
{
    frame_maker f = {.p = p, .section = object_section_named(p->o, ".eh_frame")};
    if (!f.section || s->count == 0) return INL_OK;
    inl_status st = image_frames_read(p->o->im, &f.old) ? INL_OK : object_no_memory(p->o, e);
    f.cie_at = inl_arena_alloc(&p->o->arena, (f.old.cies.count + 1) * sizeof *f.cie_at);
    if (!st && !f.cie_at) st = object_no_memory(p->o, e);
    for (size_t i = 0; i < s->count && !st; i++) {
        f.out = &p->o->sections.items[f.section].data;
        st = put_entry(&f, &s->items[i], e);
    }
    if (!st && f.out && f.out->failed) st = object_no_memory(p->o, e);
    image_frames_free(&f.old);
    return st;
}
