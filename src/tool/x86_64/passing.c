/* The System V calling convention: each eight bytes of a structure of at most 16 are of a class, which says the kind of
 * register; others lie on the stack. */
#include "tool/passing.h"
#include "isa/x86_64/x86.h"

enum { INTEGERS = 6, VECTORS = 8, EIGHT = 8, LARGEST = 16, DEPTH = 16 };
typedef enum class { NONE, SSE, INTEGER, MEMORY, UNKNOWN } class; /* of two the later one counts */

const unsigned tool_argument_registers = INTEGERS, tool_vector_arguments = VECTORS;
const uint8_t tool_argument_numbers[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9};
const unsigned tool_stack_arguments = 8; /* behind the return address */
const unsigned tool_red_zone = 128;
const uint8_t tool_result_registers[2] = {X86_RAX, X86_RDX};
const bool tool_result_address = true;
const uint8_t tool_go_registers[] = {X86_RAX, X86_RBX, X86_RCX, X86_RDI, X86_RSI, X86_R8, X86_R9, X86_R10, X86_R11};
const unsigned tool_go_integers = sizeof tool_go_registers, tool_go_vectors = 15;

static void note(class classes[2], uint64_t at, uint64_t size, class c)
{
    for (uint64_t i = at / EIGHT; i < 2 && i * EIGHT < at + size; i++)
        if (c > classes[i]) classes[i] = c;
}

static void classify(const image_ctype *t, uint64_t at, class classes[2], unsigned depth)
{
    const image_member *m;
    bool bits = t->kind == IMAGE_CTYPE_BITS, unaligned = !bits && at % image_ctype_alignment(t);
    if (!depth || unaligned || (t->kind == IMAGE_CTYPE_OTHER || t->kind == IMAGE_CTYPE_VOID)) {
        note(classes, 0, LARGEST, unaligned ? MEMORY : UNKNOWN);
    } else if (t->is_vector) { /* what lies behind the first eight bytes is in the same register */
        note(classes, at, EIGHT, t->size < EIGHT ? UNKNOWN : SSE);
    } else if (t->kind == IMAGE_CTYPE_ARRAY) {
        for (uint64_t i = 0; i < t->count && t->of->size && at + i * t->of->size < LARGEST; i++)
            classify(t->of, at + i * t->of->size, classes, depth - 1);
    } else if (t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION) {
        for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++)
            classify(m[i].type, at + m[i].offset, classes, depth - 1);
    } else if (t->kind == IMAGE_CTYPE_LONG_DOUBLE) {
        note(classes, at, t->size, MEMORY);
    } else if (bits) {
        note(classes, at + t->bit_offset / EIGHT, (t->bit_offset % EIGHT + t->bit_count + EIGHT - 1) / EIGHT, INTEGER);
    } else {
        note(classes, at, t->size, t->kind == IMAGE_CTYPE_FLOAT ? SSE : INTEGER);
    }
}

/* One alone, of 32 or 64 bytes, is in a register where the processor has such. */
static bool is_wide_vector(const image_ctype *t, unsigned depth)
{
    const image_member *m;
    if (t->is_vector) return t->size > LARGEST;
    if (!depth || (t->kind != IMAGE_CTYPE_STRUCT && t->kind != IMAGE_CTYPE_UNION)) return false;
    return image_ctype_members(t, &m) && m[0].type->size == t->size && is_wide_vector(m[0].type, depth - 1);
}

/* Of what the processor has in a vector register the lowest eight bytes can be read. */
static bool in_vector(const image_ctype *t, passed *out)
{
    out->pieces[out->count++] = (passed_piece){.vector = true, .size = EIGHT};
    return t->size >= EIGHT && t->size <= 64 && !(t->size & (t->size - 1));
}

/* The pieces, without their registers' numbers. False: it is not known. */
static bool in_registers(const image_ctype *t, passed *out)
{
    class classes[2] = {NONE, NONE};
    *out = (passed){.how = PASSED_REGISTERS};
    if (!t->size && t->kind != IMAGE_CTYPE_STRUCT) return false;
    if (t->is_vector) return in_vector(t, out);
    if (t->size > LARGEST) classes[0] = is_wide_vector(t, DEPTH) ? UNKNOWN : MEMORY;
    else classify(t, 0, classes, DEPTH);
    class worst = classes[0] > classes[1] ? classes[0] : classes[1];
    if (worst == UNKNOWN) return false;
    if (worst == MEMORY) out->how = PASSED_STACK;
    for (unsigned i = 0; i < 2 && worst != MEMORY && i * EIGHT < t->size && worst; i++) {
        uint64_t left = t->size - i * EIGHT;
        if (classes[i] == NONE && i) break; /* of an alignment */
        out->pieces[i].vector = classes[i] != INTEGER;
        out->pieces[i].size = (uint8_t)(left < EIGHT ? left : EIGHT);
        out->count = i + 1;
    }
    return true;
}

static void on_stack(tool_passing *p, const image_ctype *t, passed *out)
{
    unsigned align = image_ctype_alignment(t) > EIGHT ? (unsigned)image_ctype_alignment(t) : EIGHT;
    out->how = PASSED_STACK;
    out->offset = (p->bytes + align - 1) / align * align;
    p->bytes = out->offset + (unsigned)((t->size + EIGHT - 1) / EIGHT * EIGHT);
}

bool tool_pass(tool_passing *p, const image_ctype *t, passed *out)
{
    static const image_ctype word = {.kind = IMAGE_CTYPE_POINTER, .size = EIGHT};
    bool copy = t->by_reference;
    if (!in_registers(copy ? &word : t, out)) return false;
    unsigned integers = 0, vectors = 0;
    for (unsigned i = 0; i < out->count; i++) *(out->pieces[i].vector ? &vectors : &integers) += 1;
    bool fits = p->integers + integers <= INTEGERS && p->vectors + vectors <= VECTORS;
    if (out->how == PASSED_STACK || !fits) {
        on_stack(p, copy ? &word : t, out);
        if (copy) out->how = PASSED_STACK_POINTER;
        return true;
    }
    for (unsigned i = 0; i < out->count; i++)
        out->pieces[i].number = (uint8_t)(out->pieces[i].vector ? p->vectors++ : p->integers++);
    if (copy) out->how = PASSED_POINTER;
    return true;
}

bool tool_pass_result(const image_ctype *t, passed *out)
{
    unsigned integers = 0, vectors = 0;
    if (t->kind == IMAGE_CTYPE_LONG_DOUBLE || !in_registers(t, out)) return false;
    /* Of a structure that is a long double: in a register of the x87. */
    if (out->how == PASSED_STACK && t->size <= LARGEST && image_ctype_alignment(t) == LARGEST) return false;
    if (out->how == PASSED_STACK || t->by_reference) out->how = PASSED_POINTER, out->count = 0;
    for (unsigned i = 0; i < out->count; i++)
        out->pieces[i].number = (uint8_t)(out->pieces[i].vector ? vectors++ : integers++);
    return true;
}
