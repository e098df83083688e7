/* How frames of translated code are walked over: the original's unwind instructions, at the places where translated
 * code has the state that they describe.
 *
 * A translation never changes the program's stack pointer or what lies on its stack, so an original row holds from
 * where the translation of its instruction begins. A fragment may begin in the middle of a procedure: its first row is
 * made of all rows up to there. Registers that wait in their slots are not told of; the stack pointer never does.
 */
#include "tool/debug_info.h"

#include <stdlib.h>

enum { ADVANCE4 = 0x04 }; /* DW_CFA_advance_loc4 */

static image_frames *table_of(debug_frames *d, image *im)
{
    uint64_t known;
    if (inl_map_get(&d->tables, (uint64_t)(uintptr_t)im, &known)) return (image_frames *)(uintptr_t)known;
    image_frames *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    if (!image_frames_read(im, f)) f->fdes.count = 0;
    if (inl_map_put(&d->tables, (uint64_t)(uintptr_t)im, (uint64_t)(uintptr_t)f)) return f;
    image_frames_free(f);
    free(f);
    return NULL;
}

static const image_fde *entry_at(const image_frames *f, uint64_t addr)
{
    size_t low = 0, high = f->fdes.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->fdes.items[mid].addr <= addr) low = mid + 1;
        else high = mid;
    }
    if (!low || addr - f->fdes.items[low - 1].addr >= f->fdes.items[low - 1].size) return NULL;
    return f->fdes.items[low - 1].fault ? NULL : &f->fdes.items[low - 1];
}

static bool cie_of(debug_frames *d, const image_cie *c, size_t *index)
{
    uint64_t known, key = (uint64_t)(uintptr_t)c->program.at;
    if (inl_map_get(&d->cie_of, key, &known)) {
        *index = known - 1;
        return true;
    }
    debug_cie mine = {.data_align = c->data_align,
                      .return_reg = c->return_reg,
                      .signal = c->signal,
                      .at = d->programs.size,
                      .bytes = (size_t)(c->program.end - c->program.at)};
    inl_bytes_put(&d->programs, c->program.at, mine.bytes);
    *index = d->cies.count;
    return inl_vec_push(&d->cies, mine) && inl_map_put(&d->cie_of, key, d->cies.count);
}

static void advance(inl_bytes *b, uint32_t by)
{
    if (!by) return;
    inl_bytes_number(b, ADVANCE4, 1);
    inl_bytes_number(b, by, 4);
}

/* Instructions [first, last) of the run lie behind each other in the entry. */
static void add_stretch(debug_frames *d, image_frames *f, const image_fde *fde, uint64_t bias, const weave_run *run,
                        const weave_output *o, uint64_t start, uint32_t first, uint32_t last)
{
    inl_error e = {0};
    debug_frame frame = {.addr = start + o->map[first].snippets_at,
                         .size = o->map[last].snippets_at - o->map[first].snippets_at,
                         .at = d->programs.size};
    if (!frame.size || image_frames_rows(f, fde, &e) || !cie_of(d, &f->cies.items[fde->cie], &frame.cie)) return;
    frame.at = d->programs.size;
    uint32_t at = o->map[first].snippets_at, insn = first;
    for (size_t i = 0; i < f->rows.count; i++) {
        const image_row *row = &f->rows.items[i];
        while (insn < last && run->insns[insn].in.addr - bias < row->addr) insn++;
        if (insn == last) break;
        advance(&d->programs, o->map[insn].snippets_at - at);
        at = o->map[insn].snippets_at;
        inl_bytes_put(&d->programs, row->bytes, row->size);
    }
    frame.bytes = d->programs.size - frame.at;
    if (!inl_vec_push(&d->frames, frame)) d->programs.failed = true;
}

void debug_frames_add(debug_frames *d, const weave_run *run, const weave_output *o, uint64_t start)
{
    for (uint32_t first = 0, last; first < run->insn_count; first = last) {
        uint64_t addr = run->insns[first].in.addr;
        const module *m = module_at(run_here.modules, addr);
        image_frames *f = m ? table_of(d, m->image) : NULL;
        const image_fde *fde = f ? entry_at(f, addr - m->bias) : NULL;
        for (last = first + 1; last < run->insn_count; last++) {
            const isa_insn *before = &run->insns[last - 1].in, *in = &run->insns[last].in;
            if (in->addr != before->addr + before->len) break;
            if (fde && in->addr - m->bias - fde->addr >= fde->size) break;
        }
        if (fde) add_stretch(d, f, fde, m->bias, run, o, start, first, last);
    }
}

/* --- the table --- */

static void end_entry(inl_bytes *b, size_t at)
{
    while ((b->size - at - 4) & 7) inl_bytes_number(b, 0, 1); /* DW_CFA_nop */
    debug_length_end(b, at);
}

static void put_cie(const debug_frames *d, const debug_cie *c, inl_bytes *out)
{
    size_t at = debug_length_begin(out);
    inl_bytes_number(out, UINT32_MAX, 4);
    inl_bytes_number(out, 3, 1); /* version */
    if (c->signal) inl_bytes_put(out, "zS", 3);
    else inl_bytes_number(out, 0, 1);
    inl_bytes_uleb(out, 1); /* code alignment */
    inl_bytes_sleb(out, c->data_align);
    inl_bytes_uleb(out, c->return_reg);
    if (c->signal) inl_bytes_uleb(out, 0);
    inl_bytes_put(out, d->programs.data + c->at, c->bytes);
    end_entry(out, at);
}

void debug_frames_put(const debug_frames *d, size_t from, size_t to, inl_bytes *out)
{
    size_t begin = out->size;
    inl_map places = {0}; /* of common entries: offset + 1 */
    for (size_t i = from; i < to && !d->programs.failed; i++) {
        const debug_frame *f = &d->frames.items[i];
        uint64_t place;
        if (!inl_map_get(&places, f->cie + 1, &place)) {
            place = out->size - begin;
            if (!inl_map_put(&places, f->cie + 1, place)) break;
            put_cie(d, &d->cies.items[f->cie], out);
        }
        size_t at = debug_length_begin(out);
        inl_bytes_number(out, place, 4);
        inl_bytes_number(out, f->addr, 8);
        inl_bytes_number(out, f->size, 8);
        inl_bytes_put(out, d->programs.data + f->at, f->bytes);
        end_entry(out, at);
    }
    inl_map_free(&places);
}

/* --- its end --- */

static void drop_table(uint64_t table)
{
    image_frames_free((image_frames *)(uintptr_t)table);
    free((image_frames *)(uintptr_t)table);
}

/* Another image's common entries may come to stand where its were. */
void debug_frames_image_gone(debug_frames *d, const image *im)
{
    uint64_t table;
    if (!inl_map_get(&d->tables, (uint64_t)(uintptr_t)im, &table)) return;
    drop_table(table);
    inl_map_remove(&d->tables, (uint64_t)(uintptr_t)im);
    inl_map_clear(&d->cie_of);
}

void debug_frames_clear(debug_frames *d)
{
    d->frames.count = d->cies.count = 0;
    d->programs.size = 0;
    d->programs.failed = false;
    inl_map_clear(&d->cie_of);
}

void debug_frames_free(debug_frames *d)
{
    uint64_t table;
    for (size_t at = 0; inl_map_next(&d->tables, &at, NULL, &table);) drop_table(table);
    inl_map_free(&d->tables);
    inl_map_free(&d->cie_of);
    inl_vec_free(&d->cies);
    inl_vec_free(&d->frames);
    inl_bytes_free(&d->programs);
}
