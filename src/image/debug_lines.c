/* DWARF line programs and units over code of Inlay's making.
 *
 *     .debug_abbrev   how the kinds of entries below are written
 *     .debug_info     a unit over the code; a procedure for each that C would name so
 *     .debug_line     which line each instruction came from
 */
#include "image/debug_out.h"

#include <string.h>

/* clang-format off */
enum {
    CHILDREN = 1, COMPILE_UNIT = 0x11, SUBPROGRAM = 0x2e,
    NAME = 0x03, STMT_LIST = 0x10, LOW_PC = 0x11, HIGH_PC = 0x12, LANGUAGE = 0x13, COMP_DIR = 0x1b, PRODUCER = 0x25,
    EXTERNAL = 0x3f, RANGES = 0x55,
    FORM_ADDR = 0x01, FORM_DATA2 = 0x05, FORM_DATA8 = 0x07, FORM_STRING = 0x08, FORM_OFFSET = 0x17, FORM_PRESENT = 0x19,
    C99 = 0x0c,
};
/* clang-format on */

/* clang-format off */
static const uint8_t abbreviations[] = {
    1, COMPILE_UNIT, CHILDREN, PRODUCER, FORM_STRING, NAME, FORM_STRING, COMP_DIR, FORM_STRING, LANGUAGE, FORM_DATA2,
    LOW_PC, FORM_ADDR, HIGH_PC, FORM_DATA8, STMT_LIST, FORM_OFFSET, 0, 0,
    2, SUBPROGRAM, 0, NAME, FORM_STRING, EXTERNAL, FORM_PRESENT, LOW_PC, FORM_ADDR, HIGH_PC, FORM_DATA8, 0, 0,
};
static const uint8_t by_ranges[] = {
    3, COMPILE_UNIT, CHILDREN, PRODUCER, FORM_STRING, NAME, FORM_STRING, COMP_DIR, FORM_STRING, LANGUAGE, FORM_DATA2,
    LOW_PC, FORM_ADDR, RANGES, FORM_OFFSET, STMT_LIST, FORM_OFFSET, 0, 0,
    4, COMPILE_UNIT, CHILDREN, PRODUCER, FORM_STRING, NAME, FORM_STRING, COMP_DIR, FORM_STRING, LANGUAGE, FORM_DATA2,
    LOW_PC, FORM_ADDR, RANGES, FORM_OFFSET, 0, 0,
};
/* clang-format on */

static void put_string(inl_bytes *b, const char *text) { inl_bytes_put(b, text, strlen(text) + 1); }

size_t debug_length_begin(inl_bytes *b) { return inl_bytes_reserve(b, 4); }

void debug_length_end(inl_bytes *b, size_t at)
{
    uint64_t size = b->size - at - 4;
    uint32_t word = (uint32_t)size;
    if (size != word || b->failed) b->failed = true;
    else inl_bytes_set(b, at, &word, sizeof word);
}

/* --- lines --- */

enum { COPY = 1, ADVANCE_PC = 2, ADVANCE_LINE = 3, SET_FILE = 4, SET_COLUMN = 5, END_SEQUENCE = 1, SET_ADDRESS = 2 };

static void begin_sequence(debug_lines *l, uint64_t addr)
{
    inl_bytes_put(&l->program, (uint8_t[]){0, 9, SET_ADDRESS}, 3);
    inl_bytes_number(&l->program, addr, 8);
    l->addr = addr;
    l->file = l->line = 1;
    l->column = 0;
    l->open = true;
}

static void advance(debug_lines *l, uint64_t addr)
{
    inl_bytes_number(&l->program, ADVANCE_PC, 1);
    inl_bytes_uleb(&l->program, addr - l->addr);
    l->addr = addr;
}

void debug_lines_end(debug_lines *l, uint64_t addr)
{
    if (!l->open) return;
    advance(l, addr);
    inl_bytes_put(&l->program, (uint8_t[]){0, 1, END_SEQUENCE}, 3);
    l->open = false;
}

static uint64_t file_number(debug_lines *l, const debug_row *row)
{
    uint64_t number, key = (uint64_t)(uintptr_t)row->file;
    if (inl_map_get(&l->numbers, key, &number)) return number;
    number = ++l->file_count;
    if (row->folder && *row->folder) {
        inl_bytes_put(&l->files, row->folder, strlen(row->folder));
        inl_bytes_put(&l->files, "/", 1);
    }
    put_string(&l->files, row->file);
    inl_bytes_put(&l->files, (uint8_t[]){0, 0, 0}, 3); /* folder, time, size */
    if (!inl_map_put(&l->numbers, key, number)) l->files.failed = true;
    return number;
}

void debug_lines_row(debug_lines *l, const debug_row *row)
{
    uint64_t number = file_number(l, row);
    if (l->open && number == l->file && row->line == l->line && row->column == l->column) return;
    if (!l->open) begin_sequence(l, row->addr);
    else advance(l, row->addr);
    if (number != l->file) {
        inl_bytes_number(&l->program, SET_FILE, 1);
        inl_bytes_uleb(&l->program, number);
    }
    if (row->column != l->column) {
        inl_bytes_number(&l->program, SET_COLUMN, 1);
        inl_bytes_uleb(&l->program, row->column);
    }
    inl_bytes_number(&l->program, ADVANCE_LINE, 1);
    inl_bytes_sleb(&l->program, (int64_t)row->line - (int64_t)l->line);
    inl_bytes_number(&l->program, COPY, 1);
    l->file = number;
    l->line = row->line;
    l->column = row->column;
}

bool debug_lines_put(debug_lines *l, inl_bytes *out)
{
    static const uint8_t settings[] = {1, 1, (uint8_t)-5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    size_t unit = debug_length_begin(out);
    inl_bytes_number(out, 3, 2); /* version */
    size_t header = debug_length_begin(out);
    inl_bytes_put(out, settings, sizeof settings);
    inl_bytes_number(out, 0, 1); /* no folders: names are whole */
    inl_bytes_put(out, l->files.data, l->files.size);
    inl_bytes_number(out, 0, 1);
    debug_length_end(out, header);
    inl_bytes_put(out, l->program.data, l->program.size);
    debug_length_end(out, unit);
    bool any = l->file_count && !l->files.failed && !l->program.failed;
    inl_map_free(&l->numbers);
    inl_bytes_free(&l->files);
    inl_bytes_free(&l->program);
    return any && !out->failed;
}

/* --- the unit --- */

void debug_abbreviations_put(inl_bytes *out, bool ranges)
{
    inl_bytes_put(out, abbreviations, sizeof abbreviations);
    if (ranges) inl_bytes_put(out, by_ranges, sizeof by_ranges);
    inl_bytes_number(out, 0, 1);
}

size_t debug_unit_begin(inl_bytes *out, const debug_unit *u)
{
    enum { WHOLE = 1, BY_RANGES = 3, WITHOUT_LINES = 4 };
    size_t begin = debug_length_begin(out);
    inl_bytes_number(out, 4, 2); /* version */
    inl_bytes_number(out, u->abbrev_at, 4);
    inl_bytes_number(out, 8, 1);
    inl_bytes_number(out, u->size ? WHOLE : u->has_lines ? BY_RANGES : WITHOUT_LINES, 1);
    put_string(out, "Inlay");
    put_string(out, u->name);
    put_string(out, "/");
    inl_bytes_number(out, C99, 2);
    inl_bytes_number(out, u->addr, 8);
    if (u->size) inl_bytes_number(out, u->size, 8);
    else inl_bytes_number(out, 0, 4); /* the ranges, which begin their table */
    if (u->has_lines) inl_bytes_number(out, u->lines_at, 4);
    return begin;
}

void debug_unit_proc(inl_bytes *out, const char *name, uint64_t addr, uint64_t size)
{
    if (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2)) return;
    inl_bytes_number(out, 2, 1);
    put_string(out, name);
    inl_bytes_number(out, addr, 8);
    inl_bytes_number(out, size, 8);
}

void debug_unit_end(inl_bytes *out, size_t begin)
{
    inl_bytes_number(out, 0, 1);
    debug_length_end(out, begin);
}
