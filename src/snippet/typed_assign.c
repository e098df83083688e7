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

const snippet *typed_sequence(snippet_maker *m, const snippet *first, const snippet *second)
{
    if (second && second->role == TYPED_OBJECT) second = typed_value(m, second);
    snippet *s = first && second ? typed_node(m, SNIPPET_SEQ, second->type, first, second) : NULL;
    if (s) s->role = second->role;
    return s;
}

/* The bytes that hold it, with its bits exchanged. */
static const snippet *assign_bits(snippet_maker *m, const snippet *object, const snippet *value)
{
    const image_ctype *bits = object->type;
    uint64_t ones = bits->bit_count == 64 ? ~0ull : (1ull << bits->bit_count) - 1;
    value = typed_convert(m, bits->of, value, "assign");
    if (!value) return NULL;
    uint32_t at = snippet_fresh_local(object->a, value);
    const snippet *others = typed_word(m, SNIPPET_AND, loaded(m, local(m, at), object->size),
                                       ~(ones << bits->bit_offset));
    const snippet *own = typed_word(m, SNIPPET_SHL, typed_word(m, SNIPPET_AND, value, ones), bits->bit_offset);
    const snippet *sum = typed_binary(m, SNIPPET_OR, others, own);
    snippet *all = typed_let(m, at, object->a, stored(m, local(m, at), sum, object->size));
    return done(all, &image_ctype_void);
}

/* Byte by byte, in words: at most one access each. `from` may be in pieces. */
static const snippet *copied(snippet_maker *m, uint64_t size, const snippet *to, const snippet *from)
{
    const snippet *all = NULL;
    for (unsigned i = 0, n; i < size; i += n) {
        for (n = 8; n > size - i;) n /= 2;
        const snippet *one = stored(m, typed_word(m, SNIPPET_ADD, to, i), typed_part(m, from, i, n), n);
        all = all ? typed_sequence(m, all, one) : one;
        if (!all) return NULL;
    }
    return all;
}

static uint32_t highest_piece(const snippet *pieces, uint32_t number)
{
    for (unsigned i = 0; i < pieces->nargs; i++) {
        uint32_t its = snippet_fresh_local(pieces->args[i], NULL);
        if (its > number) number = its;
    }
    return number;
}

static const snippet *assign_whole(snippet_maker *m, const snippet *to, const snippet *from)
{
    char a[100], b[100];
    const image_ctype *t = to->type;
    bool wide = t->kind == IMAGE_CTYPE_WIDE || t->kind == IMAGE_CTYPE_LONG_DOUBLE;
    if (wide && !(typed_is_object(from) && image_ctype_same(t, from->type))) from = typed_widen(m, t, from);
    if (!from) return NULL;
    bool can = from->role == TYPED_PIECES || (from->role == TYPED_OBJECT && from->kind == SNIPPET_LOAD);
    if (!can || !image_ctype_same(t, from->type))
        return typed_refuse(m, "cannot assign a '%s' as '%s'", image_ctype_text(typed_type(from), a, sizeof a),
                            image_ctype_text(t, b, sizeof b));
    if (!t->size || t->size > MOST_COPIED)
        return typed_refuse(m, "a '%s' is not assigned as a whole: it has %llu bytes, of at most %u",
                            image_ctype_text(t, a, sizeof a), (unsigned long long)t->size, MOST_COPIED);
    bool pieces = from->role == TYPED_PIECES;
    uint32_t x = snippet_fresh_local(to->a, pieces ? NULL : from->a);
    if (pieces) x = highest_piece(from, x);
    const snippet *there = local(m, x);
    if (pieces) return done(typed_let(m, x, to->a, copied(m, t->size, there, from)), &image_ctype_void);
    const snippet *source = typed_object(m, t, local(m, x + 1));
    const snippet *all = there && source ? copied(m, t->size, there, source) : NULL;
    return done(typed_let(m, x, to->a, typed_let(m, x + 1, from->a, all)), &image_ctype_void);
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
    object = object ? typed_assigned(m, object) : NULL;
    if (!object || !value) return NULL;
    if (object->role == TYPED_PIECES) return typed_refuse(m, "this is in registers, and cannot be assigned in part");
    if (object->role != TYPED_OBJECT) return typed_refuse(m, "only variables and what lies in memory can be assigned");
    const image_ctype *t = object->type;
    if (t->kind == IMAGE_CTYPE_BITS) return assign_bits(m, object, value);
    if (image_ctype_is_whole(t) && object->kind == SNIPPET_LOAD) return assign_whole(m, object, value);
    if (t->kind == IMAGE_CTYPE_VOID)
        return typed_refuse(m, "the type of this is not known (or it is void): say it, as in *(int *)&x");
    value = typed_convert(m, t, value, "assign");
    if (!value) return NULL;
    if (object->kind == SNIPPET_LOAD) return assign_memory(m, object, value);
    snippet_kind kind = object->kind == SNIPPET_REG  ? SNIPPET_SET_REG
                        : object->kind == SNIPPET_EA ? SNIPPET_SET_EA
                                                     : SNIPPET_SET_LOCAL;
    snippet *s = typed_node(m, kind, t, value, NULL);
    if (!s) return NULL;
    s->reg = object->reg;
    s->index = object->index;
    return done(s, t);
}

/* The object by an address that is computed once; *number: of the local that holds it, 0: none is needed. */
static const snippet *once(snippet_maker *m, const snippet *object, const snippet *value, uint32_t *number)
{
    *number = 0;
    if (object->role != TYPED_OBJECT || object->kind != SNIPPET_LOAD || typed_is_cheap(object->a)) return object;
    *number = snippet_fresh_local(object->a, value);
    return typed_object(m, object->type, local(m, *number));
}

static const snippet *around(snippet_maker *m, uint32_t number, const snippet *object, const snippet *s)
{
    return number && s ? typed_let(m, number, object->a, s) : s;
}

const snippet *typed_update(snippet_maker *m, snippet_op op, const snippet *object, const snippet *value)
{
    uint32_t number;
    object = object ? typed_assigned(m, object) : NULL;
    if (!object || !value) return NULL;
    const snippet *o = once(m, object, value, &number);
    return around(m, number, object, typed_assign(m, o, typed_binary(m, op, o, value)));
}

const snippet *typed_step_behind(snippet_maker *m, const snippet *object, int by)
{
    uint32_t number;
    object = object ? typed_assigned(m, object) : NULL;
    if (!object) return NULL;
    const snippet *o = once(m, object, NULL, &number), *old = typed_value(m, o);
    if (!old) return NULL;
    uint32_t before = 1 + (number ? number : snippet_fresh_local(object, NULL));
    const snippet *kept = typed_local(m, old->type, before);
    const snippet *one = typed_constant(m, image_ctype_int(4, true), (uint64_t)(int64_t)by);
    const snippet *set = typed_assign(m, o, typed_binary(m, SNIPPET_ADD, kept, one));
    const snippet *both = typed_sequence(m, set, typed_value(m, kept));
    return around(m, number, object, typed_let(m, before, old, both));
}
