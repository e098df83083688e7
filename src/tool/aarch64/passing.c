/* The procedure call standard of AArch64 (AAPCS64): up to four floats of one kind go to vector registers, 16 bytes to
 * general ones, larger structures by the address of a copy. */
#include "tool/passing.h"

enum { INTEGERS = 8, VECTORS = 8, EIGHT = 8, LARGEST = 16, DEPTH = 16, ALIKE = 4 };

const unsigned tool_argument_registers = INTEGERS, tool_vector_arguments = VECTORS;
const uint8_t tool_argument_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
const unsigned tool_stack_arguments = 0;
const unsigned tool_red_zone = 0;
const uint8_t tool_result_registers[2] = {0, 1};
const bool tool_result_address = false; /* x8 had it at the entry, and is anyone's afterwards */
const uint8_t tool_go_registers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
const unsigned tool_go_integers = sizeof tool_go_registers, tool_go_vectors = 16;

/* How many floats of one size it is made of; 0: of other things, too. */
static unsigned floats(const image_ctype *t, uint64_t *size, unsigned depth)
{
    const image_member *m;
    unsigned sum = 0;
    if (t->kind == IMAGE_CTYPE_FLOAT) {
        if (*size && *size != t->size) return 0;
        *size = t->size;
        return 1;
    }
    if (!depth) return 0;
    if (t->kind == IMAGE_CTYPE_ARRAY) {
        unsigned each = t->count <= ALIKE ? floats(t->of, size, depth - 1) : 0;
        return each * (unsigned)t->count;
    }
    if (t->kind != IMAGE_CTYPE_STRUCT && t->kind != IMAGE_CTYPE_UNION) return 0;
    for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++) {
        unsigned its = floats(m[i].type, size, depth - 1);
        if (!its) return 0;
        if (t->kind == IMAGE_CTYPE_UNION) sum = its > sum ? its : sum;
        else sum += its;
    }
    return sum;
}

static bool in_registers(const image_ctype *t, passed *out)
{
    uint64_t each = 0;
    unsigned n = floats(t, &each, DEPTH);
    *out = (passed){.how = PASSED_REGISTERS};
    bool known = t->size && t->kind != IMAGE_CTYPE_OTHER && t->kind != IMAGE_CTYPE_VOID &&
                 t->kind != IMAGE_CTYPE_LONG_DOUBLE && (t->is_vector || t->kind != IMAGE_CTYPE_ARRAY);
    if (!known) return false;
    if (t->is_vector) {
        out->pieces[out->count++] = (passed_piece){.vector = true, .size = EIGHT};
        return t->size == EIGHT || t->size == LARGEST;
    }
    if (n && n <= ALIKE && n * each == t->size) {
        for (out->count = 0; out->count < n; out->count++)
            out->pieces[out->count] = (passed_piece){.vector = true, .size = (uint8_t)each};
    } else if (t->size > LARGEST || t->by_reference) {
        out->how = PASSED_POINTER;
        out->pieces[out->count++] = (passed_piece){.size = EIGHT};
    } else {
        for (uint64_t at = 0; at < t->size; at += EIGHT)
            out->pieces[out->count++] = (passed_piece){.size = (uint8_t)(t->size - at < EIGHT ? t->size - at : EIGHT)};
    }
    return true;
}

static void on_stack(tool_passing *p, const image_ctype *t, passed *out)
{
    unsigned align = image_ctype_alignment(t) > EIGHT ? LARGEST : EIGHT;
    out->how = PASSED_STACK;
    out->offset = (p->bytes + align - 1) / align * align;
    p->bytes = out->offset + (unsigned)((t->size + EIGHT - 1) / EIGHT * EIGHT);
}

bool tool_pass(tool_passing *p, const image_ctype *t, passed *out)
{
    static const image_ctype word = {.kind = IMAGE_CTYPE_POINTER, .size = EIGHT};
    if (!in_registers(t, out)) return false;
    bool vector = out->pieces[0].vector, copy = out->how == PASSED_POINTER;
    unsigned *used = vector ? &p->vectors : &p->integers, most = vector ? VECTORS : INTEGERS;
    if (!vector && !copy && image_ctype_alignment(t) == LARGEST) *used += *used & 1;
    if (*used + out->count > most) {
        *used = most;
        on_stack(p, copy ? &word : t, out);
        if (copy) out->how = PASSED_STACK_POINTER;
        return true;
    }
    for (unsigned i = 0; i < out->count; i++) out->pieces[i].number = (uint8_t)(*used)++;
    return true;
}

bool tool_pass_result(const image_ctype *t, passed *out)
{
    if (!in_registers(t, out)) return false;
    if (out->how == PASSED_POINTER) out->count = 0;
    for (unsigned i = 0; i < out->count; i++) out->pieces[i].number = (uint8_t)i;
    return true;
}
