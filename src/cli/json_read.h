/* JSON as a tree, for reports: objects keep the order of their members, strings the text that they are written with. */
#ifndef INL_CLI_JSON_READ_H
#define INL_CLI_JSON_READ_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum json_kind { JSON_NULL, JSON_BOOL, JSON_UINT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;
typedef struct json {
    json_kind kind;
    bool truth;
    uint64_t number;
    double real;
    const char *text;                 /* of a string, as it is written: with its escapes, without its quotes */
    const char *key;                  /* in an object, likewise */
    struct json *first, *last, *next; /* elements, members; the next one beside it */
    unsigned seen;                    /* for who walks over it */
} json;

/* The one value that the text holds; NULL: it is none, *at is where it went wrong. */
json *json_read(inl_arena *, const char *text, size_t size, size_t *at);
json *json_member(const json *object, const char *key); /* or NULL */
double json_finite(double);                             /* the nearest that JSON can say */
void json_append(json *to, json *item);
void json_write(FILE *, const json *); /* laid out as tools' reports are */

#endif
