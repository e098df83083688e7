/* Names of C++, Rust and D as people write them, by libiberty, which debuggers do it with; and of Fortran's modules.
 *
 * A demangler writes more than what stands in a source: parameters, a template's result ("int f<int>(int)"), tags
 * ("name[abi:cxx11]()", which all that gives a std::string has). Whoever asks for a procedure may leave them out. */
#include "image/image.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

enum { longest_name = 8192 }; /* the demangler recurses: a hostile name must not eat the stack */

typedef struct text {
    char *out;
    size_t size, at;
    int without; /* DMGL_RET_DROP: a template's result */
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
    return stem[1] == 'Z' && cplus_demangle_v3_callback(stem, DMGL_PARAMS | DMGL_TYPES | t->without, add, t);
}

/* True: there is one, perhaps cut. */
static bool write_name(const char *stem, const char *behind, text *t)
{
    if (setjmp(t->full)) return true;
    if (!demangled(stem, t)) return false;
    put(t, behind, strlen(behind));
    return true;
}

static const char *demangle(const char *name, int without, char *out, size_t size)
{
    if (size == 0 || name[0] != '_' || strlen(name) > longest_name) return name;
    size_t length = strcspn(name, "@"); /* "name@plt", "name@VERSION" */
    char *stem = strndup(name, length);
    text t = {.out = out, .size = size, .without = without};
    bool good = stem && write_name(stem, name + length, &t);
    free(stem);
    return good ? out : name;
}

const char *image_demangle(const char *name, char *out, size_t size) { return demangle(name, 0, out, size); }

/* --- what may be left out --- */

static const char operator_word[] = "operator";
enum { operator_length = sizeof operator_word - 1 };

/* Behind an operator at `at`, if one stands there: "operator()", "operator<", "operator[]"; else `at`. */
static size_t behind_operator(const char *name, size_t at)
{
    bool begins = at == 0 || name[at - 1] == ':' || name[at - 1] == ' ';
    if (!begins || strncmp(name + at, operator_word, operator_length)) return at;
    const char *sign = name + at + operator_length;
    return at + operator_length + (strncmp(sign, "()", 2) ? strspn(sign, "<>=!+-*/%^&|~,[]") : 2);
}

/* Behind the parenthesis that closes the one at `at`, and behind what may follow parameters. */
static size_t behind_group(const char *name, size_t at)
{
    size_t depth = 0;
    for (; name[at]; at++) {
        depth += name[at] == '(';
        if (name[at] == ')' && --depth == 0) return at + 1 + strspn(name + at + 1, " const&");
    }
    return at;
}

/* Where the parameters begin, the end where there are none; not "(anonymous namespace)", nor those of a procedure that
 * what is named stands in: "main::{lambda(int)#1}::operator()(int) const". *part: where the last component begins. */
static size_t parameters_at(const char *name, size_t *part)
{
    size_t depth = 0, i = 0;
    for (*part = 0; name[i];) {
        size_t behind = depth ? i : behind_operator(name, i);
        if (!depth && name[i] == '(') {
            behind = behind_group(name, i);
            if (name[behind] != ':') return i;
        }
        if (!depth && name[i] == ':') *part = i + 1;
        if (behind == i && strchr("<{[", name[i])) depth++;
        if (behind == i && depth && strchr(">}]", name[i])) depth--;
        i = behind == i ? i + 1 : behind;
    }
    return i;
}

static void drop_tags(char *name)
{
    for (char *at = name, *end; (at = strstr(at, "[abi:")) && (end = strchr(at, ']'));)
        memmove(at, end + 1, strlen(end + 1) + 1);
}

/* With its parameters, and without. */
static bool is_either(char *name, bool (*is)(const char *form, const void *arg), const void *arg)
{
    size_t part, n = parameters_at(name, &part);
    if (is(name, arg)) return true;
    if (!name[n]) return false;
    name[n] = 0;
    return is(name, arg);
}

bool image_name_is(const char *name, bool (*is)(const char *form, const void *arg), const void *arg)
{
    char plain[2048], less[2048];
    if (is(name, arg)) return true;
    if (image_demangle(name, plain, sizeof plain) == name) return false;
    bool may_have_result = strchr(plain, '<') && strchr(plain, ' ');
    if (!may_have_result || demangle(name, DMGL_RET_DROP, less, sizeof less) == name) strcpy(less, plain);
    drop_tags(less);
    bool differs = strcmp(less, plain);
    return is_either(plain, is, arg) || (differs && is_either(less, is, arg));
}

static bool is_like(const char *form, const void *pattern)
{
    return !strcmp(form, pattern) || fnmatch(pattern, form, 0) == 0; /* "operator[]", "f[abi:cxx11]" are no patterns */
}

bool image_name_matches(const char *name, const char *pattern) { return image_name_is(name, is_like, pattern); }

const char *image_name_last(const char *name, char *out, size_t size)
{
    size_t start, end = parameters_at(name, &start), n = strcspn(name + start, "<[(");
    if (n > end - start) n = end - start;
    bool is_operator = !strncmp(name + start, operator_word, operator_length) || n >= size;
    if (is_operator) n = 0;
    memcpy(out, name + start, n);
    out[n] = 0;
    const char *result = strrchr(out, ' ');
    return result ? result + 1 : out[0] == '~' ? out + 1 : out;
}
