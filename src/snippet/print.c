/* Snippet trees as text, for dumps: (add rax 8), (call 0x401000 pc (ea 0)), (if c a b) ... */
#include "snippet/snippet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct text {
    char *out;
    size_t at, size;
} text;

static const char *const kind_names[] = {
    "const",
    "reg",
    "flags",
    "pc",
    "ea",
    "access-size",
    "mem-value",
    "taken",
    "target",
    "fallthrough",
    "arg",
    "retval",
    "retaddr",
    "thread",
    "cycles",
    "context",
    "reg-ref",
    "vec-arg",
    "executes",
    "rep-count",
    "syscall-nr",
    "element-ea",
    "element-active",
    "thread-data",
    "own-cycles",
    "thread-pointer",
    "switch",
    "load",
    "store",
    "add-to",
    "set-reg",
    "set-ea",
    "binary",
    "unary",
    "if",
    "while",
    "seq",
    "count",
    "counter",
    "call",
    "append",
    "break",
    "let",
    "local",
    "set-local",
    "real-arg",
};
static const char *const op_names[] = {
    "add", "sub",  "mul",  "div",  "mod", "and", "or",  "xor",  "shl",    "shr", "sar",
    "eq",  "ne",   "lt",   "le",   "gt",  "ge",  "ult", "ule",  "ugt",    "uge", "min",
    "max", "umin", "umax", "land", "lor", "neg", "not", "lnot", "extend",
};
_Static_assert(sizeof kind_names / sizeof *kind_names == SNIPPET_REAL_ARG + 1, "a name for each kind");
_Static_assert(sizeof op_names / sizeof *op_names == SNIPPET_EXTEND + 1, "a name for each operation");

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t room = t->size > t->at ? t->size - t->at : 0;
    int n = vsnprintf(room ? t->out + t->at : NULL, room, fmt, ap);
    va_end(ap);
    if (n > 0) t->at += (size_t)n;
}

static void print_leaf(text *t, const snippet *s)
{
    switch (s->kind) {
    case SNIPPET_CONST: put(t, "%#" PRIx64, s->value); break;
    case SNIPPET_REG: put(t, "r%u", s->reg); break;
    case SNIPPET_REG_REF: put(t, "&r%u", s->reg); break;
    case SNIPPET_VEC_ARG: put(t, "v%u", s->reg); break;
    case SNIPPET_ELEMENT_EA:
    case SNIPPET_ELEMENT_ACTIVE: put(t, "(%s %u %u)", kind_names[s->kind], s->index, (unsigned)s->value); break;
    case SNIPPET_EA:
    case SNIPPET_ACCESS_SIZE:
    case SNIPPET_MEM_VALUE:
    case SNIPPET_ARG:
    case SNIPPET_LOCAL:
    case SNIPPET_COUNTER: put(t, "(%s %u.%u)", kind_names[s->kind], s->index, (unsigned)s->value); break;
    default: put(t, "%s", kind_names[s->kind]); break;
    }
}

static void print_node(text *t, const snippet *s)
{
    if (!s) {
        put(t, "nothing");
        return;
    }
    if (snippet_is_leaf(s)) {
        print_leaf(t, s);
        return;
    }
    bool memory = s->kind >= SNIPPET_LOAD && s->kind <= SNIPPET_ADD_TO;
    bool operation = s->kind == SNIPPET_BINARY || s->kind == SNIPPET_UNARY;
    put(t, "(%s", operation ? op_names[s->op] : kind_names[s->kind]);
    if (memory || (operation && s->op == SNIPPET_EXTEND)) put(t, "%u%s", s->size * 8u, s->is_signed ? "s" : "");
    if (s->kind == SNIPPET_SET_REG) put(t, " r%u", s->reg);
    if (s->kind == SNIPPET_COUNT || s->kind == SNIPPET_SET_EA || s->kind == SNIPPET_LET || s->kind == SNIPPET_SET_LOCAL)
        put(t, " %u", s->index);
    if (s->kind == SNIPPET_CALL) put(t, " %p", (void *)(uintptr_t)s->fn);
    if (s->kind == SNIPPET_CALL && s->value) put(t, " without %#" PRIx64, s->value);
    if (s->kind == SNIPPET_APPEND) put(t, " %u", s->buffer ? s->buffer->slot : 0);
    const snippet *kids[] = {s->a, s->b, s->c};
    for (unsigned i = 0; i < 3; i++)
        if (kids[i]) put(t, " "), print_node(t, kids[i]);
    for (unsigned i = 0; i < s->nargs; i++) put(t, " "), print_node(t, s->args[i]);
    put(t, ")");
}

void snippet_print(const snippet *s, char *out, size_t size)
{
    text t = {out, 0, size};
    if (size) out[0] = 0;
    print_node(&t, s);
}
