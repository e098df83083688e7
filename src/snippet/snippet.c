/* Snippet trees: making, checking and asking about them. */
#include "snippet/snippet.h"

#include <string.h>

enum { KID_A = 1, KID_B = 2 };

/* Which kids a node of each kind must have. */
static unsigned kids_wanted(unsigned kind)
{
    switch (kind) {
    case SNIPPET_LOAD:
    case SNIPPET_SET_REG:
    case SNIPPET_UNARY:
    case SNIPPET_COUNT: return KID_A;
    case SNIPPET_STORE:
    case SNIPPET_BINARY:
    case SNIPPET_IF:
    case SNIPPET_WHILE:
    case SNIPPET_SEQ: return KID_A | KID_B;
    default: return 0;
    }
}

snippet *snippet_new(inl_arena *arena, snippet_kind kind)
{
    snippet *s = inl_arena_alloc(arena, sizeof *s);
    if (s) s->kind = (uint8_t)kind;
    return s;
}

bool snippet_has(const snippet *s, snippet_kind kind)
{
    if (!s) return false;
    if (s->kind == kind) return true;
    if (snippet_has(s->a, kind) || snippet_has(s->b, kind) || snippet_has(s->c, kind)) return true;
    for (unsigned i = 0; i < s->nargs; i++)
        if (snippet_has(s->args[i], kind)) return true;
    return false;
}

static bool size_ok(unsigned size) { return size == 1 || size == 2 || size == 4 || size == 8; }

static const char *node_fault(const snippet *s)
{
    unsigned kids = kids_wanted(s->kind);
    if (s->kind > SNIPPET_APPEND) return "a snippet node of unknown kind";
    if (((kids & KID_A) && !s->a) || ((kids & KID_B) && !s->b))
        return "a snippet node lacks an operand (memory may be used up)";
    switch (s->kind) {
    case SNIPPET_LOAD:
    case SNIPPET_STORE: return size_ok(s->size) ? NULL : "a memory access must be of 1, 2, 4 or 8 bytes";
    case SNIPPET_REG:
    case SNIPPET_REG_REF:
    case SNIPPET_SET_REG:
    case SNIPPET_VEC_ARG: return s->reg < 64 ? NULL : "a snippet names a register that does not exist";
    case SNIPPET_BINARY: return s->op <= SNIPPET_LOR ? NULL : "a binary node has a unary operation";
    case SNIPPET_UNARY:
        return s->op >= SNIPPET_NEG && s->op <= SNIPPET_LNOT ? NULL : "a unary node has a binary operation";
    case SNIPPET_CALL:
        if (!s->fn) return "a call without a routine";
        return s->nargs <= SNIPPET_MAX_ARGS ? NULL : "a call has too many arguments";
    case SNIPPET_APPEND: {
        if (!s->buffer || (s->nargs && !s->arg_sizes)) return "an append without a buffer";
        if (s->nargs > SNIPPET_MAX_ARGS) return "a buffer record has too many fields";
        unsigned sum = 0;
        for (unsigned i = 0; i < s->nargs; i++) {
            if (!size_ok(s->arg_sizes[i])) return "a record's field must have 1, 2, 4 or 8 bytes";
            sum += s->arg_sizes[i];
        }
        if (!s->buffer->record_size || sum > s->buffer->record_size) return "the fields do not fit the buffer's record";
        return NULL;
    }
    default: return NULL;
    }
}

static bool is_for_calls(const snippet *s)
{
    return s->kind == SNIPPET_REG_REF || s->kind == SNIPPET_CONTEXT || s->kind == SNIPPET_VEC_ARG;
}

bool snippet_call_is_plain(const snippet *call)
{
    for (unsigned i = 0; i < call->nargs; i++)
        if (is_for_calls(call->args[i])) return false;
    return true;
}

static const char *tree_fault(const snippet *s, bool call_argument)
{
    if (is_for_calls(s) && !call_argument)
        return "a register reference, floating-point register or context can only be the argument of a call";
    const char *why = node_fault(s);
    if (!why && s->a) why = tree_fault(s->a, false);
    if (!why && s->b) why = tree_fault(s->b, false);
    if (!why && s->c) why = tree_fault(s->c, false);
    for (unsigned i = 0; !why && i < s->nargs; i++)
        why = s->args && s->args[i] ? tree_fault(s->args[i], s->kind == SNIPPET_CALL)
                                    : "an argument is missing (memory may be used up)";
    return why;
}

bool snippet_check(const snippet *s, const char **why)
{
    const char *fault = s ? tree_fault(s, false) : "an empty snippet (memory may be used up)";
    if (why) *why = fault;
    return !fault;
}
