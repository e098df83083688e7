/* Statements and declarations in a snippet's text. */
#include "snippet/parse.h"
#include "snippet/parser.h"

#include <string.h>

const snippet *parser_find(parser *p, const char *name)
{
    for (unsigned i = p->count; i--;)
        if (!strcmp(p->in_sight[i].name, name)) return p->in_sight[i].object;
    const char *at = p->now.at;
    const snippet *s = p->names->find ? p->names->find(p->names->arg, p->m, name) : NULL;
    if (!s && parser_failed(p)) parser_place(p, at);
    return s;
}

static const snippet *nothing(parser *p) { return typed_constant(p->m, &image_ctype_void, 0); }

static bool declare(parser *p, const char *name, const snippet *object, const char *at)
{
    if (object && p->count == PARSE_SCOPE) {
        typed_refuse(p->m, "these are too many variables");
        parser_place(p, at);
    }
    if (!object || parser_failed(p)) return false;
    memcpy(p->in_sight[p->count].name, name, PARSE_NAME);
    p->in_sight[p->count++].object = object;
    return true;
}

static const snippet *statement(parser *p);
static const snippet *list(parser *p);

/* An expression for what it does. */
static const snippet *effect(parser *p)
{
    const char *at = p->now.at;
    p->behind = NULL;
    const snippet *s = parser_expression(p);
    if (!s) return NULL;
    if (s == p->behind) s = p->plain;
    if (s->role == TYPED_ROUTINE) {
        typed_refuse(p->m, "a routine of the tool can only be called");
        parser_place(p, at);
        return NULL;
    }
    p->whole = s;
    if (s->role == TYPED_PIECES) return p->whole_code = nothing(p);
    const snippet *code = typed_executed(s); /* what a call gives lies somewhere */
    if (code != s) p->whole_code = s = code;
    else if (s->role == TYPED_OBJECT) s = typed_value(p->m, s);
    if (!s) parser_place(p, at);
    return s;
}

static const snippet *condition(parser *p)
{
    parser_want(p, MARK1('('), "'('");
    const char *at = p->now.at;
    const snippet *s = parser_failed(p) ? NULL : parser_expression(p);
    if (!s) return NULL;
    s = typed_truth(p->m, s);
    if (!s) parser_place(p, at);
    parser_want(p, MARK1(')'), "')'");
    return parser_failed(p) ? NULL : s;
}

static const snippet *if_statement(parser *p)
{
    const snippet *c = condition(p), *yes = c ? statement(p) : NULL, *no = NULL;
    if (!yes) return NULL;
    if (parser_take_word(p, "else") && !(no = statement(p))) return NULL;
    snippet *s = typed_node(p->m, SNIPPET_IF, &image_ctype_void, c, yes);
    if (s) s->c = no;
    return s;
}

static const snippet *loop(parser *p, const snippet *c, const snippet *body)
{
    return c && body ? typed_node(p->m, SNIPPET_WHILE, &image_ctype_void, c, body) : NULL;
}

static const snippet *body_of(parser *p)
{
    p->loops++;
    const snippet *s = statement(p);
    p->loops--;
    return s;
}

static const snippet *while_statement(parser *p)
{
    const snippet *c = condition(p);
    return c ? loop(p, c, body_of(p)) : NULL;
}

static const snippet *declaration(parser *p, bool in_for);

/* for (a; b; c) d  is  { a; while (b) { d; c; } } */
static const snippet *for_rest(parser *p)
{
    const snippet *c = NULL, *step = NULL, *body;
    const char *at = p->now.at;
    if (parser_is(p, MARK1(';'))) c = typed_constant(p->m, image_ctype_int(4, true), 1);
    else c = parser_expression(p);
    c = c ? typed_truth(p->m, c) : NULL;
    if (!c) parser_place(p, at);
    if (!parser_want(p, MARK1(';'), "';'")) return NULL;
    if (!parser_is(p, MARK1(')')) && !(step = effect(p))) return NULL;
    if (!parser_want(p, MARK1(')'), "')'") || !(body = body_of(p))) return NULL;
    return loop(p, c, step ? typed_sequence(p->m, body, step) : body);
}

static const snippet *for_statement(parser *p)
{
    unsigned outside = p->count;
    const snippet *first, *s;
    if (!parser_want(p, MARK1('('), "'('")) return NULL;
    if (parser_at_type(p)) {
        s = declaration(p, true);
    } else {
        first = parser_is(p, MARK1(';')) ? nothing(p) : effect(p);
        if (!parser_want(p, MARK1(';'), "';'")) return NULL;
        s = typed_sequence(p->m, first, for_rest(p));
    }
    p->count = outside;
    return s;
}

/* --- declarations --- */

static const snippet *initial(parser *p, const image_ctype *t, const char *at)
{
    char text[100];
    if (!image_ctype_is_scalar(t)) {
        typed_refuse(p->m, "a variable of one execution has a simple type, not '%s' (others: static)",
                     image_ctype_text(t, text, sizeof text));
        parser_place(p, at);
        return NULL;
    }
    if (!parser_take(p, MARK1('='))) return typed_constant(p->m, t, 0);
    const char *from = p->now.at;
    const snippet *s = parser_assignment(p);
    s = s ? typed_convert(p->m, t, s, "assign") : NULL;
    if (!s) parser_place(p, from);
    return parser_failed(p) ? NULL : s;
}

/* What follows a declaration sees its variable: the rest of the block, or of the `for`. */
static const snippet *rest(parser *p, const image_ctype *base, bool in_for);

static const snippet *one_local(parser *p, const image_ctype *base, bool in_for)
{
    char name[PARSE_NAME];
    const char *at = p->now.at;
    const image_ctype *t = parser_declarator(p, base, name);
    if (t && !name[0]) parser_refuse(p, "a variable's name is missing here");
    const snippet *value = t && !parser_failed(p) ? initial(p, t, at) : NULL;
    uint32_t number = ++p->locals;
    if (!value || !declare(p, name, typed_local(p->m, t, number), at)) return NULL;
    const snippet *body = rest(p, base, in_for);
    snippet *s = body ? typed_node(p->m, SNIPPET_LET, &image_ctype_void, value, body) : NULL;
    if (s) s->index = number;
    return s;
}

static const snippet *rest(parser *p, const image_ctype *base, bool in_for)
{
    if (parser_is(p, MARK1(','))) {
        if (!parser_enter(p)) return NULL;
        parser_advance(p);
        const snippet *s = one_local(p, base, in_for);
        p->depth--;
        return s;
    }
    if (p->now.kind != TOKEN_END && !parser_want(p, MARK1(';'), "';'")) return NULL;
    return in_for ? for_rest(p) : list(p);
}

static const snippet *statics(parser *p)
{
    const image_ctype *base = parser_type(p);
    while (base && !parser_failed(p)) {
        char name[PARSE_NAME], text[100];
        const char *at = p->now.at;
        const image_ctype *t = parser_declarator(p, base, name);
        if (t && !name[0]) parser_refuse(p, "a variable's name is missing here");
        if (parser_is(p, MARK1('='))) parser_refuse(p, "a static variable begins as zero");
        if (!t || parser_failed(p)) return NULL;
        const snippet *v = NULL;
        if (!t->size) typed_refuse(p->m, "the size of '%s' is not known", image_ctype_text(t, text, sizeof text));
        else v = p->names->variable ? p->names->variable(p->names->arg, p->m, name, t) : NULL;
        if (!v && !parser_failed(p)) typed_refuse(p->m, "there can be no new variables here");
        if (!v) parser_place(p, at);
        if (!declare(p, name, v, at)) return NULL;
        if (!parser_take(p, MARK1(','))) break;
    }
    if (!base || (p->now.kind != TOKEN_END && !parser_want(p, MARK1(';'), "';'"))) return NULL;
    return nothing(p);
}

/* extern long f(int, const char *, ...); of a procedure, extern int v; of a variable: something of the program's of
 * which the type is not known, or is another. */
static const snippet *externs(parser *p)
{
    char name[PARSE_NAME];
    const image_ctype *base = parser_type(p), *t = NULL;
    const char *at = p->now.at;
    if (base) t = parser_declarator(p, base, name);
    if (t && !name[0]) parser_refuse(p, "a name is missing here");
    if (t && parser_is(p, MARK1('('))) t = parser_parameters(p, t);
    if (!t || parser_failed(p)) return NULL;
    const snippet *known = p->names->find ? p->names->find(p->names->arg, p->m, name) : NULL;
    if (!known && !parser_failed(p)) typed_refuse(p->m, "the program has no '%s'", name);
    const snippet *address = known ? typed_address(p->m, known) : NULL;
    if (!address) parser_place(p, at);
    if (!address || !declare(p, name, typed_object(p->m, t, address), at)) return NULL;
    if (p->now.kind != TOKEN_END && !parser_want(p, MARK1(';'), "';'")) return NULL;
    return nothing(p);
}

static const snippet *declaration(parser *p, bool in_for)
{
    const image_ctype *base = parser_type(p);
    return base ? one_local(p, base, in_for) : NULL;
}

/* --- statements --- */

static const snippet *block(parser *p)
{
    unsigned outside = p->count;
    parser_advance(p);
    const snippet *s = list(p);
    p->count = outside;
    parser_want(p, MARK1('}'), "'}'");
    return parser_failed(p) ? NULL : s;
}

static const snippet *break_statement(parser *p)
{
    if (!p->loops) return parser_refuse(p, "break stands outside of a loop");
    parser_advance(p);
    return typed_node(p->m, SNIPPET_BREAK, &image_ctype_void, NULL, NULL);
}

static const snippet *simple(parser *p)
{
    const snippet *s = parser_word(p, "break") ? break_statement(p) : effect(p);
    if (s && p->now.kind != TOKEN_END && !parser_is(p, MARK1('}'))) parser_want(p, MARK1(';'), "';'");
    return parser_failed(p) ? NULL : s;
}

static const snippet *statement(parser *p)
{
    const snippet *s;
    if (!parser_enter(p)) return NULL;
    if (parser_is(p, MARK1('{'))) s = block(p);
    else if (parser_take(p, MARK1(';'))) s = nothing(p);
    else if (parser_take_word(p, "if")) s = if_statement(p);
    else if (parser_take_word(p, "while")) s = while_statement(p);
    else if (parser_take_word(p, "for")) s = for_statement(p);
    else if (parser_word(p, "static") || parser_word(p, "extern") || parser_at_type(p))
        s = parser_refuse(p, "a declaration stands in a block");
    else s = simple(p);
    p->depth--;
    return parser_failed(p) ? NULL : s;
}

/* Statements and declarations up to the end of the block. */
static const snippet *list(parser *p)
{
    const snippet *s = NULL;
    if (!parser_enter(p)) return NULL;
    while (p->now.kind != TOKEN_END && !parser_is(p, MARK1('}')) && !parser_failed(p)) {
        const snippet *one;
        bool local = false;
        if (parser_take_word(p, "static")) one = statics(p);
        else if (parser_take_word(p, "extern")) one = externs(p);
        else if ((local = parser_at_type(p))) one = declaration(p, false);
        else one = statement(p);
        if (!one) break;
        s = s ? typed_sequence(p->m, s, one) : one;
        if (local) break; /* the rest is within it */
    }
    p->depth--;
    if (parser_failed(p)) return NULL;
    return s ? s : nothing(p);
}

const snippet *snippet_parse(snippet_maker *m, const snippet_names *names, const char *text)
{
    declared in_sight[PARSE_SCOPE];
    parser p;
    parser_begin(&p, m, names, text);
    p.in_sight = in_sight;
    if (p.now.kind == TOKEN_END && !parser_failed(&p)) return parser_refuse(&p, "there is no code");
    const snippet *s = list(&p);
    if (s && p.now.kind != TOKEN_END) parser_refuse(&p, "this has no meaning here");
    if (s && s == p.whole_code) s = p.whole; /* it is all that there is: for who asks for its value */
    if (!s) typed_refuse(m, "out of memory");
    parser_place(&p, p.now.at);
    return parser_failed(&p) ? NULL : s;
}
