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
#include "base/map.h"
#include "elf/private.h"

/* clang-format off */
enum {
    CHILDREN = 1, COMPILE_UNIT = 0x11, SUBPROGRAM = 0x2e,
    NAME = 0x03, STMT_LIST = 0x10, LOW_PC = 0x11, HIGH_PC = 0x12, LANGUAGE = 0x13, COMP_DIR = 0x1b, PRODUCER = 0x25,
    EXTERNAL = 0x3f,
    FORM_ADDR = 0x01, FORM_DATA2 = 0x05, FORM_DATA8 = 0x07, FORM_STRING = 0x08, FORM_OFFSET = 0x17, FORM_PRESENT = 0x19,
    C99 = 0x0c,
};
/* clang-format on */

/* clang-format off */
static const uint8_t abbreviations[] = {
    1, COMPILE_UNIT, CHILDREN, PRODUCER, FORM_STRING, NAME, FORM_STRING, COMP_DIR, FORM_STRING, LANGUAGE, FORM_DATA2,
    LOW_PC, FORM_ADDR, HIGH_PC, FORM_DATA8, STMT_LIST, FORM_OFFSET, 0, 0,
    2, SUBPROGRAM, 0, NAME, FORM_STRING, EXTERNAL, FORM_PRESENT, LOW_PC, FORM_ADDR, HIGH_PC, FORM_DATA8, 0, 0,
    0,
};
/* clang-format on */

static void put_string(inl_bytes *b, const char *text) { inl_bytes_put(b, text, strlen(text) + 1); }

static size_t begin_length(inl_bytes *b) { return inl_bytes_reserve(b, 4); }

static void end_length(inl_bytes *b, size_t at)
{
    uint64_t size = b->size - at - 4;
    uint32_t word = (uint32_t)size;
    if (size != word || b->failed) b->failed = true;
    else inl_bytes_set(b, at, &word, sizeof word);
}

/* --- lines --- */

typedef struct line_writer {
    inl_bytes files, program;
    inl_map numbers;                       /* of files, by their names' addresses */
    uint64_t file_count, addr, file, line; /* the machine's registers */
    bool open;                             /* in a sequence */
} line_writer;

enum { COPY = 1, ADVANCE_PC = 2, ADVANCE_LINE = 3, SET_FILE = 4, END_SEQUENCE = 1, SET_ADDRESS = 2 };

static void begin_sequence(line_writer *l, uint64_t addr)
{
    inl_bytes_put(&l->program, (uint8_t[]){0, 9, SET_ADDRESS}, 3);
    inl_bytes_number(&l->program, addr, 8);
    l->addr = addr;
    l->file = l->line = 1;
    l->open = true;
}

static void advance(line_writer *l, uint64_t addr)
{
    inl_bytes_number(&l->program, ADVANCE_PC, 1);
    inl_bytes_uleb(&l->program, addr - l->addr);
    l->addr = addr;
}

static void end_sequence(line_writer *l, uint64_t addr)
{
    if (!l->open) return;
    advance(l, addr);
    inl_bytes_put(&l->program, (uint8_t[]){0, 1, END_SEQUENCE}, 3);
    l->open = false;
}

static uint64_t file_number(line_writer *l, const char *file)
{
    uint64_t number, key = (uint64_t)(uintptr_t)file;
    if (inl_map_get(&l->numbers, key, &number)) return number;
    number = ++l->file_count;
    put_string(&l->files, file);
    inl_bytes_put(&l->files, (uint8_t[]){0, 0, 0}, 3); /* folder, time, size */
    if (!inl_map_put(&l->numbers, key, number)) l->files.failed = true;
    return number;
}

static void put_row(line_writer *l, uint64_t addr, const char *file, unsigned line)
{
    uint64_t number = file_number(l, file);
    if (l->open && number == l->file && line == l->line) return;
    if (!l->open) begin_sequence(l, addr);
    else advance(l, addr);
    if (number != l->file) {
        inl_bytes_number(&l->program, SET_FILE, 1);
        inl_bytes_uleb(&l->program, number);
    }
    inl_bytes_number(&l->program, ADVANCE_LINE, 1);
    inl_bytes_sleb(&l->program, (int64_t)line - (int64_t)l->line);
    inl_bytes_number(&l->program, COPY, 1);
    l->file = number;
    l->line = line;
}

static void walk_lines(line_writer *l, const elf_writer *w)
{
    move_map_walk insns = move_map_from(w->plan, 0);
    for (move_map m; move_map_next(&insns, &m);) {
        uint64_t now = w->text_at + m.new_off;
        const char *file;
        unsigned line;
        if (image_line_at(w->im, m.old_addr - w->plan->bias, &file, &line) && line) put_row(l, now, file, line);
        else end_sequence(l, now);
    }
    end_sequence(l, w->text_at + w->plan->text_size);
}

static bool put_lines(const elf_writer *w, inl_bytes *out)
{
    static const uint8_t settings[] = {1, 1, (uint8_t)-5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    line_writer l = {0};
    walk_lines(&l, w);
    size_t unit = begin_length(out);
    inl_bytes_number(out, 3, 2); /* version */
    size_t header = begin_length(out);
    inl_bytes_put(out, settings, sizeof settings);
    inl_bytes_number(out, 0, 1); /* no folders: names are whole */
    inl_bytes_put(out, l.files.data, l.files.size);
    inl_bytes_number(out, 0, 1);
    end_length(out, header);
    inl_bytes_put(out, l.program.data, l.program.size);
    end_length(out, unit);
    bool any = l.file_count && !l.files.failed && !l.program.failed;
    inl_map_free(&l.numbers);
    inl_bytes_free(&l.files);
    inl_bytes_free(&l.program);
    return any && !out->failed;
}

/* --- the unit --- */

static void put_procedures(const elf_writer *w, inl_bytes *out)
{
    const move_plan *p = w->plan;
    for (uint32_t i = 0; i < p->cfg->proc_count; i++) {
        const char *name = p->cfg->procs[i].name;
        if (!p->procs[i].new_addr || !name || !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2)) continue;
        inl_bytes_number(out, 2, 1);
        put_string(out, name);
        inl_bytes_number(out, p->procs[i].new_addr - p->bias, 8);
        inl_bytes_number(out, p->procs[i].new_size, 8);
    }
    inl_bytes_number(out, 0, 1);
}

static void put_unit(const elf_writer *w, elf_debug *d)
{
    inl_bytes *out = &d->added[ELF_DEBUG_INFO];
    size_t unit = begin_length(out);
    inl_bytes_number(out, 4, 2); /* version */
    inl_bytes_number(out, d->old_size[ELF_DEBUG_ABBREV], 4);
    inl_bytes_number(out, 8, 1);
    inl_bytes_number(out, 1, 1);
    put_string(out, "Inlay");
    put_string(out, "code that has moved");
    put_string(out, "/");
    inl_bytes_number(out, C99, 2);
    inl_bytes_number(out, w->text_at, 8);
    inl_bytes_number(out, w->plan->text_size, 8);
    inl_bytes_number(out, d->old_size[ELF_DEBUG_LINE], 4);
    put_procedures(w, out);
    end_length(out, unit);
}

static void put_ranges(const elf_writer *w, elf_debug *d)
{
    inl_bytes *out = &d->added[ELF_DEBUG_ARANGES];
    size_t unit = begin_length(out);
    inl_bytes_number(out, 2, 2); /* version */
    inl_bytes_number(out, d->old_size[ELF_DEBUG_INFO], 4);
    inl_bytes_put(out, (uint8_t[]){8, 0, 0, 0, 0, 0}, 6); /* sizes of an address and a segment; to a multiple of 16 */
    inl_bytes_number(out, w->text_at, 8);
    inl_bytes_number(out, w->plan->text_size, 8);
    inl_bytes_number(out, 0, 8);
    inl_bytes_number(out, 0, 8);
    end_length(out, unit);
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
    inl_bytes_put(&d->added[ELF_DEBUG_ABBREV], abbreviations, sizeof abbreviations);
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
