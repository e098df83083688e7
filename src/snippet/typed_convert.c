/* Conversions: of objects to values, and between types. */
#include "snippet/real.h"
#include "snippet/typed.h"

typedef uint64_t real_routine(uint64_t);

/* Computed here and now where the argument is known. */
static const snippet *real_call(snippet_maker *m, const image_ctype *type, real_routine *fn, const snippet *a)
{
    if (!a) return NULL;
    if (a->kind == SNIPPET_CONST) return typed_constant(m, type, fn(a->value));
    const snippet **args = m->alloc(m->arg, sizeof *args);
    snippet *call = typed_node(m, SNIPPET_CALL, type, NULL, NULL);
    if (!args || !call) return typed_refuse(m, "out of memory");
    args[0] = a;
    call->fn = (void (*)(void))fn;
    call->args = args;
    call->nargs = 1;
    return call;
}

static const snippet *with_type(snippet_maker *m, const image_ctype *type, const snippet *v)
{
    snippet *s = type ? typed_node(m, SNIPPET_CONST, type, NULL, NULL) : NULL;
    if (!s) return NULL;
    *s = *v;
    s->type = type;
    s->role = TYPED_VALUE;
    return s;
}

static const snippet *extended(snippet_maker *m, const image_ctype *type, const snippet *v)
{
    if (v->kind == SNIPPET_CONST)
        return typed_constant(m, type, snippet_extend(v->value, (unsigned)type->size, type->is_signed));
    return typed_as(m, type, v);
}

/* --- what objects hold --- */

static const snippet *operation(snippet_maker *m, const image_ctype *type, snippet_op op, const snippet *a, uint64_t b)
{
    snippet *s = a ? typed_node(m, SNIPPET_BINARY, type, a, typed_constant(m, type, b)) : NULL;
    if (!s || !s->b) return NULL;
    s->op = (uint8_t)op;
    return s;
}

/* Up to the top, and down again with the sign or without. */
static const snippet *bits_value(snippet_maker *m, const image_ctype *bits, const snippet *word)
{
    /* As C has it: an int where all values fit. */
    bool fits = bits->of->size <= 4 && bits->bit_count < 32;
    const image_ctype *to = fits ? image_ctype_int(4, true) : bits->of;
    word = operation(m, to, SNIPPET_SHL, word, 64u - bits->bit_offset - bits->bit_count);
    word = operation(m, to, bits->is_signed ? SNIPPET_SAR : SNIPPET_SHR, word, 64u - bits->bit_count);
    return word;
}

const snippet *typed_from_memory(snippet_maker *m, const image_ctype *type, const snippet *bits)
{
    if (!bits) return NULL;
    if (type->kind == IMAGE_CTYPE_BITS) return bits_value(m, type, bits);
    if (type->kind != IMAGE_CTYPE_FLOAT) return with_type(m, type, bits);
    return type->size == 4 ? real_call(m, type, real_widen, bits) : with_type(m, type, bits);
}

const snippet *typed_to_memory(snippet_maker *m, const image_ctype *type, const snippet *value)
{
    if (!value) return NULL;
    return type->kind == IMAGE_CTYPE_FLOAT && type->size == 4 ? real_call(m, type, real_narrow, value) : value;
}

static const snippet *pieces_value(snippet_maker *m, const snippet *s)
{
    const image_ctype *t = s->type;
    const snippet *raw = typed_part(m, s, 0, (unsigned)t->size);
    if (!raw || t->kind == IMAGE_CTYPE_BITS || t->kind == IMAGE_CTYPE_FLOAT) return typed_from_memory(m, t, raw);
    return typed_as(m, t, raw);
}

static const snippet *object_value(snippet_maker *m, const snippet *s)
{
    char text[100];
    const image_ctype *t = s->type;
    if (t->kind == IMAGE_CTYPE_WIDE || t->kind == IMAGE_CTYPE_LONG_DOUBLE) return typed_narrow(m, s);
    if (t->kind == IMAGE_CTYPE_ARRAY && s->kind == SNIPPET_LOAD)
        return with_type(m, typed_pointer_to(m, t->of), s->c ? s->c : s->a);
    if (t->kind == IMAGE_CTYPE_FUNCTION && s->kind == SNIPPET_LOAD) return with_type(m, typed_pointer_to(m, t), s->a);
    if (t->kind == IMAGE_CTYPE_VOID)
        return typed_refuse(m, "the type of this is not known (or it is void): say it, as in *(int *)&x");
    if (!image_ctype_is_scalar(t) && t->kind != IMAGE_CTYPE_BITS)
        return typed_refuse(m, "a '%s' is not a value", image_ctype_text(t, text, sizeof text));
    if (s->role == TYPED_PIECES) return pieces_value(m, s);
    if (s->kind == SNIPPET_LOCAL || s->kind == SNIPPET_EA) return with_type(m, t, s);
    if (s->kind == SNIPPET_REG) return typed_as(m, t, s);
    snippet *raw = typed_node(m, SNIPPET_LOAD, NULL, s->a, NULL);
    if (!raw) return NULL;
    raw->size = s->size;
    raw->is_signed = t->kind != IMAGE_CTYPE_BITS && t->is_signed;
    return typed_from_memory(m, t, raw);
}

/* An assignment's value is what it stores, computed once. */
static const snippet *done_value(snippet_maker *m, const snippet *s)
{
    snippet *copy = typed_node(m, SNIPPET_CONST, s->type, NULL, NULL);
    if (!copy) return NULL;
    *copy = *s;
    copy->role = TYPED_VALUE;
    if (s->kind == SNIPPET_LET || s->kind == SNIPPET_SEQ) {
        copy->b = typed_value(m, s->b);
        return copy->b ? copy : NULL;
    }
    const snippet *stored = s->kind == SNIPPET_STORE ? s->b : s->a;
    uint32_t number = snippet_fresh_local(s, NULL);
    snippet *local = typed_node(m, SNIPPET_LOCAL, NULL, NULL, NULL);
    snippet *both = typed_node(m, SNIPPET_SEQ, s->type, copy, NULL);
    snippet *let = typed_node(m, SNIPPET_LET, s->type, stored, both);
    if (!local || !both || !let) return NULL;
    local->index = let->index = number;
    if (s->kind == SNIPPET_STORE) copy->b = local;
    else copy->a = local;
    both->b = s->kind == SNIPPET_STORE ? typed_from_memory(m, s->type, local) : with_type(m, s->type, local);
    return both->b ? let : NULL;
}

const snippet *typed_value(snippet_maker *m, const snippet *s)
{
    if (!s) return NULL;
    if (!s->type) return with_type(m, image_ctype_int(8, true), s);
    if (typed_is_object(s)) return object_value(m, s);
    if (s->role == TYPED_ROUTINE) return typed_refuse(m, "a routine of the tool can only be called");
    if (s->type->kind == IMAGE_CTYPE_VOID) return typed_refuse(m, "this has no value");
    return s->role == TYPED_DONE ? done_value(m, s) : s;
}

/* --- between types --- */

static bool is_real(const image_ctype *t) { return t->kind == IMAGE_CTYPE_FLOAT; }

static const snippet *to_real(snippet_maker *m, const image_ctype *to, const image_ctype *from, const snippet *v)
{
    if (is_real(from)) {
        if (to->size == 4 && from->size == 8) return real_call(m, to, real_round, v);
        return with_type(m, to, v);
    }
    bool is_unsigned = !from->is_signed && from->size == 8;
    if (to->size == 4) return real_call(m, to, is_unsigned ? real_float_from_uint : real_float_from_int, v);
    return real_call(m, to, is_unsigned ? real_from_uint : real_from_int, v);
}

/* The nearest value that fits, of a word. */
static const snippet *limited(snippet_maker *m, const image_ctype *to, const snippet *v)
{
    if (to->size == 8 || !v) return v;
    const image_ctype *word = image_ctype_int(8, true);
    unsigned bits = 8 * to->size - to->is_signed;
    uint64_t most = (1ull << bits) - 1;
    v = operation(m, word, SNIPPET_MIN, v, most);
    return v ? operation(m, word, SNIPPET_MAX, v, to->is_signed ? ~most : 0) : NULL;
}

static const snippet *to_integer(snippet_maker *m, const image_ctype *to, const image_ctype *from, const snippet *v)
{
    if (is_real(from)) {
        bool is_unsigned = !to->is_signed && to->size == 8;
        v = real_call(m, image_ctype_int(8, !is_unsigned), is_unsigned ? real_to_uint : real_to_int, v);
        v = limited(m, to, v);
        return v ? extended(m, to, v) : NULL;
    }
    bool fits = to->size == 8 || (from->size < to->size && (!from->is_signed || to->is_signed)) ||
                (from->size == to->size && from->is_signed == to->is_signed);
    return fits ? with_type(m, to, v) : extended(m, to, v);
}

static bool is_wide(const snippet *s) { return s && typed_is_object(s) && s->type->kind == IMAGE_CTYPE_WIDE; }

static const snippet *either(snippet_maker *m, const snippet *low, const snippet *high)
{
    return typed_binary(m, SNIPPET_OR, low, high);
}

const snippet *typed_truth(snippet_maker *m, const snippet *s)
{
    if (is_wide(s)) s = typed_halves(m, s, either);
    s = typed_value(m, s);
    if (!s) return NULL;
    if (is_real(typed_type(s))) return real_call(m, image_ctype_int(4, true), real_true, s);
    char text[100];
    if (!image_ctype_is_scalar(typed_type(s)))
        return typed_refuse(m, "a '%s' is neither true nor false", image_ctype_text(typed_type(s), text, sizeof text));
    return s;
}

static const snippet *to_bool(snippet_maker *m, const snippet *v)
{
    v = typed_truth(m, v);
    if (!v || v->type->kind == IMAGE_CTYPE_BOOL) return v;
    return operation(m, &image_ctype_bool, SNIPPET_NE, v, 0);
}

static const snippet *converted(snippet_maker *m, const image_ctype *to, const snippet *v)
{
    const image_ctype *from = typed_type(v);
    if (to->kind == IMAGE_CTYPE_BOOL) return to_bool(m, v);
    if (is_real(to)) return to_real(m, to, from, v);
    if (image_ctype_is_integer(to)) return to_integer(m, to, from, v);
    return with_type(m, to, v); /* a pointer */
}

static bool is_byte(const image_ctype *t) { return t->kind == IMAGE_CTYPE_INT && t->size == 1; }

/* May it be so without being asked for? */
static bool goes_by_itself(const image_ctype *to, const image_ctype *from, const snippet *v)
{
    if (image_ctype_is_arithmetic(to) && image_ctype_is_arithmetic(from)) return true;
    if (to->kind == IMAGE_CTYPE_BOOL) return true;
    if (to->kind != IMAGE_CTYPE_POINTER) return false;
    if (from->kind != IMAGE_CTYPE_POINTER)
        return image_ctype_is_integer(from) && v->kind == SNIPPET_CONST && v->value == 0;
    bool any = to->of->kind == IMAGE_CTYPE_VOID || from->of->kind == IMAGE_CTYPE_VOID;
    return any || image_ctype_same(to->of, from->of) || (is_byte(to->of) && is_byte(from->of));
}

const snippet *typed_convert(snippet_maker *m, const image_ctype *to, const snippet *v, const char *what)
{
    char a[100], b[100];
    v = typed_value(m, v);
    if (!v || !to) return NULL;
    const image_ctype *from = typed_type(v);
    if (!image_ctype_is_scalar(to) || !image_ctype_is_scalar(from) || !goes_by_itself(to, from, v))
        return typed_refuse(m, "cannot %s a '%s' as '%s'", what, image_ctype_text(from, a, sizeof a),
                            image_ctype_text(to, b, sizeof b));
    return converted(m, to, v);
}

const snippet *typed_cast(snippet_maker *m, const image_ctype *to, const snippet *v)
{
    char a[100], b[100];
    if (to && v && to->kind == IMAGE_CTYPE_VOID)
        return typed_is_object(v) || v->role == TYPED_ROUTINE ? typed_constant(m, to, 0) : with_type(m, to, v);
    if (is_wide(v) && to && image_ctype_is_integer(to) && to->kind != IMAGE_CTYPE_BOOL) v = typed_part(m, v, 0, 8);
    if (is_wide(v) && to && to->kind == IMAGE_CTYPE_BOOL) return to_bool(m, v);
    v = typed_value(m, v);
    if (!v || !to) return NULL;
    const image_ctype *from = typed_type(v);
    bool mixed = (to->kind == IMAGE_CTYPE_POINTER && is_real(from)) ||
                 (from->kind == IMAGE_CTYPE_POINTER && is_real(to));
    if (mixed || !image_ctype_is_scalar(to) || !image_ctype_is_scalar(from))
        return typed_refuse(m, "a '%s' cannot become a '%s'", image_ctype_text(from, a, sizeof a),
                            image_ctype_text(to, b, sizeof b));
    return converted(m, to, v);
}

static const image_ctype *promoted(const image_ctype *t)
{
    return t->size < 4 ? image_ctype_int(4, true) : image_ctype_int((unsigned)t->size, t->is_signed);
}

const image_ctype *typed_common(const image_ctype *a, const image_ctype *b)
{
    if (is_real(a) || is_real(b)) {
        bool twice = (is_real(a) && a->size == 8) || (is_real(b) && b->size == 8);
        return image_ctype_float(twice ? 8 : 4);
    }
    a = promoted(a), b = promoted(b);
    if (a->size != b->size) return a->size > b->size ? a : b;
    return image_ctype_int((unsigned)a->size, a->is_signed && b->is_signed);
}
