/* Types in a snippet's text: their words, pointers, dimensions. */
#include "snippet/parser.h"

#include <stdio.h>
#include <string.h>

static bool is_qualifier(const parser *p)
{
    return parser_word(p, "const") || parser_word(p, "volatile") || parser_word(p, "restrict");
}

static bool is_basic_word(const char *name)
{
    static const char *const words[] = {"void", "bool",  "_Bool",  "char",   "short",    "int",
                                        "long", "float", "double", "signed", "unsigned", "__int128"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i])) return true;
    return false;
}

static bool is_tag_word(const parser *p)
{
    return parser_word(p, "struct") || parser_word(p, "union") || parser_word(p, "enum");
}

static const image_ctype *named(parser *p, const char *name)
{
    const image_ctype *t = p->names->type ? p->names->type(p->names->arg, p->m, name) : NULL;
    return t || parser_failed(p) ? t : image_ctype_basic(name);
}

/* Nobody need look for these. */
static bool is_reserved(const parser *p)
{
    static const char *const words[] = {"if", "else", "while", "for", "break", "static", "extern", "sizeof"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (parser_word(p, words[i])) return true;
    return false;
}

bool parser_at_type(parser *p)
{
    if (p->now.kind != TOKEN_NAME || parser_failed(p) || is_reserved(p)) return false;
    if (is_qualifier(p) || is_tag_word(p) || is_basic_word(p->now.name)) return true;
    /* A name that is a variable hides a type of its name. */
    return !parser_find(p, p->now.name) && !parser_failed(p) && named(p, p->now.name) && !parser_failed(p);
}

/* "unsigned", "long", "int" ... in any order. */
typedef struct words {
    unsigned is_long, is_short, is_signed, is_unsigned, others;
    const char *other; /* char, int, float, double, bool, void */
} words;

static void take_word(parser *p, words *w)
{
    static const char *const others[] = {"void", "bool", "_Bool", "char", "int", "float", "double", "__int128"};
    if (parser_word(p, "long")) w->is_long++;
    else if (parser_word(p, "short")) w->is_short++;
    else if (parser_word(p, "signed")) w->is_signed++;
    else if (parser_word(p, "unsigned")) w->is_unsigned++;
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (parser_word(p, others[i])) w->other = others[i], w->others++;
    parser_advance(p);
}

static const image_ctype *basic_of(parser *p, const words *w)
{
    const char *other = w->other ? w->other : "int";
    bool is_wide = !strcmp(other, "__int128"), is_int = !strcmp(other, "int"), is_char = !strcmp(other, "char");
    bool sized = w->is_long || w->is_short, with_sign = w->is_signed || w->is_unsigned;
    bool wrong = w->others > 1 || w->is_long > 2 || w->is_short > 1 || w->is_signed + w->is_unsigned > 1 ||
                 (w->is_long && w->is_short) || (sized && !is_int && strcmp(other, "double")) ||
                 (with_sign && !is_int && !is_char && !is_wide);
    if (wrong) {
        parser_refuse(p, "there is no such type");
        return NULL;
    }
    if (!strcmp(other, "double") && sized) return &image_ctype_long_double;
    if (is_wide && w->is_unsigned) return image_ctype_basic("unsigned __int128");
    if (is_char && !with_sign) return named(p, "char");
    if (is_char) return image_ctype_int(1, w->is_signed);
    if (is_int) return image_ctype_int(w->is_long ? 8 : w->is_short ? 2 : 4, !w->is_unsigned);
    return image_ctype_basic(other);
}

static const image_ctype *tagged(parser *p)
{
    char name[2 * PARSE_NAME];
    snprintf(name, sizeof name, "%s ", p->now.name);
    parser_advance(p);
    if (p->now.kind != TOKEN_NAME) {
        parser_refuse(p, "a name must follow");
        return NULL;
    }
    snprintf(name + strlen(name), PARSE_NAME, "%s", p->now.name);
    const image_ctype *t = named(p, name);
    if (!t) parser_refuse(p, "'%s' is not known", name);
    parser_advance(p);
    return t;
}

const image_ctype *parser_type(parser *p)
{
    const image_ctype *t = NULL;
    words w = {0};
    bool basic = false;
    while (!parser_failed(p) && p->now.kind == TOKEN_NAME) {
        if (is_qualifier(p)) {
            parser_advance(p);
        } else if (!t && is_basic_word(p->now.name)) {
            basic = true;
            take_word(p, &w);
        } else if (!t && !basic && is_tag_word(p)) {
            t = tagged(p);
        } else if (!t && !basic) {
            t = named(p, p->now.name);
            if (!t) parser_refuse(p, "'%s' is not a type that is known", p->now.name);
            parser_advance(p);
        } else {
            break;
        }
    }
    if (basic && !parser_failed(p)) t = basic_of(p, &w);
    if (!t) parser_refuse(p, "a type is missing here");
    return parser_failed(p) ? NULL : t;
}

/* [N][M]: the first is the outermost. */
static const image_ctype *dimensions(parser *p, const image_ctype *of)
{
    uint64_t counts[4];
    unsigned n = 0;
    char text[100];
    while (parser_take(p, MARK1('['))) {
        if (n == 4 || p->now.kind != TOKEN_NUMBER || p->now.number == 0 || p->now.number > 1 << 24) {
            parser_refuse(p, "a dimension is a number from 1 to 16777216, and there are at most 4");
            return NULL;
        }
        counts[n++] = p->now.number;
        parser_advance(p);
        if (!parser_want(p, MARK1(']'), "']'")) return NULL;
    }
    if (n && of && !of->size) {
        parser_refuse(p, "the size of '%s' is not known", image_ctype_text(of, text, sizeof text));
        return NULL;
    }
    while (n && of) of = typed_array_of(p->m, of, counts[--n]);
    if (of && of->size > 1u << 30) parser_refuse(p, "this is too large");
    return parser_failed(p) ? NULL : of;
}

const image_ctype *parser_declarator(parser *p, const image_ctype *base, char name[PARSE_NAME])
{
    name[0] = 0;
    for (unsigned i = 0; base && parser_take(p, MARK1('*')); i++) {
        if (i == 16) {
            parser_refuse(p, "these are too many pointers");
            return NULL;
        }
        base = typed_pointer_to(p->m, base);
        while (is_qualifier(p)) parser_advance(p);
    }
    if (p->now.kind == TOKEN_NAME) {
        memcpy(name, p->now.name, PARSE_NAME);
        parser_advance(p);
    }
    return base ? dimensions(p, base) : NULL;
}

const image_ctype *parser_type_name(parser *p)
{
    char name[PARSE_NAME];
    const image_ctype *t = parser_type(p);
    const char *at = p->now.at;
    t = t ? parser_declarator(p, t, name) : NULL;
    if (t && name[0]) {
        typed_refuse(p->m, "a name has no place here");
        parser_place(p, at);
        return NULL;
    }
    return t;
}

const image_ctype *snippet_parse_type(snippet_maker *m, const snippet_names *names, const char *text)
{
    parser p;
    parser_begin(&p, m, names, text);
    const image_ctype *t = parser_type_name(&p);
    if (t && p.now.kind != TOKEN_END) parser_refuse(&p, "the type should end here");
    return parser_failed(&p) ? NULL : t;
}

enum { MOST_PARAMETERS = 12 };

static bool parameters(parser *p, image_ctype *f, image_member *list)
{
    if (parser_word(p, "void") && p->next.kind == TOKEN_MARK && p->next.mark == ')') parser_advance(p);
    while (!parser_is(p, MARK1(')')) && !parser_failed(p)) {
        char name[PARSE_NAME];
        if (parser_take(p, MARK3('.', '.', '.'))) {
            f->variadic = true;
            break;
        }
        const image_ctype *t = parser_type(p);
        t = t ? parser_declarator(p, t, name) : NULL;
        if (t && f->member_count == MOST_PARAMETERS)
            parser_refuse(p, "a routine has at most %d parameters", MOST_PARAMETERS);
        if (!t || parser_failed(p)) return false;
        if (t->kind == IMAGE_CTYPE_ARRAY) t = typed_pointer_to(p->m, t->of);
        list[f->member_count++] = (image_member){"", t, 0};
        if (!parser_take(p, MARK1(','))) break;
    }
    return parser_want(p, MARK1(')'), "')'");
}

const image_ctype *parser_parameters(parser *p, const image_ctype *result)
{
    image_ctype *f = p->m->alloc(p->m->arg, sizeof *f);
    image_member *list = p->m->alloc(p->m->arg, MOST_PARAMETERS * sizeof *list);
    if (!result || !f || !list) {
        parser_refuse(p, "out of memory");
        return NULL;
    }
    f->kind = IMAGE_CTYPE_FUNCTION;
    f->of = result;
    f->members = list;
    return parser_want(p, MARK1('('), "'('") && parameters(p, f, list) ? f : NULL;
}

const image_ctype *snippet_parse_prototype(snippet_maker *m, const snippet_names *names, const char *text, char *name,
                                           size_t size)
{
    parser p;
    char its[PARSE_NAME];
    parser_begin(&p, m, names, text);
    const image_ctype *result = parser_type(&p);
    result = result ? parser_declarator(&p, result, its) : NULL;
    if (result && !its[0]) parser_refuse(&p, "the routine's name is missing here");
    const image_ctype *f = result && !parser_failed(&p) ? parser_parameters(&p, result) : NULL;
    if (!f) return NULL;
    if (p.now.kind != TOKEN_END && !parser_take(&p, MARK1(';'))) parser_refuse(&p, "the declaration should end here");
    snprintf(name, size, "%s", its);
    return parser_failed(&p) ? NULL : f;
}
