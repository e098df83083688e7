/* Options of a tool, declared before inlay_init; --help is made from the declarations.
 * Every tool has -o FILE, --format=text|json, --image PATTERN, --proc PATTERN, --help, --log=...
 * Patterns are shell globs (fnmatch), matched against the image's file name, or its path when the
 * pattern has a slash, and the procedure's name (mangled or demangled). Both may be given more than
 * once. `letter` may be 0. The value pointed to holds the default; --no-NAME takes a flag back. A tool's
 * own option hides the common one of the same name. */
#ifndef INLAY_OPTION_H
#define INLAY_OPTION_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

void inlay_option_flag(bool *value, const char *name, char letter, const char *help);
void inlay_option_uint(uint64_t *value, const char *name, char letter, const char *help);
void inlay_option_string(const char **value, const char *name, char letter, const char *help);
/* One of the NULL-terminated words; *value is its index. */
void inlay_option_choice(int *value, const char *const *words, const char *name, const char *help);
/* In main, behind inlay_init: a value is none, or options do not agree. Says so, and ends with status 2; the program
 * does not run. */
void inlay_option_refuse(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
