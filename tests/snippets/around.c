/* The program that random snippets are put into (random_texts.py): it says what each must do to its variables, and that
 * nothing else is different around it.
 *
 * For each text there are a function of a table, which the compiler has made of it, and a procedure p0, p1 ... of a few
 * instructions (state_<isa>.S), which has the snippet. The function runs on a copy of the variables; the procedure runs
 * once as it is, as plain[n], and once with the snippet, from the same registers, flags and vectors. Begins when a line
 * comes ("own": the routines that snippets call are the tool's, so the program rounds as it likes; its own procedures
 * round as it does), and tells "N agree" at the end; each that does not is told by its number. */
#include "all.h"
#include "state.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the snippets see. */
signed char c;
unsigned char uc;
short s;
unsigned short us;
int i;
unsigned int ui;
long l;
unsigned long ul;
bool b;
float f;
double d;
int arr[8];
unsigned short half[4];
struct point pt, other, *pp;
int *ip;
struct all_bits bits;
enum all_kind kind;
long k;

extern void (*const functions[])(struct all *);
extern const unsigned function_count;

#define EACH(DO)                                                                                                       \
    DO(c)                                                                                                              \
    DO(uc)                                                                                                             \
    DO(s) DO(us) DO(i) DO(ui) DO(l) DO(ul) DO(b) DO(f) DO(d) DO(arr) DO(half) DO(pt) DO(other) DO(bits) DO(kind) DO(k)

/* Pointers lead into the copy at hand. */
static struct point *moved_point(struct point *p, struct point *from, struct point *to, struct point *other_to)
{
    return p == from ? to : other_to;
}

static void give(const struct all *from)
{
#define GIVE(name) memcpy(&name, &from->name, sizeof name);
    EACH(GIVE)
    pp = moved_point(from->pp, (struct point *)&from->pt, &pt, &other);
    ip = arr + (from->ip - from->arr);
}

static void take(struct all *to)
{
#define TAKE(name) memcpy(&to->name, &name, sizeof name);
    EACH(TAKE)
    to->pp = moved_point(pp, &pt, &to->pt, &to->other);
    to->ip = to->arr + (ip - arr);
}

static uint64_t seed;
static uint64_t any(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

static void fill(void *at, size_t size)
{
    for (size_t n = 0; n < size; n++) ((uint8_t *)at)[n] = (uint8_t)(any() >> 24);
}

static void begin(struct all *v)
{
    fill(v, sizeof *v);
    v->d = (double)(any() % 1000) / 8 - 40, v->f = (float)(any() % 100) / 4, v->b = any() & 1;
    v->pt.w = -2.5, v->other.w = v->d;
    v->pp = &v->pt, v->ip = v->arr + any() % 4;
    v->kind = (enum all_kind)(any() % 3);
    if (any() & 1) v->l = any() & 1 ? -1 : 0;
}

static bool same_real(double x, double y) { return !memcmp(&x, &y, sizeof x) || (x != x && y != y); }

static bool same_point(const struct point *x, const struct point *y)
{
    return x->x == y->x && x->y == y->y && x->z == y->z && same_real(x->w, y->w);
}

static const char *difference(const struct all *x, const struct all *y)
{
    static const struct {
        const char *name;
        size_t at, size;
    } whole[] = {
#define WHOLE(name) {#name, offsetof(struct all, name), sizeof x->name},
        WHOLE(c) WHOLE(uc) WHOLE(s) WHOLE(us) WHOLE(i) WHOLE(ui) WHOLE(l) WHOLE(ul) WHOLE(b) WHOLE(arr) WHOLE(half)
            WHOLE(kind) WHOLE(k)};
    for (size_t n = 0; n < sizeof whole / sizeof *whole; n++)
        if (memcmp((const char *)x + whole[n].at, (const char *)y + whole[n].at, whole[n].size)) return whole[n].name;
    bool same_bits = x->bits.lo == y->bits.lo && x->bits.hi == y->bits.hi && x->bits.wide == y->bits.wide;
    if (!same_bits) return "bits";
    if (!same_real(x->f, y->f) || !same_real(x->d, y->d)) return "f or d";
    if (!same_point(&x->pt, &y->pt) || !same_point(&x->other, &y->other)) return "pt or other";
    if ((x->pp == &x->pt) != (y->pp == &y->pt) || x->ip - x->arr != y->ip - y->arr) return "pp or ip";
    return NULL;
}

static unsigned differ;
static bool rounds_any_way;

static void one(unsigned n)
{
    static struct state plain_state, state;
    static struct all before, native, seen;
    seed = (n + 1) * 0x9e3779b97f4a7c15ull;
    begin(&before);
    give(&before);
    memcpy(&native, &before, sizeof native);
    native.pp = &native.pt, native.ip = native.arr + (before.ip - before.arr);
    functions[n](&native);
    fill(&state, sizeof state);
    state_settle(&state, rounds_any_way);
    plain_state = state;
    run_point(&plain_state, plain[n % PLAIN]);
    run_point(&state, points[n]);
    memset(&seen, 0, sizeof seen);
    take(&seen);
    const char *what = difference(&seen, &native);
    size_t at = 0;
    while (at < sizeof state && ((char *)&state)[at] == ((char *)&plain_state)[at]) at++;
    if (!what && at == sizeof state) return;
    differ++;
    if (what) printf("%u: %s\n", n, what);
    else printf("%u: the state at %zu\n", n, at);
}

int main(void)
{
    char line[100];
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 2;
    rounds_any_way = !strcmp(line, "own\n");
    state_learn();
    for (unsigned n = 0; n < function_count; n++) one(n);
    printf("%u agree\n", function_count - differ);
    return differ != 0;
}
