/* Types, read from debug information through libdw.
 *
 * An entry's type is made once and kept by the entry's place in memory, before what it refers to is read: types may
 * refer to themselves. Members are read when they are asked for (image_ctype.fill). Everything that a file says is
 * taken with limits: a chain of qualifiers is followed so far, an array has so many dimensions. */
#include "image/units.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHAIN = 32, MEMBERS = 1 << 16, DEPTH = 100 };

bool image_number_of(Dwarf_Die *die, unsigned name, uint64_t *out)
{
    Dwarf_Attribute attr;
    Dwarf_Word value;
    Dwarf_Sword sign;
    if (!dwarf_attr_integrate(die, name, &attr)) return false;
    if (dwarf_whatform(&attr) == DW_FORM_sdata || dwarf_whatform(&attr) == DW_FORM_implicit_const) {
        if (dwarf_formsdata(&attr, &sign)) return false;
        *out = (uint64_t)sign;
        return true;
    }
    if (dwarf_formudata(&attr, &value)) return false;
    *out = value;
    return true;
}

static const char *name_with(image *im, const char *word, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    char text[256];
    if (!name) return NULL;
    snprintf(text, sizeof text, "%s%s", word, name);
    return inl_arena_strdup(&im->arena, text);
}

static const char *basic_name(const char *name)
{
    static const char *const names[][2] = {
        {"long int", "long"},
        {"long unsigned int", "unsigned long"},
        {"short int", "short"},
        {"short unsigned int", "unsigned short"},
        {"long long int", "long long"},
        {"long long unsigned int", "unsigned long long"},
        {"_Bool", "bool"},
        {"__int128 unsigned", "unsigned __int128"},
    };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0])) return names[i][1];
    return name;
}

/* It is passed and returned as a structure of two is, but for that of long doubles. */
static void read_complex(image *im, image_ctype *t, bool is_real)
{
    uint64_t half = t->size / 2;
    bool known = half == 4 || half == 8 || (!is_real && (half == 1 || half == 2));
    image_member *m = known ? inl_arena_alloc(&im->arena, 2 * sizeof *m) : NULL;
    t->kind = IMAGE_CTYPE_OTHER;
    if (!m) return;
    const image_ctype *of = is_real ? image_ctype_float((unsigned)half) : image_ctype_int((unsigned)half, true);
    m[0] = (image_member){"real", of, 0};
    m[1] = (image_member){"imag", of, half};
    t->kind = IMAGE_CTYPE_STRUCT;
    t->members = m;
    t->member_count = 2;
}

/* Of 16 bytes there is another form, which has other names. */
static bool is_long_double(const char *name)
{
    static const char *const names[] = {"long double", "real", "real(kind=10)",
                                        "long_long_float"}; /* C, D, Fortran, Ada */
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static uint8_t kind_of(const image_ctype *t, uint64_t encoding)
{
    bool small = t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8;
    switch (encoding) {
    case DW_ATE_boolean: return small ? IMAGE_CTYPE_BOOL : IMAGE_CTYPE_OTHER;
    case DW_ATE_signed:
    case DW_ATE_unsigned: return t->size == 16 ? IMAGE_CTYPE_WIDE : small ? IMAGE_CTYPE_INT : IMAGE_CTYPE_OTHER;
    case DW_ATE_address:
    case DW_ATE_signed_char:
    case DW_ATE_unsigned_char:
    case DW_ATE_signed_fixed:
    case DW_ATE_unsigned_fixed:
    case DW_ATE_UTF:
    case DW_ATE_UCS:
    case DW_ATE_ASCII: return small ? IMAGE_CTYPE_INT : IMAGE_CTYPE_OTHER;
    case DW_ATE_float:
        if (t->size == 16 && is_long_double(t->name)) return IMAGE_CTYPE_LONG_DOUBLE;
        return t->size == 4 || t->size == 8 ? IMAGE_CTYPE_FLOAT : IMAGE_CTYPE_OTHER;
    default: return IMAGE_CTYPE_OTHER; /* decimal ones among them */
    }
}

static void read_basic(image *im, Dwarf_Die *die, image_ctype *t)
{
    enum { COMPLEX_INTEGER = DW_ATE_lo_user }; /* GCC's */
    uint64_t encoding = 0;
    image_number_of(die, DW_AT_encoding, &encoding);
    const char *name = dwarf_diename(die);
    t->name = inl_arena_strdup(&im->arena, name ? basic_name(name) : "?");
    t->kind = kind_of(t, encoding);
    t->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char || encoding == DW_ATE_signed_fixed;
    bool is_complex = encoding == DW_ATE_complex_float || encoding == COMPLEX_INTEGER;
    if (is_complex) read_complex(im, t, encoding == DW_ATE_complex_float);
}

/* --- members --- */

bool image_member_offset(Dwarf_Die *die, uint64_t *offset)
{
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    *offset = 0;
    if (!dwarf_attr_integrate(die, DW_AT_data_member_location, &attr)) return true;
    if (image_number_of(die, DW_AT_data_member_location, offset)) return true;
    if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst) return false;
    *offset = ops[0].number;
    return true;
}

/* The bytes that hold so many bits from `first` on, as a number: 1, 2, 4 or 8. Where that is more than there are, those
 * from where such a number lies, as the structure reaches to its end, if it is not packed. 0: too many. */
static uint64_t bytes_of_bits(uint64_t first, uint64_t count, uint64_t *offset)
{
    uint64_t size = 1, aligned;
    *offset = first / 8;
    while (size * 8 < first % 8 + count) size *= 2;
    if (size > 8) return 0;
    aligned = *offset / size * size;
    bool exact = (first % 8 + count + 7) / 8 == size;
    if (!exact && first + count <= (aligned + size) * 8) *offset = aligned;
    return size;
}

/* A bit field: bytes that hold it, and where in them. Of big-endian DWARF 2 forms only that with a byte size is left.
 */
static const image_ctype *bits_of(image *im, Dwarf_Die *die, const image_ctype *of, uint64_t *offset)
{
    uint64_t count, first, old;
    if (!image_number_of(die, DW_AT_bit_size, &count) || !count || count > 64 || !image_ctype_is_integer(of)) return of;
    if (image_number_of(die, DW_AT_data_bit_offset, &first)) {
        *offset = 0;
    } else if (image_number_of(die, DW_AT_bit_offset, &old)) {
        first = of->size * 8 - old - count;
    } else {
        return of;
    }
    first += *offset * 8;
    uint64_t size = bytes_of_bits(first, count, offset);
    image_ctype *t = size ? inl_arena_alloc(&im->arena, sizeof *t) : NULL;
    if (!t) return &image_ctype_void; /* over nine bytes: it has a name, and no use */
    *t = (image_ctype){.kind = IMAGE_CTYPE_BITS, .is_signed = of->is_signed, .size = size, .of = of};
    t->bit_offset = (uint8_t)(first - *offset * 8), t->bit_count = (uint8_t)count;
    return t;
}

static bool read_member(image *im, Dwarf_Die *die, int tag, image_member *m)
{
    const char *name = dwarf_diename(die);
    m->name = name ? inl_arena_strdup(&im->arena, name) : "";
    m->offset = 0;
    if (tag == DW_TAG_enumerator) return image_number_of(die, DW_AT_const_value, &m->offset);
    m->type = image_ctype_of(im, die);
    if (tag == DW_TAG_formal_parameter) return m->type && m->name;
    if (!image_member_offset(die, &m->offset)) m->type = &image_ctype_void; /* it has a name, and no use */
    if (m->type) m->type = bits_of(im, die, m->type, &m->offset);
    return m->type && m->name;
}

/* A base of a class is a member without a name. Where a virtual one lies is known at run time alone; data of the class
 * is declared in it, and lies elsewhere. */
static bool is_member(Dwarf_Die *die, int tag)
{
    int its = dwarf_tag(die);
    if (tag == DW_TAG_member && its == DW_TAG_inheritance) return !dwarf_hasattr(die, DW_AT_virtuality);
    if (tag == DW_TAG_formal_parameter && its == tag) return !image_is_result(die);
    return its == tag && !(tag == DW_TAG_member && dwarf_hasattr(die, DW_AT_declaration));
}

size_t image_count_tags(Dwarf_Die *parent, int tag)
{
    Dwarf_Die kid;
    size_t n = 0;
    if (dwarf_child(parent, &kid)) return 0;
    do n += is_member(&kid, tag);
    while (n < MEMBERS && dwarf_siblingof(&kid, &kid) == 0);
    return n;
}

typedef struct members {
    image_member *list; /* NULL: they are counted */
    size_t count, room;
} members;

/* Those of Ada's variant parts beside the others, as in a union: which are there is known at run time alone. Rust's
 * forms are not members (variants.c). */
static void collect_members(image *im, Dwarf_Die *die, int tag, members *all, unsigned deep)
{
    Dwarf_Die kid;
    if (dwarf_child(die, &kid)) return;
    do {
        int its = dwarf_tag(&kid);
        bool inside = tag == DW_TAG_member && deep && (its == DW_TAG_variant_part || its == DW_TAG_variant);
        if (inside) collect_members(im, &kid, tag, all, deep - 1);
        if (all->count == all->room) return;
        all->count += is_member(&kid, tag) && (!all->list || read_member(im, &kid, tag, &all->list[all->count]));
    } while (dwarf_siblingof(&kid, &kid) == 0);
}

static void read_members(image *im, Dwarf_Die *die, int tag, image_ctype *t)
{
    enum { NESTED = 16 };
    members all = {.room = MEMBERS};
    unsigned deep = image_is_of_rust(die) ? 0 : NESTED;
    collect_members(im, die, tag, &all, deep);
    all.list = all.count ? inl_arena_alloc(&im->arena, all.count * sizeof *all.list) : NULL;
    if (!all.list) return;
    all.room = all.count;
    all.count = 0;
    collect_members(im, die, tag, &all, deep);
    t->members = all.list;
    t->member_count = all.count;
}

/* What a declaration declares may be defined in another source file. */
static void fill_members(image_ctype *t)
{
    image *im = t->from;
    Dwarf_Die die = *(Dwarf_Die *)t->at;
    if (dwarf_hasattr(&die, DW_AT_declaration) && t->name) {
        const image_ctype *whole = image_ctype_named(im, 0, t->name);
        if (!whole || whole == t || !whole->size) return;
        t->size = whole->size;
        t->member_count = image_ctype_members(whole, &t->members);
        t->variants = whole->variants;
        return;
    }
    int tag = t->kind == IMAGE_CTYPE_ENUM ? DW_TAG_enumerator : DW_TAG_member;
    read_members(im, &die, tag, t);
    if (t->kind == IMAGE_CTYPE_STRUCT) t->variants = image_read_variants(im, &die);
}

/* What C++ does not copy byte by byte: the compiler says so, or (before DWARF 5) a destructor that somebody wrote. */
static bool is_by_reference(Dwarf_Die *die)
{
    Dwarf_Die kid;
    uint64_t convention;
    if (image_number_of(die, DW_AT_calling_convention, &convention)) return convention == DW_CC_pass_by_reference;
    if (dwarf_child(die, &kid)) return false;
    do {
        const char *name = dwarf_tag(&kid) == DW_TAG_subprogram ? dwarf_diename(&kid) : NULL;
        if (name && name[0] == '~') return true;
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return false;
}

/* 0: its members tell. */
static uint64_t said_alignment(Dwarf_Die *die)
{
    uint64_t said;
    return image_number_of(die, DW_AT_alignment, &said) && said && !(said & (said - 1)) ? said : 0;
}

static void read_structure(image *im, Dwarf_Die *die, image_ctype *t, uint8_t kind, const char *word)
{
    t->kind = kind;
    t->name = name_with(im, word, die);
    t->fill = fill_members;
    t->from = im;
    t->by_reference = kind != IMAGE_CTYPE_ENUM && is_by_reference(die);
    t->alignment = said_alignment(die);
    Dwarf_Die *copy = inl_arena_alloc(&im->arena, sizeof *copy);
    if (copy) *copy = *die;
    else t->fill = NULL;
    t->at = copy;
}

static void read_enum(image *im, Dwarf_Die *die, image_ctype *t)
{
    const image_ctype *of = dwarf_hasattr(die, DW_AT_type) ? image_ctype_of(im, die) : NULL;
    read_structure(im, die, t, IMAGE_CTYPE_ENUM, "enum ");
    if (of && of->size) t->is_signed = of->is_signed, t->size = of->size;
    if (t->size != 1 && t->size != 2 && t->size != 8) t->size = 4;
}

/* A part of another type's values, as those are; with a size of its own, perhaps. What is counted from something else
 * than 0 is not understood. */
static void read_subrange(image *im, Dwarf_Die *die, image_ctype *t)
{
    uint64_t size = t->size;
    const char *name = name_with(im, "", die);
    const image_ctype *of = image_ctype_of(im, die);
    bool known = of && of->size && !dwarf_hasattr(die, DW_AT_GNU_bias);
    *t = known ? *of : (image_ctype){.kind = IMAGE_CTYPE_OTHER, .name = "?"};
    if (size) t->size = size;
    if (name) t->name = name;
}

static void read_function(image *im, Dwarf_Die *die, image_ctype *t)
{
    t->kind = IMAGE_CTYPE_FUNCTION;
    t->convention = image_convention_of(die);
    t->of = image_ctype_of(im, die);
    if (t->convention == IMAGE_CALLS_GO) t->of = image_read_results(im, die, &t->many);
    if (!t->of) t->of = &image_ctype_void;
    t->size = 0;
    t->variadic = image_count_tags(die, DW_TAG_unspecified_parameters) > 0;
    read_members(im, die, DW_TAG_formal_parameter, t);
}

/* A type of procedures that has a size is Go's, whose values are addresses: of a word that holds the code's, with what
 * the procedure takes along behind it. */
static void read_closure(image_ctype *t)
{
    t->kind = IMAGE_CTYPE_POINTER;
    t->size = 8;
    t->of = image_ctype_int(8, false);
}

/* The only such type of C++ is that of nullptr. */
static bool is_of_nullptr(Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    return name && strstr(name, "nullptr");
}

bool image_is_only_null(Dwarf_Die *variable)
{
    Dwarf_Attribute attr;
    Dwarf_Die type;
    return dwarf_attr_integrate(variable, DW_AT_type, &attr) && dwarf_formref_die(&attr, &type) &&
           dwarf_peel_type(&type, &type) == 0 && dwarf_tag(&type) == DW_TAG_unspecified_type && is_of_nullptr(&type);
}

static void read_pointer(image *im, Dwarf_Die *die, image_ctype *t)
{
    t->kind = IMAGE_CTYPE_POINTER;
    t->is_reference = dwarf_tag(die) == DW_TAG_reference_type || dwarf_tag(die) == DW_TAG_rvalue_reference_type;
    t->size = 8;
    t->of = dwarf_hasattr(die, DW_AT_type) ? image_ctype_of(im, die) : NULL;
    if (!t->of) t->of = &image_ctype_void;
}

static bool skip_names(Dwarf_Die *die, const char **alias);

/* C++'s ABI: where a member lies in its class; of a method its address, or place in the table of virtual ones, and what
 * is added to `this`. */
static void read_member_pointer(image *im, Dwarf_Die *die, image_ctype *t)
{
    Dwarf_Attribute attr;
    Dwarf_Die of, whole;
    const char *alias = NULL, *name = NULL;
    char text[256];
    bool known = dwarf_attr(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, &of) && skip_names(&of, &alias);
    if (dwarf_attr(die, DW_AT_containing_type, &attr) && dwarf_formref_die(&attr, &whole)) name = dwarf_diename(&whole);
    snprintf(text, sizeof text, "%s::*", name ? name : "?");
    t->name = inl_arena_strdup(&im->arena, text);
    bool is_method = known && dwarf_tag(&of) == DW_TAG_subroutine_type;
    image_member *m = is_method ? inl_arena_alloc(&im->arena, 2 * sizeof *m) : NULL;
    t->kind = !known ? IMAGE_CTYPE_OTHER : m ? IMAGE_CTYPE_STRUCT : IMAGE_CTYPE_INT;
    t->size = m ? 16 : 8;
    t->is_signed = true;
    if (!m) return;
    m[0] = (image_member){"ptr", image_ctype_int(8, true), 0};
    m[1] = (image_member){"adj", image_ctype_int(8, true), 8};
    t->members = m;
    t->member_count = 2;
}

static void read_type(image *im, Dwarf_Die *die, image_ctype *t)
{
    image_number_of(die, DW_AT_byte_size, &t->size);
    switch (dwarf_tag(die)) {
    case DW_TAG_base_type: read_basic(im, die, t); return;
    case DW_TAG_structure_type:
    case DW_TAG_class_type: read_structure(im, die, t, IMAGE_CTYPE_STRUCT, "struct "); return;
    case DW_TAG_union_type: read_structure(im, die, t, IMAGE_CTYPE_UNION, "union "); return;
    case DW_TAG_enumeration_type: read_enum(im, die, t); return;
    case DW_TAG_array_type: image_read_array(im, die, t); return;
    case DW_TAG_string_type: image_read_string(die, t); return;
    case DW_TAG_subrange_type: read_subrange(im, die, t); return;
    case DW_TAG_subroutine_type:
        if (t->size) read_closure(t);
        else read_function(im, die, t);
        return;
    case DW_TAG_subprogram: read_function(im, die, t); return;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type: read_pointer(im, die, t); return;
    case DW_TAG_ptr_to_member_type: read_member_pointer(im, die, t); return;
    default:
        if (is_of_nullptr(die)) {
            read_pointer(im, die, t);
            return;
        }
        t->kind = IMAGE_CTYPE_OTHER;
        t->name = name_with(im, "", die);
        if (!t->name) t->name = "?";
    }
}

void image_enter_type_unit(Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    Dwarf_Die whole;
    if (dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, &whole)) *die = whole;
}

/* The entry behind qualifiers and typedefs; *alias: the last typedef's name. */
static bool skip_names(Dwarf_Die *die, const char **alias)
{
    for (unsigned i = 0; i < CHAIN; i++) {
        Dwarf_Attribute attr;
        image_enter_type_unit(die);
        switch (dwarf_tag(die)) {
        case DW_TAG_typedef: *alias = dwarf_diename(die); break;
        case DW_TAG_const_type:
        case DW_TAG_volatile_type:
        case DW_TAG_restrict_type:
        case DW_TAG_atomic_type: break;
        default: return true;
        }
        if (!dwarf_attr_integrate(die, DW_AT_type, &attr) || !dwarf_formref_die(&attr, die)) return false;
    }
    return false;
}

static const image_ctype *type_at(image *im, Dwarf_Die *die)
{
    const char *alias = NULL;
    uint64_t known;
    if (!skip_names(die, &alias)) return &image_ctype_void;
    if (inl_map_get(&im->lines->types, (uint64_t)(uintptr_t)die->addr, &known)) return (image_ctype *)(uintptr_t)known;
    image_ctype *t = inl_arena_alloc(&im->arena, sizeof *t);
    if (!t || !inl_map_put(&im->lines->types, (uint64_t)(uintptr_t)die->addr, (uint64_t)(uintptr_t)t)) return NULL;
    /* Whoever meets it while it is read. */
    t->kind = IMAGE_CTYPE_OTHER, t->name = "?";
    image_ctype read = {.kind = IMAGE_CTYPE_OTHER, .name = "?"};
    if (im->lines->depth < DEPTH) {
        im->lines->depth++;
        read = (image_ctype){0};
        read_type(im, die, &read);
        im->lines->depth--;
    }
    if (!read.name && read.fill) read.name = alias ? inl_arena_strdup(&im->arena, alias) : "{...}";
    *t = read;
    return t;
}

const image_ctype *image_ctype_of(image *im, Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    Dwarf_Die of;
    if (!dwarf_attr_integrate(die, DW_AT_type, &attr) || !dwarf_formref_die(&attr, &of)) return &image_ctype_void;
    return type_at(im, &of);
}

/* --- by name --- */

static const char *tagged_name(const char *name, int *tag)
{
    static const struct {
        const char *word;
        int tag;
    } words[] = {{"struct ", DW_TAG_structure_type}, {"union ", DW_TAG_union_type}, {"enum ", DW_TAG_enumeration_type}};
    *tag = 0;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if (strncmp(name, words[i].word, n)) continue;
        *tag = words[i].tag;
        return name + n;
    }
    return name;
}

/* Of C++ and others the words are not needed. */
static bool is_type(int tag, int wanted, bool is_c)
{
    bool whole = tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
    if (!wanted && !is_c && whole) return true;
    if (wanted) return tag == wanted || (wanted == DW_TAG_structure_type && tag == DW_TAG_class_type);
    return tag == DW_TAG_typedef || tag == DW_TAG_base_type || tag == DW_TAG_class_type;
}

typedef struct type_name {
    const char *name;
    int tag; /* 0: any that needs no word before it */
    bool is_c;
} type_name;

/* deep: in namespaces and types as well. */
static const image_ctype *named_in(image *im, Dwarf_Die *parent, const type_name *n, unsigned deep)
{
    Dwarf_Die kid;
    if (dwarf_child(parent, &kid)) return NULL;
    do {
        const image_ctype *inner = deep && image_is_space(&kid, true) ? named_in(im, &kid, n, deep - 1) : NULL;
        if (inner) return inner;
        const char *its = is_type(dwarf_tag(&kid), n->tag, n->is_c) ? dwarf_diename(&kid) : NULL;
        if (!its || (!image_is_named(&kid, n->name) && strcmp(basic_name(its), n->name))) continue;
        Dwarf_Die found = kid;
        if (!dwarf_hasattr(&found, DW_AT_declaration) || dwarf_hasattr(&found, DW_AT_signature))
            return type_at(im, &found);
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return NULL;
}

const image_ctype *image_ctype_named(image *im, uint64_t pc, const char *name)
{
    int tag;
    image_lines *l = image_trees(im);
    type_name n = {.name = tagged_name(name, &tag)};
    if (!l) return NULL;
    Dwarf_Die *own = image_tree_at(l, pc);
    n.tag = tag;
    n.is_c = own && image_is_c(own);
    const image_ctype *found = NULL;
    for (unsigned deep = 0; !found && deep <= IMAGE_SPACES; deep += IMAGE_SPACES) {
        found = own ? named_in(im, own, &n, deep) : NULL;
        for (size_t i = 0; !found && i < l->trees.count; i++) {
            Dwarf_Die *tree = &l->trees.items[i];
            bool is_c = image_is_c(tree);
            if (!own) n.is_c = is_c; /* seen from nowhere: as each itself */
            if (!deep || !is_c) found = named_in(im, tree, &n, deep);
        }
    }
    return found;
}

static bool enumerator_in(Dwarf_Die *parent, const char *name, unsigned deep, uint64_t *value)
{
    Dwarf_Die kid, constant;
    if (dwarf_child(parent, &kid)) return false;
    do {
        if (deep && image_is_space(&kid, true) && enumerator_in(&kid, name, deep - 1, value)) return true;
        if (dwarf_tag(&kid) != DW_TAG_enumeration_type || dwarf_child(&kid, &constant)) continue;
        do {
            bool is_it = dwarf_tag(&constant) == DW_TAG_enumerator && image_is_constant_named(&constant, &kid, name);
            if (is_it) return image_number_of(&constant, DW_AT_const_value, value);
        } while (dwarf_siblingof(&constant, &constant) == 0);
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return false;
}

bool image_enumerator(image *im, uint64_t pc, const char *name, uint64_t *value)
{
    image_lines *l = image_trees(im);
    if (!l || !image_may_tell_of(l, name)) return false;
    Dwarf_Die *own = image_tree_at(l, pc);
    bool found = false;
    for (unsigned deep = 0; !found && deep <= IMAGE_SPACES; deep += IMAGE_SPACES) {
        found = own && enumerator_in(own, name, deep, value);
        for (size_t i = 0; !found && i < l->trees.count; i++)
            found = !(deep && image_is_c(&l->trees.items[i])) && enumerator_in(&l->trees.items[i], name, deep, value);
    }
    return found;
}

static bool is_in_dwo(image_lines *l, uint64_t pc)
{
    Dwarf_Die *unit = image_unit_at(l, pc);
    return unit && image_tree_at(l, pc)->cu == unit->cu &&
           (dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name));
}

const char *image_debug_lacks(image *im, uint64_t pc)
{
    image_lines *l = image_units(im);
    if (!l && im->lines)
        return "its debug information cannot be read; where zstd has compressed it, "
               "objcopy --decompress-debug-sections helps";
    if (l && is_in_dwo(l, pc))
        return "its debug information is in a .dwo file (-gsplit-dwarf) that is not there, nor is it in a .dwp file "
               "beside the program";
    if (l && !image_trees(im))
        return "its debug information is in part in a file that others have, too (dwz, .gnu_debugaltlink), which is "
               "not "
               "there";
    return NULL;
}

bool image_has_types(image *im) { return image_units(im) != NULL; }

const image_ctype *image_proc_type(image *im, uint64_t pc)
{
    image_lines *l = image_trees(im);
    Dwarf_Die *scopes = NULL;
    const image_ctype *found = NULL;
    int n = l ? image_scopes_at(l, pc, &scopes) : 0;
    for (int i = 0; i < n && !found; i++)
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram) found = type_at(im, &scopes[i]);
    free(scopes);
    return found;
}
