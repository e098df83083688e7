/* Scopes and typed snippets, as the public header has them. */
#include "tool/scope.h"
#include "tool/call.h"

#include <string.h>

static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return tool_alloc(bytes);
}

static inlay_scope *new_scope(inlay_image *image, uint64_t address, struct scope_given *given)
{
    inlay_scope *s = given ? tool_alloc(sizeof *s) : NULL;
    if (!s) return NULL;
    s->given = given;
    s->image = image;
    s->whole = !address || !image;
    s->address = s->whole ? 0 : address - image->bias;
    s->maker.alloc = alloc;
    s->maker.procedure = tool_call_make;
    s->maker.text = scope_text_of;
    return s;
}

inlay_scope *inlay_scope_new(inlay_image *image, uint64_t address)
{
    return new_scope(image, address, tool_alloc(sizeof(struct scope_given)));
}

inlay_scope *inlay_scope_at(inlay_scope *s, uint64_t address)
{
    return s ? new_scope(s->image, address, s->given) : NULL;
}

inlay_scope *inlay_scope_at_exit(inlay_scope *s)
{
    image *file = s && s->image && !s->whole ? tool_image_file(s->image) : NULL;
    const image_proc *p = file ? image_proc_at(file, s->address) : NULL;
    inlay_scope *at = p ? new_scope(s->image, p->addr + s->image->bias, s->given) : NULL;
    if (at) at->at_exit = true;
    return at;
}

const char *inlay_scope_error(const inlay_scope *s) { return s ? s->maker.why : "out of memory"; }

/* A text that is NULL is wrong as an empty one is. */
static const char *given(const char *text) { return text ? text : ""; }

static snippet_maker *maker(inlay_scope *s)
{
    s->maker.why[0] = 0;
    s->maker.placed = false;
    return &s->maker;
}

bool inlay_scope_routine(inlay_scope *s, const char *prototype, void (*routine)(void))
{
    char name[SCOPE_NAME];
    if (!s) return false;
    bool entered = tool_enter();
    snippet_names names = scope_names(s);
    const image_ctype *t = snippet_parse_prototype(maker(s), &names, given(prototype), name, sizeof name);
    const snippet *others = t ? scope_given(s, name) : NULL;
    if (others && others->role != TYPED_ROUTINE) others = NULL;
    const snippet *meaning = t ? typed_routine(&s->maker, routine, t, others) : NULL;
    bool added = meaning && scope_add(s, &s->given->names, name, meaning);
    tool_leave(entered);
    return added;
}

bool inlay_scope_variable(inlay_scope *s, const char *name, const char *type, void *at)
{
    inlay_expr address = s ? inlay_pointer(at) : NULL;
    if (!address) return false;
    bool entered = tool_enter();
    snippet_names names = scope_names(s);
    const image_ctype *t = snippet_parse_type(maker(s), &names, given(type));
    const snippet *meaning = t ? typed_object(&s->maker, t, address) : NULL;
    bool added = meaning && scope_add(s, &s->given->names, given(name), meaning);
    tool_leave(entered);
    return added;
}

inlay_expr inlay_scope_parse(inlay_scope *s, const char *text)
{
    if (!s) return NULL;
    bool entered = tool_enter();
    snippet_names names = scope_names(s);
    inlay_expr code = snippet_parse(maker(s), &names, given(text));
    tool_leave(entered);
    return code;
}

inlay_expr inlay_scope_find(inlay_scope *s, const char *name)
{
    if (!s) return NULL;
    name = given(name);
    bool entered = tool_enter();
    snippet_names names = scope_names(s);
    inlay_expr found = name[0] == '$' ? names.special(s, maker(s), name + 1) : names.find(s, maker(s), name);
    tool_leave(entered);
    return found ? found : typed_refuse(&s->maker, "'%s' is not known", name);
}

static const image_ctype *type_of(inlay_scope *s, const char *text)
{
    if (!s) return NULL;
    bool entered = tool_enter();
    snippet_names names = scope_names(s);
    const image_ctype *t = snippet_parse_type(maker(s), &names, given(text));
    tool_leave(entered);
    return t;
}

inlay_expr inlay_scope_cast(inlay_scope *s, const char *type, inlay_expr e)
{
    const image_ctype *t = type_of(s, type);
    return t ? typed_cast(&s->maker, t, e) : NULL;
}

size_t inlay_scope_size_of(inlay_scope *s, const char *type)
{
    const image_ctype *t = type_of(s, type);
    return t ? t->size : 0;
}

static char format_of(const image_ctype *t)
{
    if (t->kind == IMAGE_CTYPE_FLOAT) return 'f';
    if (t->kind == IMAGE_CTYPE_POINTER) return 'p';
    if (!image_ctype_is_integer(t)) return 0;
    return t->is_signed ? 'i' : 'u';
}

static char *carried(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tool_carried_alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* What is no plain number and no plain pointer. NULL: it is, or leads to what is not known, or there is no room. */
const char *scope_layout(const image_ctype *t)
{
    enum { ROOM = 2000 };
    char text[ROOM];
    bool plain = t->kind == IMAGE_CTYPE_FLOAT || t->kind == IMAGE_CTYPE_LONG_DOUBLE ||
                 (t->kind == IMAGE_CTYPE_POINTER && !t->is_reference) ||
                 (t->kind == IMAGE_CTYPE_INT && !(t->size == 1 && t->name && !strcmp(t->name, "char")));
    bool good = !plain && t->size && typed_layout(t, text, sizeof text);
    bool unknown = good && t->kind == IMAGE_CTYPE_POINTER && (!t->of->size || text[1] == '?');
    return good && !unknown ? carried(text) : NULL;
}

/* With copies of the texts. False: out of memory. */
static bool describe(const char *its_name, const image_ctype *t, void *at, inlay_scope_static *out)
{
    char text[200];
    const char *type = carried(image_ctype_text(t, text, sizeof text)), *name = carried(its_name);
    if (!type || !name) return false;
    *out = (inlay_scope_static){name, type, at, t->size, format_of(t), scope_layout(t)};
    return true;
}

void inlay_scope_statics(inlay_scope *s, void (*each)(const inlay_scope_static *, void *arg), void *arg)
{
    inlay_scope_static v;
    for (scope_name *n = s && each ? s->given->names : NULL; n; n = n->next)
        if (n->is_static && describe(n->name, n->type, n->at, &v)) each(&v, arg);
}

/* The type of the procedure at the scope's address; NULL: not known. */
static const image_ctype *own_type(const inlay_scope *s)
{
    image *file = s && s->image && !s->whole ? tool_image_file(s->image) : NULL;
    const image_proc *p = file ? image_proc_at(file, s->address) : NULL;
    return p ? image_proc_type(file, p->addr) : NULL;
}

static const image_ctype *type_by(inlay_scope *s, const char *prototype)
{
    char name[SCOPE_NAME];
    if (!s) return NULL;
    bool entered = tool_enter();
    snippet_names names = scope_names(s);
    const image_ctype *t = snippet_parse_prototype(maker(s), &names, given(prototype), name, sizeof name);
    tool_leave(entered);
    return t;
}

/* By a prototype parameters may have no names. */
static void each_parameter(const image_ctype *t, bool unnamed, void (*each)(const inlay_scope_static *, void *arg),
                           void *arg)
{
    const image_member *list;
    inlay_scope_static v;
    for (size_t k = 0, n = image_ctype_members(t, &list); k < n; k++) {
        const char *name = list[k].name ? list[k].name : "";
        if ((unnamed || *name) && describe(name, list[k].type, NULL, &v)) each(&v, arg);
    }
}

void inlay_scope_parameters(inlay_scope *s, void (*each)(const inlay_scope_static *, void *arg), void *arg)
{
    const image_ctype *t = each ? own_type(s) : NULL;
    if (t) each_parameter(t, false, each, arg);
}

/* --- variables that have not been asked for by name --- */

typedef struct listing {
    INL_VEC(inlay_scope_local) all;
    uint64_t bias;
} listing;

static void list(void *arg, const image_listed *v)
{
    listing *l = arg;
    inlay_scope_local one = {.is_parameter = v->is_parameter, .line = v->line};
    if (v->high) one.low = v->low + l->bias;
    if (v->high) one.high = v->high + l->bias;
    if (describe(v->name, v->type, NULL, &one.what)) (void)!inl_vec_push(&l->all, one);
}

static void tell(listing *l, void (*each)(const inlay_scope_local *, void *arg), void *arg)
{
    for (size_t k = 0; k < l->all.count; k++) each(&l->all.items[k], arg);
    inl_vec_free(&l->all);
}

void inlay_scope_locals(inlay_scope *s, bool all, void (*each)(const inlay_scope_local *, void *arg), void *arg)
{
    if (!s || !s->image || !each) return;
    listing l = {.bias = s->image->bias};
    bool entered = tool_enter();
    image *file = s->whole ? NULL : tool_image_file(s->image);
    if (file) image_locals(file, s->address, all, list, &l);
    tool_leave(entered);
    tell(&l, each, arg);
}

void inlay_scope_globals(inlay_scope *s, void (*each)(const inlay_scope_local *, void *arg), void *arg)
{
    if (!s || !s->image || !each) return;
    listing l = {.bias = s->image->bias};
    bool entered = tool_enter();
    image *file = tool_image_file(s->image);
    if (file) image_globals(file, list, &l);
    tool_leave(entered);
    tell(&l, each, arg);
}

bool inlay_scope_prototype(inlay_scope *s, const char *prototype, void (*each)(const inlay_scope_static *, void *arg),
                           void *arg)
{
    const image_ctype *t = type_by(s, prototype);
    if (t && each) each_parameter(t, true, each, arg);
    return t;
}

bool inlay_scope_parameter(inlay_scope *s, const char *prototype, unsigned number, inlay_scope_static *out,
                           inlay_expr *value)
{
    const image_ctype *t = !s ? NULL : prototype ? type_by(s, prototype) : own_type(s);
    const image_member *list;
    if (!out || !value || !t || !number || number > image_ctype_members(t, &list)) return false;
    const image_member *p = &list[number - 1];
    bool entered = tool_enter();
    maker(s);
    *value = scope_parameter(s, t, prototype != NULL, number);
    tool_leave(entered);
    return describe(p->name ? p->name : "", p->type, NULL, out);
}

bool inlay_scope_result(inlay_scope *s, const char *prototype, inlay_scope_static *out)
{
    const image_ctype *t = prototype ? type_by(s, prototype) : own_type(s);
    if (!out) return false;
    bool nothing = t && t->of && t->of->kind == IMAGE_CTYPE_VOID;
    *out = (inlay_scope_static){.type = nothing ? "void" : NULL};
    return t && t->of && !nothing && describe("", t->of, NULL, out);
}

inlay_expr inlay_typed_binary(inlay_scope *s, inlay_op op, inlay_expr a, inlay_expr b)
{
    return s && a && b ? typed_binary(maker(s), (snippet_op)op, a, b) : NULL;
}

inlay_expr inlay_typed_unary(inlay_scope *s, inlay_op op, inlay_expr a)
{
    return s && a ? typed_unary(maker(s), (snippet_op)op, a) : NULL;
}

inlay_expr inlay_typed_assign(inlay_scope *s, inlay_expr variable, inlay_expr value)
{
    return s && variable && value ? typed_assign(maker(s), variable, value) : NULL;
}

inlay_expr inlay_typed_if(inlay_scope *s, inlay_expr condition, inlay_expr then, inlay_expr otherwise)
{
    if (!s || !condition || !then) return NULL;
    if (otherwise) return typed_choice(maker(s), condition, then, otherwise);
    inlay_expr truth = typed_truth(maker(s), condition);
    return truth ? typed_node(&s->maker, SNIPPET_IF, &image_ctype_void, truth, then) : NULL;
}

inlay_expr inlay_typed_deref(inlay_scope *s, inlay_expr e) { return s && e ? typed_deref(maker(s), e) : NULL; }
inlay_expr inlay_typed_address(inlay_scope *s, inlay_expr e) { return s && e ? typed_address(maker(s), e) : NULL; }
inlay_expr inlay_typed_member(inlay_scope *s, inlay_expr e, const char *name)
{
    return s && e && name ? typed_member(maker(s), e, name) : NULL;
}
inlay_expr inlay_typed_index(inlay_scope *s, inlay_expr array, inlay_expr index)
{
    return s && array && index ? typed_index(maker(s), array, index) : NULL;
}
inlay_expr inlay_typed_call(inlay_scope *s, inlay_expr routine, unsigned count, const inlay_expr *arguments)
{
    if (!s || !routine || (count && !arguments)) return NULL;
    for (unsigned i = 0; i < count; i++)
        if (!arguments[i]) return NULL;
    return typed_call(maker(s), routine, count, arguments);
}
inlay_expr inlay_typed_word(inlay_scope *s, inlay_expr object, size_t offset, unsigned size)
{
    if (!s || !object || !size || size > sizeof(uint64_t)) return NULL;
    bool whole = typed_is_object(object) && offset <= typed_type(object)->size &&
                 size <= typed_type(object)->size - offset;
    return whole ? typed_bytes(maker(s), object, offset, size) : typed_refuse(maker(s), "it has no such bytes");
}
inlay_expr inlay_typed_real(inlay_scope *s, double value) { return s ? typed_real(maker(s), value) : NULL; }

inlay_expr inlay_typed_string(inlay_scope *s, const char *text)
{
    if (!s || !text) return NULL;
    size_t size = strlen(text) + 1;
    inlay_expr address = scope_names(s).string(s, maker(s), text, size);
    return address ? typed_object(&s->maker, typed_array_of(&s->maker, &image_ctype_char, size), address) : NULL;
}
