/* C's operators, by the types of their operands. */
#include "snippet/real.h"
#include "snippet/typed.h"

static const char *spelling(snippet_op op)
{
    static const char *const words[] = {"+",   "-",   "*",   "/",  "%",  "&",  "|", "^",  "<<",  ">>", ">>",
                                        "==",  "!=",  "<",   "<=", ">",  ">=", "<", "<=", ">",   ">=", "min",
                                        "max", "min", "max", "&&", "||", "-",  "~", "!",  "cast"};
    _Static_assert(sizeof words / sizeof *words == SNIPPET_EXTEND + 1, "a word for each operation");
    return op <= SNIPPET_EXTEND ? words[op] : "?";
}

static const snippet *refuse_both(snippet_maker *m, snippet_op op, const snippet *a, const snippet *b)
{
    char x[100], y[100];
    return typed_refuse(m, "'%s' cannot be between '%s' and '%s'", spelling(op),
                        image_ctype_text(typed_type(a), x, sizeof x), image_ctype_text(typed_type(b), y, sizeof y));
}

static bool is_pointer(const snippet *s) { return typed_type(s)->kind == IMAGE_CTYPE_POINTER; }
static bool is_integer(const snippet *s) { return image_ctype_is_integer(typed_type(s)); }
static bool is_zero(const snippet *s) { return s->kind == SNIPPET_CONST && is_integer(s) && s->value == 0; }

static const snippet *plain(snippet_maker *m, const image_ctype *type, snippet_op op, const snippet *a,
                            const snippet *b)
{
    snippet *s = a && b ? typed_node(m, SNIPPET_BINARY, type, a, b) : NULL;
    if (!s) return NULL;
    s->op = (uint8_t)op;
    s->is_signed = (op == SNIPPET_DIV || op == SNIPPET_MOD) && type->is_signed;
    return s;
}

/* --- pointers --- */

static const snippet *scaled(snippet_maker *m, const snippet *pointer, const snippet *index)
{
    char text[100];
    const image_ctype *word = image_ctype_int(8, true), *of = typed_type(pointer)->of;
    uint64_t size = of->kind == IMAGE_CTYPE_VOID ? 1 : of->size;
    if (!size) return typed_refuse(m, "the size of '%s' is not known", image_ctype_text(of, text, sizeof text));
    index = typed_convert(m, word, index, "use");
    if (!index) return NULL;
    if (index->kind == SNIPPET_CONST) return typed_constant(m, word, index->value * size);
    return size == 1 ? index : plain(m, word, SNIPPET_MUL, index, typed_constant(m, word, size));
}

static const snippet *distance(snippet_maker *m, const snippet *a, const snippet *b)
{
    const image_ctype *word = image_ctype_int(8, true), *of = typed_type(a)->of;
    if (!image_ctype_same(of, typed_type(b)->of) || !of->size) return refuse_both(m, SNIPPET_SUB, a, b);
    return plain(m, word, SNIPPET_DIV, plain(m, word, SNIPPET_SUB, a, b), typed_constant(m, word, of->size));
}

static const snippet *move_pointer(snippet_maker *m, snippet_op op, const snippet *a, const snippet *b)
{
    if (op == SNIPPET_SUB && is_pointer(a) && is_pointer(b)) return distance(m, a, b);
    if (op == SNIPPET_ADD && is_integer(a) && is_pointer(b)) return move_pointer(m, op, b, a);
    if (!is_pointer(a) || !is_integer(b)) return refuse_both(m, op, a, b);
    return plain(m, typed_type(a), op, a, scaled(m, a, b));
}

static const snippet *compare_pointers(snippet_maker *m, snippet_op op, const snippet *a, const snippet *b)
{
    bool null = is_zero(a) || is_zero(b);
    bool alike = is_pointer(a) && is_pointer(b) &&
                 (image_ctype_same(typed_type(a)->of, typed_type(b)->of) ||
                  typed_type(a)->of->kind == IMAGE_CTYPE_VOID || typed_type(b)->of->kind == IMAGE_CTYPE_VOID);
    if (!alike && !null) return refuse_both(m, op, a, b);
    if (op >= SNIPPET_LT) op += SNIPPET_ULT - SNIPPET_LT;
    return plain(m, image_ctype_int(4, true), op, a, b);
}

/* --- floating point --- */

static const snippet *real_pair(snippet_maker *m, const image_ctype *type, void *fn, const snippet *a, const snippet *b)
{
    uint64_t (*compute)(uint64_t, uint64_t) = (uint64_t(*)(uint64_t, uint64_t))fn;
    if (!a || !b) return NULL;
    if (a->kind == SNIPPET_CONST && b->kind == SNIPPET_CONST)
        return typed_constant(m, type, compute(a->value, b->value));
    const snippet **args = m->alloc(m->arg, 2 * sizeof *args);
    snippet *call = typed_node(m, SNIPPET_CALL, type, NULL, NULL);
    if (!args || !call) return typed_refuse(m, "out of memory");
    args[0] = a, args[1] = b;
    call->fn = (void (*)(void))compute;
    call->args = args;
    call->nargs = 2;
    return call;
}

static const snippet *real_binary(snippet_maker *m, const image_ctype *type, snippet_op op, const snippet *a,
                                  const snippet *b)
{
    const image_ctype *truth = image_ctype_int(4, true);
    switch (op) {
    case SNIPPET_EQ: return real_pair(m, truth, (void *)real_eq, a, b);
    case SNIPPET_NE: return real_pair(m, truth, (void *)real_ne, a, b);
    case SNIPPET_LT: return real_pair(m, truth, (void *)real_lt, a, b);
    case SNIPPET_LE: return real_pair(m, truth, (void *)real_le, a, b);
    case SNIPPET_GT: return real_pair(m, truth, (void *)real_lt, b, a);
    case SNIPPET_GE: return real_pair(m, truth, (void *)real_le, b, a);
    case SNIPPET_MIN: return real_pair(m, type, (void *)real_min, a, b);
    case SNIPPET_MAX: return real_pair(m, type, (void *)real_max, a, b);
    default: break;
    }
    static void *const routines[] = {(void *)real_add, (void *)real_sub, (void *)real_mul, (void *)real_div};
    if (op > SNIPPET_DIV) return refuse_both(m, op, a, b);
    /* A float's operation in double, rounded, is the float's own. */
    return typed_cast(m, type, real_pair(m, image_ctype_float(8), routines[op], a, b));
}

/* --- integers --- */

/* 64 bits of a result, as narrow as the type. */
static const snippet *narrowed(snippet_maker *m, const image_ctype *type, const snippet *s)
{
    return s && type->size < 8 ? typed_as(m, type, s) : s;
}

static const snippet *shift(snippet_maker *m, snippet_op op, const snippet *a, const snippet *b)
{
    const image_ctype *t = typed_common(typed_type(a), image_ctype_int(4, true));
    a = typed_convert(m, t, a, "shift");
    if (t->size == 4) b = plain(m, image_ctype_int(4, true), SNIPPET_AND, b, typed_constant(m, t, 31));
    if (op == SNIPPET_SHR && t->is_signed) op = SNIPPET_SAR;
    const snippet *s = plain(m, t, op, a, b);
    return op == SNIPPET_SHL ? narrowed(m, t, s) : s;
}

static const snippet *integer_binary(snippet_maker *m, const image_ctype *t, snippet_op op, const snippet *a,
                                     const snippet *b)
{
    if (op >= SNIPPET_EQ && op <= SNIPPET_GE) {
        if (op >= SNIPPET_LT && !t->is_signed) op += SNIPPET_ULT - SNIPPET_LT;
        return plain(m, image_ctype_int(4, true), op, a, b);
    }
    if (op == SNIPPET_MIN || op == SNIPPET_MAX)
        return plain(m, t, t->is_signed ? op : op + SNIPPET_UMIN - SNIPPET_MIN, a, b);
    bool stays = op == SNIPPET_AND || op == SNIPPET_OR || op == SNIPPET_XOR || op == SNIPPET_MOD;
    const snippet *s = plain(m, t, op, a, b);
    return stays ? s : narrowed(m, t, s);
}

static const snippet *logical(snippet_maker *m, snippet_op op, const snippet *a, const snippet *b)
{
    return plain(m, image_ctype_int(4, true), op, typed_truth(m, a), typed_truth(m, b));
}

/* The operation's signed form. */
static snippet_op signed_form(snippet_op op)
{
    if (op >= SNIPPET_ULT && op <= SNIPPET_UGE) return op - SNIPPET_ULT + SNIPPET_LT;
    if (op == SNIPPET_UMIN || op == SNIPPET_UMAX) return op - SNIPPET_UMIN + SNIPPET_MIN;
    return op == SNIPPET_SAR ? SNIPPET_SHR : op;
}

const snippet *typed_binary(snippet_maker *m, snippet_op op, const snippet *a, const snippet *b)
{
    op = signed_form(op);
    if (op > SNIPPET_LOR) return typed_refuse(m, "'%s' has one operand", spelling(op));
    if (op == SNIPPET_LAND || op == SNIPPET_LOR) return logical(m, op, a, b);
    a = typed_value(m, a), b = typed_value(m, b);
    if (!a || !b) return NULL;
    if (is_pointer(a) || is_pointer(b)) {
        if (op >= SNIPPET_EQ && op <= SNIPPET_GE) return compare_pointers(m, op, a, b);
        return op == SNIPPET_ADD || op == SNIPPET_SUB ? move_pointer(m, op, a, b) : refuse_both(m, op, a, b);
    }
    if (!image_ctype_is_arithmetic(typed_type(a)) || !image_ctype_is_arithmetic(typed_type(b)))
        return refuse_both(m, op, a, b);
    if ((op == SNIPPET_SHL || op == SNIPPET_SHR) && is_integer(a) && is_integer(b)) return shift(m, op, a, b);
    const image_ctype *t = typed_common(typed_type(a), typed_type(b));
    if (t->kind == IMAGE_CTYPE_FLOAT && (op == SNIPPET_SHL || op == SNIPPET_SHR)) return refuse_both(m, op, a, b);
    const snippet *x = typed_convert(m, t, a, "use"), *y = typed_convert(m, t, b, "use");
    if (!x || !y) return NULL;
    return t->kind == IMAGE_CTYPE_FLOAT ? real_binary(m, t, op, x, y) : integer_binary(m, t, op, x, y);
}

const snippet *typed_unary(snippet_maker *m, snippet_op op, const snippet *a)
{
    char text[100];
    a = op == SNIPPET_LNOT ? typed_truth(m, a) : typed_value(m, a);
    if (!a) return NULL;
    const image_ctype *t = typed_type(a);
    bool real = t->kind == IMAGE_CTYPE_FLOAT;
    if (op != SNIPPET_LNOT && (!image_ctype_is_arithmetic(t) || (real && op == SNIPPET_NOT) || op < SNIPPET_NEG))
        return typed_refuse(m, "'%s' cannot be before '%s'", spelling(op), image_ctype_text(t, text, sizeof text));
    if (real) return plain(m, t, SNIPPET_XOR, a, typed_constant(m, image_ctype_int(8, false), 1ull << 63));
    if (op != SNIPPET_LNOT) {
        t = typed_common(t, t);
        a = typed_convert(m, t, a, "use");
    }
    snippet *s = a ? typed_node(m, SNIPPET_UNARY, op == SNIPPET_LNOT ? image_ctype_int(4, true) : t, a, NULL) : NULL;
    if (!s) return NULL;
    s->op = (uint8_t)op;
    return op == SNIPPET_LNOT ? s : narrowed(m, t, s);
}

/* --- choices, calls --- */

static const image_ctype *type_of_choice(snippet_maker *m, const snippet *a, const snippet *b)
{
    char x[100], y[100];
    const image_ctype *s = typed_type(a), *t = typed_type(b);
    if (image_ctype_is_arithmetic(s) && image_ctype_is_arithmetic(t)) return typed_common(s, t);
    if (is_pointer(a) && (is_zero(b) || image_ctype_same(s, t))) return s;
    if (is_pointer(b) && is_zero(a)) return t;
    if (is_pointer(a) && is_pointer(b) && s->of->kind == IMAGE_CTYPE_VOID) return s;
    if (is_pointer(a) && is_pointer(b) && t->of->kind == IMAGE_CTYPE_VOID) return t;
    typed_refuse(m, "a choice between '%s' and '%s'", image_ctype_text(s, x, sizeof x),
                 image_ctype_text(t, y, sizeof y));
    return NULL;
}

const snippet *typed_choice(snippet_maker *m, const snippet *condition, const snippet *a, const snippet *b)
{
    condition = typed_truth(m, condition);
    if (!condition || !a || !b) return NULL;
    const image_ctype *t = &image_ctype_void;
    if (typed_type(a)->kind != IMAGE_CTYPE_VOID || typed_type(b)->kind != IMAGE_CTYPE_VOID) {
        a = typed_value(m, a), b = typed_value(m, b);
        t = a && b ? type_of_choice(m, a, b) : NULL;
        if (!t) return NULL;
        a = typed_convert(m, t, a, "choose"), b = typed_convert(m, t, b, "choose");
    }
    snippet *s = a && b ? typed_node(m, SNIPPET_IF, t, condition, a) : NULL;
    if (s) s->c = b;
    return s;
}

static const snippet *argument(snippet_maker *m, const image_ctype *f, unsigned i, const snippet *a)
{
    const image_member *parameters;
    size_t known = image_ctype_members(f, &parameters);
    const image_ctype *wanted = i < known ? parameters[i].type : typed_type(a);
    bool whole = image_ctype_is_whole(wanted), given = whole && typed_is_object(a) && image_ctype_same(wanted, a->type);
    if (given) return a;
    if (whole && wanted->kind != IMAGE_CTYPE_STRUCT && wanted->kind != IMAGE_CTYPE_UNION)
        return typed_widen(m, wanted, a);
    if (i < known) return typed_convert(m, wanted, a, "pass");
    a = typed_value(m, a);
    if (!a) return NULL;
    const image_ctype *t = typed_type(a);
    if (!image_ctype_is_arithmetic(t)) return a;
    return typed_convert(m, t->kind == IMAGE_CTYPE_FLOAT ? image_ctype_float(8) : typed_common(t, t), a, "pass");
}

static const snippet **arguments_of(snippet_maker *m, const image_ctype *f, unsigned count,
                                    const snippet *const *arguments)
{
    const image_member *parameters;
    size_t wanted = image_ctype_members(f, &parameters);
    const snippet **args = m->alloc(m->arg, (count + 1) * sizeof *args);
    if (count < wanted || (count > wanted && !f->variadic))
        typed_refuse(m, "the routine has %zu parameters, not %u", wanted, count);
    else if (count > SNIPPET_MAX_ARGS) typed_refuse(m, "a call has at most %u arguments", SNIPPET_MAX_ARGS);
    else if (!args) typed_refuse(m, "out of memory");
    for (unsigned i = 0; i < count && !m->why[0]; i++) args[i] = argument(m, f, i, arguments[i]);
    return m->why[0] ? NULL : args;
}

/* In vector registers; where any number may follow, none can be. */
static const snippet *real_argument(snippet_maker *m, const image_ctype *f, unsigned i, const snippet *a)
{
    const image_ctype *t = typed_type(a);
    char text[100];
    if (image_ctype_is_whole(t))
        return typed_refuse(m, "a routine of the tool takes a '%s' by its address alone",
                            image_ctype_text(t, text, sizeof text));
    if (t->kind != IMAGE_CTYPE_FLOAT) return a;
    if (i >= f->member_count) return typed_refuse(m, "floating point cannot be passed for '...'");
    return typed_node(m, SNIPPET_REAL_ARG, t, typed_to_memory(m, t, a), NULL);
}

static const snippet *call_routine(snippet_maker *m, const snippet *routine, unsigned count, const snippet **args)
{
    const image_ctype *f = typed_type(routine);
    snippet *call = typed_node(m, SNIPPET_CALL, &image_ctype_void, NULL, NULL);
    if (!call) return NULL;
    for (unsigned i = 0; i < count; i++)
        if (!(args[i] = real_argument(m, f, i, args[i]))) return NULL;
    call->fn = routine->fn;
    call->args = args;
    call->nargs = (uint8_t)count;
    if (f->of->kind == IMAGE_CTYPE_VOID) return call;
    if (f->of->kind != IMAGE_CTYPE_FLOAT) return typed_as(m, f->of, call);
    call->size = (uint8_t)f->of->size;
    return typed_from_memory(m, f->of, call);
}

static const snippet *call_with_text(snippet_maker *m, const snippet *routine, unsigned count,
                                     const snippet *const *arguments)
{
    if (count != 1 || !m->text) return typed_refuse(m, "the routine takes one object");
    if (!arguments[0]) return NULL;
    if (!typed_is_object(arguments[0])) return typed_refuse(m, "the routine takes variables, not values");
    const snippet **args = m->alloc(m->arg, sizeof *args);
    if (!args) return typed_refuse(m, "out of memory");
    args[0] = m->text(m, arguments[0]);
    return args[0] ? call_routine(m, routine, count, args) : NULL;
}

/* Where objects lie that are passed as a whole is computed once, beforehand. How many such there are. */
static unsigned keep_addresses(snippet_maker *m, const snippet *address, unsigned count, const snippet **args,
                               uint32_t *numbers, const snippet **addresses)
{
    uint32_t next = snippet_fresh_local(address, NULL);
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t its = args[i]->role == TYPED_PIECES ? 0 : snippet_fresh_local(args[i], NULL);
        for (unsigned k = 0; args[i]->role == TYPED_PIECES && k < args[i]->nargs; k++) {
            uint32_t part = snippet_fresh_local(args[i]->args[k], NULL);
            if (part > its) its = part;
        }
        if (its > next) next = its;
    }
    for (unsigned i = 0; i < count; i++) {
        bool whole = args[i]->role == TYPED_OBJECT && image_ctype_is_whole(args[i]->type);
        if (!whole || args[i]->kind != SNIPPET_LOAD || typed_is_cheap(args[i]->a)) continue;
        snippet *at = typed_node(m, SNIPPET_LOCAL, image_ctype_int(8, false), NULL, NULL);
        if (!at) return kept;
        at->index = numbers[kept] = next++;
        addresses[kept++] = args[i]->a;
        args[i] = typed_object(m, args[i]->type, at);
        if (!args[i]) return kept;
    }
    return kept;
}

static const snippet *call_procedure(snippet_maker *m, const image_ctype *f, const snippet *address, unsigned count,
                                     const snippet **args)
{
    char text[100];
    if (!m->procedure) return typed_refuse(m, "procedures of the program cannot be called here");
    bool whole = image_ctype_is_whole(f->of);
    if (f->of->kind != IMAGE_CTYPE_VOID && !image_ctype_is_scalar(f->of) && !whole)
        return typed_refuse(m, "a procedure that gives a '%s' cannot be called",
                            image_ctype_text(f->of, text, sizeof text));
    const snippet *addresses[SNIPPET_MAX_ARGS];
    uint32_t numbers[SNIPPET_MAX_ARGS];
    unsigned kept = keep_addresses(m, address, count, args, numbers, addresses);
    const snippet *s = m->procedure(m, f, address, count, args);
    while (s && kept--) s = typed_let(m, numbers[kept], addresses[kept], s);
    if (whole) return typed_object(m, f->of, s);
    snippet *typed = s ? typed_node(m, SNIPPET_CONST, NULL, NULL, NULL) : NULL;
    if (!typed) return NULL;
    if (f->of->kind != IMAGE_CTYPE_VOID && f->of->kind != IMAGE_CTYPE_FLOAT) return typed_as(m, f->of, s);
    *typed = *s;
    typed->type = f->of;
    return typed;
}

const snippet *typed_call(snippet_maker *m, const snippet *routine, unsigned count, const snippet *const *arguments)
{
    if (!routine) return NULL;
    if (routine->role == TYPED_ROUTINE) routine = typed_suiting(routine, count, arguments);
    if (typed_takes_text(routine)) return call_with_text(m, routine, count, arguments);
    const image_ctype *f = typed_type(routine);
    const snippet *address = routine->kind == SNIPPET_LOAD && routine->role == TYPED_OBJECT ? routine->a : NULL;
    if (f->kind == IMAGE_CTYPE_POINTER && f->of->kind == IMAGE_CTYPE_FUNCTION) {
        address = typed_value(m, routine);
        f = f->of;
        if (!address) return NULL;
    }
    if (f->kind == IMAGE_CTYPE_VOID && address)
        return typed_refuse(m, "the type of this is not known: declare it first, as in extern int f(long)");
    if (f->kind != IMAGE_CTYPE_FUNCTION) return typed_refuse(m, "only routines and procedures can be called");
    const snippet **args = arguments_of(m, f, count, arguments);
    if (!args) return NULL;
    if (routine->role == TYPED_ROUTINE) return call_routine(m, routine, count, args);
    return address ? call_procedure(m, f, address, count, args) : typed_refuse(m, "this cannot be called");
}
