/* Calls of the program's procedures from snippets: the routine that the snippet calls, and making its node.
 *
 * The callee runs as the program's own code does, instrumented, with signals, on the program's stack below what the
 * interrupted procedure may have there; the routine waits on the thread's private stack (wrap.c). Then the snippet goes
 * on. What the callee does to memory stays; registers, flags and vectors are put back, but for floating-point results.
 *
 * A snippet that is met in the callee calls in turn, but not deeper than TOOL_CALL_DEPTH: such a call is not made, and
 * is said. A callee that leaves by longjmp leaves the snippet, too. An exception that leaves it finds no frame above:
 * std::terminate. */
#include "tool/call.h"
#include "snippet/real.h"
#include "tool/state.h"
#include "tool/wrap.h"

#include <inlay/image.h>
#include <stdarg.h>
#include <string.h>

enum { REGISTERS = 6, VECTORS = 8 };

typedef struct passing {
    tool_wrap_values values;
    uint64_t stack[TOOL_CALL_ARGUMENTS];
    unsigned ints, reals, words;
} passing;

static void pass(passing *p, char kind, uint64_t value)
{
    if (kind == 'f') value = real_narrow(value);
    bool real = kind != 'i';
    if (real && p->reals < VECTORS) memcpy(p->values.vector[p->reals++], &value, sizeof value);
    else if (!real && p->ints < REGISTERS) p->values.integer[p->ints++] = value;
    else p->stack[p->words++] = value;
}

static uint64_t result_of(const passing *p, char kind)
{
    uint64_t bits;
    if (kind == 'i') return p->values.answer[0];
    memcpy(&bits, p->values.vector[0], sizeof bits);
    return kind == 'f' ? real_widen(bits) : bits;
}

/* The arguments follow, 64 bits each. */
static uint64_t call(const tool_call *of, const weave_context *c, uint64_t address, ...)
{
    passing p = {.words = 0};
    va_list given;
    va_start(given, address);
    for (unsigned n = 0; n < of->count; n++) pass(&p, of->kinds[n], va_arg(given, uint64_t));
    va_end(given);
    p.values.integer[REGISTERS] = p.reals; /* for who takes any number of arguments */
    tool_wrap procedure = {.name = of->name, .entry = inlay_address_shown(address), .words = p.words};
    bool made = tool_wrap_depth(run_self(), c) < TOOL_CALL_DEPTH &&
                tool_wrap_program(&procedure, c, &p.values, p.stack);
    if (!made) tool_say_limited("a snippet's call of %s is not made: calls are nested too deep", of->name);
    return made ? result_of(&p, of->result) : 0;
}

/* --- the node --- */

const tool_call *tool_call_of(const snippet *s)
{
    bool is = s->kind == SNIPPET_CALL && s->fn == (void (*)(void))call;
    return is ? (const tool_call *)(uintptr_t)s->args[0]->value : NULL;
}

static char kind_of(const image_ctype *t) { return t->kind != IMAGE_CTYPE_FLOAT ? 'i' : t->size == 4 ? 'f' : 'd'; }

static const snippet *pointer(snippet_maker *m, const void *p)
{
    return typed_constant(m, image_ctype_int(8, false), (uint64_t)(uintptr_t)p);
}

const snippet *tool_call_make(snippet_maker *m, const image_ctype *procedure, const snippet *address, unsigned count,
                              const snippet *const *arguments)
{
    if (!tool_can_wrap) return typed_refuse(m, "procedures of the program cannot be called on this processor yet");
    if (count > TOOL_CALL_ARGUMENTS)
        return typed_refuse(m, "a procedure of the program is called with at most %d arguments", TOOL_CALL_ARGUMENTS);
    const char *text = procedure->name ? procedure->name : "a procedure";
    tool_call *of = tool_carried_alloc(sizeof *of);
    char *name = tool_carried_alloc(strlen(text) + 1);
    const snippet **args = m->alloc(m->arg, SNIPPET_MAX_PASSED * sizeof *args);
    snippet *s = typed_node(m, SNIPPET_CALL, image_ctype_int(8, false), NULL, NULL);
    if (!of || !name || !args || !s) return typed_refuse(m, "out of memory");
    *of = (tool_call){.name = strcpy(name, text), .count = (uint8_t)count, .result = kind_of(procedure->of)};
    args[0] = pointer(m, of), args[1] = typed_node(m, SNIPPET_CONTEXT, NULL, NULL, NULL), args[2] = address;
    for (unsigned i = 0; i < count; i++) {
        of->kinds[i] = kind_of(typed_type(arguments[i]));
        args[3 + i] = arguments[i];
    }
    s->fn = (void (*)(void))call;
    s->args = args;
    s->nargs = (uint8_t)(3 + count);
    return args[0] && args[1] ? s : NULL;
}
