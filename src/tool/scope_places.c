/* Where parameters, variables and results are, as snippets: by the calling convention at a procedure's entry and
 * return, by what the debug information says elsewhere.
 *
 * While a program is rewritten its images lie at assumed addresses; where they really are is added when the code runs
 * (inlay_image.shift). */
#include "snippet/real.h"
#include "tool/passing.h"
#include "tool/rewriter.h"
#include "tool/scope.h"

#include <string.h>

enum { MOST_PIECES = 32, DEEP = 64, WORD = 8 };

const snippet *scope_word(snippet_maker *m, uint64_t value)
{
    return typed_constant(m, image_ctype_int(8, false), value);
}

const snippet *scope_in_image(snippet_maker *m, const inlay_image *i, uint64_t address)
{
    const snippet *at = scope_word(m, address + i->bias);
    if (tool_handoff_data.role != TOOL_INSTRUMENTOR || tool_now->options.mutating) return at;
    const snippet *shift = typed_object(m, image_ctype_int(8, false), scope_word(m, (uint64_t)(uintptr_t)&i->shift));
    return typed_binary(m, SNIPPET_ADD, shift, at);
}

const snippet *scope_variable_at(snippet_maker *m, const inlay_image *i, uint64_t address)
{
    image *library = tool_image_file((inlay_image *)(uintptr_t)i), *program;
    uint64_t copy;
    for (inlay_image *k = inlay_process_image_first(i->process); k && library; k = inlay_image_next(k))
        if (k->is_main && k != i && (program = tool_image_file(k)) && image_copied(program, library, address, &copy))
            return scope_in_image(m, k, copy);
    return scope_in_image(m, i, address);
}

snippet *scope_register(snippet_maker *m, const image_ctype *t, unsigned reg)
{
    snippet *s = typed_node(m, SNIPPET_REG, t, NULL, NULL);
    if (s) s->reg = (uint8_t)reg, s->role = TYPED_OBJECT;
    return s;
}

/* --- vector registers --- */

static const snippet *vector_call(snippet_maker *m, const image_ctype *t, unsigned number, void (*fn)(void))
{
    const snippet **args = m->alloc(m->arg, sizeof *args);
    snippet *reg = typed_node(m, SNIPPET_VEC_ARG, NULL, NULL, NULL), *call = typed_node(m, SNIPPET_CALL, t, NULL, NULL);
    if (!args || !reg || !call) return typed_refuse(m, "out of memory");
    reg->reg = (uint8_t)number;
    args[0] = reg;
    call->fn = fn;
    call->args = args;
    call->nargs = 1;
    return call;
}

static const snippet *from_vector(snippet_maker *m, const image_ctype *t, unsigned number)
{
    return vector_call(m, t, number, (void (*)(void))(t->size == 4 ? real_of_register_low : real_of_register));
}

/* Its low 64 bits, as they are. */
static const snippet *vector_bits(snippet_maker *m, unsigned number)
{
    return vector_call(m, image_ctype_int(8, false), number, (void (*)(void))real_of_register);
}

/* --- parameters, results --- */

/* What stands so far above the first that is passed on the stack, as the procedure finds it. */
static const snippet *on_stack(snippet_maker *m, unsigned offset)
{
    const snippet *sp = scope_register(m, image_ctype_int(8, false), tool_isa()->stack_reg);
    return typed_word(m, SNIPPET_ADD, typed_value(m, sp), tool_stack_arguments + offset);
}

static const snippet *argument_register(snippet_maker *m, unsigned number)
{
    snippet *s = typed_node(m, SNIPPET_ARG, NULL, NULL, NULL);
    if (s) s->index = number;
    return typed_as(m, image_ctype_int(8, false), s);
}

static const snippet *result_register(snippet_maker *m, unsigned number)
{
    const image_ctype *u = image_ctype_int(8, false);
    if (number) return typed_value(m, scope_register(m, u, tool_result_registers[number]));
    return typed_as(m, u, typed_node(m, SNIPPET_RETVAL, NULL, NULL, NULL));
}

static const snippet *piece_value(snippet_maker *m, const passed *how, const passed_piece *p, bool is_result)
{
    const image_ctype *u = image_ctype_int(8, false);
    if (p->stack) return typed_value(m, typed_object(m, u, on_stack(m, p->offset)));
    if (p->vector) return vector_bits(m, p->number);
    if (how->by_register) return typed_value(m, scope_register(m, u, p->number));
    return is_result ? result_register(m, p->number) : argument_register(m, p->number);
}

/* What is in registers, of a type that is no single number. */
static const snippet *in_registers(snippet_maker *m, const image_ctype *t, const passed *how, bool is_result)
{
    const snippet *pieces[PASSED_MOST];
    uint8_t sizes[PASSED_MOST];
    for (unsigned i = 0; i < how->count; i++) {
        pieces[i] = piece_value(m, how, &how->pieces[i], is_result);
        sizes[i] = how->pieces[i].size;
        if (!pieces[i]) return NULL;
    }
    return typed_in_pieces(m, t, how->count, pieces, sizes);
}

static const snippet *passed_value(snippet_maker *m, const image_ctype *t, const passed *how, bool is_result)
{
    const image_ctype *u = image_ctype_int(8, false);
    bool scalar = image_ctype_is_scalar(t);
    if (how->how == PASSED_STACK || how->how == PASSED_STACK_POINTER) {
        const snippet *at = on_stack(m, how->offset);
        if (how->how == PASSED_STACK_POINTER) at = typed_value(m, typed_object(m, u, at));
        const snippet *there = typed_object(m, t, at);
        return scalar ? typed_value(m, there) : there;
    }
    if (how->how == PASSED_POINTER) {
        if (is_result && !tool_result_address) return typed_refuse(m, "where it was returned to is not known any more");
        return typed_object(m, t, is_result ? result_register(m, 0) : argument_register(m, how->pieces[0].number));
    }
    if (!scalar) return in_registers(m, t, how, is_result);
    if (!how->count) return typed_refuse(m, "nothing of it is passed");
    if (how->pieces[0].vector) return from_vector(m, t, how->pieces[0].number);
    return typed_as(m, t, piece_value(m, how, &how->pieces[0], is_result));
}

static const char *unknown_way(const image_ctype *proc, const char *otherwise)
{
    bool changed = proc->convention == IMAGE_CALLS_UNKNOWN;
    return changed ? "its compiler has made the procedure one that is called in a way of its own" : otherwise;
}

/* At the entry, where it was passed. */
static const snippet *parameter(snippet_maker *m, const image_ctype *proc, unsigned number)
{
    const image_member *p;
    passed how;
    if (number > image_ctype_members(proc, &p)) return NULL;
    if (passing_argument(proc, number, &how)) return passed_value(m, p[number - 1].type, &how, false);
    bool itself = number == 1 || passing_argument(proc, number - 1, &how);
    return typed_refuse(m, "%s",
                        unknown_way(proc, itself ? "it is passed in a way that is not known"
                                                 : "it stands behind a parameter that is passed in a way that is not "
                                                   "known"));
}

const snippet *scope_result_value(inlay_scope *s)
{
    snippet_maker *m = &s->maker;
    image *file = s->image && !s->whole ? tool_image_file(s->image) : NULL;
    const image_ctype *proc = file ? image_proc_type(file, s->address) : NULL, *t = proc ? proc->of : NULL;
    passed how;
    if (!t || t->kind == IMAGE_CTYPE_VOID) return typed_node(m, SNIPPET_RETVAL, NULL, NULL, NULL);
    if (proc->convention == IMAGE_CALLS_C && image_ctype_is_scalar(t)) {
        if (t->kind == IMAGE_CTYPE_FLOAT) return from_vector(m, t, 0);
        return typed_as(m, t, typed_node(m, SNIPPET_RETVAL, NULL, NULL, NULL));
    }
    if (t->by_reference) how = (passed){.how = PASSED_POINTER};
    else if (!passing_result(proc, &how))
        return typed_refuse(m, "%s", unknown_way(proc, "it is returned in a way that is not known"));
    return passed_value(m, t, &how, true);
}

static bool is_entry(inlay_scope *s, image *file)
{
    const image_proc *p = s->whole || s->at_exit ? NULL : image_proc_at(file, s->address);
    return p && p->addr == s->address;
}

/* --- computations --- */

typedef struct stack {
    const snippet *items[DEEP];
    unsigned count;
} stack;

static snippet_op operation(image_step_kind kind)
{
    static const uint8_t ops[] = {
        [STEP_ADD] = SNIPPET_ADD, [STEP_SUB] = SNIPPET_SUB, [STEP_MUL] = SNIPPET_MUL, [STEP_DIV] = SNIPPET_DIV,
        [STEP_MOD] = SNIPPET_MOD, [STEP_AND] = SNIPPET_AND, [STEP_OR] = SNIPPET_OR,   [STEP_XOR] = SNIPPET_XOR,
        [STEP_SHL] = SNIPPET_SHL, [STEP_SHR] = SNIPPET_SHR, [STEP_SAR] = SNIPPET_SHR, [STEP_EQ] = SNIPPET_EQ,
        [STEP_NE] = SNIPPET_NE,   [STEP_LT] = SNIPPET_LT,   [STEP_LE] = SNIPPET_LE,   [STEP_GT] = SNIPPET_GT,
        [STEP_GE] = SNIPPET_GE,   [STEP_NEG] = SNIPPET_NEG, [STEP_NOT] = SNIPPET_NOT};
    return (snippet_op)ops[kind];
}

/* Division and comparisons have signs, as DWARF says; the type does. */
static const snippet *two(snippet_maker *m, image_step_kind kind, const snippet *a, const snippet *b)
{
    bool is_signed = kind == STEP_DIV || kind == STEP_SAR || (kind >= STEP_EQ && kind <= STEP_GE);
    const image_ctype *t = image_ctype_int(8, is_signed);
    const snippet *s = typed_binary(m, operation(kind), typed_as(m, t, a), typed_as(m, t, b));
    return typed_as(m, image_ctype_int(8, false), s);
}

static const snippet *loaded(snippet_maker *m, const snippet *at, uint64_t size)
{
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return typed_refuse(m, "its place is told by a wrong expression");
    return typed_as(m, image_ctype_int(8, false),
                    typed_value(m, typed_object(m, image_ctype_int((unsigned)size, false), at)));
}

/* What is pushed; NULL: it has moved what is there (or is wrong, which m->why says). */
static const snippet *step(inlay_scope *s, stack *k, const image_step *p)
{
    snippet_maker *m = &s->maker;
    const image_ctype *u = image_ctype_int(8, false);
    const snippet **top = &k->items[k->count];
    unsigned needs = p->kind < STEP_LOAD                         ? 0
                     : p->kind == STEP_ROTATE                    ? 3
                     : p->kind == STEP_SWAP                      ? 2
                     : p->kind >= STEP_ADD && p->kind <= STEP_GE ? 2
                                                                 : p->kind != STEP_SKIP;
    if (k->count < needs || (p->kind == STEP_PICK && (uint64_t)p->value >= k->count))
        return typed_refuse(m, "its place is told by a wrong expression");
    switch (p->kind) {
    case STEP_CONSTANT: return scope_word(m, (uint64_t)p->value);
    case STEP_ADDRESS: return scope_in_image(m, s->image, (uint64_t)p->value);
    case STEP_REGISTER:
        return typed_word(m, SNIPPET_ADD, typed_value(m, scope_register(m, u, p->reg)), (uint64_t)p->value);
    case STEP_ENTERED: return scope_entered(s, (uint64_t)p->value, typed_value(m, scope_register(m, u, p->reg)));
    case STEP_PICK: return top[-1 - p->value];
    case STEP_LOAD: k->count--; return loaded(m, top[-1], (uint64_t)p->value);
    case STEP_EXTEND:
        k->count--;
        return typed_as(m, u, typed_as(m, image_ctype_int((unsigned)p->value, p->reg), top[-1]));
    case STEP_DROP: k->count--; return NULL;
    case STEP_SWAP:
    case STEP_ROTATE: {
        const snippet *first = top[-1];
        top[-1] = top[-2];
        if (p->kind == STEP_SWAP) top[-2] = first;
        else top[-2] = top[-3], top[-3] = first;
        return NULL;
    }
    case STEP_NEG:
    case STEP_NOT: k->count--; return typed_as(m, u, typed_unary(m, operation(p->kind), top[-1]));
    default: k->count -= 2; return two(m, p->kind, top[-2], top[-1]);
    }
}

/* From a step on, with what is there by then. Behind a branch both ways are followed to the end. */
static const snippet *computed_from(inlay_scope *s, const image_variable *v, unsigned from, stack k, unsigned branches)
{
    snippet_maker *m = &s->maker;
    for (unsigned i = from; i < v->count && !m->why[0]; i++) {
        const image_step *p = &v->steps[i];
        bool leads = p->kind == STEP_BRANCH || p->kind == STEP_SKIP;
        if (leads && (p->value <= i || !branches)) return typed_refuse(m, "its place is told by a long computation");
        if (p->kind == STEP_BRANCH && k.count) {
            const snippet *condition = k.items[--k.count];
            const snippet *there = computed_from(s, v, (unsigned)p->value, k, branches - 1);
            return typed_choice(m, condition, there, computed_from(s, v, i + 1, k, branches - 1));
        }
        if (p->kind == STEP_SKIP) {
            i = (unsigned)p->value - 1;
            continue;
        }
        const snippet *more = step(s, &k, p);
        if (more && k.count == DEEP) return typed_refuse(m, "its place is told by a long computation");
        if (more) k.items[k.count++] = more;
    }
    if (m->why[0]) return NULL;
    return k.count ? k.items[k.count - 1] : typed_refuse(m, "its place is told by a wrong expression");
}

static const snippet *computed(inlay_scope *s, const image_variable *v)
{
    enum { BRANCHES = 6 };
    return computed_from(s, v, 0, (stack){.count = 0}, BRANCHES);
}

/* --- variables --- */

/* Of 64 bits that are known: what the type says that they are. */
static const snippet *of_bits(snippet_maker *m, const image_ctype *t, const snippet *bits)
{
    static const uint8_t word[] = {WORD};
    if (!bits) return NULL;
    if (t->kind == IMAGE_CTYPE_FLOAT) return typed_from_memory(m, t, bits);
    if (image_ctype_is_scalar(t)) return typed_as(m, t, bits);
    if (t->size && t->size <= WORD) return typed_in_pieces(m, t, 1, &bits, word);
    return typed_refuse(m, "a part of it alone is known here");
}

static const snippet *of_bytes(snippet_maker *m, const image_ctype *t, const image_variable *v)
{
    const snippet *pieces[MOST_PIECES];
    uint8_t sizes[MOST_PIECES];
    unsigned n = 0;
    for (unsigned i = 0; i < v->count && n < MOST_PIECES; i += WORD, n++) {
        uint64_t bits = 0;
        sizes[n] = (uint8_t)(v->count - i < WORD ? v->count - i : WORD);
        memcpy(&bits, v->bytes + i, sizes[n]);
        pieces[n] = scope_word(m, bits);
    }
    return n ? typed_in_pieces(m, t, n, pieces, sizes) : NULL;
}

static const snippet *entered_bits(inlay_scope *s, const image_variable *v)
{
    snippet_maker *m = &s->maker;
    const snippet *then = v->kind == IMAGE_PLACE_ENTERED_VECTOR
                              ? vector_bits(m, v->reg)
                              : typed_value(m, scope_register(m, image_ctype_int(8, false), v->reg));
    return scope_entered(s, v->entry, then);
}

/* A piece's first 8 bytes; of one that lies in memory more pieces are made. */
static const snippet *piece_bits(inlay_scope *s, const image_variable *v, uint64_t offset, unsigned size)
{
    snippet_maker *m = &s->maker;
    image_variable typed = *v;
    const image_ctype *u = image_ctype_int(8, false);
    if (v->kind == IMAGE_PLACE_NOWHERE) return NULL;
    if (v->kind == IMAGE_PLACE_VECTOR) return offset ? NULL : vector_bits(m, v->reg);
    if (v->kind == IMAGE_PLACE_REGISTER) return offset ? NULL : typed_value(m, scope_register(m, u, v->reg));
    if (v->kind == IMAGE_PLACE_COMPUTED) return offset ? NULL : computed(s, v);
    if (v->kind == IMAGE_PLACE_ENTERED || v->kind == IMAGE_PLACE_ENTERED_VECTOR)
        return offset ? NULL : entered_bits(s, v);
    if (v->kind == IMAGE_PLACE_VALUE) return offset ? NULL : scope_word(m, (uint64_t)v->offset);
    if (v->kind == IMAGE_PLACE_BYTES) {
        const snippet *all = of_bytes(m, u, v);
        return all && offset + size <= v->count ? typed_part(m, all, offset, size) : NULL;
    }
    typed.type = u;
    const snippet *there = scope_variable(s, s->image, &typed);
    return there ? typed_bytes(m, there, offset, size) : NULL;
}

static const snippet *of_pieces(inlay_scope *s, const image_variable *v)
{
    const snippet *pieces[MOST_PIECES];
    uint8_t sizes[MOST_PIECES];
    unsigned n = 0;
    for (unsigned i = 0; i < v->count; i++)
        for (uint64_t at = 0; at < v->pieces[i].size; at += WORD, n++) {
            uint64_t left = v->pieces[i].size - at;
            if (n == MOST_PIECES) return typed_refuse(&s->maker, "it is in too many pieces");
            sizes[n] = (uint8_t)(left < WORD ? left : WORD);
            pieces[n] = piece_bits(s, &v->pieces[i].where, at, sizes[n]);
            if (s->maker.why[0]) return NULL;
        }
    return n ? typed_in_pieces(&s->maker, v->type, n, pieces, sizes) : NULL;
}

const snippet *scope_variable(inlay_scope *s, const inlay_image *i, const image_variable *v)
{
    snippet_maker *m = &s->maker;
    const snippet *base;
    bool scalar = image_ctype_is_scalar(v->type);
    switch (v->kind) {
    case IMAGE_PLACE_ADDRESS: return typed_object(m, v->type, scope_variable_at(m, i, (uint64_t)v->offset));
    case IMAGE_PLACE_TLS: return scope_tls(s, i, v);
    case IMAGE_PLACE_REGISTER:
        base = scope_register(m, scalar ? v->type : image_ctype_int(8, false), v->reg);
        return scalar && v->type->kind != IMAGE_CTYPE_FLOAT
                   ? base
                   : of_bits(m, v->type, typed_as(m, image_ctype_int(8, false), base));
    case IMAGE_PLACE_VECTOR:
        return v->type->kind == IMAGE_CTYPE_FLOAT ? from_vector(m, v->type, v->reg)
                                                  : of_bits(m, v->type, vector_bits(m, v->reg));
    case IMAGE_PLACE_ENTERED:
    case IMAGE_PLACE_ENTERED_VECTOR: return of_bits(m, v->type, entered_bits(s, v));
    case IMAGE_PLACE_VALUE: return of_bits(m, v->type, scope_word(m, (uint64_t)v->offset));
    case IMAGE_PLACE_MEMORY: return typed_object(m, v->type, computed(s, v));
    case IMAGE_PLACE_COMPUTED: return of_bits(m, v->type, computed(s, v));
    case IMAGE_PLACE_BYTES: return of_bytes(m, v->type, v);
    case IMAGE_PLACE_PIECES: return of_pieces(s, v);
    default: break;
    }
    base = scope_register(m, image_ctype_int(8, false), v->reg);
    return typed_object(m, v->type, typed_binary(m, SNIPPET_ADD, base, scope_word(m, (uint64_t)v->offset)));
}

/* Compilers change what a procedure takes in copies of it that have such names. */
static bool is_changed(image *file, uint64_t address)
{
    const image_proc *p = image_proc_at(file, address);
    return p && p->name && (strstr(p->name, ".isra") || strstr(p->name, ".constprop") || strstr(p->name, ".part"));
}

/* A parameter whose place is reached through a pointer was passed as that. */
static bool is_reference(const image_variable *v)
{
    if (v->kind == IMAGE_PLACE_MEMORY) return v->count == 2 && v->steps[1].kind == STEP_LOAD;
    return v->kind == IMAGE_PLACE_RELATIVE && !v->by_frame && v->reg != tool_isa()->stack_reg;
}

/* Of a language that passes some by reference, which debug information tells by where they are, not by their types. */
static const snippet *referred_parameter(inlay_scope *s, image *file, const image_ctype *proc, unsigned number)
{
    snippet_maker *m = &s->maker;
    const image_member *given;
    size_t n = image_ctype_members(proc, &given);
    image_member *list = number <= n ? m->alloc(m->arg, number * sizeof *list) : NULL;
    bool last = false;
    if (!list) return NULL;
    for (unsigned i = 0; i < number; i++) {
        image_variable v;
        const char *why;
        list[i] = given[i];
        if (!given[i].name || !image_local(file, s->address, given[i].name, &v, &why))
            return typed_refuse(m, "whether what is passed before it, or itself, is passed by reference is not known");
        last = is_reference(&v);
        if (last) list[i].type = typed_pointer_to(m, given[i].type);
        if (!list[i].type) return NULL;
    }
    const image_ctype passed_as = {
        .kind = IMAGE_CTYPE_FUNCTION, .name = proc->name, .of = proc->of, .members = list, .member_count = number};
    const snippet *value = parameter(m, &passed_as, number);
    return last && value ? typed_object(m, given[number - 1].type, value) : value;
}

/* What is optimised may have fewer parameters than were written, and debug information fewer than that. It has all
 * where each has a place throughout (but for what is passed by its address). Where that is all there is: the address
 * must be where the convention has it. */
static bool is_as_declared(image *file, uint64_t address, const image_ctype *proc, unsigned number)
{
    const image_member *list;
    passed how, its = {.count = 0};
    bool any = false;
    for (unsigned i = 1, n = (unsigned)image_ctype_members(proc, &list); i <= n; i++) {
        image_told told = image_parameter_told(file, address, i);
        if (!passing_argument(proc, i, &how)) return i > number && any;
        bool by_address = how.how == PASSED_POINTER || how.how == PASSED_STACK_POINTER;
        if (told == IMAGE_TOLD_NOTHING || (told != IMAGE_TOLD && !by_address)) return false;
        any |= told == IMAGE_TOLD;
        if (i == number) its = how;
    }
    return any || (its.how == PASSED_POINTER &&
                   image_parameter_is_by(file, address, number, tool_argument_numbers[its.pieces[0].number]));
}

/* What is dropped is not told of as the procedure begins. */
static bool has_all(image *file, uint64_t address, const image_ctype *proc)
{
    const image_member *list;
    for (unsigned i = 1, n = (unsigned)image_ctype_members(proc, &list); i <= n; i++) {
        image_told told = image_parameter_told(file, address, i);
        if (told != IMAGE_TOLD && told != IMAGE_TOLD_HERE) return false;
    }
    return true;
}

/* Is it one of those that arguments come in? */
static bool is_argument(const image_variable *v)
{
    if (v->kind == IMAGE_PLACE_VECTOR) return v->reg < tool_vector_arguments;
    for (unsigned i = 0; v->kind == IMAGE_PLACE_REGISTER && i < tool_argument_registers; i++)
        if (tool_argument_numbers[i] == v->reg) return true;
    return false;
}

/* Is it computed from them alone? So clang tells of what it has narrowed (`bool`). */
static bool is_of_arguments(const image_variable *v)
{
    unsigned registers = 0;
    for (unsigned i = 0; i < v->count; i++) {
        const image_variable from = {.kind = IMAGE_PLACE_REGISTER, .reg = v->steps[i].reg};
        if (v->steps[i].kind != STEP_REGISTER) continue;
        if (!is_argument(&from)) return false;
        registers++;
    }
    return registers > 0;
}

static bool is_in_arguments(const image_variable *v)
{
    if (v->kind == IMAGE_PLACE_COMPUTED) return is_of_arguments(v);
    if (v->kind != IMAGE_PLACE_PIECES) return is_argument(v);
    for (unsigned i = 0; i < v->count; i++)
        if (!is_argument(&v->pieces[i].where)) return false;
    return v->count > 0;
}

/* At the entry a parameter is read: to where the debug information says, if that speaks of the entry itself. */
static const snippet *entry_parameter(inlay_scope *s, image *file, const image_variable *v, bool found,
                                      const char **why)
{
    const image_ctype *proc = image_proc_type(file, s->address);
    bool constant = v->kind == IMAGE_PLACE_VALUE || v->kind == IMAGE_PLACE_BYTES;
    if (proc && proc->convention == IMAGE_CALLS_GO) return parameter(&s->maker, proc, v->parameter); /* never another */
    bool may_differ = proc && image_may_drop_parameters(file, s->address);
    if (found && (v->is_for_here || constant || (may_differ && is_in_arguments(v)))) {
        const snippet *there = scope_variable(s, s->image, v);
        bool whole = there && typed_is_object(there) && !image_ctype_is_scalar(there->type);
        return whole ? there : typed_value(&s->maker, there);
    }
    bool as_declared = !may_differ ||
                       (proc->convention == IMAGE_CALLS_RUST ? is_as_declared(file, s->address, proc, v->parameter)
                                                             : has_all(file, s->address, proc));
    if (!as_declared) {
        if (!*why) *why = "it has been optimised away here";
        return NULL;
    }
    if (is_changed(file, s->address)) {
        if (!*why) *why = "this copy of the procedure is called in a way of the compiler's own";
        return NULL;
    }
    *why = NULL;
    if (proc && image_passes_references(file, s->address)) return referred_parameter(s, file, proc, v->parameter);
    return proc ? parameter(&s->maker, proc, v->parameter) : NULL;
}

/* It is meant there and nowhere else. */
static const snippet *for_entry(const snippet *s)
{
    if (!s) return NULL;
    if (snippet_is_leaf(s)) ((snippet *)(uintptr_t)s)->at_entry = true; /* made just now */
    for_entry(s->a);
    for_entry(s->b);
    for_entry(s->c);
    for (unsigned i = 0; i < s->nargs; i++) for_entry(s->args[i]);
    return s;
}

const snippet *scope_parameter(inlay_scope *s, const image_ctype *proc, bool prototype, unsigned number)
{
    const char *why = "it has been optimised away here";
    const image_member *list;
    image_variable v = {0};
    image *file = prototype ? NULL : tool_image_file(s->image);
    if (!file) return parameter(&s->maker, proc, number);
    image_ctype_members(proc, &list);
    bool found = *list[number - 1].name && image_local(file, s->address, list[number - 1].name, &v, &why);
    v.parameter = number;
    const snippet *value = entry_parameter(s, file, &v, found, &why);
    return value ? for_entry(value) : typed_refuse(&s->maker, "%s", why ? why : "it has been optimised away here");
}

const snippet *scope_local(inlay_scope *s, image *file, const char *name, const char **why)
{
    image_variable v;
    bool found = image_local(file, s->address, name, &v, why);
    if (v.parameter && s->at_exit) return scope_kept_parameter(s, entry_parameter(s, file, &v, found, why));
    if (s->at_exit) return found ? scope_at_exits(s, &v, why) : NULL;
    if (v.parameter && is_entry(s, file)) return for_entry(entry_parameter(s, file, &v, found, why));
    if (found && v.parameter && !v.is_for_here && !scope_is_put(s, file, &v)) {
        *why = "the procedure has not put it to its place yet";
        return NULL;
    }
    return found ? scope_variable(s, s->image, &v) : NULL;
}
