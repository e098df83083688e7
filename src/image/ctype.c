#include "image/ctype.h"

#include <stdio.h>
#include <string.h>

const image_ctype image_ctype_void = {.kind = IMAGE_CTYPE_VOID, .name = "void"};
const image_ctype image_ctype_bool = {.kind = IMAGE_CTYPE_BOOL, .size = 1, .name = "bool"};
const image_ctype image_ctype_char = {.kind = IMAGE_CTYPE_INT, .is_signed = true, .size = 1, .name = "char"};
const image_ctype image_ctype_long_double = {.kind = IMAGE_CTYPE_LONG_DOUBLE, .size = 16, .name = "long double"};
static const image_ctype wide[2] = {{.kind = IMAGE_CTYPE_WIDE, .size = 16, .name = "unsigned __int128"},
                                    {.kind = IMAGE_CTYPE_WIDE, .is_signed = true, .size = 16, .name = "__int128"}};

static const image_ctype ints[2][4] = {
    {{.kind = IMAGE_CTYPE_INT, .size = 1, .name = "unsigned char"},
     {.kind = IMAGE_CTYPE_INT, .size = 2, .name = "unsigned short"},
     {.kind = IMAGE_CTYPE_INT, .size = 4, .name = "unsigned int"},
     {.kind = IMAGE_CTYPE_INT, .size = 8, .name = "unsigned long"}},
    {{.kind = IMAGE_CTYPE_INT, .is_signed = true, .size = 1, .name = "signed char"},
     {.kind = IMAGE_CTYPE_INT, .is_signed = true, .size = 2, .name = "short"},
     {.kind = IMAGE_CTYPE_INT, .is_signed = true, .size = 4, .name = "int"},
     {.kind = IMAGE_CTYPE_INT, .is_signed = true, .size = 8, .name = "long"}},
};
static const image_ctype floats[2] = {{.kind = IMAGE_CTYPE_FLOAT, .size = 4, .name = "float"},
                                      {.kind = IMAGE_CTYPE_FLOAT, .size = 8, .name = "double"}};

const image_ctype *image_ctype_int(unsigned size, bool is_signed)
{
    switch (size) {
    case 1: return &ints[is_signed][0];
    case 2: return &ints[is_signed][1];
    case 4: return &ints[is_signed][2];
    default: return &ints[is_signed][3];
    }
}

const image_ctype *image_ctype_float(unsigned size) { return &floats[size == 8]; }

const image_ctype *image_ctype_basic(const char *name)
{
    static const struct {
        const char *name;
        uint8_t size;
        bool is_signed;
    } others[] = {
        {"long long", 8, true}, {"unsigned long long", 8, false},
        {"size_t", 8, false},   {"ssize_t", 8, true},
        {"int8_t", 1, true},    {"int16_t", 2, true},
        {"int32_t", 4, true},   {"int64_t", 8, true},
        {"uint8_t", 1, false},  {"uint16_t", 2, false},
        {"uint32_t", 4, false}, {"uint64_t", 8, false},
        {"intptr_t", 8, true},  {"uintptr_t", 8, false},
        {"ptrdiff_t", 8, true}, {"off_t", 8, true},
        {"unsigned", 4, false},
    };
    static const image_ctype *const plain[] = {
        &image_ctype_void, &image_ctype_bool, &image_ctype_char, &image_ctype_long_double,
        &floats[0],        &floats[1],        &wide[0],          &wide[1]};
    for (unsigned i = 0; i < 8; i++)
        if (!strcmp(name, ints[i / 4][i % 4].name)) return &ints[i / 4][i % 4];
    for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, plain[i]->name)) return plain[i];
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i].name)) return image_ctype_int(others[i].size, others[i].is_signed);
    return strcmp(name, "_Bool") ? NULL : &image_ctype_bool;
}

size_t image_ctype_members(const image_ctype *type, const image_member **out)
{
    if (type->fill) {
        image_ctype *t = (image_ctype *)(uintptr_t)type;
        void (*fill)(image_ctype *) = t->fill;
        t->fill = NULL;
        fill(t);
    }
    *out = type->members;
    return type->member_count;
}

const image_variants *image_ctype_variants(const image_ctype *type)
{
    const image_member *members;
    image_ctype_members(type, &members);
    return type->variants;
}

/* Has it no name of its own? Bases have none in C++, nor have structures inside; GNAT calls what a type extends so. */
static bool is_nameless(const image_member *m)
{
    bool has_members = m->type->kind == IMAGE_CTYPE_STRUCT || m->type->kind == IMAGE_CTYPE_UNION;
    return has_members && (!m->name[0] || !strcmp(m->name, "_parent"));
}

/* Its own come before those of what has no name: classes hide what their bases have. */
static const image_member *find_member(const image_ctype *t, const char *name, uint64_t *offset, unsigned depth)
{
    const image_member *m;
    size_t n = image_ctype_members(t, &m);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(m[i].name, name)) {
            *offset = m[i].offset;
            return &m[i];
        }
    for (size_t i = 0; i < n && depth; i++, m++) {
        uint64_t inside;
        const image_member *found = is_nameless(m) ? find_member(m->type, name, &inside, depth - 1) : NULL;
        if (!found) continue;
        *offset = m->offset + inside;
        return found;
    }
    return NULL;
}

const image_member *image_ctype_member(const image_ctype *type, const char *name, uint64_t *offset)
{
    if (type->kind != IMAGE_CTYPE_STRUCT && type->kind != IMAGE_CTYPE_UNION) return NULL;
    return name[0] ? find_member(type, name, offset, 8) : NULL;
}

bool image_ctype_is_integer(const image_ctype *t)
{
    return t->kind == IMAGE_CTYPE_BOOL || t->kind == IMAGE_CTYPE_INT || t->kind == IMAGE_CTYPE_ENUM;
}

bool image_ctype_is_arithmetic(const image_ctype *t)
{
    return image_ctype_is_integer(t) || t->kind == IMAGE_CTYPE_FLOAT;
}

bool image_ctype_is_scalar(const image_ctype *t)
{
    return image_ctype_is_arithmetic(t) || t->kind == IMAGE_CTYPE_POINTER;
}

bool image_ctype_is_whole(const image_ctype *t)
{
    return t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION || t->kind == IMAGE_CTYPE_WIDE ||
           t->kind == IMAGE_CTYPE_LONG_DOUBLE;
}

static uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t alignment(const image_ctype *t, unsigned depth);

static uint64_t alignment_of_parts(const image_ctype *t, unsigned depth)
{
    const image_member *m;
    uint64_t most = 1;
    for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++) {
        uint64_t its = alignment(m[i].type, depth);
        bool packed = m[i].type->kind != IMAGE_CTYPE_BITS && m[i].offset % its;
        if (!packed) most = most_of(most, its);
    }
    const image_variants *v = t->variants;
    for (size_t i = 0; v && i < v->count; i++) most = most_of(most, alignment(v->list[i].type, depth));
    return v && v->number ? most_of(most, alignment(v->number, depth)) : most;
}

/* A structure's is kept: types share many. One that is said to lie in itself finds what is there by then. */
static uint64_t alignment(const image_ctype *t, unsigned depth)
{
    if (!depth) return 1;
    bool as_parts = (t->kind == IMAGE_CTYPE_ARRAY && !t->is_vector) || t->kind == IMAGE_CTYPE_BITS;
    if (as_parts) return alignment(t->of, depth - 1);
    if (t->kind != IMAGE_CTYPE_STRUCT && t->kind != IMAGE_CTYPE_UNION) return t->size ? t->size & -t->size : 1;
    if (t->alignment) return t->alignment;
    image_ctype *its = (image_ctype *)(uintptr_t)t;
    its->alignment = 1;
    return its->alignment = alignment_of_parts(t, depth - 1);
}

uint64_t image_ctype_alignment(const image_ctype *t) { return alignment(t, 32); }

uint64_t image_ctype_behind(const image_ctype *t, uint64_t end)
{
    uint64_t align = image_ctype_alignment(t);
    return (end + align - 1) / align * align;
}

static bool same_to(const image_ctype *a, const image_ctype *b, unsigned depth)
{
    if (a == b) return true;
    if (a->kind != b->kind || depth == 0) return false;
    switch (a->kind) {
    case IMAGE_CTYPE_POINTER: return same_to(a->of, b->of, depth - 1);
    case IMAGE_CTYPE_ARRAY: return a->count == b->count && same_to(a->of, b->of, depth - 1);
    case IMAGE_CTYPE_FUNCTION: return a->member_count == b->member_count && same_to(a->of, b->of, depth - 1);
    case IMAGE_CTYPE_BITS: return false;
    case IMAGE_CTYPE_INT:
    case IMAGE_CTYPE_WIDE:
    case IMAGE_CTYPE_LONG_DOUBLE:
    case IMAGE_CTYPE_FLOAT: return a->size == b->size && a->is_signed == b->is_signed;
    /* One of the two may be a declaration alone. */
    default: return a->name && b->name && !strcmp(a->name, b->name) && (a->size == b->size || !a->size || !b->size);
    }
}

bool image_ctype_same(const image_ctype *a, const image_ctype *b) { return same_to(a, b, 16); }

/* What stands in front of the name of what has the type, and what behind: char (*x)[16]. */
static void spell(const image_ctype *t, char *inner, size_t room, char *out, size_t size, unsigned depth)
{
    char more[240];
    if (depth == 0 || t->name || !t->of) {
        snprintf(out, size, "%s%s%s", t->name ? t->name : "?", inner[0] ? " " : "", inner);
        return;
    }
    bool binds = t->of->kind == IMAGE_CTYPE_ARRAY || t->of->kind == IMAGE_CTYPE_FUNCTION;
    switch (t->kind) {
    case IMAGE_CTYPE_POINTER: snprintf(more, sizeof more, binds && !t->of->name ? "(*%s)" : "*%s", inner); break;
    case IMAGE_CTYPE_ARRAY:
        if (t->count) snprintf(more, sizeof more, "%s[%llu]", inner, (unsigned long long)t->count);
        else snprintf(more, sizeof more, "%s[]", inner);
        break;
    case IMAGE_CTYPE_FUNCTION: snprintf(more, sizeof more, "%s()", inner); break;
    default: snprintf(more, sizeof more, "%s", inner); break;
    }
    snprintf(inner, room, "%s", more);
    spell(t->of, inner, room, out, size, depth - 1);
}

const char *image_ctype_text(const image_ctype *t, char *out, size_t size)
{
    char inner[240] = "";
    spell(t, inner, sizeof inner, out, size, 16);
    return out;
}
