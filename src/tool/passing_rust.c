/* Rust's own calling convention, which is nowhere laid down: by how the compiler sees a type's layout. One number is in
 * a register, two are in one each, whatever lies between them; anything else is an integer if it has at most eight
 * bytes, and passed by its address if it has more. What the compiler sees is found again from members and forms, as it
 * lays them out since 1.60. (A structure of one floating-point number that is declared repr(C) is an integer to it;
 * debug information does not tell such apart.) */
#include "tool/passing.h"

#include <string.h>

enum { WORD = 8, STEPS = 4096, DEPTH = 32 };

typedef enum shape_kind { NOTHING, SCALAR, PAIR, WIDE, MEMORY, UNKNOWN } shape_kind;

typedef struct shape {
    shape_kind kind;
    const image_ctype *parts[2];
    uint64_t offset; /* of the second */
} shape;

typedef struct budget { /* so many types more are looked at, so deep in each other */
    unsigned steps, depth;
} budget;

static shape shape_of(const image_ctype *, budget *);

static shape of_kind(shape_kind kind) { return (shape){.kind = kind}; }

/* Members that take room: how many, at most `most` of them stored. */
static size_t solid(const image_ctype *t, const image_member **out, size_t most)
{
    const image_member *m;
    size_t n = 0, all = image_ctype_members(t, &m);
    for (size_t i = 0; i < all; i++) {
        if (!m[i].type->size) continue;
        if (n < most) out[n] = &m[i];
        n++;
    }
    return n;
}

/* Two numbers that fill what has the size as two do that stand behind each other. */
static shape pair_of(const image_ctype *a, uint64_t at, const image_ctype *b, uint64_t behind, uint64_t size)
{
    const image_ctype *larger = a->size > b->size ? a : b;
    bool is = at == 0 && behind == image_ctype_behind(b, a->size) &&
              size == image_ctype_behind(larger, behind + b->size);
    return is ? (shape){PAIR, {a, b}, behind} : of_kind(MEMORY);
}

static shape of_structure(const image_ctype *t, uint64_t size, budget *left)
{
    const image_member *m[2];
    size_t n = solid(t, m, 2);
    if (n == 0) return of_kind(UNKNOWN);
    if (n > 2) return of_kind(MEMORY);
    shape a = shape_of(m[0]->type, left);
    if (n == 1) {
        bool fills = m[0]->offset == 0 && m[0]->type->size == size &&
                     image_ctype_alignment(t) == image_ctype_alignment(m[0]->type);
        return fills || a.kind == UNKNOWN ? a : of_kind(MEMORY);
    }
    shape b = shape_of(m[1]->type, left);
    if (a.kind == UNKNOWN || b.kind == UNKNOWN) return of_kind(UNKNOWN);
    if (a.kind != SCALAR || b.kind != SCALAR) return of_kind(MEMORY);
    unsigned low = m[1]->offset < m[0]->offset;
    const shape *of[] = {&a, &b};
    return pair_of(of[low]->parts[0], m[low]->offset, of[!low]->parts[0], m[!low]->offset, size);
}

static bool is_real(const image_ctype *t) { return t->kind == IMAGE_CTYPE_FLOAT; }

/* The numbers of two forms: are they the same to each version of the compiler, and if not, to none? */
static shape_kind common(const image_ctype *a, const image_ctype *b)
{
    if (a->size != b->size || is_real(a) != is_real(b)) return MEMORY;
    bool alike = (a->kind == IMAGE_CTYPE_POINTER) == (b->kind == IMAGE_CTYPE_POINTER) && a->is_signed == b->is_signed;
    return alike ? SCALAR : UNKNOWN;
}

/* Each form has a number; what else they have is one number in the same place, or none. */
static shape of_tagged(const image_ctype *t, const image_variants *v, budget *left)
{
    const image_member *m, *first = NULL;
    shape all = of_kind(MEMORY);
    if (v->number->size == t->size) return (shape){SCALAR, {v->number}, 0};
    for (size_t i = 0; i < v->count; i++) {
        size_t n = solid(v->list[i].type, &m, 1);
        if (n == 0) continue;
        shape its = n == 1 ? shape_of(m->type, left) : of_kind(MEMORY);
        if (its.kind != SCALAR) return of_kind(its.kind == UNKNOWN ? UNKNOWN : MEMORY);
        shape_kind same = first ? common(all.parts[0], its.parts[0]) : SCALAR;
        if (first && first->offset != m->offset) same = MEMORY;
        if (same != SCALAR) return of_kind(same);
        if (!first) all = its;
        first = m;
    }
    return first ? pair_of(v->number, v->offset, all.parts[0], first->offset, t->size) : of_kind(MEMORY);
}

/* The forms without a number of their own are told by values that a part of the others' cannot have. */
static shape of_forms(const image_ctype *t, const image_variants *v, budget *left)
{
    const image_member *m;
    const image_variant *main = v->number || v->count != 1 ? NULL : &v->list[0];
    for (size_t i = 0; i < v->count && v->number; i++)
        if (v->list[i].otherwise) main = &v->list[i];
    if (!main) return v->number ? of_tagged(t, v, left) : of_kind(UNKNOWN);
    for (size_t i = 0; i < v->count; i++)
        if (&v->list[i] != main && solid(v->list[i].type, &m, 1)) return of_kind(MEMORY);
    return of_structure(main->type, t->size, left);
}

static shape of_union(const image_ctype *t, budget *left)
{
    const image_member *m;
    shape all = of_kind(MEMORY);
    for (size_t i = 0, n = image_ctype_members(t, &m), solid_ones = 0; i < n; i++) {
        if (!m[i].type->size) continue;
        shape its = shape_of(m[i].type, left);
        if (its.kind == UNKNOWN) return its;
        bool fills = its.kind == SCALAR || its.kind == PAIR;
        if (!fills || m[i].type->size != t->size) return of_kind(MEMORY);
        if (solid_ones++ &&
            (its.kind != all.kind || its.offset != all.offset || common(its.parts[0], all.parts[0]) != SCALAR ||
             (its.kind == PAIR && common(its.parts[1], all.parts[1]) != SCALAR)))
            return of_kind(UNKNOWN);
        all = its;
    }
    return all;
}

/* Of the processor's vectors, which have a way of their own. */
static bool is_vector(const image_ctype *t)
{
    return t->name && (!strncmp(t->name, "struct __m", 10) || strstr(t->name, "Simd<"));
}

static shape of_parts(const image_ctype *t, budget *left)
{
    switch (t->kind) {
    case IMAGE_CTYPE_WIDE: return of_kind(WIDE);
    case IMAGE_CTYPE_ARRAY: return of_kind(MEMORY);
    case IMAGE_CTYPE_UNION: return of_union(t, left);
    case IMAGE_CTYPE_STRUCT: {
        const image_variants *v = image_ctype_variants(t);
        return v ? of_forms(t, v, left) : of_structure(t, t->size, left);
    }
    default: return of_kind(UNKNOWN);
    }
}

static shape shape_of(const image_ctype *t, budget *left)
{
    if (t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION) image_ctype_variants(t); /* its size, too */
    if (!t->size) return of_kind(NOTHING);
    if (image_ctype_is_scalar(t)) return (shape){SCALAR, {t}, 0};
    if (!left->steps || !left->depth || is_vector(t)) return of_kind(UNKNOWN);
    left->steps--;
    left->depth--;
    shape its = of_parts(t, left);
    left->depth++;
    return its;
}

/* --- where it is --- */

static void add(passed *out, bool vector, uint64_t size)
{
    out->pieces[out->count++] = (passed_piece){.vector = vector, .size = (uint8_t)size};
}

/* The pieces, without their registers' numbers. */
static bool pieces_of(const image_ctype *t, passed *out)
{
    budget left = {STEPS, DEPTH};
    shape s = shape_of(t, &left);
    *out = (passed){.how = PASSED_REGISTERS};
    switch (s.kind) {
    case NOTHING: return true;
    case SCALAR: add(out, is_real(s.parts[0]), t->size); return true;
    case WIDE: add(out, false, WORD), add(out, false, WORD); return true;
    case PAIR:
        if (s.offset > WORD || t->size - s.offset > WORD) return false;
        add(out, is_real(s.parts[0]), s.offset);
        add(out, is_real(s.parts[1]), t->size - s.offset);
        return true;
    case MEMORY:
        out->how = t->size > WORD ? PASSED_POINTER : PASSED_REGISTERS;
        add(out, false, t->size > WORD ? WORD : t->size);
        return true;
    default: return false;
    }
}

static unsigned on_stack(tool_passing *p)
{
    unsigned at = p->bytes;
    p->bytes += WORD;
    return at;
}

bool passing_rust(tool_passing *p, const image_ctype *t, passed *out)
{
    if (!pieces_of(t, out)) return false;
    bool wide = t->kind == IMAGE_CTYPE_WIDE;
    if (wide && p->integers + 2 > tool_argument_registers) return false; /* it depends on the version */
    for (unsigned i = 0; i < out->count; i++) {
        passed_piece *piece = &out->pieces[i];
        unsigned *used = piece->vector ? &p->vectors : &p->integers;
        piece->stack = *used == (piece->vector ? tool_vector_arguments : tool_argument_registers);
        if (piece->stack) piece->offset = on_stack(p);
        else piece->number = (uint8_t)(*used)++;
    }
    bool whole = out->count == 1 && out->pieces[0].stack;
    if (whole) out->offset = out->pieces[0].offset;
    if (whole) out->how = out->how == PASSED_POINTER ? PASSED_STACK_POINTER : PASSED_STACK;
    return true;
}

bool passing_rust_result(const image_ctype *t, passed *out)
{
    unsigned integers = 0, vectors = 0;
    if (!pieces_of(t, out)) return false;
    if (out->how == PASSED_POINTER) out->count = 0;
    for (unsigned i = 0; i < out->count; i++)
        out->pieces[i].number = (uint8_t)(out->pieces[i].vector ? vectors++ : integers++);
    return true;
}
