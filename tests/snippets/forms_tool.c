/* What a text says and what the functions of typed.h and snippet.h make: the same, for each operand and operator. Each
 * row assigns its text's value to one variable and the other form's to a second one, at the same point of the program
 * figures; the report tells which rows differ, or have never been other than 0. */
#include <inlay.h>

#include <stdio.h>
#include <string.h>

typedef enum place { AT_ENTRY, AT_EXIT, AT_LOAD, AT_CALL, AT_BRANCH } place;

typedef struct row {
    const char *proc, *type, *text;
    inlay_expr (*made)(inlay_scope *);
    place at;
} row;

typedef struct pair {
    uint64_t text, made, some; /* some: of all bits that have been set */
} pair;
static pair *pairs;

static double twice(double a, float b, int c) { return 2 * a + b + c; }

#define FIND(name)     inlay_scope_find(s, name)
#define BOTH(op, a, b) inlay_typed_binary(s, op, a, b)
#define FORM(name, value)                                                                                              \
    static inlay_expr name(inlay_scope *s)                                                                             \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return value;                                                                                                  \
    }                                                                                                                  \
    _Static_assert(1, #name)

static inlay_expr call_of(inlay_scope *s, const char *name, unsigned n, const inlay_expr *arguments)
{
    return inlay_typed_call(s, FIND(name), n, arguments);
}
#define CALL(name, ...)                                                                                                \
    call_of(s, name, sizeof(inlay_expr[]){__VA_ARGS__} / sizeof(inlay_expr), (inlay_expr[]){__VA_ARGS__})

FORM(sum, BOTH(INLAY_ADD, FIND("deep"), FIND("width")));
FORM(difference, BOTH(INLAY_SUB, FIND("width"), FIND("tag")));
FORM(product, BOTH(INLAY_MUL, FIND("deep"), inlay_const(7)));
FORM(quotient, BOTH(INLAY_DIV, FIND("deep"), inlay_const(3)));
FORM(rest, BOTH(INLAY_MOD, FIND("width"), inlay_const(1000)));
FORM(shifted, BOTH(INLAY_SHL, FIND("deep"), inlay_const(4)));
FORM(least, BOTH(INLAY_MIN, FIND("deep"), inlay_const(5)));
FORM(most, BOTH(INLAY_MAX, FIND("tag"), inlay_const(3)));
FORM(minus, inlay_typed_unary(s, INLAY_NEG, FIND("deep")));
FORM(inverse, inlay_typed_unary(s, INLAY_NOT, FIND("width")));
FORM(negation, inlay_typed_unary(s, INLAY_LNOT, FIND("tag")));
FORM(less, BOTH(INLAY_LT, FIND("tag"), inlay_const(0)));
FORM(both, BOTH(INLAY_LAND, FIND("deep"), FIND("width")));
FORM(either, BOTH(INLAY_LOR, FIND("tag"), FIND("deep")));
FORM(chosen, inlay_typed_if(s, BOTH(INLAY_GT, FIND("deep"), inlay_const(9)), FIND("deep"), inlay_const(77)));
FORM(element, inlay_typed_index(s, FIND("text"), inlay_const(0)));
FORM(followed, inlay_typed_deref(s, FIND("text")));
FORM(address, BOTH(INLAY_SUB,
                   inlay_scope_cast(s, "char *", inlay_typed_address(s, inlay_typed_member(s, FIND("first"), "scale"))),
                   inlay_scope_cast(s, "char *", inlay_typed_address(s, FIND("first")))));
FORM(bits, inlay_typed_member(s, inlay_typed_deref(s, FIND("f")), "level"));
FORM(corner_of, inlay_typed_index(s, inlay_typed_member(s, inlay_typed_deref(s, FIND("f")), "corners"),
                                  BOTH(INLAY_AND, FIND("corner"), inlay_const(3))));
FORM(global, FIND("seen"));
FORM(local_static, FIND("total"));
FORM(enumerator, FIND("BLUE"));
FORM(narrowed, inlay_scope_cast(s, "signed char", FIND("width")));
FORM(real, BOTH(INLAY_MUL, FIND("factor"), inlay_typed_real(s, 2.5)));
FORM(string, inlay_typed_index(s, inlay_typed_string(s, "text"), inlay_const(2)));
FORM(routine, CALL("twice", FIND("extra"), FIND("factor"), FIND("corner")));
FORM(procedure, CALL("count", inlay_const(1), inlay_const(2), FIND("corner"), inlay_typed_string(s, "abc")));
FORM(argument, inlay_argument(2));
FORM(returned, inlay_return_value());
FORM(ea, inlay_effective_address(0));
FORM(size, inlay_access_size(0));
FORM(content, inlay_memory_value(0));
FORM(taken, inlay_taken());
FORM(stack, inlay_stack_pointer());
FORM(thread, BOTH(INLAY_ADD, inlay_thread_id(), inlay_const(1)));

static const row rows[] = {
    {"count", "long", "deep + width", sum, AT_ENTRY},
    {"count", "long", "width - tag", difference, AT_ENTRY},
    {"count", "long", "deep * 7l", product, AT_ENTRY},
    {"count", "long", "deep / 3l", quotient, AT_ENTRY},
    {"count", "long", "width % 1000l", rest, AT_ENTRY},
    {"count", "long", "deep << 4l", shifted, AT_ENTRY},
    {"count", "long", "min(deep, 5l)", least, AT_ENTRY},
    {"count", "long", "max(tag, 3l)", most, AT_ENTRY},
    {"count", "long", "-deep", minus, AT_ENTRY},
    {"count", "long", "~width", inverse, AT_ENTRY},
    {"count", "long", "!tag", negation, AT_ENTRY},
    {"count", "long", "tag < 0l", less, AT_ENTRY},
    {"count", "long", "deep && width", both, AT_ENTRY},
    {"count", "long", "tag || deep", either, AT_ENTRY},
    {"count", "long", "deep > 9l ? deep : 77l", chosen, AT_ENTRY},
    {"count", "long", "text[0]", element, AT_ENTRY},
    {"count", "long", "*text", followed, AT_ENTRY},
    {"count", "long", "(char *)&first.scale - (char *)&first", address, AT_ENTRY},
    {"area", "long", "f->level", bits, AT_ENTRY},
    {"area", "double", "f->corners[corner & 3]", corner_of, AT_ENTRY},
    {"count", "long", "seen", global, AT_ENTRY},
    {"count", "double", "total", local_static, AT_ENTRY},
    {"count", "long", "BLUE", enumerator, AT_ENTRY},
    {"count", "long", "(signed char)width", narrowed, AT_ENTRY},
    {"area", "double", "factor * 2.5", real, AT_ENTRY},
    {"area", "long", "\"text\"[2]", string, AT_ENTRY},
    {"area", "double", "twice(extra, factor, corner)", routine, AT_ENTRY},
    {"area", "long", "count(1, 2, corner, \"abc\")", procedure, AT_ENTRY},
    {"count", "long", "$arg2", argument, AT_ENTRY},
    {"count", "long", "$ret", returned, AT_EXIT},
    {"count", "long", "$sp", stack, AT_ENTRY},
    {"count", "long", "$thread + 1", thread, AT_ENTRY},
    {"area", "long", "$ea", ea, AT_LOAD},
    {"area", "long", "$bytes", size, AT_LOAD},
    {"area", "long", "$value", content, AT_LOAD},
    {"main", "long", "$taken", taken, AT_BRANCH},
};
enum { ROWS = sizeof rows / sizeof *rows };

static inlay_point *first_of(inlay_proc *p, place at)
{
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i)) {
            bool loads = inlay_insn_memory_count(i) && inlay_insn_memory(i, 0).read && !inlay_insn_is_branch(i);
            if ((at == AT_LOAD && loads) || (at == AT_BRANCH && inlay_insn_is_conditional(i))) return inlay_before(i);
        }
    return NULL;
}

static void put(const row *r, pair *p, inlay_proc *proc)
{
    inlay_scope *s = inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc));
    char text[200];
    inlay_scope_routine(s, "double twice(double, float, int)", (void (*)(void))twice);
    inlay_scope_variable(s, "by_text", r->type, &p->text);
    inlay_scope_variable(s, "by_form", r->type, &p->made);
    inlay_scope_variable(s, "some", "long", &p->some);
    snprintf(text, sizeof text, "by_text = %s; if (by_text != 0) some = 1", r->text);
    inlay_expr first = inlay_scope_parse(s, text);
    if (!first) inlay_warn("%s: %s", r->text, inlay_scope_error(s));
    inlay_expr second = inlay_typed_assign(s, FIND("by_form"), r->made(s));
    if (!second) inlay_warn("the form of %s: %s", r->text, inlay_scope_error(s));
    inlay_point *at = r->at == AT_ENTRY  ? inlay_proc_entry(proc)
                      : r->at == AT_EXIT ? inlay_proc_exit(proc)
                                         : first_of(proc, r->at);
    if (first && second) inlay_insert(at, inlay_sequence(first, second));
}

/* Each variable that is listed is one that its name finds, with the place that is told. */
typedef struct listing {
    inlay_scope *s;
    const inlay_proc *proc;
    pair *found; /* text: listed; made: as they should be; some: the two that are known */
} listing;

static void list_local(const inlay_scope_local *v, void *arg)
{
    listing *l = arg;
    uint64_t from = v->low - inlay_proc_address(l->proc), to = v->high - inlay_proc_address(l->proc);
    bool here = from < to && to <= inlay_proc_size(l->proc) && v->line > 20 && v->what.size && !v->what.at;
    l->found->text++;
    l->found->made += here && inlay_scope_find(inlay_scope_at(l->s, v->low), v->what.name);
    if (!strcmp(v->what.name, "extra")) l->found->some |= v->is_parameter && !strcmp(v->what.type, "double");
}

static void list_global(const inlay_scope_local *v, void *arg)
{
    listing *l = arg;
    bool placed = v->low && v->high - v->low == v->what.size;
    l->found->text += placed;
    l->found->made += placed && inlay_scope_find(l->s, v->what.name);
    if (!strcmp(v->what.name, "seen")) l->found->some |= 2 * (placed && !v->is_parameter && v->what.size == 4);
}

static void list_all(inlay_proc *proc, pair *found)
{
    listing l = {inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc)), proc, found};
    inlay_scope_locals(l.s, true, list_local, &l);
    inlay_scope_locals(l.s, false, list_local, &l);
    inlay_scope_globals(l.s, list_global, &l);
    if (found->some != 3) found->some = 0;
}

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    if (!strcmp(inlay_proc_name(proc), "area")) list_all(proc, &pairs[ROWS]);
    for (unsigned i = 0; i < ROWS; i++)
        if (!strcmp(inlay_proc_name(proc), rows[i].proc)) put(&rows[i], &pairs[i], proc);
}

static void report(int status, void *arg)
{
    unsigned wrong = 0;
    (void)status, (void)arg;
    for (unsigned i = 0; i <= ROWS; i++) {
        bool good = pairs[i].text == pairs[i].made && pairs[i].some;
        wrong += !good;
        if (!good)
            fprintf(inlay_out(), "%s: %#lx by text, %#lx by form\n", i < ROWS ? rows[i].text : "listed",
                    (unsigned long)pairs[i].text, (unsigned long)pairs[i].made);
    }
    fprintf(inlay_out(), "%u of %u\n", ROWS + 1 - wrong, (unsigned)ROWS + 1);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "compares texts with what functions make");
    pairs = inlay_alloc((ROWS + 1) * sizeof *pairs);
    if (!pairs) return 1;
    inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
