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

_Static_assert((int)TOOL_CALL_DEPTH == (int)TOOL_RETURNED_DEPTH, "each depth has a room");
/* What a call gives as a whole that is not made. */
static const uint8_t nothing[TOOL_CALL_WHOLE];

enum { NUMBER = 6 }; /* of vector registers, for who takes any number of arguments */

typedef struct passing {
    tool_wrap_values values;
    uint64_t stack[TOOL_CALL_STACK];
} passing;

static void pass(passing *p, const tool_call_word *w, uint64_t value)
{
    if (w->kind == 'f') value = real_narrow(value);
    if (w->kind == 'm') memcpy(&p->stack[w->number], (const void *)(uintptr_t)value, w->size);
    else if (w->to == CALL_VECTOR) memcpy(p->values.vector[w->number], &value, sizeof value);
    else (w->to == CALL_INTEGER ? p->values.integer : p->stack)[w->number] = value;
}

/* Where the thread keeps what a procedure gives as a whole; each depth of calls has a room of its own. NULL: no memory.
 */
static uint8_t *room(run_thread *t, const tool_call *of, unsigned depth)
{
    tool_thread *own = tool_thread_of(t);
    if (own && !own->returned[depth]) own->returned[depth] = tool_alloc(TOOL_CALL_ROOM);
    return own && own->returned[depth] ? own->returned[depth] + of->place : NULL;
}

static void take_pieces(const tool_call *of, const passing *p, uint8_t *to)
{
    for (unsigned i = 0; i < of->piece_count; i++) {
        const passed_piece *piece = &of->pieces[i];
        const void *from = piece->vector ? (const void *)p->values.vector[piece->number]
                                         : (const void *)&p->values.answer[piece->number];
        memcpy(to + 8 * i, from, piece->size);
    }
}

static uint64_t result_of(const passing *p, char kind)
{
    uint64_t bits;
    if (kind == 'i') return p->values.answer[0];
    memcpy(&bits, p->values.vector[0], sizeof bits);
    return kind == 'f' ? real_widen(bits) : bits;
}

static bool is_whole(const tool_call *of) { return of->result == 'm' || of->result == 'p'; }

/* The arguments follow, 64 bits each. */
static uint64_t call(const tool_call *of, const weave_context *c, uint64_t address, ...)
{
    passing p = {.stack = {0}};
    run_thread *t = run_self();
    unsigned depth = tool_wrap_depth(t, c);
    uint8_t *kept = is_whole(of) && depth < TOOL_CALL_DEPTH ? room(t, of, depth) : NULL;
    va_list given;
    va_start(given, address);
    for (unsigned n = 0; n < of->count; n++) pass(&p, &of->words[n], va_arg(given, uint64_t));
    va_end(given);
    if (of->result == 'p') p.values.integer[0] = (uint64_t)(uintptr_t)kept;
    p.values.integer[NUMBER] = of->vectors;
    tool_wrap procedure = {.name = of->name, .entry = inlay_address_shown(address), .words = of->stack};
    bool made = depth < TOOL_CALL_DEPTH && (kept || !is_whole(of)) &&
                tool_wrap_program(&procedure, c, &p.values, p.stack);
    if (!made) tool_say_limited("a snippet's call of %s is not made: calls are nested too deep", of->name);
    if (!is_whole(of)) return made ? result_of(&p, of->result) : 0;
    if (!made) return (uint64_t)(uintptr_t)nothing;
    if (of->result == 'm') take_pieces(of, &p, kept);
    return (uint64_t)(uintptr_t)kept;
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

/* What is being laid out. */
typedef struct layout {
    snippet_maker *m;
    tool_call *of;
    const snippet **args; /* the first three are not words of the procedure's */
    tool_passing at;
} layout;

static bool add_word(layout *l, tool_call_word w, const snippet *value)
{
    if (l->of->count == TOOL_CALL_WORDS)
        typed_refuse(l->m, "a procedure of the program is called with at most %d words of arguments", TOOL_CALL_WORDS);
    if (l->m->why[0] || !value) return false;
    l->of->words[l->of->count] = w;
    l->args[3 + l->of->count++] = value;
    return true;
}

static bool pass_in_registers(layout *l, const passed *how, const snippet *a)
{
    const image_ctype *t = typed_type(a);
    bool whole = image_ctype_is_whole(t);
    for (unsigned i = 0; i < how->count; i++) {
        const passed_piece *p = &how->pieces[i];
        tool_call_word w = {
            .kind = whole ? 'i' : kind_of(t), .to = p->vector ? CALL_VECTOR : CALL_INTEGER, .number = p->number};
        if (p->vector) l->of->vectors = (uint8_t)(p->number + 1);
        const snippet *value = a;
        if (whole) value = typed_bytes(l->m, a, 8 * i, p->size);
        if (!add_word(l, w, value)) return false;
    }
    return true;
}

static bool pass_on_stack(layout *l, const passed *how, const snippet *a)
{
    const image_ctype *t = typed_type(a);
    bool whole = image_ctype_is_whole(t);
    tool_call_word w = {.to = CALL_STACK, .number = (uint16_t)(how->offset / 8)};
    if (image_ctype_alignment(a->type) > 16) {
        typed_refuse(l->m, "a structure that lies at a multiple of more than 16 bytes is not passed on the stack");
        return false;
    }
    if (l->at.bytes > TOOL_CALL_STACK * 8) {
        typed_refuse(l->m, "a procedure of the program is passed at most %d bytes on the stack", TOOL_CALL_STACK * 8);
        return false;
    }
    w.kind = whole ? 'i' : kind_of(t);
    if (!whole) return add_word(l, w, a);
    if (a->role == TYPED_OBJECT) {
        w.kind = 'm', w.size = (uint16_t)t->size;
        return add_word(l, w, typed_address(l->m, a));
    }
    for (uint64_t i = 0; i < t->size; i += 8, w.number++)
        if (!add_word(l, w, typed_bytes(l->m, a, i, (unsigned)(t->size - i < 8 ? t->size - i : 8)))) return false;
    return true;
}

static bool pass_one(layout *l, const snippet *a)
{
    passed how;
    char text[100];
    const image_ctype *t = typed_type(a);
    image_ctype_text(t, text, sizeof text);
    if (t->by_reference || !tool_pass(&l->at, t, &how) || how.how >= PASSED_POINTER) {
        typed_refuse(l->m, "a '%s' cannot be passed: %s", text,
                     t->by_reference ? "C++ makes copies of it by a procedure of its own"
                                     : "how that is done is not known");
        return false;
    }
    return how.how == PASSED_REGISTERS ? pass_in_registers(l, &how, a) : pass_on_stack(l, &how, a);
}

/* A place that the last calls before it do not have. */
static uint16_t place_for(snippet_maker *m, uint64_t size)
{
    if (m->rooms + size > TOOL_CALL_ROOM) m->rooms = 0;
    unsigned at = m->rooms;
    m->rooms = (at + (unsigned)size + 15) & ~15u;
    return (uint16_t)at;
}

static bool set_result(layout *l, const image_ctype *t)
{
    passed how;
    char text[100];
    if (!image_ctype_is_whole(t)) {
        l->of->result = kind_of(t);
        return true;
    }
    image_ctype_text(t, text, sizeof text);
    if (t->size > TOOL_CALL_WHOLE || t->by_reference || !tool_pass_result(t, &how) || how.count > 2) {
        typed_refuse(l->m, "a procedure that gives a '%s' cannot be called: %s", text,
                     t->size > TOOL_CALL_WHOLE ? "it is too large"
                     : t->by_reference         ? "it would have to be destroyed by a procedure of C++"
                                               : "how that is done is not known");
        return false;
    }
    l->of->result = how.how == PASSED_POINTER ? 'p' : 'm';
    l->of->size = (uint16_t)t->size;
    l->of->place = place_for(l->m, t->size);
    l->of->piece_count = (uint8_t)how.count;
    memcpy(l->of->pieces, how.pieces, sizeof l->of->pieces);
    if (l->of->result == 'p') l->at.integers++;
    return true;
}

/* Rust passes numbers and pointers as C does, and nothing else. */
static bool is_as_in_c(snippet_maker *m, const image_ctype *procedure, const image_ctype *t)
{
    char text[100];
    if (procedure->convention != IMAGE_CALLS_RUST || image_ctype_is_scalar(t) || !t->size) return true;
    typed_refuse(m,
                 "a procedure of Rust's cannot be called with or for a '%s': numbers and pointers are all that is "
                 "passed to it as C does",
                 image_ctype_text(t, text, sizeof text));
    return false;
}

const snippet *tool_call_make(snippet_maker *m, const image_ctype *procedure, const snippet *address, unsigned count,
                              const snippet *const *arguments)
{
    if (!tool_can_wrap) return typed_refuse(m, "procedures of the program cannot be called on this processor yet");
    const char *text = procedure->name ? procedure->name : "a procedure";
    if (procedure->convention == IMAGE_CALLS_GO)
        return typed_refuse(m,
                            "a procedure of Go's cannot be called: it needs a stack that Go's run time knows and may "
                            "move");
    if (procedure->convention == IMAGE_CALLS_UNKNOWN)
        return typed_refuse(m, "the procedure cannot be called: its compiler has made it one that is called in a way "
                               "of its own");
    layout l = {.m = m, .of = tool_carried_alloc(sizeof *l.of)};
    char *name = tool_carried_alloc(strlen(text) + 1);
    l.args = m->alloc(m->arg, SNIPPET_MAX_PASSED * sizeof *l.args);
    snippet *s = typed_node(m, SNIPPET_CALL, image_ctype_int(8, false), NULL, NULL);
    if (!l.of || !name || !l.args || !s) return typed_refuse(m, "out of memory");
    *l.of = (tool_call){.name = strcpy(name, text)};
    l.args[0] = pointer(m, l.of), l.args[1] = typed_node(m, SNIPPET_CONTEXT, NULL, NULL, NULL), l.args[2] = address;
    if (!is_as_in_c(m, procedure, procedure->of) || !set_result(&l, procedure->of)) return NULL;
    for (unsigned i = 0; i < count; i++)
        if (!is_as_in_c(m, procedure, typed_type(arguments[i])) || !pass_one(&l, arguments[i])) return NULL;
    l.of->stack = (uint16_t)(l.at.bytes / 8);
    s->fn = (void (*)(void))call;
    s->args = l.args;
    s->nargs = (uint8_t)(3 + l.of->count);
    return l.args[0] && l.args[1] ? s : NULL;
}
