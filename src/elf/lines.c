/* Source lines of moved code, for debuggers and addr2line: a unit of debug information (DWARF 4) behind the
 * original's, in a file that holds its own.
 *
 *     .debug_abbrev   how the two kinds of entries below are written
 *     .debug_info     a unit over the new code; a procedure for each that has moved and that C would name so
 *                     (others are named by their symbols, which debuggers demangle)
 *     .debug_line     what the original says of the line that each instruction came from
 *     .debug_aranges  which addresses the unit has
 *
 * Nothing is added where a table is compressed or missing: the original's debug information is then of no use for
 * this, or elsewhere, and who looks for it there would not if he found some here.
 */
#include "elf/private.h"
#include "image/debug_out.h"

static void walk_lines(debug_lines *l, const elf_writer *w)
{
    move_map_walk insns = move_map_from(w->plan, 0);
    for (move_map m; move_map_next(&insns, &m);) {
        uint64_t now = w->text_at + m.new_off;
        image_spot spot;
        if (image_spot_at(w->im, m.old_addr - w->plan->bias, &spot))
            debug_lines_row(l, &(debug_row){now, spot.file, spot.folder, spot.line, spot.column});
        else debug_lines_end(l, now);
    }
    debug_lines_end(l, w->text_at + w->plan->text_size);
}

static bool put_lines(const elf_writer *w, inl_bytes *out)
{
    debug_lines l = {0};
    walk_lines(&l, w);
    return debug_lines_put(&l, out);
}

/* --- the unit --- */

static void put_unit(const elf_writer *w, elf_debug *d)
{
    const move_plan *p = w->plan;
    inl_bytes *out = &d->added[ELF_DEBUG_INFO];
    const debug_unit unit = {.name = "code that has moved",
                             .abbrev_at = d->old_size[ELF_DEBUG_ABBREV],
                             .lines_at = d->old_size[ELF_DEBUG_LINE],
                             .addr = w->text_at,
                             .size = p->text_size,
                             .has_lines = true};
    size_t begin = debug_unit_begin(out, &unit);
    for (uint32_t i = 0; i < p->cfg->proc_count; i++) {
        if (!p->procs[i].new_addr || !p->cfg->procs[i].name) continue;
        debug_unit_proc(out, p->cfg->procs[i].name, p->procs[i].new_addr - p->bias, p->procs[i].new_size);
    }
    debug_unit_end(out, begin);
}

static void put_ranges(const elf_writer *w, elf_debug *d)
{
    inl_bytes *out = &d->added[ELF_DEBUG_ARANGES];
    size_t unit = debug_length_begin(out);
    inl_bytes_number(out, 2, 2); /* version */
    inl_bytes_number(out, d->old_size[ELF_DEBUG_INFO], 4);
    inl_bytes_put(out, (uint8_t[]){8, 0, 0, 0, 0, 0}, 6); /* sizes of an address and a segment; to a multiple of 16 */
    inl_bytes_number(out, w->text_at, 8);
    inl_bytes_number(out, w->plan->text_size, 8);
    inl_bytes_number(out, 0, 8);
    inl_bytes_number(out, 0, 8);
    debug_length_end(out, unit);
}

static const char *const names[] = {".debug_abbrev", ".debug_info", ".debug_line", ".debug_aranges"};

/* Reading one decompresses all, where they stand, and changes their headers. */
static bool any_compressed(const image_view *v)
{
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr s;
        image_view_section(v, i, &s);
        if (s.sh_flags & SHF_COMPRESSED) return true;
    }
    return false;
}

/* False: one that is needed is not there as it has to be. */
static bool find_tables(const elf_writer *w, elf_debug *d)
{
    const image_view *v = &w->im->view;
    if (any_compressed(v)) return false;
    for (unsigned k = 0; k < ELF_DEBUG_TABLES; k++) {
        for (uint32_t i = 1; i < v->section_count; i++) {
            Elf64_Shdr s;
            image_view_section(v, i, &s);
            if (strcmp(image_view_section_name(v, &s), names[k]) || s.sh_type == SHT_NOBITS) continue;
            if (s.sh_flags & SHF_ALLOC || s.sh_size > INT32_MAX || !image_view_section_bytes(v, &s, &d->old[k]))
                return false;
            d->section[k] = i;
            d->old_size[k] = s.sh_size;
            break;
        }
        if (!d->section[k] && k != ELF_DEBUG_ARANGES) return false;
    }
    return true;
}

bool elf_debug_make(const elf_writer *w, elf_debug *d)
{
    *d = (elf_debug){0};
    if (!w->plan->text_size || !find_tables(w, d) || !put_lines(w, &d->added[ELF_DEBUG_LINE])) return false;
    debug_abbreviations_put(&d->added[ELF_DEBUG_ABBREV], false);
    put_unit(w, d);
    if (d->section[ELF_DEBUG_ARANGES]) put_ranges(w, d);
    for (unsigned k = 0; k < ELF_DEBUG_TABLES; k++)
        if (d->added[k].failed) return false;
    return true;
}

void elf_debug_free(elf_debug *d)
{
    for (unsigned k = 0; k < ELF_DEBUG_TABLES; k++) inl_bytes_free(&d->added[k]);
}
