/* Units of debug information for stubs, which are no part of their procedures' own units: a debugger that stops there
 * finds the line, and steps through. A unit for each line table of stubs (rows.c):
 *
 *     unit: "inlay", its line table, its ranges
 *         procedure NAME.inlay, from, size     for each stub
 *
 * It goes behind what is in the sections, in the form of DWARF 4 whatever these have. */
#include "object/lines.h"

enum { TAG_UNIT = 0x11, TAG_PROCEDURE = 0x2e };
enum {
    AT_NAME = 3,
    AT_STMT_LIST = 0x10,
    AT_LOW = 0x11,
    AT_HIGH = 0x12,
    AT_LANGUAGE = 0x13,
    AT_PRODUCER = 0x25,
    AT_RANGES = 0x55
};
enum { FORM_ADDR = 1, FORM_DATA4 = 6, FORM_STRING = 8, FORM_DATA1 = 0xb, FORM_OFFSET = 0x17 };
enum { LANGUAGE_C99 = 0xc, UNIT = 1, PROCEDURE = 2 };

typedef struct shower {
    object_plan *p;
    object_file *o;
    const object_stubs *stubs;
    uint32_t info, abbreviations, ranges, index, lines; /* sections; index: 0, none */
    uint64_t forms;                                     /* the abbreviations' offset */
    bool failed;
} shower;

static inl_bytes *bytes_of(const shower *s, uint32_t section) { return &s->o->sections.items[section].data; }

static void put_refer(shower *s, uint32_t section, uint32_t to, uint64_t offset, unsigned size)
{
    inl_bytes *b = bytes_of(s, section);
    uint32_t type = size == 8 ? s->o->isa->absolute64 : s->o->isa->absolute32;
    if (!object_add_rela(s->o, section, b->size, type, object_section_symbol(s->o, to), (int64_t)offset))
        s->failed = true;
    inl_bytes_number(bytes_of(s, section), 0, size);
}

static void put_text(inl_bytes *b, const char *text) { inl_bytes_put(b, text, strlen(text) + 1); }

static void put_forms(shower *s)
{
    static const uint8_t forms[] = {UNIT,
                                    TAG_UNIT,
                                    1,
                                    AT_PRODUCER,
                                    FORM_STRING,
                                    AT_LANGUAGE,
                                    FORM_DATA1,
                                    AT_NAME,
                                    FORM_STRING,
                                    AT_STMT_LIST,
                                    FORM_OFFSET,
                                    AT_LOW,
                                    FORM_ADDR,
                                    AT_RANGES,
                                    FORM_OFFSET,
                                    0,
                                    0,
                                    PROCEDURE,
                                    TAG_PROCEDURE,
                                    0,
                                    AT_NAME,
                                    FORM_STRING,
                                    AT_LOW,
                                    FORM_ADDR,
                                    AT_HIGH,
                                    FORM_DATA4,
                                    0,
                                    0,
                                    0};
    s->forms = bytes_of(s, s->abbreviations)->size;
    inl_bytes_put(bytes_of(s, s->abbreviations), forms, sizeof forms);
}

static void put_length(inl_bytes *b, size_t start)
{
    uint32_t size = (uint32_t)(b->size - start - 4);
    inl_bytes_set(b, start, &size, 4);
}

/* Which addresses are the unit's, for those who look there alone. */
static void put_index(shower *s, const object_shown *from, size_t count, uint64_t unit)
{
    size_t start = inl_bytes_reserve(bytes_of(s, s->index), 4);
    inl_bytes_number(bytes_of(s, s->index), 2, 2);
    put_refer(s, s->index, s->info, unit, 4);
    inl_bytes_number(bytes_of(s, s->index), 8, 2); /* addresses of 8 bytes, no segments */
    inl_bytes_reserve(bytes_of(s, s->index), 4);   /* to twice that */
    for (size_t i = 0; i < count; i++) {
        const object_stub *stub = &s->stubs->items[from[i].stub];
        put_refer(s, s->index, stub->section, stub->begin, 8);
        inl_bytes_number(bytes_of(s, s->index), stub->end - stub->begin, 8);
    }
    inl_bytes_reserve(bytes_of(s, s->index), 16);
    put_length(bytes_of(s, s->index), start);
}

static void put_unit(shower *s, const object_shown *from, size_t count)
{
    inl_bytes *b = bytes_of(s, s->info);
    uint64_t unit = b->size, ranges = bytes_of(s, s->ranges)->size;
    size_t start = inl_bytes_reserve(b, 4);
    inl_bytes_number(b, 4, 2);
    put_refer(s, s->info, s->abbreviations, s->forms, 4);
    inl_bytes_number(b, 8, 1);
    inl_bytes_number(b, UNIT, 1);
    put_text(b, "inlay");
    inl_bytes_number(b, LANGUAGE_C99, 1);
    put_text(b, "inlay");
    put_refer(s, s->info, s->lines, from->table, 4);
    inl_bytes_number(b, 0, 8);
    put_refer(s, s->info, s->ranges, ranges, 4);
    for (size_t i = 0; i < count; i++) {
        const object_stub *stub = &s->stubs->items[from[i].stub];
        inl_bytes_number(b, PROCEDURE, 1);
        put_text(b, (const char *)s->o->strings.data + s->o->symbols.items[stub->symbol].s.st_name);
        put_refer(s, s->info, stub->section, stub->begin, 8);
        inl_bytes_number(b, stub->end - stub->begin, 4);
        put_refer(s, s->ranges, stub->section, stub->begin, 8);
        put_refer(s, s->ranges, stub->section, stub->end, 8);
    }
    inl_bytes_number(b, 0, 1);
    put_length(b, start);
    inl_bytes_reserve(bytes_of(s, s->ranges), 16);
    if (s->index) put_index(s, from, count, unit);
}

static bool find_sections(shower *s)
{
    s->info = object_section_named(s->o, ".debug_info");
    s->abbreviations = object_section_named(s->o, ".debug_abbrev");
    if (!s->info || !s->abbreviations) return false;
    s->index = object_section_named(s->o, ".debug_aranges");
    s->ranges = object_section_named(s->o, ".debug_ranges");
    if (!s->ranges) s->ranges = object_add_section(s->o, ".debug_ranges", SHT_PROGBITS, 0, 1, 0);
    s->failed = s->ranges == 0;
    return !s->failed;
}

inl_status object_put_shown(object_plan *p, const object_stubs *stubs, const object_shown_list *list, uint32_t lines,
                            inl_error *e)
{
    shower s = {.p = p, .o = p->o, .stubs = stubs, .lines = lines};
    if (list->count == 0 || !find_sections(&s)) return s.failed ? object_no_memory(p->o, e) : INL_OK;
    put_forms(&s);
    for (size_t i = 0, k; i < list->count; i = k) {
        for (k = i + 1; k < list->count && list->items[k].table == list->items[i].table;) k++;
        put_unit(&s, &list->items[i], k - i);
    }
    return s.failed || bytes_of(&s, s.info)->failed ? object_no_memory(p->o, e) : INL_OK;
}
