/* What names mean in snippets: a scope, and what its files share. */
#ifndef INL_TOOL_SCOPE_H
#define INL_TOOL_SCOPE_H

#include "snippet/parse.h"
#include "tool/state.h"

#include <inlay/typed.h>

enum { SCOPE_NAME = 160 };

typedef struct scope_name { /* given by the tool, declared by a text, or found once */
    struct scope_name *next;
    char name[SCOPE_NAME];
    const snippet *meaning;
    const image_ctype *type;
    void *at; /* of what a text declared: its memory */
    bool is_static;
} scope_name;

struct inlay_scope {
    inlay_image *image;
    uint64_t address;  /* link-time; 0: none */
    bool whole;        /* no address was given */
    bool at_exit;      /* the address is its procedure's, whose ways out are meant */
    scope_name *found; /* as they are reached from the address */
    struct scope_given {
        scope_name *names;
    } * given; /* by the tool, or declared static: of all scopes made from one */
    snippet_maker maker;
    char nearly[220]; /* of the last name that was not known */
};

/* scope_places.c */
const snippet *scope_word(snippet_maker *, uint64_t);
/* Something of an image, by its link-time address. */
const snippet *scope_in_image(snippet_maker *, const inlay_image *, uint64_t address);
/* Of a variable, which is elsewhere where the program has a copy of it. */
const snippet *scope_variable_at(snippet_maker *, const inlay_image *, uint64_t address);
snippet *scope_register(snippet_maker *, const image_ctype *, unsigned reg);
const snippet *scope_variable(inlay_scope *, const inlay_image *, const image_variable *);
/* A variable or parameter of the procedure. NULL: there is none, or *why or the maker says why it is not to be had. */
const snippet *scope_local(inlay_scope *, image *, const char *name, const char **why);
const snippet *scope_result_value(inlay_scope *);
/* Of the procedure that begins at the scope's address, from 1 on. `prototype`: its type is not from debug information.
 */
const snippet *scope_parameter(inlay_scope *, const image_ctype *proc, bool prototype, unsigned number);

/* scope_entered.c. The value as it is where the procedure at a link-time address begins; `argument` ($arg0 ...) at the
 * scope's place; a parameter that is known at the entry, and a variable seen from there, at ways out. */
const snippet *scope_entered(inlay_scope *, uint64_t entry, const snippet *value);
const snippet *scope_argument(inlay_scope *, const snippet *argument);
const snippet *scope_kept_parameter(inlay_scope *, const snippet *there);
const snippet *scope_at_exits(inlay_scope *, const image_variable *, const char **why);

/* scope_put.c: has the procedure put the parameter to where it has it throughout, when it comes to the scope's place?
 */
bool scope_is_put(const inlay_scope *, image *, const image_variable *);

/* typed_text.c: is that the name of a member which has none but its place, as tuples of Rust's have (__0)? */
bool typed_is_place(const char *name);

/* typed_layout.c: NULL: it finds no room. Returns out. */
const char *typed_layout(const image_ctype *, char *out, size_t room);
/* scope.c: the same in memory that travels, of what is no plain number or pointer. NULL: it is one, or there is none.
 */
const char *scope_layout(const image_ctype *);
/* typed_told.c: the text of an object, as an expression: snippet_maker's `text`. */
const snippet *scope_text_of(snippet_maker *, const snippet *object);

/* scope_tls.c */
const snippet *scope_tls(inlay_scope *, const inlay_image *, const image_variable *);

/* scope_names.c */
snippet_names scope_names(inlay_scope *);
/* What the tool has given by this name; NULL: nothing. */
const snippet *scope_given(inlay_scope *, const char *name);
/* To one of the two lists. Without a meaning: it is known that there is none. */
bool scope_add(inlay_scope *, scope_name **list, const char *name, const snippet *meaning);

#endif
