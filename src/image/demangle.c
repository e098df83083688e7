/* Names of C++, Rust and D as people write them, by libiberty, which debuggers do it with; and of Fortran's modules. */
#include "image/image.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

enum { longest_name = 8192 }; /* the demangler recurses: a hostile name must not eat the stack */

typedef struct text {
    char *out;
    size_t size, at;
    jmp_buf full;
} text;

/* False: it is cut. */
static bool put(text *t, const char *piece, size_t n)
{
    size_t room = t->size - t->at - 1, some = n < room ? n : room;
    memcpy(t->out + t->at, piece, some);
    t->at += some;
    t->out[t->at] = 0;
    return some == n;
}

/* Called with one piece after the other, of which a hostile name may have billions: nothing behind the end is waited
 * for. */
static void add(const char *piece, size_t n, void *arg)
{
    text *t = arg;
    if (!put(t, piece, n)) longjmp(t->full, 1);
}

/* How far back a reference of D's leads: a number in letters, of which the last is a small one. */
static size_t leads_back(const char *digits)
{
    size_t n = 0, most = SIZE_MAX / 64;
    while (*digits >= 'A' && *digits <= 'Z' && n < most) n = n * 26 + (size_t)(*digits++ - 'A');
    return *digits >= 'a' && *digits <= 'z' ? n * 26 + (size_t)(*digits - 'a') : n;
}

/* D's names are handed over whole, and each type in them that says "as there" may double all before it. So the text is
 * no longer than a name without such, as often as one is read: each 'Q' taken for one, with those in what it leads to.
 * (At a digit there is but an identifier.) */
static bool is_bounded(const char *stem)
{
    enum { most_of_a_letter = 24, most = 16 << 20 }; /* "extern(Objective-C) " */
    size_t length = strlen(stem), limit = most / (most_of_a_letter * length);
    uint32_t times[longest_name + 1];
    times[0] = 1;
    for (size_t i = 0; i < length; i++) {
        times[i + 1] = times[i];
        if (stem[i] != 'Q') continue;
        size_t back = leads_back(stem + i + 1), from = back < i ? i - back : 0;
        times[i + 1] += 1 + (stem[from] >= '0' && stem[from] <= '9' ? 0 : times[i] - times[from]);
        if (times[i + 1] > limit) return false; /* before, it has at most doubled */
    }
    return true;
}

static bool is_d(const char *stem, text *t)
{
    if (!is_bounded(stem)) return false;
    char *plain = dlang_demangle(stem, 0);
    if (plain) put(t, plain, strlen(plain));
    free(plain);
    return plain != NULL;
}

/* gfortran's "__module_MOD_procedure": debuggers show it by what the debug information says, C++'s way. Fortran knows
 * small letters alone. */
static bool is_fortran(const char *stem, text *t)
{
    const char *module = stem + 2, *mark = strstr(module, "_MOD_");
    if (!mark || mark == module || !mark[5]) return false;
    put(t, module, (size_t)(mark - module));
    put(t, "::", 2);
    put(t, mark + 5, strlen(mark + 5));
    return true;
}

/* Rust's older names look like C++'s, and end in a hash. What was written before it is no name after all is dropped. */
static bool demangled(const char *stem, text *t)
{
    if (stem[0] != '_') return false;
    if (stem[1] == 'D') return is_d(stem, t);
    if (stem[1] == '_') return is_fortran(stem, t);
    if ((stem[1] == 'R' || stem[1] == 'Z') && rust_demangle_callback(stem, 0, add, t)) return true;
    t->at = 0;
    return stem[1] == 'Z' && cplus_demangle_v3_callback(stem, DMGL_PARAMS | DMGL_TYPES, add, t);
}

/* True: there is one, perhaps cut. */
static bool write_name(const char *stem, const char *behind, text *t)
{
    if (setjmp(t->full)) return true;
    if (!demangled(stem, t)) return false;
    put(t, behind, strlen(behind));
    return true;
}

const char *image_demangle(const char *name, char *out, size_t size)
{
    if (size == 0 || name[0] != '_' || strlen(name) > longest_name) return name;
    size_t length = strcspn(name, "@"); /* "name@plt", "name@VERSION" */
    char *stem = strndup(name, length);
    text t = {.out = out, .size = size};
    bool good = stem && write_name(stem, name + length, &t);
    free(stem);
    return good ? out : name;
}
