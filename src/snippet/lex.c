/* A snippet's text, token by token. Nothing is allocated: a token points into the text. */
#include "snippet/parser.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parser_failed(const parser *p) { return p->m->why[0] != 0; }

void parser_place(parser *p, const char *at)
{
    char text[sizeof p->m->why];
    unsigned line = 1, column = 1;
    if (!parser_failed(p) || p->m->placed) return;
    p->m->placed = true;
    snprintf(text, sizeof text, "%s", p->m->why);
    bool lines = strchr(p->text, '\n') != NULL;
    for (const char *c = p->text; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    if (lines) snprintf(p->m->why, sizeof p->m->why, "%u:%u: %.*s", line, column, (int)sizeof text - 30, text);
    else snprintf(p->m->why, sizeof p->m->why, "%u: %.*s", column, (int)sizeof text - 30, text);
}

const snippet *parser_refuse(parser *p, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    if (parser_failed(p)) return NULL;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    typed_refuse(p->m, "%s", text);
    parser_place(p, p->now.at);
    return NULL;
}

/* An error in a token that is only looked ahead at. */
static void bad(parser *p, const char *at, const char *why)
{
    if (parser_failed(p)) return;
    typed_refuse(p->m, "%s", why);
    parser_place(p, at);
}

static bool is_name(char c, bool first)
{
    return isalpha((unsigned char)c) || c == '_' || (!first && isdigit((unsigned char)c));
}

static const char *keep_name(parser *p, token *t, const char *from, const char *end)
{
    size_t n = (size_t)(end - from);
    if (n == 0) bad(p, from, "a name must stand here");
    else if (n >= PARSE_NAME) bad(p, from, "this name is too long");
    else memcpy(t->name, from, n), t->name[n] = 0;
    return end;
}

/* With the spaces that it is in: a::b::c. */
static const char *read_name(parser *p, token *t, const char *c)
{
    const char *from = c;
    while (is_name(*c, c == from) || (c > from && c[0] == ':' && c[1] == ':' && is_name(c[2], true)))
        c += *c == ':' ? 2 : 1;
    return keep_name(p, t, from, c);
}

/* `any text`: a name as a demangler writes it, with its types. */
static const char *read_marked_name(parser *p, token *t, const char *c)
{
    const char *end = strchr(++c, '`');
    if (!end) bad(p, t->at, "this name does not end");
    return end ? keep_name(p, t, c, end) + 1 : c;
}

static const char *skip_space(parser *p, const char *c)
{
    for (;;) {
        while (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r') c++;
        if (c[0] == '/' && c[1] == '/') {
            while (*c && *c != '\n') c++;
        } else if (c[0] == '/' && c[1] == '*') {
            const char *end = strstr(c + 2, "*/");
            if (!end) {
                bad(p, c, "this comment does not end");
                return c + strlen(c);
            }
            c = end + 2;
        } else {
            return c;
        }
    }
}

/* --- numbers --- */

static const char *read_suffix(token *t, const char *c)
{
    for (unsigned i = 0; i < 3; i++) {
        if (*c == 'u' || *c == 'U') t->is_unsigned = true;
        else if (*c == 'l' || *c == 'L') t->is_long = true;
        else break;
        c++;
    }
    return c;
}

static const char *read_real(parser *p, token *t, const char *c)
{
    char *end;
    t->kind = TOKEN_REAL;
    t->real = strtod(c, &end);
    if (*end == 'f' || *end == 'F') t->is_float = true, end++;
    if (is_name(*end, false)) bad(p, c, "this is not a number");
    return end;
}

static bool is_real(const char *c)
{
    if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) return false;
    while (isdigit((unsigned char)*c)) c++;
    return *c == '.' || *c == 'e' || *c == 'E';
}

static const char *read_number(parser *p, token *t, const char *c)
{
    const char *from = c;
    unsigned base = 10, digits = 0;
    if (is_real(c)) return read_real(p, t, c);
    t->kind = TOKEN_NUMBER;
    if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) base = 16, c += 2;
    else if (c[0] == '0' && (c[1] == 'b' || c[1] == 'B')) base = 2, c += 2;
    else if (c[0] == '0') base = 8;
    for (;; c++, digits++) {
        unsigned d = isdigit((unsigned char)*c)    ? (unsigned)(*c - '0')
                     : isxdigit((unsigned char)*c) ? (unsigned)(tolower((unsigned char)*c) - 'a') + 10
                                                   : 99;
        if (d >= base) break;
        if (t->number > (UINT64_MAX - d) / base) bad(p, from, "this number is too large");
        t->number = t->number * base + d;
    }
    c = read_suffix(t, c);
    if (!digits || is_name(*c, false)) bad(p, from, "this is not a number");
    uint64_t number = t->number;
    if (number > INT64_MAX || (number > UINT32_MAX && t->is_unsigned))
        t->is_unsigned |= number > INT64_MAX, t->is_long = true;
    else if (number > (t->is_unsigned || base != 10 ? UINT32_MAX : INT32_MAX)) t->is_long = true;
    else if (number > INT32_MAX && !t->is_long) t->is_unsigned = true;
    return c;
}

/* --- characters --- */

static int digit_of(char c, unsigned base)
{
    int d = isdigit((unsigned char)c)    ? c - '0'
            : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                         : 99;
    return d < (int)base ? d : -1;
}

/* One character of a text in quotes; -1: none that is known. */
static int read_escape(const char **c)
{
    static const char from[] = "nrt0abfv\\'\"?e", to[] = "\n\r\t\0\a\b\f\v\\'\"?\033";
    unsigned base = *(*c) == 'x' ? 16 : 8, n = 0;
    int value = 0;
    const char *known = **c ? strchr(from, **c) : NULL;
    if (known && **c != '0') {
        (*c)++;
        return (unsigned char)to[known - from];
    }
    if (base == 16) (*c)++;
    for (; n < (base == 16 ? 2u : 3u) && digit_of(**c, base) >= 0; n++)
        value = value * (int)base + digit_of(*(*c)++, base);
    return n && value < 256 ? value : -1;
}

static const char *read_quoted(parser *p, token *t, const char *c)
{
    char quote = *c++;
    unsigned n = 0;
    t->kind = quote == '"' ? TOKEN_STRING : TOKEN_CHAR;
    while (*c != quote) {
        int value = (unsigned char)*c;
        if (!*c || *c == '\n') {
            bad(p, t->at, quote == '"' ? "this string does not end" : "this character does not end");
            return c;
        }
        c++;
        if (value == '\\' && (value = read_escape(&c)) < 0) bad(p, c - 1, "this escape is not known");
        t->number = (uint64_t)(int64_t)(int8_t)value;
        n++;
    }
    if (quote == '\'' && n != 1) bad(p, t->at, "a character stands alone between its quotes");
    return c + 1;
}

/* What a string's token says; at most as long as its text. */
size_t parser_string(const token *t, char *out)
{
    size_t n = 0;
    for (const char *c = t->at + 1; c < t->end - 1;) {
        int value = (unsigned char)*c++;
        out[n++] = (char)(value == '\\' ? read_escape(&c) : value);
    }
    return n;
}

static const char *read_mark(parser *p, token *t, const char *c)
{
    static const char *const marks[] = {"<<=", ">>=", "...", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>",
                                        "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "++", "--", "->"};
    t->kind = TOKEN_MARK;
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t n = strlen(marks[i]);
        if (strncmp(c, marks[i], n)) continue;
        for (size_t k = 0; k < n; k++) t->mark |= (uint32_t)marks[i][k] << 8 * k;
        return c + n;
    }
    if (!strchr("+-*/%&|^~!<>=?:;,.()[]{}", *c)) bad(p, c, "this character has no meaning here");
    t->mark = (unsigned char)*c;
    return c + 1;
}

static token read_token(parser *p, const char *c)
{
    c = skip_space(p, c);
    token t = {.at = c, .end = c};
    if (!*c) return t;
    if (is_name(*c, true)) t.kind = TOKEN_NAME, t.end = read_name(p, &t, c);
    else if (*c == '`') t.kind = TOKEN_NAME, t.end = read_marked_name(p, &t, c);
    else if (*c == '$') t.kind = TOKEN_SPECIAL, t.end = read_name(p, &t, c + 1);
    else if (isdigit((unsigned char)*c) || (*c == '.' && isdigit((unsigned char)c[1]))) t.end = read_number(p, &t, c);
    else if (*c == '"' || *c == '\'') t.end = read_quoted(p, &t, c);
    else t.end = read_mark(p, &t, c);
    if (parser_failed(p)) t = (token){.at = c, .end = c}; /* nothing more is read */
    return t;
}

void parser_begin(parser *p, snippet_maker *m, const snippet_names *names, const char *text)
{
    *p = (parser){.m = m, .names = names, .text = text};
    m->why[0] = 0;
    m->placed = false;
    p->now = read_token(p, text);
    p->next = read_token(p, p->now.end);
}

void parser_advance(parser *p)
{
    if (parser_failed(p)) {
        p->now = p->next = (token){.at = p->now.at, .end = p->now.at};
        return;
    }
    p->now = p->next;
    p->next = read_token(p, p->now.end);
}

bool parser_is(const parser *p, uint32_t mark) { return p->now.kind == TOKEN_MARK && p->now.mark == mark; }

bool parser_take(parser *p, uint32_t mark)
{
    if (!parser_is(p, mark)) return false;
    parser_advance(p);
    return true;
}

bool parser_want(parser *p, uint32_t mark, const char *what)
{
    if (parser_take(p, mark)) return true;
    parser_refuse(p, "%s is missing here", what);
    return false;
}

bool parser_word(const parser *p, const char *word) { return p->now.kind == TOKEN_NAME && !strcmp(p->now.name, word); }

bool parser_take_word(parser *p, const char *word)
{
    if (!parser_word(p, word)) return false;
    parser_advance(p);
    return true;
}

bool parser_enter(parser *p)
{
    if (p->depth >= PARSE_DEPTH) {
        parser_refuse(p, "this is nested too deep");
        return false;
    }
    p->depth++;
    return !parser_failed(p);
}
