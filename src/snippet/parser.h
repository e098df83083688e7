/* What the files of the parser share. */
#ifndef INL_SNIPPET_PARSER_H
#define INL_SNIPPET_PARSER_H

#include "snippet/parse.h"

enum { PARSE_NAME = 160, PARSE_DEPTH = 60, PARSE_SCOPE = 64 };

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_SPECIAL, /* $name */
    TOKEN_NUMBER,
    TOKEN_REAL,
    TOKEN_CHAR,
    TOKEN_STRING,
    TOKEN_MARK, /* `mark`: its characters, the first in the low byte */
} token_kind;

#define MARK1(a)       ((uint32_t)(a))
#define MARK2(a, b)    ((uint32_t)(a) | (uint32_t)(b) << 8)
#define MARK3(a, b, c) (MARK2(a, b) | (uint32_t)(c) << 16)

typedef struct token {
    token_kind kind;
    const char *at, *end; /* in the text */
    uint32_t mark;
    uint64_t number; /* NUMBER, CHAR */
    double real;
    bool is_unsigned, is_long, is_float; /* by suffix, or because it would not fit otherwise */
    char name[PARSE_NAME];               /* NAME, SPECIAL */
} token;

typedef struct declared {
    char name[PARSE_NAME];
    const snippet *object;
} declared;

typedef struct parser {
    snippet_maker *m;
    const snippet_names *names;
    const char *text;
    token now, next;       /* the present one, and the one behind it */
    unsigned depth, loops; /* of what is nested; of loops around */
    uint32_t locals;       /* numbers given so far */
    declared *in_sight;    /* PARSE_SCOPE of them */
    unsigned count;
    const snippet *whole, *whole_code; /* the last statement that names an object as a whole, and what it executes */
    const snippet *behind, *plain;     /* the last x++ made, and the same as ++x, for where nobody asks for the value */
} parser;

/* lex.c */
void parser_begin(parser *, snippet_maker *, const snippet_names *, const char *text);
void parser_advance(parser *);
bool parser_is(const parser *, uint32_t mark);
bool parser_take(parser *, uint32_t mark);                   /* if it is that one */
bool parser_want(parser *, uint32_t mark, const char *what); /* an error where it is not */
bool parser_word(const parser *, const char *word);
bool parser_take_word(parser *, const char *word);
const snippet *parser_refuse(parser *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts the place of `at` in front of an error that has been said since the error was empty. */
void parser_place(parser *, const char *at);
bool parser_failed(const parser *);
size_t parser_string(const token *, char *out); /* what a STRING says; at most as long as its text */
bool parser_enter(parser *);                    /* one level deeper; false: too deep */

/* parse_expr.c */
const snippet *parser_expression(parser *);
const snippet *parser_assignment(parser *); /* without what could follow a comma */
/* parse_type.c */
bool parser_at_type(parser *);            /* does a type begin here? */
const image_ctype *parser_type(parser *); /* the part in front of declarators */
/* A declarator's pointers, name (may be absent: "") and dimensions. */
const image_ctype *parser_declarator(parser *, const image_ctype *base, char name[PARSE_NAME]);
const image_ctype *parser_type_name(parser *); /* as in a cast */
/* What follows a procedure's result and name, from its parenthesis on; NULL: an error. */
const image_ctype *parser_parameters(parser *, const image_ctype *result);
/* parse.c */
const snippet *parser_find(parser *, const char *name); /* NULL: not known, or an error */

#endif
