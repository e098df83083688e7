/* The constructors of snippet.h. A node lives in the run's arena when it is made while a run is shown
 * to the tool, and for ever otherwise. */
#include "tool/state.h"
#include "base/page.h"

#include <string.h>

void *tool_snippet_alloc(size_t bytes)
{
    return tool_here.run_arena ? inl_arena_alloc(tool_here.run_arena, bytes) : tool_alloc(bytes);
}

snippet *tool_snippet(snippet_kind kind)
{
    snippet *s = tool_snippet_alloc(sizeof *s);
    if (s) s->kind = (uint8_t)kind;
    return s;
}

inlay_expr tool_snippet_new(const snippet *like)
{
    snippet *s = tool_snippet_alloc(sizeof *s);
    const snippet **args = like->nargs ? tool_snippet_alloc(like->nargs * sizeof *args) : NULL;
    uint8_t *sizes = like->arg_sizes ? tool_snippet_alloc(like->nargs) : NULL;
    if (!s || (like->nargs && !args) || (like->arg_sizes && !sizes)) return NULL;
    *s = *like;
    s->args = args;
    s->arg_sizes = sizes;
    if (args) memcpy(args, like->args, like->nargs * sizeof *args);
    if (sizes) memcpy(sizes, like->arg_sizes, like->nargs);
    return s;
}

inlay_expr tool_snippet_of(snippet s)
{
    return tool_now->options.mutating && !tool_here.run_arena ? mutator_same(&s) : tool_snippet_new(&s);
}

static inlay_expr leaf(snippet_kind kind, uint32_t index)
{
    return tool_snippet_of((snippet){.kind = (uint8_t)kind, .index = index});
}

/* False, and the first mistake is noted, which is the cause of those that follow. */
static bool are_there(const char *who, const char *first, inlay_expr a, const char *second, inlay_expr b)
{
    if (!a || !b) tool_mistake("%s: its %s is NULL", who, a ? second : first);
    return a && b;
}

static inlay_expr kids(snippet_kind kind, inlay_expr a, inlay_expr b, inlay_expr c)
{
    return tool_snippet_of((snippet){.kind = (uint8_t)kind, .a = a, .b = b, .c = c});
}

inlay_expr inlay_const(uint64_t value) { return tool_snippet_of((snippet){.kind = SNIPPET_CONST, .value = value}); }

/* Only what lies in the tool's image or in the carried heap is there when the program runs, or what a mutator shares
 * with it. */
static bool travels(const void *p)
{
    return tool_handoff_data.role != TOOL_INSTRUMENTOR || (uint64_t)(uintptr_t)p < INL_PAGE || tool_is_static(p) ||
           tool_heap_holds(p) || mutator_shares(p);
}

inlay_expr inlay_pointer(const void *p)
{
    if (travels(p)) return inlay_const((uint64_t)(uintptr_t)p);
    tool_mistake(
        "%p is memory from malloc or of a stack, which does not travel into a rewritten program; use inlay_alloc", p);
    return NULL;
}
inlay_expr inlay_stack_pointer(void)
{
    return tool_snippet_of((snippet){.kind = SNIPPET_REG, .reg = (uint8_t)tool_isa()->stack_reg});
}
inlay_expr inlay_vector_register(unsigned n)
{
    if (n >= 16) {
        tool_mistake("inlay_vector_register(%u): they are numbered from 0 to 15", n);
        return NULL;
    }
    return tool_snippet_of((snippet){.kind = SNIPPET_VEC_ARG, .reg = (uint8_t)n});
}
inlay_expr inlay_pc(void) { return leaf(SNIPPET_PC, 0); }
inlay_expr inlay_effective_address(unsigned k) { return leaf(SNIPPET_EA, k); }
inlay_expr inlay_set_effective_address(unsigned k, inlay_expr address)
{
    if (!are_there("inlay_set_effective_address", "address", address, "", address)) return NULL;
    return tool_snippet_of((snippet){.kind = SNIPPET_SET_EA, .index = k, .a = address});
}
static inlay_expr element(snippet_kind kind, unsigned k, unsigned number)
{
    return tool_snippet_of((snippet){.kind = (uint8_t)kind, .index = k, .value = number});
}
inlay_expr inlay_element_address(unsigned k, unsigned number) { return element(SNIPPET_ELEMENT_EA, k, number); }
inlay_expr inlay_element_active(unsigned k, unsigned number) { return element(SNIPPET_ELEMENT_ACTIVE, k, number); }
inlay_expr inlay_access_size(unsigned k) { return leaf(SNIPPET_ACCESS_SIZE, k); }
inlay_expr inlay_memory_value(unsigned k) { return leaf(SNIPPET_MEM_VALUE, k); }
inlay_expr inlay_rep_count(void) { return leaf(SNIPPET_REP_COUNT, 0); }
inlay_expr inlay_executes(void) { return leaf(SNIPPET_EXECUTES, 0); }
inlay_expr inlay_taken(void) { return leaf(SNIPPET_TAKEN, 0); }
inlay_expr inlay_branch_target(void) { return leaf(SNIPPET_TARGET, 0); }
inlay_expr inlay_fall_through(void) { return leaf(SNIPPET_FALLTHROUGH, 0); }
inlay_expr inlay_thread_id(void) { return leaf(SNIPPET_THREAD, 0); }
inlay_expr inlay_on_thread(int number, inlay_expr code)
{
    if (number >= 0)
        return inlay_if(inlay_binary(INLAY_EQ, inlay_thread_id(), inlay_const((uint64_t)number)), code, NULL);
    tool_mistake("inlay_on_thread: there is no thread %d", number);
    return NULL;
}
inlay_expr inlay_thread_pointer(void) { return leaf(SNIPPET_THREAD_POINTER, 0); }
inlay_expr inlay_cycles(void) { return leaf(SNIPPET_CYCLES, 0); }
inlay_expr inlay_own_cycles(void) { return leaf(SNIPPET_OWN_CYCLES, 0); }

static inlay_expr memory(snippet_kind kind, inlay_expr a, inlay_expr b, unsigned size, bool is_signed)
{
    bool good = false;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        tool_mistake("memory of %u bytes is asked for, where 1, 2, 4 or 8 can be had", size);
    else if (!a || (kind != SNIPPET_LOAD && !b)) tool_mistake("an access to memory lacks its address or its value");
    else good = true;
    if (!good) return NULL;
    return tool_snippet_of(
        (snippet){.kind = (uint8_t)kind, .a = a, .b = b, .size = (uint8_t)size, .is_signed = is_signed});
}

inlay_expr inlay_load(inlay_expr a, unsigned size) { return memory(SNIPPET_LOAD, a, NULL, size, false); }

inlay_expr inlay_load_signed(inlay_expr a, unsigned size) { return memory(SNIPPET_LOAD, a, NULL, size, true); }

inlay_expr inlay_store(inlay_expr a, inlay_expr value, unsigned size)
{
    return memory(SNIPPET_STORE, a, value, size, false);
}

inlay_expr inlay_atomic_add(inlay_expr a, inlay_expr amount, unsigned size)
{
    return memory(SNIPPET_ADD_TO, a, amount, size, false);
}

_Static_assert((int)INLAY_ADD == (int)SNIPPET_ADD && (int)INLAY_SAR == (int)SNIPPET_SAR &&
                   (int)INLAY_EQ == (int)SNIPPET_EQ && (int)INLAY_UGE == (int)SNIPPET_UGE &&
                   (int)INLAY_LOR == (int)SNIPPET_LOR && (int)INLAY_LNOT == (int)SNIPPET_LNOT,
               "operators are numbered alike");

inlay_expr inlay_binary(inlay_op op, inlay_expr a, inlay_expr b)
{
    if (op > INLAY_LOR) tool_mistake("inlay_binary: %d is no operator of two values", (int)op);
    bool good = are_there("inlay_binary", "first value", a, "second value", b);
    if (!good || op > INLAY_LOR) return NULL;
    bool is_signed = op == INLAY_DIV || op == INLAY_MOD;
    return tool_snippet_of(
        (snippet){.kind = SNIPPET_BINARY, .op = (uint8_t)op, .is_signed = is_signed, .a = a, .b = b});
}

inlay_expr inlay_unary(inlay_op op, inlay_expr a)
{
    bool good = op >= INLAY_NEG && op <= INLAY_LNOT;
    if (!good) tool_mistake("inlay_unary: %d is no operator of one value", (int)op);
    if (!are_there("inlay_unary", "value", a, "", a) || !good) return NULL;
    return tool_snippet_of((snippet){.kind = SNIPPET_UNARY, .op = (uint8_t)op, .a = a});
}

inlay_expr inlay_extend(inlay_expr a, unsigned size, bool is_signed)
{
    bool good = size == 1 || size == 2 || size == 4 || size == 8;
    if (!good) tool_mistake("inlay_extend: a value is extended from 1, 2, 4 or 8 bytes, not from %u", size);
    if (!are_there("inlay_extend", "value", a, "", a) || !good) return NULL;
    return tool_snippet_of(
        (snippet){.kind = SNIPPET_UNARY, .op = SNIPPET_EXTEND, .size = (uint8_t)size, .is_signed = is_signed, .a = a});
}

inlay_expr inlay_if(inlay_expr condition, inlay_expr then, inlay_expr otherwise)
{
    if (!are_there("inlay_if", "condition", condition, "`then`", then)) return NULL;
    return kids(SNIPPET_IF, condition, then, otherwise);
}

inlay_expr inlay_while(inlay_expr condition, inlay_expr body)
{
    if (!are_there("inlay_while", "condition", condition, "body", body)) return NULL;
    return kids(SNIPPET_WHILE, condition, body, NULL);
}

inlay_expr inlay_break(void) { return leaf(SNIPPET_BREAK, 0); }

static inlay_expr let(snippet_kind kind, unsigned number, inlay_expr a, inlay_expr b)
{
    return tool_snippet_of((snippet){.kind = (uint8_t)kind, .index = number, .a = a, .b = b});
}

inlay_expr inlay_let(unsigned number, inlay_expr value, inlay_expr body)
{
    return are_there("inlay_let", "value", value, "body", body) ? let(SNIPPET_LET, number, value, body) : NULL;
}
inlay_expr inlay_let_value(unsigned number) { return leaf(SNIPPET_LOCAL, number); }
inlay_expr inlay_let_set(unsigned number, inlay_expr value)
{
    return are_there("inlay_let_set", "value", value, "", value) ? let(SNIPPET_SET_LOCAL, number, value, NULL) : NULL;
}

inlay_expr inlay_sequence(inlay_expr first, inlay_expr second)
{
    if (!are_there("inlay_sequence", "first part", first, "second part", second)) return NULL;
    return kids(SNIPPET_SEQ, first, second, NULL);
}

static inlay_expr call(void (*routine)(void), bool no_value, unsigned count, const inlay_expr *arguments)
{
    inlay_expr args[SNIPPET_MAX_ARGS];
    if (!routine) tool_mistake("a call of no routine");
    if (count > SNIPPET_MAX_ARGS)
        tool_mistake("a call with %u arguments: at most %u", count, (unsigned)SNIPPET_MAX_ARGS);
    else if (count && !arguments) tool_mistake("a call with %u arguments, which are NULL", count);
    if (!routine || count > SNIPPET_MAX_ARGS || (count && !arguments)) return NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!(args[i] = arguments[i])) {
            tool_mistake("argument %u of a call's %u is no expression", i + 1, count);
            return NULL;
        }
    }
    return tool_snippet_of(
        (snippet){.kind = SNIPPET_CALL, .fn = routine, .no_value = no_value, .args = args, .nargs = (uint8_t)count});
}

inlay_expr inlay_call_array(void (*routine)(void), unsigned count, const inlay_expr *arguments)
{
    return call(routine, false, count, arguments);
}

inlay_expr inlay_call_returning(void (*routine)(void), unsigned returns, unsigned count, const inlay_expr *arguments)
{
    unsigned size = returns & 0xff;
    bool is_value = !(returns & INLAY_RETURNS_REAL) && returns < 0x200 && !(size & (size - 1)) && size <= 8;
    inlay_expr s = call(routine, !is_value || !size, count, arguments);
    if (!s || s->no_value || size == 8) return s;
    return inlay_extend(s, size, returns & INLAY_RETURNS_SIGNED);
}
