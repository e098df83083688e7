/* A string of JSON. */
#ifndef INL_BASE_JSON_TEXT_H
#define INL_BASE_JSON_TEXT_H

#include <stdio.h>

/* With its quotes; what is not UTF-8 becomes U+FFFD. These characters, too, are written by their numbers. */
void inl_json_text(FILE *, const char *, const char *coded);

#endif
