/* Source lines, through libdw: .debug_line of the file itself or of its separate debug file.
 *
 * libdw finds an address's unit by .debug_aranges, which some compilers leave out; so the units'
 * own ranges are read once into a sorted list. libdw works on the bytes that are mapped already: no
 * descriptor is opened, and libdwfl (which would ask debuginfod) is not used.
 */
#include "image/units.h"
#include "base/search.h"
#include "image/package.h"

#include <dwarf.h>
#include <stdlib.h>

void image_lines_free(image_lines *l)
{
    if (!l) return;
    if (l->dwarf) dwarf_end(l->dwarf);
    image_shared_free(l->shared);
    if (l->elf) elf_end(l->elf);
    image_package_free(l->package);
    inl_vec_free(&l->units);
    inl_vec_free(&l->trees);
    inl_vec_free(&l->ranges);
    inl_map_free(&l->types);
    inl_map_free(&l->names.hashes);
    free(l->scopes.list);
    free(l);
}

static bool has_lines(const image_view *v)
{
    Elf64_Shdr s;
    return v && (image_view_find(v, SHT_NULL, ".debug_line", &s) || image_view_find(v, SHT_NULL, ".zdebug_line", &s)) &&
           s.sh_type != SHT_NOBITS;
}

static int by_low(const void *a, const void *b)
{
    const image_unit_range *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* The half of a unit that is elsewhere: in the package, or in a .dwo file, which libdw finds by the unit's folder and
 * the file's name, reads and closes. */
static void read_split(image_lines *l, Dwarf_Die *die, Dwarf_Die *split)
{
    uint64_t id = 0;
    uint8_t kind = 0;
    memset(split, 0, sizeof *split);
    if (dwarf_cu_info(die->cu, NULL, &kind, NULL, NULL, &id, NULL, NULL) || kind != DW_UT_skeleton) return;
    if (l->package) image_package_unit(l->package, die, id, split);
    if (!split->addr) dwarf_cu_info(die->cu, NULL, NULL, NULL, split, NULL, NULL, NULL);
}

/* The units of types that stand beside it in its file, once for all units there. */
static void read_split_types(image_lines *l, const Dwarf_Die *skeleton, const Dwarf_Die *split)
{
    Dwarf *of = dwarf_cu_getdwarf(split->cu);
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t kind = 0;
    if (of == l->split) return;
    l->split = of;
    while (dwarf_get_units(of, unit, &unit, NULL, &kind, &die, NULL) == 0)
        if ((kind == DW_UT_split_type || kind == DW_UT_type) &&
            (!inl_vec_push(&l->trees, die) || !inl_vec_push(&l->units, *skeleton)))
            return;
}

static void read_units(image_lines *l)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die, split;
    while (dwarf_get_units(l->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        Dwarf_Addr base, low, high;
        ptrdiff_t at = 0;
        read_split(l, &die, &split);
        bool has_split = split.addr && dwarf_tag(&split) == DW_TAG_compile_unit && split.cu != die.cu;
        if (!inl_vec_push(&l->trees, has_split ? split : die)) break;
        if (!inl_vec_push(&l->units, die)) break;
        while ((at = dwarf_ranges(&die, at, &base, &low, &high)) > 0)
            if (low < high && !inl_vec_push(&l->ranges, (image_unit_range){low, high, l->units.count - 1})) break;
        if (has_split) read_split_types(l, &die, &split);
    }
    if (l->ranges.count) qsort(l->ranges.items, l->ranges.count, sizeof(image_unit_range), by_low);
}

/* Of the file that others have, too: types alone, no code. */
static void read_shared(image_lines *l)
{
    Dwarf *of = l->shared ? image_shared_dwarf(l->shared) : NULL;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    while (of && dwarf_get_units(of, unit, &unit, NULL, NULL, &die, NULL) == 0)
        if (!inl_vec_push(&l->trees, die)) return;
}

/* Reading them changes headers of sections, which may lie in a segment: what is compared with a process's memory is the
 * file. libdw looks at them at its beginning alone. */
static void begin_dwarf(image *im, image_lines *l, const image_view *v)
{
    uint8_t *headers = (uint8_t *)(uintptr_t)v->data + v->header.e_shoff;
    size_t size = v->section_count * sizeof(Elf64_Shdr);
    void *as_they_were = malloc(size);
    if (!as_they_were) return;
    memcpy(as_they_were, headers, size);
    l->elf = elf_memory((char *)(uintptr_t)v->data, v->size);
    if (l->elf) l->package = image_package_open(im, l->elf);
    if (l->elf) l->dwarf = dwarf_begin_elf(l->elf, DWARF_C_READ, NULL);
    memcpy(headers, as_they_were, size);
    free(as_they_were);
}

static void open_lines(image *im)
{
    const image_view *v = &im->view;
    if (!has_lines(v)) v = image_debug_view(im);
    if (!has_lines(v) || !image_elfutils_ready()) return;
    if (v->data != im->copy && !image_view_make_sections_writable(v)) return;
    image_lines *l = im->lines = calloc(1, sizeof *l);
    if (!l) return;
    begin_dwarf(im, l, v);
    if (l->dwarf) l->shared = image_shared_open(v, v == &im->debug ? im->debug_path : im->path, l->dwarf);
    if (l->dwarf) read_units(l), read_shared(l);
}

/* How many there are: none covers it. It is the same up to *end. */
static size_t number_until(const image_lines *l, uint64_t addr, uint64_t *end)
{
    size_t behind = INL_FIRST(l->ranges.count, k, l->ranges.items[k].low > addr);
    const image_unit_range *last = behind ? &l->ranges.items[behind - 1] : NULL;
    *end = behind < l->ranges.count ? l->ranges.items[behind].low : ~0ull;
    if (!last || addr >= last->high) return l->units.count;
    if (last->high < *end) *end = last->high;
    return last->unit;
}

static size_t number_at(const image_lines *l, uint64_t addr)
{
    uint64_t end;
    return number_until(l, addr, &end);
}

Dwarf_Die *image_unit_at(image_lines *l, uint64_t addr)
{
    size_t k = number_at(l, addr);
    return k < l->units.count ? &l->units.items[k] : NULL;
}

Dwarf_Die *image_tree_at(image_lines *l, uint64_t addr)
{
    size_t k = number_at(l, addr);
    return k < l->units.count ? &l->trees.items[k] : NULL;
}

/* May what holds the address be within it, though that does not cover it? nested: in procedures within procedures, too.
 */
static bool may_hold(Dwarf_Die *die, bool nested)
{
    int tag = dwarf_tag(die);
    return image_is_space(die, true) || (nested && (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block));
}

/* libdw's own search stays out of namespaces, which have no addresses themselves. */
static bool find_scope(Dwarf_Die *parent, uint64_t addr, unsigned depth, bool nested, Dwarf_Die *found)
{
    Dwarf_Die kid;
    if (!depth || dwarf_child(parent, &kid)) return false;
    do {
        if (!image_is_space(&kid, true) && dwarf_haspc(&kid, addr) > 0) {
            *found = kid;
            find_scope(&kid, addr, depth - 1, nested, found);
            return true;
        }
        if (may_hold(&kid, nested) && find_scope(&kid, addr, depth - 1, nested, found)) return true;
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return false;
}

/* They are found by walking through the unit. */
static int scopes_kept(image_lines *l, uint64_t addr)
{
    enum { DEPTH = 64 };
    if (l->scopes.list && l->scopes.addr == addr) return l->scopes.count;
    Dwarf_Die *unit = image_tree_at(l, addr), found;
    free(l->scopes.list);
    l->scopes.list = NULL;
    bool is_there = unit &&
                    (find_scope(unit, addr, DEPTH, false, &found) || find_scope(unit, addr, DEPTH, true, &found));
    int n = is_there ? dwarf_getscopes_die(&found, &l->scopes.list) : 0;
    l->scopes.addr = addr;
    return l->scopes.count = n > 0 ? n : 0;
}

int image_scopes_at(image_lines *l, uint64_t addr, Dwarf_Die **out)
{
    const size_t size = (size_t)scopes_kept(l, addr) * sizeof **out;
    *out = size ? malloc(size) : NULL;
    if (!*out) return 0;
    memcpy(*out, l->scopes.list, size);
    return l->scopes.count;
}

image_lines *image_units(image *im)
{
    if (!im->has_lines) {
        im->has_lines = true;
        open_lines(im);
    }
    return im->lines && im->lines->dwarf ? im->lines : NULL;
}

image_lines *image_trees(image *im)
{
    image_lines *l = image_units(im);
    return l && l->shared && !image_shared_dwarf(l->shared) ? NULL : l;
}

static const char *text_of(Dwarf_Die *unit, unsigned name)
{
    Dwarf_Attribute attribute;
    const char *text = dwarf_formstring(dwarf_attr(unit, name, &attribute));
    return text ? text : "";
}

static uint64_t row_begins(Dwarf_Lines *lines, size_t k)
{
    Dwarf_Addr at = ~0ull;
    return dwarf_lineaddr(dwarf_onesrcline(lines, k), &at) == 0 ? at : ~0ull;
}

/* The last row that begins at or before the address, unless it is the end of a sequence. */
static Dwarf_Line *row_until(Dwarf_Die *unit, uint64_t addr, uint64_t *end)
{
    Dwarf_Lines *lines;
    size_t count;
    bool ends = false;
    if (dwarf_getsrclines(unit, &lines, &count) != 0) return NULL;
    size_t behind = INL_FIRST(count, k, row_begins(lines, k) > addr);
    if (behind < count && row_begins(lines, behind) < *end) *end = row_begins(lines, behind);
    Dwarf_Line *found = behind ? dwarf_onesrcline(lines, behind - 1) : NULL;
    return found && dwarf_lineendsequence(found, &ends) == 0 && !ends ? found : NULL;
}

/* And up to which address the answer, be it false, is the same. */
static bool spot_until(image *im, uint64_t addr, image_spot *out, uint64_t *end)
{
    image_lines *l = image_units(im);
    *end = ~0ull;
    size_t k = l ? number_until(l, addr, end) : 0;
    Dwarf_Die *unit = l && k < l->units.count ? &l->units.items[k] : NULL;
    Dwarf_Line *found = unit ? row_until(unit, addr, end) : NULL;
    int line = 0, column = 0;
    const char *name = found && dwarf_lineno(found, &line) == 0 && line > 0 ? dwarf_linesrc(found, NULL, NULL) : NULL;
    if (!name) return false;
    dwarf_linecol(found, &column);
    *out = (image_spot){.file = name, .line = (unsigned)line, .column = column > 0 ? (unsigned)column : 0};
    if (*name != '/') out->folder = text_of(unit, DW_AT_comp_dir);
    return true;
}

bool image_spot_at(image *im, uint64_t addr, image_spot *out)
{
    uint64_t end;
    return spot_until(im, addr, out, &end);
}

bool image_line_until(image *im, uint64_t addr, const char **file, unsigned *line, uint64_t *end)
{
    image_spot spot;
    if (!spot_until(im, addr, &spot, end)) return false;
    *file = spot.file;
    *line = spot.line;
    return true;
}

bool image_line_at(image *im, uint64_t addr, const char **file, unsigned *line)
{
    uint64_t end;
    return image_line_until(im, addr, file, line, &end);
}

/* --- units --- */

static image_source source_of(Dwarf_Die *die)
{
    return (image_source){text_of(die, DW_AT_name), text_of(die, DW_AT_comp_dir)};
}

size_t image_unit_count(image *im)
{
    image_lines *l = image_units(im);
    return l ? l->units.count : 0;
}

image_source image_unit(image *im, size_t k) { return source_of(&image_units(im)->units.items[k]); }

size_t image_unit_number_at(image *im, uint64_t addr)
{
    image_lines *l = image_units(im);
    return l ? number_at(l, addr) : 0;
}

bool image_source_at(image *im, uint64_t addr, image_source *out)
{
    image_lines *l = image_units(im);
    Dwarf_Die *die = l ? image_unit_at(l, addr) : NULL;
    if (die) *out = source_of(die);
    return die != NULL;
}

void image_sources(image *im, void (*each)(void *arg, const image_source *, const image_line *, size_t), void *arg)
{
    image_lines *l = image_units(im);
    for (size_t i = 0; l && i < l->units.count; i++) {
        INL_VEC(image_line) rows = {0};
        Dwarf_Lines *lines;
        size_t count = 0;
        Dwarf_Die *die = &l->units.items[i];
        image_source source = source_of(die);
        if (dwarf_getsrclines(die, &lines, &count) != 0) continue;
        for (size_t k = 0; k < count; k++) {
            Dwarf_Line *at = dwarf_onesrcline(lines, k);
            image_line row = {0};
            int number = 0;
            bool ends = false;
            if (dwarf_lineaddr(at, &row.addr) != 0 || dwarf_lineno(at, &number) != 0) continue;
            dwarf_lineendsequence(at, &ends);
            row.file = ends ? NULL : dwarf_linesrc(at, NULL, NULL);
            row.line = (unsigned)number;
            if (!inl_vec_push(&rows, row)) break;
        }
        each(arg, &source, rows.items, rows.count);
        inl_vec_free(&rows);
    }
}

uint64_t image_begun(image *im, uint64_t entry)
{
    image_lines *l = image_units(im);
    Dwarf_Die *unit = l ? image_unit_at(l, entry) : NULL;
    const image_proc *p = image_proc_at(im, entry);
    Dwarf_Lines *lines;
    size_t count;
    uint64_t second = 0, end = p ? p->addr + p->size : entry;
    if (!unit || dwarf_getsrclines(unit, &lines, &count) != 0) return 0;
    for (size_t k = INL_FIRST(count, k, row_begins(lines, k) >= entry); k < count; k++) {
        bool flag = false;
        uint64_t at = row_begins(lines, k);
        if (at >= end) break;
        if (dwarf_lineprologueend(dwarf_onesrcline(lines, k), &flag) == 0 && flag) return at;
        if (!second && at > entry) second = at;
    }
    return second;
}
