/* Assignments: to memory, bit fields, structures, registers and local variables. */
#include "snippet/typed.h"

enum { MOST_COPIED = 128 }; /* bytes of a structure */

static const snippet *done(snippet *s, const image_ctype *type)
{
    if (!s) return NULL;
    s->type = type;
    s->role = TYPED_DONE;
    return s;
}

static const snippet *stored(snippet_maker *m, const snippet *address, const snippet *value, unsigned size)
{
    snippet *s = address && value ? typed_node(m, SNIPPET_STORE, &image_ctype_void, address, value) : NULL;
    if (s) s->size = (uint8_t)size;
    return s;
}

static const snippet *loaded(snippet_maker *m, const snippet *address, unsigned size)
{
    snippet *s = address ? typed_node(m, SNIPPET_LOAD, image_ctype_int(8, false), address, NULL) : NULL;
    if (s) s->size = (uint8_t)size;
    return s;
}

static const snippet *local(snippet_maker *m, uint32_t number)
{
    snippet *s = typed_node(m, SNIPPET_LOCAL, image_ctype_int(8, false), NULL, NULL);
    if (s) s->index = number;
    return s;
}

/* number := value; body */
static snippet *let(snippet_maker *m, uint32_t number, const snippet *value, const snippet *body)
{
    snippet *s = value && body ? typed_node(m, SNIPPET_LET, body->type, value, body) : NULL;
    if (!s) return NULL;
    s->index = number;
    s->role = body->role;
    return s;
}

const snippet *typed_sequence(snippet_maker *m, const snippet *first, const snippet *second)
{
    if (second && second->role == TYPED_OBJECT) second = typed_value(m, second);
    snippet *s = first && second ? typed_node(m, SNIPPET_SEQ, second->type, first, second) : NULL;
    if (s) s->role = second->role;
    return s;
}

static const snippet *word(snippet_maker *m, snippet_op op, const snippet *a, uint64_t b)
{
    const image_ctype *t = image_ctype_int(8, false);
    return a ? typed_binary(m, op, typed_as(m, t, a), typed_constant(m, t, b)) : NULL;
}

/* The bytes that hold it, with its bits exchanged. */
static const snippet *assign_bits(snippet_maker *m, const snippet *object, const snippet *value)
{
    const image_ctype *bits = object->type;
    uint64_t ones = bits->bit_count == 64 ? ~0ull : (1ull << bits->bit_count) - 1;
    value = typed_convert(m, bits->of, value, "assign");
    if (!value) return NULL;
    uint32_t at = snippet_fresh_local(object->a, value);
    const snippet *others = word(m, SNIPPET_AND, loaded(m, local(m, at), object->size), ~(ones << bits->bit_offset));
    const snippet *own = word(m, SNIPPET_SHL, word(m, SNIPPET_AND, value, ones), bits->bit_offset);
    const snippet *sum = typed_binary(m, SNIPPET_OR, others, own);
    snippet *all = let(m, at, object->a, stored(m, local(m, at), sum, object->size));
    return done(all, &image_ctype_void);
}

static const snippet *assign_structure(snippet_maker *m, const snippet *to, const snippet *from)
{
    char a[100], b[100];
    const image_ctype *t = to->type;
    if (from->role != TYPED_OBJECT || from->kind != SNIPPET_LOAD || !image_ctype_same(t, from->type))
        return typed_refuse(m, "cannot assign a '%s' as '%s'", image_ctype_text(typed_type(from), a, sizeof a),
                            image_ctype_text(t, b, sizeof b));
    if (!t->size || t->size > MOST_COPIED)
        return typed_refuse(m, "a '%s' is not assigned as a whole: it has %llu bytes, of at most %u",
                            image_ctype_text(t, a, sizeof a), (unsigned long long)t->size, MOST_COPIED);
    uint32_t x = snippet_fresh_local(to->a, from->a), y = x + 1;
    const snippet *all = NULL;
    for (unsigned i = 0, n; i < t->size; i += n) {
        for (n = 8; n > t->size - i;) n /= 2;
        const snippet *one = stored(m, word(m, SNIPPET_ADD, local(m, x), i),
                                    loaded(m, word(m, SNIPPET_ADD, local(m, y), i), n), n);
        all = all ? typed_sequence(m, all, one) : one;
        if (!all) return NULL;
    }
    return done(let(m, x, to->a, let(m, y, from->a, all)), &image_ctype_void);
}

static const snippet *assign_memory(snippet_maker *m, const snippet *object, const snippet *value)
{
    const image_ctype *t = object->type;
    snippet *s = typed_node(m, SNIPPET_STORE, t, object->a, typed_to_memory(m, t, value));
    if (!s || !s->b) return NULL;
    s->size = (uint8_t)t->size;
    return done(s, t);
}

const snippet *typed_assign(snippet_maker *m, const snippet *object, const snippet *value)
{
    if (!object || !value) return NULL;
    if (object->role != TYPED_OBJECT) return typed_refuse(m, "only variables and what lies in memory can be assigned");
    const image_ctype *t = object->type;
    if (t->kind == IMAGE_CTYPE_BITS) return assign_bits(m, object, value);
    if (t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION) return assign_structure(m, object, value);
    if (t->kind == IMAGE_CTYPE_VOID)
        return typed_refuse(m, "the type of this is not known (or it is void): say it, as in *(int *)&x");
    value = typed_convert(m, t, value, "assign");
    if (!value) return NULL;
    if (object->kind == SNIPPET_LOAD) return assign_memory(m, object, value);
    bool is_register = object->kind == SNIPPET_REG;
    snippet *s = typed_node(m, is_register ? SNIPPET_SET_REG : SNIPPET_SET_LOCAL, t, value, NULL);
    if (!s) return NULL;
    s->reg = object->reg;
    s->index = object->index;
    return done(s, t);
}

/* Can it be computed twice, as well as once? */
static bool is_cheap(const snippet *s)
{
    if (s->kind == SNIPPET_CONST || s->kind == SNIPPET_LOCAL || s->kind == SNIPPET_REG || s->kind == SNIPPET_ARG)
        return true;
    return s->kind == SNIPPET_BINARY && s->op == SNIPPET_ADD && is_cheap(s->a) && s->b->kind == SNIPPET_CONST;
}

/* The object by an address that is computed once; *number: of the local that holds it, 0: none is needed. */
static const snippet *once(snippet_maker *m, const snippet *object, const snippet *value, uint32_t *number)
{
    *number = 0;
    if (object->role != TYPED_OBJECT || object->kind != SNIPPET_LOAD || is_cheap(object->a)) return object;
    *number = snippet_fresh_local(object->a, value);
    return typed_object(m, object->type, local(m, *number));
}

static const snippet *around(snippet_maker *m, uint32_t number, const snippet *object, const snippet *s)
{
    return number && s ? let(m, number, object->a, s) : s;
}

const snippet *typed_update(snippet_maker *m, snippet_op op, const snippet *object, const snippet *value)
{
    uint32_t number;
    if (!object || !value) return NULL;
    const snippet *o = once(m, object, value, &number);
    return around(m, number, object, typed_assign(m, o, typed_binary(m, op, o, value)));
}

const snippet *typed_step_behind(snippet_maker *m, const snippet *object, int by)
{
    uint32_t number;
    if (!object) return NULL;
    const snippet *o = once(m, object, NULL, &number), *old = typed_value(m, o);
    if (!old) return NULL;
    uint32_t before = 1 + (number ? number : snippet_fresh_local(object, NULL));
    const snippet *kept = typed_local(m, old->type, before);
    const snippet *one = typed_constant(m, image_ctype_int(4, true), (uint64_t)(int64_t)by);
    const snippet *set = typed_assign(m, o, typed_binary(m, SNIPPET_ADD, kept, one));
    const snippet *both = typed_sequence(m, set, typed_value(m, kept));
    return around(m, number, object, let(m, before, old, both));
}
