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
    case SNIPPET_SET_EA:
    case SNIPPET_SET_LOCAL:
    case SNIPPET_UNARY:
    case SNIPPET_REAL_ARG:
    case SNIPPET_COUNT: return KID_A;
    case SNIPPET_STORE:
    case SNIPPET_ADD_TO:
    case SNIPPET_BINARY:
    case SNIPPET_IF:
    case SNIPPET_WHILE:
    case SNIPPET_LET:
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

bool snippet_is_for_entry(const snippet *s)
{
    if (!s) return false;
    if (s->at_entry || snippet_is_for_entry(s->a) || snippet_is_for_entry(s->b) || snippet_is_for_entry(s->c))
        return true;
    for (unsigned i = 0; i < s->nargs; i++)
        if (snippet_is_for_entry(s->args[i])) return true;
    return false;
}

static bool size_ok(unsigned size) { return size == 1 || size == 2 || size == 4 || size == 8; }

static const char *node_fault(const snippet *s)
{
    unsigned kids = kids_wanted(s->kind);
    if (s->kind > SNIPPET_REAL_ARG) return "a snippet node of unknown kind";
    if (((kids & KID_A) && !s->a) || ((kids & KID_B) && !s->b))
        return "a snippet node lacks an operand (memory may be used up)";
    switch (s->kind) {
    case SNIPPET_LOAD:
    case SNIPPET_STORE:
    case SNIPPET_ADD_TO: return size_ok(s->size) ? NULL : "a memory access must be of 1, 2, 4 or 8 bytes";
    case SNIPPET_REG:
    case SNIPPET_REG_REF:
    case SNIPPET_SET_REG:
    case SNIPPET_VEC_ARG: return s->reg < 64 ? NULL : "a snippet names a register that does not exist";
    case SNIPPET_BINARY: return s->op <= SNIPPET_LOR ? NULL : "a binary node has a unary operation";
    case SNIPPET_UNARY:
        if (s->op == SNIPPET_EXTEND && !size_ok(s->size)) return "a value is extended from 1, 2, 4 or 8 bytes";
        return s->op >= SNIPPET_NEG && s->op <= SNIPPET_EXTEND ? NULL : "a unary node has a binary operation";
    case SNIPPET_CALL:
        if (!s->fn) return "a call without a routine";
        if (s->size && s->size != 4 && s->size != 8) return "a routine's floating-point result has 4 or 8 bytes";
        return s->nargs <= SNIPPET_MAX_PASSED ? NULL : "a call has too many arguments";
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

/* Asks for the value of a routine that has none. */
static bool has_no_value(const snippet *s)
{
    while (s && (s->kind == SNIPPET_SEQ || s->kind == SNIPPET_LET)) s = s->b;
    return s && s->kind == SNIPPET_CALL && s->no_value;
}

static bool asks_for_nothing(const snippet *s)
{
    bool a = s->kind != SNIPPET_SEQ,
         b = a && s->kind != SNIPPET_IF && s->kind != SNIPPET_WHILE && s->kind != SNIPPET_LET;
    if ((a && has_no_value(s->a)) || (b && has_no_value(s->b))) return true;
    for (unsigned i = 0; s->args && i < s->nargs; i++)
        if (has_no_value(s->args[i])) return true;
    return false;
}

static bool is_for_calls(const snippet *s)
{
    return s->kind == SNIPPET_REG_REF || s->kind == SNIPPET_CONTEXT || s->kind == SNIPPET_VEC_ARG ||
           s->kind == SNIPPET_REAL_ARG;
}

bool snippet_call_is_plain(const snippet *call)
{
    for (unsigned i = 0; i < call->nargs; i++)
        if (is_for_calls(call->args[i])) return false;
    return !call->size;
}

/* What stands around a node. */
typedef struct place {
    const struct place *outer; /* of the next local further out */
    uint32_t local, depth;
    bool statement; /* in a loop, and nobody asks for a value */
    bool call_argument;
} place;

static bool is_local(const place *p, uint32_t index)
{
    for (; p->depth; p = p->outer)
        if (p->local == index) return true;
    return false;
}

static const char *misplaced(const snippet *s, const place *p)
{
    if (is_for_calls(s) && !p->call_argument)
        return "a register reference, floating-point value or context can only be the argument of a call";
    if (s->kind == SNIPPET_BREAK && !p->statement)
        return "break stands outside of a loop, or where a value is asked for";
    if ((s->kind == SNIPPET_LOCAL || s->kind == SNIPPET_SET_LOCAL) && !is_local(p, s->index))
        return "a local variable is used outside of where it is declared";
    if (s->kind == SNIPPET_LET && p->depth == SNIPPET_MAX_LOCALS) return "a snippet has too many local variables";
    return NULL;
}

static const char *tree_fault(const snippet *s, const place *p);

static const char *kids_fault(const snippet *s, const place *p)
{
    place value = *p, last = *p, local = {p, s->index, p->depth + 1, p->statement, false};
    value.statement = value.call_argument = last.call_argument = false;
    const place *a = &value, *b = &value;
    if (s->kind == SNIPPET_SEQ) a = b = &last;
    if (s->kind == SNIPPET_IF) b = &last;
    if (s->kind == SNIPPET_LET) b = &local;
    if (s->kind == SNIPPET_WHILE) last.statement = true, b = &last;
    const char *why = s->a ? tree_fault(s->a, a) : NULL;
    if (!why && s->b) why = tree_fault(s->b, b);
    if (!why && s->c) why = tree_fault(s->c, b);
    value.call_argument = s->kind == SNIPPET_CALL;
    for (unsigned i = 0; !why && i < s->nargs; i++)
        why = s->args && s->args[i] ? tree_fault(s->args[i], &value) : "an argument is missing (memory may be used up)";
    return why;
}

static const char *tree_fault(const snippet *s, const place *p)
{
    const char *why = misplaced(s, p);
    if (!why) why = node_fault(s);
    if (!why && asks_for_nothing(s)) why = "the value of a routine that returns nothing, or no integer, is asked for";
    return why ? why : kids_fault(s, p);
}

bool snippet_check(const snippet *s, const char **why)
{
    static const place outermost;
    const char *fault = s ? tree_fault(s, &outermost) : "an empty snippet (memory may be used up)";
    if (why) *why = fault;
    return !fault;
}

static uint32_t highest_local(const snippet *s)
{
    if (!s) return 0;
    uint32_t most = s->kind == SNIPPET_LET || s->kind == SNIPPET_LOCAL || s->kind == SNIPPET_SET_LOCAL ? s->index : 0;
    const snippet *kids[] = {s->a, s->b, s->c};
    for (unsigned i = 0; i < 3u + s->nargs; i++) {
        uint32_t of = highest_local(i < 3 ? kids[i] : s->args[i - 3]);
        if (of > most) most = of;
    }
    return most;
}

uint32_t snippet_fresh_local(const snippet *a, const snippet *b)
{
    uint32_t x = highest_local(a), y = highest_local(b);
    return 1 + (x > y ? x : y);
}
