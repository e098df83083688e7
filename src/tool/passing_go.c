/* Go's calling convention (ABIInternal): a value is taken apart down to its numbers, and each of them is in a register
 * of its own, or the whole value lies on the stack. Results begin with the first register again; those that lie on the
 * stack lie behind the arguments. */
#include "tool/passing.h"

enum { WORD = 8, DEPTH = 32, RETURN = 8 /* what lies below the first: the return address */ };

typedef struct going {
    unsigned integers, vectors;
    uint64_t bytes;           /* on the stack */
    uint64_t at[PASSED_MOST]; /* where in the whole each piece lies */
} going;

static bool add(going *g, passed *out, passed_piece piece, uint64_t at)
{
    if (out->count == PASSED_MOST) return false;
    g->at[out->count] = at;
    out->pieces[out->count++] = piece;
    return true;
}

static bool add_register(going *g, passed *out, bool vector, uint64_t at)
{
    if (vector ? g->vectors == tool_go_vectors : g->integers == tool_go_integers) return false;
    unsigned number = vector ? g->vectors++ : tool_go_registers[g->integers++];
    return add(g, out, (passed_piece){.vector = vector, .number = (uint8_t)number}, at);
}

/* Its numbers, each with where it lies in the whole. False: it does not fit. */
static bool take_apart(going *g, const image_ctype *t, uint64_t at, passed *out, unsigned depth)
{
    const image_member *m;
    if (image_ctype_is_scalar(t)) return add_register(g, out, t->kind == IMAGE_CTYPE_FLOAT, at);
    if (!depth) return false;
    if (t->kind == IMAGE_CTYPE_ARRAY)
        return t->count == 0 || (t->count == 1 && take_apart(g, t->of, at, out, depth - 1));
    for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++)
        if (!take_apart(g, m[i].type, at + m[i].offset, out, depth - 1)) return false;
    return true;
}

/* Does it consist of what is known? */
static bool is_known(const image_ctype *t, unsigned depth)
{
    const image_member *m;
    if (image_ctype_is_scalar(t)) return true;
    if (!depth || (t->kind != IMAGE_CTYPE_ARRAY && t->kind != IMAGE_CTYPE_STRUCT)) return false;
    if (t->kind == IMAGE_CTYPE_ARRAY) return t->count == 0 || is_known(t->of, depth - 1);
    for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++)
        if (!is_known(m[i].type, depth - 1)) return false;
    return true;
}

/* A value of the type, which is the part of a whole at `at`. */
static bool place(going *g, const image_ctype *t, uint64_t at, passed *out)
{
    going before = *g;
    unsigned first = out->count;
    if (!is_known(t, DEPTH)) return false;
    out->by_register = true;
    if (t->size && take_apart(g, t, at, out, DEPTH)) return true;
    *g = before;
    g->bytes = image_ctype_behind(t, g->bytes);
    unsigned there = (unsigned)(g->bytes + RETURN - tool_stack_arguments);
    g->bytes += t->size;
    out->count = first;
    if (!first) out->how = PASSED_STACK, out->offset = there;
    for (uint64_t i = 0; i < t->size; i += WORD)
        if (!add(g, out, (passed_piece){.stack = true, .offset = there + (unsigned)i}, at + i)) return !first;
    return true;
}

/* Each piece is what lies before the next one. */
static bool finish(const going *g, passed *out, uint64_t size)
{
    for (unsigned i = 0; i < out->count; i++) {
        uint64_t left = (i + 1 < out->count ? g->at[i + 1] : size) - g->at[i];
        out->pieces[i].size = (uint8_t)(left < WORD ? left : WORD);
    }
    return true;
}

static bool arguments(going *g, const image_ctype *proc, size_t number, passed *out)
{
    const image_member *p;
    image_ctype_members(proc, &p);
    for (size_t i = 0; i < number; i++) {
        *out = (passed){.how = PASSED_REGISTERS};
        if (!place(g, p[i].type, 0, out)) return false;
    }
    return true;
}

bool passing_go(const image_ctype *proc, unsigned number, passed *out)
{
    going g = {.bytes = 0};
    const image_member *p;
    image_ctype_members(proc, &p);
    return arguments(&g, proc, number, out) && finish(&g, out, p[number - 1].type->size);
}

bool passing_go_result(const image_ctype *proc, passed *out)
{
    going g = {.bytes = 0};
    const image_member *m;
    if (!arguments(&g, proc, image_ctype_members(proc, &m), out)) return false;
    g = (going){.bytes = image_ctype_behind(image_ctype_int(WORD, false), g.bytes)};
    *out = (passed){.how = PASSED_REGISTERS};
    if (!proc->many) return place(&g, proc->of, 0, out) && finish(&g, out, proc->of->size);
    for (size_t i = 0, n = image_ctype_members(proc->of, &m); i < n; i++)
        if (!m[i].type->size || !place(&g, m[i].type, m[i].offset, out)) return false;
    bool all = out->count &&
               g.at[out->count - 1] + WORD >= proc->of->size; /* of the last one, too, and none is missing */
    out->how = PASSED_REGISTERS;                              /* or in part on the stack, as they say */
    return all && finish(&g, out, proc->of->size);
}
