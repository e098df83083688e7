/* C++ and Rust names as people write them. The C++ run time's demangler is used where the program
 * is linked with it; the reference is weak, so that C tools need no C++ library. */
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status) __attribute__((weak));

enum { longest_name = 8192 }; /* the demangler recurses: a hostile name must not eat the stack */

/* Rust's older scheme ends a C++-like name in "::h" and 16 hexadecimal digits. */
static void drop_rust_hash(char *text)
{
    size_t n = strlen(text);
    if (n <= 19 || strncmp(text + n - 19, "::h", 3) != 0) return;
    if (strspn(text + n - 16, "0123456789abcdef") == 16) text[n - 19] = 0;
}

/* "name@plt" and "name@VERSION": the demangler knows only what stands before the "@". */
static char *demangled_stem(const char *name, size_t length)
{
    int status = -1;
    char *stem = strndup(name, length);
    char *text = stem ? __cxa_demangle(stem, NULL, NULL, &status) : NULL;
    free(stem);
    if (status == 0) return text;
    free(text);
    return NULL;
}

const char *image_demangle(const char *name, char *out, size_t size)
{
    if (size == 0 || strncmp(name, "_Z", 2) != 0 || !__cxa_demangle || strlen(name) > longest_name) return name;
    size_t stem = strcspn(name, "@");
    char *text = demangled_stem(name, stem);
    if (!text) return name;
    drop_rust_hash(text);
    snprintf(out, size, "%s%s", text, name + stem);
    free(text);
    return out;
}
