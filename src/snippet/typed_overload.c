/* Routines of one name: a call is one of that whose parameters suit the arguments best, as in C++. */
#include "snippet/typed.h"

enum { SUITS, OTHER_SIGN = 1, OTHER_KIND = 16, LOSES = 256, NOT_AT_ALL = 4096 };

static bool is_byte(const image_ctype *t) { return t->kind == IMAGE_CTYPE_INT && t->size == 1; }

/* What an object is as a value. */
static const image_ctype *as_value(const snippet *s, const image_ctype **led_to)
{
    const image_ctype *t = typed_type(s);
    *led_to = t->kind == IMAGE_CTYPE_ARRAY || t->kind == IMAGE_CTYPE_POINTER ? t->of : NULL;
    return t->kind == IMAGE_CTYPE_BITS ? t->of : t;
}

static unsigned of_integer(const image_ctype *to, const image_ctype *from)
{
    if (from->kind == IMAGE_CTYPE_FLOAT || from->kind == IMAGE_CTYPE_LONG_DOUBLE) return LOSES;
    if (from->kind == IMAGE_CTYPE_WIDE) return OTHER_KIND;
    if (!image_ctype_is_integer(from)) return NOT_AT_ALL;
    bool fits = to->is_signed ? from->is_signed || from->size < to->size : !from->is_signed;
    return fits ? SUITS : OTHER_SIGN;
}

static unsigned cost_of(const image_ctype *to, const snippet *argument)
{
    const image_ctype *led_to, *from = as_value(argument, &led_to);
    if (image_ctype_is_integer(to)) return of_integer(to, from);
    if (to->kind == IMAGE_CTYPE_FLOAT) {
        if (from->kind == IMAGE_CTYPE_FLOAT || from->kind == IMAGE_CTYPE_LONG_DOUBLE) return SUITS;
        return image_ctype_is_integer(from) ? OTHER_KIND : NOT_AT_ALL;
    }
    if (to->kind != IMAGE_CTYPE_POINTER || !led_to) return NOT_AT_ALL;
    if (image_ctype_same(to->of, led_to) || (is_byte(to->of) && is_byte(led_to))) return SUITS;
    return to->of->kind == IMAGE_CTYPE_VOID ? OTHER_SIGN : NOT_AT_ALL;
}

/* What has no value of its own; of an array its elements are told, but for text. */
static bool is_told(const snippet *argument)
{
    const image_ctype *t = typed_type(argument);
    bool whole = t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION;
    return typed_is_object(argument) && (whole || (t->kind == IMAGE_CTYPE_ARRAY && !is_byte(t->of)));
}

static unsigned cost(const snippet *routine, unsigned count, const snippet *const *arguments)
{
    if (typed_takes_text(routine)) return count == 1 && arguments[0] && is_told(arguments[0]) ? SUITS : NOT_AT_ALL + 1;
    const image_member *parameters;
    size_t n = image_ctype_members(typed_type(routine), &parameters);
    unsigned sum = n > count || (n < count && !typed_type(routine)->variadic) ? NOT_AT_ALL : 0;
    for (unsigned i = 0; i < count && i < n; i++)
        if (arguments[i]) sum += cost_of(parameters[i].type, arguments[i]);
    return sum;
}

/* Of several that suit as well the last one that was given. */
const snippet *typed_suiting(const snippet *routine, unsigned count, const snippet *const *arguments)
{
    const snippet *best = routine;
    unsigned least = cost(routine, count, arguments);
    for (const snippet *r = routine->b; r; r = r->b) {
        unsigned its = cost(r, count, arguments);
        if (its < least) best = r;
        if (its < least) least = its;
    }
    return best;
}
