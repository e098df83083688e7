/* Expressions in a snippet's text, by C's precedence. */
#include "snippet/parser.h"

#include <string.h>

/* What an operation answers, said to be wrong at the operator where it is. */
static const snippet *checked(parser *p, const snippet *s, const char *at, bool had_failed)
{
    if (!s && !had_failed) {
        typed_refuse(p->m, "out of memory");
        parser_place(p, at);
    }
    return s;
}

#define AT(p, at, call)                                                                                                \
    __extension__({                                                                                                    \
        bool failed_ = parser_failed(p);                                                                               \
        checked((p), failed_ ? NULL : (call), (at), failed_);                                                          \
    })

static const snippet *unary(parser *p);

/* --- what stands alone --- */

static const snippet *number(parser *p)
{
    const token *t = &p->now;
    const snippet *s;
    if (t->kind == TOKEN_REAL) {
        s = typed_real(p->m, t->real);
        if (t->is_float && s) s = typed_cast(p->m, image_ctype_float(4), s);
    } else {
        bool is_char = t->kind == TOKEN_CHAR;
        s = typed_constant(p->m, image_ctype_int(t->is_long && !is_char ? 8 : 4, is_char || !t->is_unsigned),
                           t->number);
    }
    parser_advance(p);
    return s;
}

enum { MOST_STRING = 4096 };

/* Neighbours are one string. */
static const snippet *string(parser *p)
{
    char bytes[MOST_STRING];
    size_t n = 0;
    const char *at = p->now.at;
    for (; p->now.kind == TOKEN_STRING; parser_advance(p)) {
        if (n + (size_t)(p->now.end - p->now.at) >= sizeof bytes) return parser_refuse(p, "this string is too long");
        n += parser_string(&p->now, bytes + n);
    }
    bytes[n++] = 0;
    if (parser_failed(p)) return NULL;
    const snippet *address = p->names->string ? p->names->string(p->names->arg, p->m, bytes, n) : NULL;
    if (!address && !parser_failed(p)) typed_refuse(p->m, "strings cannot be used here");
    if (!address) parser_place(p, at);
    return address ? typed_object(p->m, typed_array_of(p->m, &image_ctype_char, n), address) : NULL;
}

static unsigned arguments(parser *p, const snippet **list)
{
    unsigned n = 0;
    parser_advance(p);
    while (!parser_is(p, MARK1(')')) && !parser_failed(p)) {
        if (n == SNIPPET_MAX_ARGS) {
            parser_refuse(p, "a call has at most %d arguments", SNIPPET_MAX_ARGS);
            return 0;
        }
        list[n++] = parser_assignment(p);
        if (!parser_take(p, MARK1(','))) break;
    }
    parser_want(p, MARK1(')'), "')'");
    return n;
}

/* min and max, unless the program has such names. */
static const snippet *least_or_most(parser *p, bool most)
{
    const snippet *list[SNIPPET_MAX_ARGS], *s;
    const char *at = p->now.at;
    parser_advance(p);
    unsigned n = arguments(p, list);
    if (parser_failed(p)) return NULL;
    if (n < 2) return AT(p, at, typed_refuse(p->m, "two values are compared, or more"));
    s = list[0];
    for (unsigned i = 1; i < n; i++) s = AT(p, at, typed_binary(p->m, most ? SNIPPET_MAX : SNIPPET_MIN, s, list[i]));
    return s;
}

static const snippet *name(parser *p)
{
    const snippet *s = parser_find(p, p->now.name);
    if (parser_failed(p)) return NULL;
    bool call = p->next.kind == TOKEN_MARK && p->next.mark == '(';
    if (!s && call && (parser_word(p, "min") || parser_word(p, "max"))) return least_or_most(p, parser_word(p, "max"));
    const char *why = s || !p->names->unknown ? NULL : p->names->unknown(p->names->arg, p->now.name);
    if (!s) return parser_refuse(p, "'%s' is not known%s%s", p->now.name, why ? ": " : "", why ? why : "");
    parser_advance(p);
    return s;
}

static const snippet *special(parser *p)
{
    const char *at = p->now.at;
    const snippet *s = p->names->special ? p->names->special(p->names->arg, p->m, p->now.name) : NULL;
    if (!s && !parser_failed(p)) typed_refuse(p->m, "'$%s' is not known", p->now.name);
    if (!s) parser_place(p, at);
    parser_advance(p);
    return s;
}

static const snippet *size_of(parser *p)
{
    const image_ctype *t;
    const char *at = p->now.at;
    char text[100];
    if (parser_is(p, MARK1('(')) && p->next.kind == TOKEN_NAME) {
        parser_advance(p);
        if (parser_at_type(p)) {
            t = parser_type_name(p);
        } else {
            const snippet *s = parser_expression(p);
            t = s ? typed_type(s) : NULL;
        }
        parser_want(p, MARK1(')'), "')'");
    } else {
        const snippet *s = unary(p);
        t = s ? typed_type(s) : NULL;
    }
    if (!t || parser_failed(p)) return NULL;
    if (!t->size || t->kind == IMAGE_CTYPE_BITS)
        return AT(p, at, typed_refuse(p->m, "the size of '%s' is not known", image_ctype_text(t, text, sizeof text)));
    return typed_constant(p->m, image_ctype_int(8, false), t->size);
}

static const snippet *primary(parser *p)
{
    switch (p->now.kind) {
    case TOKEN_NUMBER:
    case TOKEN_REAL:
    case TOKEN_CHAR: return number(p);
    case TOKEN_STRING: return string(p);
    case TOKEN_SPECIAL: return special(p);
    case TOKEN_NAME: return name(p);
    default: break;
    }
    if (!parser_is(p, MARK1('('))) return parser_refuse(p, "an expression is missing here");
    if (!parser_enter(p)) return NULL;
    parser_advance(p);
    const snippet *s = parser_expression(p);
    parser_want(p, MARK1(')'), "')'");
    p->depth--;
    return s;
}

/* --- behind it --- */

static const snippet *member(parser *p, const snippet *s)
{
    const char *at = p->now.at;
    bool arrow = parser_is(p, MARK2('-', '>'));
    parser_advance(p);
    if (p->now.kind != TOKEN_NAME) return parser_refuse(p, "a member's name must follow");
    if (arrow) s = AT(p, at, typed_deref(p->m, s));
    s = AT(p, p->now.at, typed_member(p->m, s, p->now.name));
    parser_advance(p);
    return s;
}

static const snippet *step_behind(parser *p, const snippet *s)
{
    const char *at = p->now.at;
    bool up = parser_is(p, MARK2('+', '+'));
    const snippet *one = typed_constant(p->m, image_ctype_int(4, true), 1);
    parser_advance(p);
    const snippet *plain = AT(p, at, typed_update(p->m, up ? SNIPPET_ADD : SNIPPET_SUB, s, one));
    s = AT(p, at, typed_step_behind(p->m, s, up ? 1 : -1));
    p->behind = s, p->plain = plain;
    return s;
}

static const snippet *index_of(parser *p, const snippet *s)
{
    const char *at = p->now.at;
    parser_advance(p);
    const snippet *i = parser_expression(p);
    parser_want(p, MARK1(']'), "']'");
    return AT(p, at, typed_index(p->m, s, i));
}

static const snippet *call(parser *p, const snippet *s)
{
    const snippet *list[SNIPPET_MAX_ARGS];
    const char *at = p->now.at;
    unsigned n = arguments(p, list);
    return AT(p, at, typed_call(p->m, s, n, list));
}

static const snippet *postfix(parser *p)
{
    const snippet *s = primary(p);
    while (s && !parser_failed(p)) {
        if (parser_is(p, MARK1('['))) s = index_of(p, s);
        else if (parser_is(p, MARK1('('))) s = call(p, s);
        else if (parser_is(p, MARK1('.')) || parser_is(p, MARK2('-', '>'))) s = member(p, s);
        else if (parser_is(p, MARK2('+', '+')) || parser_is(p, MARK2('-', '-'))) s = step_behind(p, s);
        else break;
    }
    return parser_failed(p) ? NULL : s;
}

/* --- in front of it --- */

static const snippet *cast(parser *p)
{
    const char *at = p->now.at;
    parser_advance(p);
    const image_ctype *t = parser_type_name(p);
    if (!t || !parser_want(p, MARK1(')'), "')'")) return NULL;
    return AT(p, at, typed_cast(p->m, t, unary(p)));
}

static const snippet *prefix(parser *p, uint32_t mark)
{
    const char *at = p->now.at;
    parser_advance(p);
    const snippet *s = unary(p), *one;
    if (!s || parser_failed(p)) return NULL;
    switch (mark) {
    case MARK1('-'): return AT(p, at, typed_unary(p->m, SNIPPET_NEG, s));
    case MARK1('~'): return AT(p, at, typed_unary(p->m, SNIPPET_NOT, s));
    case MARK1('!'): return AT(p, at, typed_unary(p->m, SNIPPET_LNOT, s));
    case MARK1('*'): return AT(p, at, typed_deref(p->m, s));
    case MARK1('&'): return AT(p, at, typed_address(p->m, s));
    case MARK1('+'):
        return AT(p, at, typed_binary(p->m, SNIPPET_ADD, s, typed_constant(p->m, image_ctype_int(4, true), 0)));
    default: break;
    }
    one = typed_constant(p->m, image_ctype_int(4, true), 1);
    return AT(p, at, typed_update(p->m, mark == MARK2('+', '+') ? SNIPPET_ADD : SNIPPET_SUB, s, one));
}

static bool is_prefix(const parser *p)
{
    static const uint32_t marks[] = {MARK1('-'), MARK1('~'), MARK1('!'),      MARK1('*'),
                                     MARK1('&'), MARK1('+'), MARK2('+', '+'), MARK2('-', '-')};
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++)
        if (parser_is(p, marks[i])) return true;
    return false;
}

/* Does a type stand behind this parenthesis? */
static bool is_cast(parser *p)
{
    if (!parser_is(p, MARK1('(')) || p->next.kind != TOKEN_NAME) return false;
    parser ahead = *p;
    parser_advance(&ahead);
    bool type = parser_at_type(&ahead);
    return type || parser_failed(p);
}

static const snippet *unary(parser *p)
{
    const snippet *s;
    if (!parser_enter(p)) return NULL;
    if (is_prefix(p)) s = prefix(p, p->now.mark);
    else if (parser_take_word(p, "sizeof")) s = size_of(p);
    else if (is_cast(p)) s = cast(p);
    else s = postfix(p);
    p->depth--;
    return parser_failed(p) ? NULL : s;
}

/* --- between two --- */

typedef struct operator_row {
    uint32_t mark;
    uint8_t level, op;
} operator_row;

static const operator_row operators[] = {
    {MARK2('|', '|'), 1, SNIPPET_LOR}, {MARK2('&', '&'), 2, SNIPPET_LAND}, {MARK1('|'), 3, SNIPPET_OR},
    {MARK1('^'), 4, SNIPPET_XOR},      {MARK1('&'), 5, SNIPPET_AND},       {MARK2('=', '='), 6, SNIPPET_EQ},
    {MARK2('!', '='), 6, SNIPPET_NE},  {MARK1('<'), 7, SNIPPET_LT},        {MARK1('>'), 7, SNIPPET_GT},
    {MARK2('<', '='), 7, SNIPPET_LE},  {MARK2('>', '='), 7, SNIPPET_GE},   {MARK2('<', '<'), 8, SNIPPET_SHL},
    {MARK2('>', '>'), 8, SNIPPET_SHR}, {MARK1('+'), 9, SNIPPET_ADD},       {MARK1('-'), 9, SNIPPET_SUB},
    {MARK1('*'), 10, SNIPPET_MUL},     {MARK1('/'), 10, SNIPPET_DIV},      {MARK1('%'), 10, SNIPPET_MOD},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static const operator_row *operator_at(const parser *p)
{
    for (unsigned i = 0; i < OPERATORS; i++)
        if (parser_is(p, operators[i].mark)) return &operators[i];
    return NULL;
}

static const snippet *binary(parser *p, unsigned level)
{
    const operator_row *row;
    const snippet *s = unary(p);
    while (s && (row = operator_at(p)) && row->level >= level) {
        const char *at = p->now.at;
        parser_advance(p);
        const snippet *right = binary(p, row->level + 1u);
        s = AT(p, at, typed_binary(p->m, (snippet_op)row->op, s, right));
    }
    return parser_failed(p) ? NULL : s;
}

static const snippet *choice(parser *p)
{
    const snippet *s = binary(p, 1);
    const char *at = p->now.at;
    if (!s || !parser_is(p, MARK1('?')) || !parser_enter(p)) return s;
    parser_advance(p);
    const snippet *yes = parser_expression(p);
    parser_want(p, MARK1(':'), "':'");
    const snippet *no = choice(p);
    p->depth--;
    return AT(p, at, typed_choice(p->m, s, yes, no));
}

/* The operation of "+=" and the like: that of its first characters. */
static const operator_row *updating(const parser *p)
{
    uint32_t mark = p->now.mark;
    if (p->now.kind != TOKEN_MARK) return NULL;
    uint32_t first = mark >> 16 == '=' ? mark & 0xffff : mark >> 8 == '=' ? mark & 0xff : 0;
    for (unsigned i = 0; i < OPERATORS; i++)
        if (operators[i].mark == first && (operators[i].op <= SNIPPET_SAR)) return &operators[i];
    return NULL;
}

const snippet *parser_assignment(parser *p)
{
    const snippet *s = choice(p), *value;
    const char *at = p->now.at;
    const operator_row *row = updating(p);
    if (!s || (!row && !parser_is(p, MARK1('='))) || !parser_enter(p)) return parser_failed(p) ? NULL : s;
    parser_advance(p);
    value = parser_assignment(p);
    p->depth--;
    if (row) return AT(p, at, typed_update(p->m, (snippet_op)row->op, s, value));
    return AT(p, at, typed_assign(p->m, s, value));
}

const snippet *parser_expression(parser *p) { return parser_assignment(p); }
