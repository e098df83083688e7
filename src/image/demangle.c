/* C++ and Rust names as people write them. The C++ run time's demangler is used where the program
 * is linked with it; the reference is weak, so that C tools need no C++ library. */
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status) __attribute__((weak));

enum { longest_name = 8192 }; /* the demangler recurses: a hostile name must not eat the stack */

/* Of "$LT$", "$u20$" and their like: the character, and behind the end; 0: it is none. */
static char rust_escape(const char *at, const char **end)
{
    static const struct {
        char name[5], is;
    } escapes[] = {{"$SP$", '@'}, {"$BP$", '*'}, {"$RF$", '&'}, {"$LT$", '<'},
                   {"$GT$", '>'}, {"$LP$", '('}, {"$RP$", ')'}, {"$C$", ','}};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        size_t n = strlen(escapes[i].name);
        *end = at + n;
        if (!strncmp(at, escapes[i].name, n)) return escapes[i].is;
    }
    char *behind = NULL;
    unsigned long code = !strncmp(at, "$u", 2) ? strtoul(at + 2, &behind, 16) : 0;
    if (code < ' ' || code > '~' || *behind != '$') return 0;
    *end = behind + 1;
    return (char)code;
}

/* Rust's older scheme ends a C++-like name in "::h" and 16 hexadecimal digits, and what C++ has no names for is
 * escaped: "_$LT$a..B$u20$as$u20$C$GT$::d" is <a::B as C>::d. */
static void read_rust(char *text)
{
    size_t n = strlen(text);
    if (n <= 19 || strncmp(text + n - 19, "::h", 3) != 0) return;
    if (strspn(text + n - 16, "0123456789abcdef") != 16) return;
    text[n - 19] = 0;
    char *to = text;
    bool begins = true; /* a part of the path, of which "_" leads its escape */
    for (const char *at = text, *end; *at; begins = to[-1] == ':') {
        char is = rust_escape(at + (begins && *at == '_'), &end);
        if (is) *to++ = is, at = end;
        else if (!strncmp(at, "..", 2)) *to++ = ':', *to++ = ':', at += 2;
        else *to++ = *at++;
    }
    *to = 0;
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
    read_rust(text);
    snprintf(out, size, "%s%s", text, name + stem);
    free(text);
    return out;
}
