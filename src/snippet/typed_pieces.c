/* Objects without an address, of which the pieces are known (typed.h), and numbers of 16 bytes. */
#include "snippet/real.h"
#include "snippet/typed.h"

const snippet *typed_in_pieces(snippet_maker *m, const image_ctype *type, unsigned count, const snippet *const *pieces,
                               const uint8_t *sizes)
{
    snippet *s = type ? typed_node(m, SNIPPET_CONST, type, NULL, NULL) : NULL;
    const snippet **list = s ? m->alloc(m->arg, count * sizeof *list) : NULL;
    uint8_t *lengths = list ? m->alloc(m->arg, count) : NULL;
    if (!lengths) return typed_refuse(m, "out of memory");
    for (unsigned i = 0; i < count; i++) list[i] = pieces[i], lengths[i] = sizes[i];
    s->role = TYPED_PIECES;
    s->args = list;
    s->arg_sizes = lengths;
    s->nargs = (uint8_t)count;
    return s;
}

const snippet *typed_of_pieces(snippet_maker *m, const image_ctype *type, const snippet *pieces, uint64_t offset)
{
    snippet *s = type ? typed_node(m, SNIPPET_CONST, NULL, NULL, NULL) : NULL;
    if (!s) return NULL;
    *s = *pieces;
    s->type = type;
    s->value += offset;
    return s;
}

/* Bytes [from, from + size) of a piece, so many bits up. */
static const snippet *bytes_of(snippet_maker *m, const snippet *piece, uint64_t from, uint64_t size, uint64_t up)
{
    const snippet *s = piece;
    if (from) s = typed_word(m, SNIPPET_SHR, s, 8 * from);
    if (size < 8) s = typed_word(m, SNIPPET_AND, s, (1ull << (8 * size)) - 1);
    return up ? typed_word(m, SNIPPET_SHL, s, up) : s;
}

static const snippet *part_of_pieces(snippet_maker *m, const snippet *s, uint64_t at, unsigned size)
{
    uint64_t begin = 0, low = s->value + at, high = low + size, known = 0;
    const snippet *sum = NULL;
    for (unsigned i = 0; i < s->nargs; begin += s->arg_sizes[i++]) {
        uint64_t end = begin + s->arg_sizes[i], from = low > begin ? low : begin, to = high < end ? high : end;
        if (from >= to) continue;
        if (!s->args[i]) return typed_refuse(m, "a part of it has been optimised away here");
        known += to - from;
        const snippet *one = bytes_of(m, s->args[i], from - begin, to - from, 8 * (from - low));
        sum = sum ? typed_binary(m, SNIPPET_OR, sum, one) : one;
        if (!sum) return NULL;
    }
    return sum && known == size ? typed_as(m, image_ctype_int(8, false), sum)
                                : typed_refuse(m, "it lies outside of what is known of it");
}

const snippet *typed_part(snippet_maker *m, const snippet *object, uint64_t offset, unsigned size)
{
    if (!object) return NULL;
    if (object->role == TYPED_PIECES) return part_of_pieces(m, object, offset, size);
    if (object->role != TYPED_OBJECT || object->kind != SNIPPET_LOAD)
        return typed_refuse(m, "this does not lie in memory");
    const image_ctype *t = image_ctype_int(8, false);
    snippet *s = typed_node(m, SNIPPET_LOAD, t, offset ? typed_word(m, SNIPPET_ADD, object->a, offset) : object->a,
                            NULL);
    if (!s || !s->a) return NULL;
    s->size = (uint8_t)size;
    return s;
}

const snippet *typed_bytes(snippet_maker *m, const snippet *object, uint64_t offset, unsigned size)
{
    const snippet *sum = NULL;
    if (object && object->role == TYPED_PIECES) return typed_part(m, object, offset, size);
    for (unsigned i = 0, n; i < size; i += n) {
        for (n = 8; n > size - i;) n /= 2;
        const snippet *one = typed_part(m, object, offset + i, n);
        if (i) one = typed_word(m, SNIPPET_SHL, one, 8 * i);
        sum = sum ? typed_binary(m, SNIPPET_OR, sum, one) : one;
        if (!sum) return NULL;
    }
    return sum;
}

/* --- 16 bytes --- */

static const snippet *computed(snippet_maker *m, const image_ctype *type, void (*fn)(void), const snippet *a,
                               const snippet *b)
{
    const snippet **args = m->alloc(m->arg, 2 * sizeof *args);
    snippet *call = typed_node(m, SNIPPET_CALL, type, NULL, NULL);
    if (!args || !call || !a) return typed_refuse(m, "out of memory");
    args[0] = a, args[1] = b;
    call->fn = fn;
    call->args = args;
    call->nargs = b ? 2 : 1;
    return call;
}

const snippet *typed_halves(snippet_maker *m, const snippet *object, typed_of_halves *of)
{
    bool known = object->role == TYPED_PIECES || object->kind != SNIPPET_LOAD || typed_is_cheap(object->a);
    uint32_t number = known ? 0 : snippet_fresh_local(object->a, NULL);
    const snippet *at = known ? NULL : typed_node(m, SNIPPET_LOCAL, image_ctype_int(8, false), NULL, NULL);
    if (at) ((snippet *)(uintptr_t)at)->index = number;
    const snippet *o = known ? object : typed_object(m, object->type, at);
    const snippet *low = typed_part(m, o, 0, 8), *high = typed_part(m, o, 8, 8);
    const snippet *s = low && high ? of(m, low, high) : NULL;
    return s && !known ? typed_let(m, number, object->a, s) : s;
}

static const snippet *from_long(snippet_maker *m, const snippet *low, const snippet *high)
{
    return computed(m, image_ctype_float(8), (void (*)(void))real_from_long, low, high);
}

const snippet *typed_narrow(snippet_maker *m, const snippet *object)
{
    char text[100];
    if (object->type->kind == IMAGE_CTYPE_LONG_DOUBLE) return typed_halves(m, object, from_long);
    return typed_refuse(m, "a '%s' is not computed with: (long) makes its low half of it",
                        image_ctype_text(object->type, text, sizeof text));
}

/* Does it only look, so that it can be computed once more? */
static bool only_looks(const snippet *s)
{
    if (!s) return true;
    if (s->kind == SNIPPET_CALL) {
        bool arithmetic = s->nargs <= 2 && !s->size && s->type && s->type->kind == IMAGE_CTYPE_FLOAT;
        return arithmetic && only_looks(s->args[0]) && (s->nargs < 2 || only_looks(s->args[1]));
    }
    bool looks = snippet_is_leaf(s) || s->kind == SNIPPET_LOAD || s->kind == SNIPPET_BINARY ||
                 s->kind == SNIPPET_UNARY || s->kind == SNIPPET_IF;
    return looks && only_looks(s->a) && only_looks(s->b) && only_looks(s->c);
}

const snippet *typed_widen(snippet_maker *m, const image_ctype *type, const snippet *value)
{
    static const uint8_t sizes[] = {8, 8};
    char text[100];
    bool real = type->kind == IMAGE_CTYPE_LONG_DOUBLE;
    value = typed_value(m, value);
    if (!value) return NULL;
    const image_ctype *from = typed_type(value);
    if (!only_looks(value)) return typed_refuse(m, "what becomes a number of 16 bytes is put into a variable first");
    if (real ? !image_ctype_is_arithmetic(from) : !image_ctype_is_integer(from))
        return typed_refuse(m, "a '%s' does not become a number of 16 bytes",
                            image_ctype_text(from, text, sizeof text));
    const snippet *halves[2] = {value};
    if (real) {
        value = typed_convert(m, image_ctype_float(8), value, "use");
        halves[0] = computed(m, image_ctype_int(8, false), (void (*)(void))real_long_low, value, NULL);
        halves[1] = computed(m, image_ctype_int(8, false), (void (*)(void))real_long_high, value, NULL);
    } else if (!from->is_signed) {
        halves[1] = typed_constant(m, image_ctype_int(8, false), 0);
    } else {
        const image_ctype *t = image_ctype_int(8, true);
        halves[1] = typed_binary(m, SNIPPET_SHR, typed_convert(m, t, value, "use"), typed_constant(m, t, 63));
    }
    return halves[0] && halves[1] ? typed_in_pieces(m, type, 2, halves, sizes) : NULL;
}
