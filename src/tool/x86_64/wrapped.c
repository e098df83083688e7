/* Arguments and results of the System V calling convention, between a call's values and the program's registers. Vector
 * registers are in the legacy part of the vector area; a word behind it says whether they are there at all. */
#include "tool/wrap.h"
#include "isa/x86_64/x86.h"

#include "run/x86_64/abi.h"

#include <stddef.h>
#include <string.h>

enum { XMM_AT = 160, COMPONENTS_AT = 512, SSE = 2, XMMS = 16, BYTES = 16 };
enum { ARGUMENTS = 7, VECTOR_ARGUMENTS = 8, RESULTS = 2 };

_Static_assert(sizeof(tool_wrap_values) == 208 && offsetof(tool_wrap_values, answer) == 64 &&
                   offsetof(tool_wrap_values, vector) == 80,
               "wrap.S knows it");

const bool tool_can_wrap = true;

/* Where arguments are variable, al tells of vector registers. */
static const uint8_t arguments[ARGUMENTS] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9, X86_RAX};
static const uint8_t results[RESULTS] = {X86_RAX, X86_RDX};

static uint64_t *components(const weave_context *c) { return (uint64_t *)((char *)c->vectors + COMPONENTS_AT); }

/* Those that are not in use are zero. (MXCSR is always there.) */
static void use_vectors(const weave_context *c)
{
    if (*components(c) & SSE) return;
    memset((char *)c->vectors + XMM_AT, 0, XMMS * BYTES);
    *components(c) |= SSE;
}

void tool_wrap_take(const weave_context *c, tool_wrap_values *v, tool_wrap_part part)
{
    bool in = part == WRAP_ARGUMENTS;
    const uint8_t *registers = in ? arguments : results;
    size_t vectors = (in ? VECTOR_ARGUMENTS : RESULTS) * BYTES;
    for (size_t i = 0; i < (in ? ARGUMENTS : RESULTS); i++) (in ? v->integer : v->answer)[i] = c->gpr[registers[i]];
    if (*components(c) & SSE) memcpy(v->vector, (char *)c->vectors + XMM_AT, vectors);
    else memset(v->vector, 0, vectors);
}

void tool_wrap_put(weave_context *c, const tool_wrap_values *v, tool_wrap_part part, cfg_changed which)
{
    bool in = part == WRAP_ARGUMENTS;
    const uint8_t *registers = in ? arguments : results;
    for (size_t i = 0; i < (in ? ARGUMENTS : RESULTS); i++)
        if (which.regs >> registers[i] & 1) c->gpr[registers[i]] = in ? v->integer[i] : v->answer[i];
    use_vectors(c);
    for (size_t i = 0; i < (in ? VECTOR_ARGUMENTS : RESULTS); i++)
        if (which.vectors >> i & 1) memcpy((char *)c->vectors + XMM_AT + i * BYTES, v->vector[i], BYTES);
}

enum { X87_STATUS = 2, X87_IN_USE = 4, X87 = 1, DIRECTION = 0x400, RED_ZONE = 128, ALIGN = 16 };

uint64_t tool_wrap_fresh(weave_context *c, unsigned words)
{
    uint8_t *area = c->vectors;
    if (*components(c) & X87) { /* no number is on its stack */
        memset(area + X87_STATUS, 0, 2);
        area[X87_IN_USE] = 0;
    }
    c->flags &= ~(uint64_t)DIRECTION;
    uint64_t sp = run_sp(c) - RED_ZONE - (uint64_t)words * sizeof(uint64_t);
    return (sp & -(uint64_t)ALIGN) - sizeof(uint64_t);
}

void tool_wrap_put_frame(run_thread *t, const weave_frame *before)
{
    weave_frame f = *before;
    memcpy(f.buffers, t->frame.buffers, sizeof f.buffers);
    f.heap_cache = t->frame.heap_cache;
    f.locals = t->frame.locals;
    f.app_tls_base = t->frame.app_tls_base;
    f.app_gs_base = t->frame.app_gs_base;
    t->frame = f;
}
