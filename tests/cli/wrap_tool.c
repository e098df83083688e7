/* Stands in for the procedures of tests/samples/wrapped.cc: each routine counts its calls, calls the original, counts
 * the return, and changes a few results. Instructions of the program are counted too. */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct mixed {
    double a;
    long b;
};
struct large {
    long v[5];
};
/* clang-format off */
enum { MIX, PAIR, WIDE, MANY, SUM, FACTORIAL, JUMP, THROWER, BETWEEN, COMPARE, ON_SIGNAL, RAISES, FORKS, ENDS, TRACED,
       MODEST, WITHIN, DEEP, LAST, PASSED, PASSES, QSORT, SETJMP, KINDS };
/* clang-format on */
enum { FRAMES = 40 };

static struct {
    uint64_t calls[KINDS], returns[KINDS];
    uint64_t stubs[2]; /* calls of one, and those whose caller is known */
    uint64_t above; /* procedures named factorial that calls of it were made from, and those that had made the calls */
} * seen;
static inlay_counter instructions;
static bool wraps = true, changes = true, twice, crashes, outside, many_words, nothing, early;

static void add(uint64_t *to) { __atomic_fetch_add(to, 1, __ATOMIC_RELAXED); }

#define STAND_IN(kind, name, type, parameters, arguments, changed)                                                     \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        add(&seen->calls[kind]);                                                                                       \
        type r = inlay_call_original(name, arguments);                                                                 \
        add(&seen->returns[kind]);                                                                                     \
        if (changes) changed;                                                                                          \
        return r;                                                                                                      \
    }
#define STAND_IN_VOID(kind, name, parameters, arguments)                                                               \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        add(&seen->calls[kind]);                                                                                       \
        inlay_call_original(name, arguments);                                                                          \
        add(&seen->returns[kind]);                                                                                     \
    }
#define LIST(...) __VA_ARGS__

/* clang-format off */
STAND_IN(MIX, mix, double, (int a, double x, float y, long b), LIST(a, x, y, b), r += 100)
STAND_IN(PAIR, pair, struct mixed, (double a, long b), LIST(a, b), (r.a += 0.5, r.b++))
STAND_IN(WIDE, wide, struct large, (long a), LIST(a), r.v[4]++)
STAND_IN(MANY, many, long, (long a, long b, long c, long d, long e, long f, long g, long h, long i),
         LIST(a, b, c, d, e, f, g, h, i), (void)0)
STAND_IN_VOID(JUMP, jump, (int n), LIST(n))
STAND_IN(THROWER, thrower, int, (int n), LIST(n), (void)0)
STAND_IN(BETWEEN, between, int, (int n), LIST(n), (void)0)
STAND_IN(COMPARE, compare, int, (const void *a, const void *b), LIST(a, b), (void)0)
STAND_IN_VOID(ON_SIGNAL, on_signal, (int n), LIST(n))
STAND_IN(RAISES, raises, int, (int n), LIST(n), (void)0)
STAND_IN(FORKS, forks, int, (long n), LIST(n), (void)0)
STAND_IN(ENDS, ends, void *, (void *how), LIST(how), (void)0)
STAND_IN(TRACED, traced, int, (long n), LIST(n), (void)0)
STAND_IN(WITHIN, within, long, (long n), LIST(n), (void)0)
STAND_IN(DEEP, deep, long, (long n), LIST(n), (void)0)
STAND_IN(LAST, last, long, (long n), LIST(n), (void)0)
STAND_IN(PASSED, passed, long, (long n), LIST(n), (void)0)
STAND_IN(PASSES, passes, long, (long n), LIST(n), (void)0)
STAND_IN_VOID(QSORT, sort, (void *a, size_t n, size_t size, void *f), LIST(a, n, size, f))
STAND_IN(SETJMP, set_jump, int, (void *to), LIST(to), (void)0)
/* clang-format on */

/* In how many calls of itself is a procedure called? */
static uint64_t above(void)
{
    inlay_context c;
    inlay_stack_frame frames[FRAMES];
    uint64_t found = 0;
    unsigned n = inlay_context_now(&c) ? inlay_process_stack(inlay_process_self(), &c, frames, FRAMES) : 0;
    for (unsigned k = 0; k < n; k++) {
        const inlay_proc *p = inlay_proc_at(frames[k].address);
        found += p && inlay_proc_matches(p, "factorial");
    }
    return found;
}

static long factorial(long n)
{
    add(&seen->calls[FACTORIAL]);
    uint64_t before = above();
    long r = inlay_call_original(factorial, n);
    add(&seen->returns[FACTORIAL]);
    __atomic_fetch_add(&seen->above, before + above(), __ATOMIC_RELAXED);
    return r;
}

/* With variable arguments: the number of vector registers is handed on. */
static int sum(int n, long a, double b, long c, double d)
{
    add(&seen->calls[SUM]);
    int r = ((int (*)(int, ...))inlay_original())(n, a, b, c, d);
    add(&seen->returns[SUM]);
    return r;
}

/* Uses all registers that arguments may be in: callers of this one know that it leaves most of them alone. */
static long modest(long n)
{
    typedef long wide_type(long, long, long, long, long, long, double, double, double, double, double, double, double,
                           double);
    add(&seen->calls[MODEST]);
    long r = ((wide_type *)inlay_original())(n + 1, 2, 3, 4, 5, 6, .1, .2, .3, .4, .5, .6, .7, .8);
    add(&seen->returns[MODEST]);
    return r - 2;
}

static long crash(long n)
{
    volatile int *volatile nowhere = NULL;
    long r = inlay_call_original(crash, n);
    if (n == 9) *nowhere = 1; /* while another waits */
    return r;
}

static const struct {
    const char *name;
    void *routine;
    unsigned words;
} kinds[KINDS] = {
    {"mix", mix, 0},         {"pair", pair, 0},           {"wide", wide, 0},           {"many", many, 3},
    {"sum", sum, 0},         {"factorial", factorial, 0}, {"jump", jump, 0},           {"thrower", thrower, 0},
    {"between", between, 0}, {"compare", compare, 0},     {"on_signal", on_signal, 0}, {"raises", raises, 0},
    {"forks", forks, 0},     {"ends", ends, 0},           {"traced", traced, 0},       {"modest", modest, 0},
    {"within", within, 0},   {"deep", deep, 0},           {"last", last, 0},           {"passed", passed, 0},
    {"passes", passes, 0},   {"qsort", sort, 0},          {"_setjmp", set_jump, 0}};

/* What the program imports is its stub, where it has one. */
static inlay_proc *named(inlay_image *image, const char *name)
{
    char stub[40];
    inlay_proc *p = inlay_image_proc_named(image, name);
    snprintf(stub, sizeof stub, "%s@plt", name);
    return p ? p : inlay_image_proc_named(image, stub);
}

/* At an import stub, where engines show one: its caller is known. */
static void in_stub(const inlay_context *now)
{
    inlay_stack_frame frames[FRAMES];
    unsigned n = inlay_process_stack(inlay_process_self(), now, frames, FRAMES);
    add(&seen->stubs[0]);
    if (n > 1 && inlay_image_is_main(inlay_image_at(frames[1].address))) add(&seen->stubs[1]);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *first = early ? inlay_image_proc_named(image, "strlen") : NULL;
    if (first && inlay_proc_is_resolver(first)) inlay_proc_wrap(first, (void (*)(void))last, 0);
    if (!inlay_image_is_main(image)) return;
    inlay_proc *stub = inlay_image_proc_named(image, "printf@plt");
    if (stub) inlay_insert(inlay_proc_entry(stub), inlay_call(in_stub, inlay_context_arg()));
    if (outside) inlay_call_original(factorial, 1);
    if (nothing) inlay_proc_wrap(NULL, (void (*)(void))mix, 0);
    for (unsigned k = 0; k < KINDS; k++) {
        inlay_proc *p = named(image, kinds[k].name);
        void *routine = k == FACTORIAL && crashes ? crash : kinds[k].routine;
        if (p && k != (twice ? (unsigned)JUMP : (unsigned)SETJMP))
            inlay_proc_wrap(p, (void (*)(void))routine, k == MIX && many_words ? 17 : kinds[k].words);
    }
}

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_insert(inlay_block_anywhere(block), inlay_count(&instructions, inlay_block_insn_count(block)));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    for (unsigned k = 0; k < KINDS; k++)
        fprintf(inlay_out(), "%s %" PRIu64 " %" PRIu64 "\n", kinds[k].name, seen->calls[k], seen->returns[k]);
    fprintf(inlay_out(), "stubs %" PRIu64 " %" PRIu64 "\n", seen->stubs[0], seen->stubs[1]);
    fprintf(inlay_out(), "above %" PRIu64 " 0\n", seen->above);
    fprintf(inlay_out(), "%" PRIu64 " instructions\n", inlay_counter_sum(&instructions));
}

int main(int argc, char **argv)
{
    inlay_option_flag(&wraps, "wraps", 0, "stand in for procedures");
    inlay_option_flag(&changes, "changes", 0, "change results");
    inlay_option_flag(&twice, "twice", 0, "stand in for setjmp");
    inlay_option_flag(&crashes, "crashes", 0, "crash in a routine");
    inlay_option_flag(&outside, "outside", 0, "call an original where no routine runs");
    inlay_option_flag(&many_words, "words", 0, "too many words of arguments");
    inlay_option_flag(&nothing, "nothing", 0, "stand in for no procedure");
    inlay_option_flag(&early, "early", 0, "stand in for what chooses a strlen");
    inlay_init(&argc, &argv, "stands in for procedures");
    seen = inlay_alloc(sizeof *seen);
    if (wraps) inlay_on_image_load(image_loaded, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
