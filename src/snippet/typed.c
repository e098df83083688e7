/* Constants, places in memory, members: the leaves of typed snippets. */
#include "snippet/typed.h"
#include "snippet/real.h"

#include <stdarg.h>
#include <stdio.h>

const snippet *typed_refuse(snippet_maker *m, const char *fmt, ...)
{
    va_list ap;
    if (m->why[0]) return NULL;
    va_start(ap, fmt);
    vsnprintf(m->why, sizeof m->why, fmt, ap);
    va_end(ap);
    return NULL;
}

snippet *typed_node(snippet_maker *m, snippet_kind kind, const image_ctype *type, const snippet *a, const snippet *b)
{
    snippet *s = m->alloc(m->arg, sizeof *s);
    if (!s) {
        typed_refuse(m, "out of memory");
        return NULL;
    }
    s->kind = (uint8_t)kind;
    s->type = type;
    s->a = a, s->b = b;
    return s;
}

const snippet *typed_constant(snippet_maker *m, const image_ctype *type, uint64_t value)
{
    snippet *s = typed_node(m, SNIPPET_CONST, type, NULL, NULL);
    if (s) s->value = value;
    return s;
}

const snippet *typed_real(snippet_maker *m, double value)
{
    return typed_constant(m, image_ctype_float(8), real_bits(value));
}

const snippet *typed_routine(snippet_maker *m, void (*fn)(void), const image_ctype *type, const snippet *others)
{
    snippet *s = typed_node(m, SNIPPET_CONST, type, NULL, others);
    if (!s) return NULL;
    s->fn = fn;
    s->role = TYPED_ROUTINE;
    return s;
}

enum { TAKES_TEXT = 1 }; /* `index` of a routine */

const snippet *typed_text_routine(snippet_maker *m, void (*fn)(void), const image_ctype *type, const snippet *others)
{
    snippet *s = (snippet *)typed_routine(m, fn, type, others);
    if (s) s->index = TAKES_TEXT;
    return s;
}

bool typed_takes_text(const snippet *s) { return s->role == TYPED_ROUTINE && s->index == TAKES_TEXT; }

const image_ctype *typed_type(const snippet *s) { return s->type ? s->type : image_ctype_int(8, true); }

static const image_ctype *made_type(snippet_maker *m, image_ctype t)
{
    image_ctype *made = m->alloc(m->arg, sizeof *made);
    if (made) *made = t;
    else typed_refuse(m, "out of memory");
    return made;
}

const image_ctype *typed_pointer_to(snippet_maker *m, const image_ctype *of)
{
    return of ? made_type(m, (image_ctype){.kind = IMAGE_CTYPE_POINTER, .size = 8, .of = of}) : NULL;
}

const image_ctype *typed_array_of(snippet_maker *m, const image_ctype *of, uint64_t count)
{
    if (!of) return NULL;
    return made_type(m, (image_ctype){.kind = IMAGE_CTYPE_ARRAY, .size = of->size * count, .of = of, .count = count});
}

const snippet *typed_as(snippet_maker *m, const image_ctype *type, const snippet *raw)
{
    if (!raw || !type) return NULL;
    bool whole = type->size == 8;
    if (!image_ctype_is_integer(type) && type->kind != IMAGE_CTYPE_POINTER) {
        char text[100];
        return typed_refuse(m, "a register's value cannot be of type '%s'", image_ctype_text(type, text, sizeof text));
    }
    snippet *s = typed_node(m, SNIPPET_UNARY, type, raw, NULL);
    if (!s) return NULL;
    if (whole) {
        *s = *raw;
        s->type = type;
        s->role = TYPED_VALUE;
        return s;
    }
    s->op = SNIPPET_EXTEND;
    s->size = (uint8_t)type->size;
    s->is_signed = type->is_signed;
    return s;
}

static bool can_be_loaded(const image_ctype *t) { return image_ctype_is_scalar(t) || t->kind == IMAGE_CTYPE_BITS; }

const snippet *typed_object(snippet_maker *m, const image_ctype *type, const snippet *address)
{
    snippet *s = address && type ? typed_node(m, SNIPPET_LOAD, type, address, NULL) : NULL;
    if (!s) return NULL;
    s->size = can_be_loaded(type) ? (uint8_t)type->size : 0;
    s->is_signed = type->is_signed;
    s->role = TYPED_OBJECT;
    return s;
}

const snippet *typed_local(snippet_maker *m, const image_ctype *type, uint32_t index)
{
    snippet *s = typed_node(m, SNIPPET_LOCAL, type, NULL, NULL);
    if (!s) return NULL;
    s->index = index;
    s->role = TYPED_OBJECT;
    return s;
}

const snippet *typed_deref(snippet_maker *m, const snippet *pointer)
{
    char text[100];
    pointer = typed_value(m, pointer);
    if (!pointer) return NULL;
    const image_ctype *t = typed_type(pointer);
    if (t->kind != IMAGE_CTYPE_POINTER)
        return typed_refuse(m, "'%s' is not a pointer", image_ctype_text(t, text, sizeof text));
    return typed_object(m, t->of, pointer);
}

static const snippet *retyped(snippet_maker *m, const image_ctype *type, const snippet *value)
{
    snippet *s = type ? typed_node(m, SNIPPET_CONST, type, NULL, NULL) : NULL;
    if (!s) return NULL;
    *s = *value;
    s->type = type;
    s->role = TYPED_VALUE;
    return s;
}

const snippet *typed_address(snippet_maker *m, const snippet *object)
{
    if (!object) return NULL;
    if (object->role == TYPED_PIECES) return typed_refuse(m, "this is in registers, and has no address");
    if (object->role != TYPED_OBJECT || object->kind != SNIPPET_LOAD)
        return typed_refuse(m, object->role == TYPED_OBJECT ? "a register or local variable has no address"
                                                            : "only what lies in memory has an address");
    if (object->type->kind == IMAGE_CTYPE_BITS) return typed_refuse(m, "a bit field has no address");
    return retyped(m, typed_pointer_to(m, object->type), object->c ? object->c : object->a);
}

/* An address so much higher. */
static const snippet *address_plus(snippet_maker *m, const snippet *address, uint64_t offset)
{
    if (!offset) return address;
    const image_ctype *word = image_ctype_int(8, true);
    snippet *sum = typed_node(m, SNIPPET_BINARY, word, address, typed_constant(m, word, offset));
    if (!sum || !sum->b) return NULL;
    sum->op = SNIPPET_ADD;
    return sum;
}

const snippet *typed_member(snippet_maker *m, const snippet *object, const char *name)
{
    char text[100];
    uint64_t offset;
    if (!object) return NULL;
    const image_ctype *t = typed_type(object);
    if (t->kind != IMAGE_CTYPE_STRUCT && t->kind != IMAGE_CTYPE_UNION)
        return typed_refuse(m, "'%s' has no members%s", image_ctype_text(t, text, sizeof text),
                            t->kind == IMAGE_CTYPE_POINTER ? " (a pointer: ->)" : "");
    const image_member *found = image_ctype_member(t, name, &offset);
    if (!found) {
        const image_member *any;
        bool known = image_ctype_members(t, &any) > 0;
        image_ctype_text(t, text, sizeof text);
        if (!known) return typed_refuse(m, "what is in '%s' is not known", text);
        return typed_refuse(m, "'%s' has no member '%s'", text, name);
    }
    if (object->role == TYPED_PIECES) return typed_of_pieces(m, found->type, object, offset);
    if (object->kind != SNIPPET_LOAD) return typed_refuse(m, "a structure that is not in memory has no members");
    snippet *member = (snippet *)(uintptr_t)typed_object(m, found->type, address_plus(m, object->a, offset));
    if (member && object->c) member->c = address_plus(m, object->c, offset);
    return member;
}

/* Of an array in registers. */
static const snippet *index_pieces(snippet_maker *m, const snippet *array, const snippet *index)
{
    const image_ctype *of = array->type->of;
    index = typed_value(m, index);
    if (!index) return NULL;
    if (index->kind != SNIPPET_CONST || !image_ctype_is_integer(typed_type(index)))
        return typed_refuse(m, "this array is in registers: its elements are had by constant numbers alone");
    if (index->value >= array->type->count) return typed_refuse(m, "the array has not so many elements");
    return typed_of_pieces(m, of, array, index->value * of->size);
}

const snippet *typed_index(snippet_maker *m, const snippet *array, const snippet *index)
{
    bool pieces = array && index && array->role == TYPED_PIECES && array->type->kind == IMAGE_CTYPE_ARRAY;
    if (pieces) return index_pieces(m, array, index);
    return typed_deref(m, typed_binary(m, SNIPPET_ADD, array, index));
}

const snippet *typed_word(snippet_maker *m, snippet_op op, const snippet *a, uint64_t b)
{
    const image_ctype *t = image_ctype_int(8, false);
    return a ? typed_binary(m, op, typed_as(m, t, a), typed_constant(m, t, b)) : NULL;
}

bool typed_is_cheap(const snippet *s)
{
    if (s->kind == SNIPPET_CONST || s->kind == SNIPPET_LOCAL || s->kind == SNIPPET_REG || s->kind == SNIPPET_ARG)
        return true;
    return s->kind == SNIPPET_BINARY && s->op == SNIPPET_ADD && typed_is_cheap(s->a) && s->b->kind == SNIPPET_CONST;
}

snippet *typed_let(snippet_maker *m, uint32_t number, const snippet *value, const snippet *body)
{
    snippet *s = value && body ? typed_node(m, SNIPPET_LET, body->type, value, body) : NULL;
    if (!s) return NULL;
    s->index = number;
    s->role = body->role;
    return s;
}

const snippet *typed_assigned(snippet_maker *m, const snippet *object)
{
    bool elsewhere = object->role == TYPED_OBJECT && object->kind == SNIPPET_LOAD && object->c;
    return elsewhere ? typed_object(m, object->type, object->c) : object;
}

bool typed_is_object(const snippet *s) { return s->role == TYPED_OBJECT || s->role == TYPED_PIECES; }

const snippet *typed_executed(const snippet *s)
{
    bool whole = s && s->role == TYPED_OBJECT && s->kind == SNIPPET_LOAD && image_ctype_is_whole(s->type);
    return whole ? s->a : s;
}
