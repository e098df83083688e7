/* Names as C++ and Rust qualify them, "space::kind::name", in debug information: an entry's own is the last part, those
 * before are the entries around it, or around what it defines. Spaces without a name, inline ones and enumerations need
 * not be said. */
#include "image/units.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Where the last part begins; what stands in brackets has parts of its own. */
static const char *last_part(const char *name, const char *end)
{
    int depth = 0;
    for (const char *c = end; c > name; c--) {
        if (c[-1] == '>' || c[-1] == ')') depth++;
        if (c[-1] == '<' || c[-1] == '(') depth--;
        if (depth == 0 && c - name >= 2 && c[-1] == ':' && c[-2] == ':') return c;
    }
    return name;
}

const char *image_last_part(const char *name) { return last_part(name, name + strlen(name)); }

/* --- what compilers and demanglers write differently in a template's arguments: box<short int, 8>, box<short, 8ul> ---
 */

typedef struct spelling {
    char text[512];
    size_t size;
    bool fits;
} spelling;

static void write_plain(spelling *s, const char *from, size_t n)
{
    bool words = s->size && n && isalnum((unsigned char)*from) && isalnum((unsigned char)s->text[s->size - 1]);
    if (s->size + n + words + 1 > sizeof s->text) s->fits = false;
    if (!s->fits) return;
    if (words) s->text[s->size++] = ' ';
    memcpy(s->text + s->size, from, n);
    s->size += n;
}

/* The words of an integer type, in whatever order: each way has one letter for each that counts. */
typedef struct integer {
    unsigned longs;
    bool is_short, is_char, is_unsigned, is_signed, any;
} integer;

static bool add_word(integer *i, const char *word, size_t n)
{
    static const char *const words[] = {"long", "short", "char", "unsigned", "signed", "int"};
    unsigned k = 0;
    while (k < 6 && (strlen(words[k]) != n || strncmp(word, words[k], n))) k++;
    i->longs += k == 0;
    i->is_short |= k == 1;
    i->is_char |= k == 2;
    i->is_unsigned |= k == 3;
    i->is_signed |= k == 4;
    i->any |= k < 6;
    return k < 6;
}

static void write_integer(spelling *s, integer *i)
{
    if (!i->any) return;
    if (i->is_unsigned) write_plain(s, "unsigned", 8);
    if (i->is_signed && i->is_char) write_plain(s, "signed", 6);
    for (unsigned k = 0; k < i->longs; k++) write_plain(s, "long", 4);
    if (i->is_short) write_plain(s, "short", 5);
    if (i->is_char) write_plain(s, "char", 4);
    if (!i->is_char && !i->is_short && !i->longs) write_plain(s, "int", 3);
    *i = (integer){0};
}

static void write_word(spelling *s, integer *i, const char *word, size_t n)
{
    if (add_word(i, word, n)) return;
    write_integer(s, i);
    if (isdigit((unsigned char)*word))
        while (n > 1 && strchr("uUlL", word[n - 1])) n--;
    write_plain(s, word, n);
}

static void spell(spelling *s, const char *from, const char *end)
{
    integer i = {0};
    *s = (spelling){.fits = true};
    while (from < end) {
        const char *c = from;
        while (c < end && (isalnum((unsigned char)*c) || *c == '_')) c++;
        if (c > from) write_word(s, &i, from, (size_t)(c - from));
        else if (*c++ != ' ') write_integer(s, &i), write_plain(s, from, 1);
        from = c;
    }
    write_integer(s, &i);
}

static bool is_part(const char *its, const char *from, const char *end)
{
    size_t n = (size_t)(end - from);
    spelling a, b;
    if (!its) return false;
    if (strlen(its) == n && !strncmp(its, from, n)) return true;
    if (!memchr(from, '<', n) || !strchr(its, '<')) return false;
    spell(&a, its, its + strlen(its));
    spell(&b, from, end);
    return a.fits && b.fits && a.size == b.size && !memcmp(a.text, b.text, a.size);
}

static bool may_be_left_out(Dwarf_Die *scope)
{
    int tag = dwarf_tag(scope);
    return !dwarf_diename(scope) || dwarf_hasattr(scope, DW_AT_export_symbols) || tag == DW_TAG_enumeration_type ||
           tag == DW_TAG_lexical_block;
}

/* first: 0, the entry itself is one of those around, or 1. */
static bool is_around(Dwarf_Die *die, int first, const char *name, const char *end)
{
    Dwarf_Attribute attr;
    Dwarf_Die *scopes = NULL, declared = *die;
    while (dwarf_attr(&declared, DW_AT_specification, &attr) && dwarf_formref_die(&attr, &declared)) {}
    int n = dwarf_getscopes_die(&declared, &scopes);
    for (int k = first; k < n && end > name; k++) {
        const char *from = last_part(name, end);
        image_enter_type_unit(&scopes[k]);
        if (is_part(dwarf_diename(&scopes[k]), from, end)) end = from > name ? from - 2 : name;
        else if (!may_be_left_out(&scopes[k])) break;
    }
    free(scopes);
    return end <= name;
}

bool image_is_named(Dwarf_Die *die, const char *name)
{
    if (!strncmp(name, "::", 2)) name += 2;
    const char *end = name + strlen(name), *last = last_part(name, end);
    return is_part(dwarf_diename(die), last, end) && (last == name || is_around(die, 1, name, last - 2));
}

bool image_is_constant_named(Dwarf_Die *constant, Dwarf_Die *of, const char *name)
{
    const char *end = name + strlen(name), *last = last_part(name, end);
    return is_part(dwarf_diename(constant), last, end) && (last == name || is_around(of, 0, name, last - 2));
}

bool image_is_space(Dwarf_Die *die, bool types_too)
{
    int tag = dwarf_tag(die);
    return tag == DW_TAG_namespace || tag == DW_TAG_module ||
           (types_too && (tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type));
}

bool image_is_c(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11: return true;
    default: return false;
    }
}

bool image_is_fortran(Dwarf_Die *unit)
{
    int l = dwarf_srclang(unit);
    return l == DW_LANG_Fortran77 || l == DW_LANG_Fortran90 || l == DW_LANG_Fortran95 || l == DW_LANG_Fortran03 ||
           l == DW_LANG_Fortran08;
}
