/* A value of Go's that is in several places: a piece for each number in it. */
#include "image/units.h"

enum { MOST = 64, DEPTH = 32 };

typedef struct leaves {
    uint64_t at[MOST], size[MOST];
    unsigned count;
} leaves;

static bool collect(const image_ctype *t, uint64_t at, leaves *out, unsigned depth)
{
    const image_member *m;
    if (image_ctype_is_scalar(t)) {
        if (out->count == MOST) return false;
        out->at[out->count] = at;
        out->size[out->count++] = t->size;
        return true;
    }
    if (!depth) return false;
    if (t->kind == IMAGE_CTYPE_ARRAY) {
        for (uint64_t i = 0; i < t->count && t->of->size; i++)
            if (!collect(t->of, at + i * t->of->size, out, depth - 1)) return false;
        return true;
    }
    for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++)
        if (!collect(m[i].type, at + m[i].offset, out, depth - 1)) return false;
    return t->kind == IMAGE_CTYPE_STRUCT;
}

bool image_spread_pieces(image *im, image_variable *v)
{
    leaves l = {.count = 0};
    if (!collect(v->type, 0, &l, DEPTH) || l.count != v->count) return false;
    image_piece *all = inl_arena_alloc(&im->arena, (2 * (size_t)l.count + 1) * sizeof *all);
    unsigned n = 0;
    uint64_t end = 0; /* what lies between is nothing */
    if (!all) return false;
    for (unsigned i = 0; i < l.count; i++) {
        if (v->pieces[i].size != l.size[i] || l.at[i] < end) return false;
        if (l.at[i] > end) all[n++] = (image_piece){{.kind = IMAGE_PLACE_VALUE}, l.at[i] - end};
        all[n++] = v->pieces[i];
        end = l.at[i] + l.size[i];
    }
    if (v->type->size > end) all[n++] = (image_piece){{.kind = IMAGE_PLACE_VALUE}, v->type->size - end};
    v->pieces = all;
    v->count = n;
    return true;
}
