/* Names in snippets: parameters, variables and types by debug information, what belongs to a point, new variables.
 *
 * While a program is rewritten its images lie at assumed addresses; where they really are is added when the code runs
 * (inlay_image.shift). */
#include "snippet/real.h"
#include "tool/entered.h"
#include "tool/rewriter.h"
#include "tool/scope.h"
#include "base/near.h"

#include <inlay/event.h>
#include <inlay/image.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scope_name *given_as(inlay_scope *s, const char *name)
{
    scope_name *n = s->given->names;
    while (n && strcmp(n->name, name)) n = n->next;
    return n;
}

const snippet *scope_given(inlay_scope *s, const char *name)
{
    const scope_name *n = given_as(s, name);
    return n ? n->meaning : NULL;
}

static scope_name *known(inlay_scope *s, const char *name)
{
    scope_name *given = given_as(s, name);
    if (given) return given;
    for (scope_name *n = s->found; n; n = n->next)
        if (!strcmp(n->name, name)) return n;
    return NULL;
}

bool scope_add(inlay_scope *s, scope_name **list, const char *name, const snippet *meaning)
{
    scope_name *n = strlen(name) < SCOPE_NAME ? tool_alloc(sizeof *n) : NULL;
    if (!n) {
        typed_refuse(&s->maker, "out of memory, or a name that is too long");
        return false;
    }
    strcpy(n->name, name);
    n->meaning = meaning;
    n->type = meaning ? meaning->type : NULL;
    n->next = *list;
    *list = n;
    return true;
}

/* A symbol's; of a procedure with its type, where debug information tells it. */
static const snippet *symbol_of(inlay_scope *s, const inlay_image *i, image *file, const char *name, uint64_t address)
{
    const image_code_symbol *list;
    const image_ctype *known = image_proc_type(file, address);
    image_ctype *named = known ? s->maker.alloc(s->maker.arg, sizeof *named) : NULL;
    for (size_t k = 0, n = image_code_symbols(file, &list); k < n; k++)
        if (list[k].resolver && list[k].addr == address)
            return typed_refuse(&s->maker, "'%s' is one of several procedures, chosen when the program starts", name);
    if (named) {
        *named = *known;
        named->member_count = image_ctype_members(known, &named->members);
        char *copy = s->maker.alloc(s->maker.arg, strlen(name) + 1);
        named->name = copy ? strcpy(copy, name) : NULL;
        named->fill = NULL;
    }
    return typed_object(&s->maker, named ? named : &image_ctype_void, scope_variable_at(&s->maker, i, address));
}

static bool is_the_name(const char *form, const void *name) { return !strcmp(form, name); }

/* A procedure by the name that people write. Of several that it may be none is taken. */
static const snippet *shown_as(inlay_scope *s, inlay_image *i, image *file, const char *name)
{
    char room[SCOPE_NAME];
    const char *last = image_name_last(name, room, sizeof room);
    inlay_proc *found = NULL;
    for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) {
        if (strncmp(p->name, "_Z", 2) || !strstr(p->name, last) || !image_name_is(p->name, is_the_name, name)) continue;
        if (strstr(inlay_proc_display_name(p), "[clone")) continue;
        if (found)
            return typed_refuse(&s->maker, "there are several of that name: `%s`, `%s`", inlay_proc_display_name(found),
                                inlay_proc_display_name(p));
        found = p;
    }
    return found ? symbol_of(s, i, file, name, found->low - i->bias) : NULL;
}

/* A type that is seen at the scope's place, which no variable of another image hides. A procedure does: `stat`. */
static bool is_type_here(const inlay_scope *s, const inlay_image *i, const char *name)
{
    image *own = s->image && i != s->image ? tool_image_file(s->image) : NULL;
    return own && image_ctype_named(own, s->address, name);
}

static const snippet *global_of(inlay_scope *s, inlay_image *i, uint64_t pc, const char *name, const char **why)
{
    image_variable v;
    uint64_t address, size, number;
    image *file = tool_image_file(i);
    if (!file) return NULL;
    bool variable = image_global(file, pc, name, &v, why);
    bool constant = !variable && !*why && image_enumerator(file, pc, name, &number);
    if ((variable || constant || *why) && is_type_here(s, i, name)) variable = constant = false, *why = NULL;
    if (variable) return scope_variable(s, i, &v);
    if (constant)
        return typed_constant(&s->maker, image_ctype_int((int64_t)number == (int32_t)number ? 4 : 8, true), number);
    if (*why) return NULL;
    if (!image_symbol(file, name, &address, &size)) return shown_as(s, i, file, name);
    if (!image_proc_at(file, address) && is_type_here(s, i, name)) return NULL;
    return symbol_of(s, i, file, name, address);
}

/* Of the process whose code the scope sees. */
static inlay_image *image_first(const inlay_scope *s)
{
    return inlay_process_image_first(s->image ? s->image->process : inlay_process_self());
}

/* Of the object that the procedure is called for: `this->name`. */
static const snippet *own_member(inlay_scope *s, image *file, const char *name)
{
    const char *why = NULL;
    uint64_t offset;
    const image_ctype *t = image_proc_type(file, s->address);
    const image_member *list;
    if (!t || !image_ctype_members(t, &list) || strcmp(list[0].name, "this")) return NULL;
    if (list[0].type->kind != IMAGE_CTYPE_POINTER || !image_ctype_member(list[0].type->of, name, &offset)) return NULL;
    const snippet *object = scope_local(s, file, "this", &why);
    if (!object) return why ? typed_refuse(&s->maker, "'%s' cannot be reached here: `this`: %s", name, why) : NULL;
    return typed_member(&s->maker, typed_deref(&s->maker, object), name);
}

static const snippet *search(inlay_scope *s, const char *name)
{
    const char *why = NULL;
    const snippet *found = NULL;
    image *file = s->image ? tool_image_file(s->image) : NULL;
    if (file && !s->whole) found = scope_local(s, file, name, &why);
    bool may_be = !why || why == image_local_around; /* a lambda has what it takes along */
    if (file && !s->whole && !found && may_be && !s->maker.why[0]) found = own_member(s, file, name);
    if (found) why = NULL;
    if (file && !found && !why && !s->maker.why[0]) found = global_of(s, s->image, s->address, name, &why);
    for (inlay_image *i = image_first(s); i && !found && !why && !s->maker.why[0]; i = inlay_image_next(i))
        if (i != s->image) found = global_of(s, i, 0, name, &why);
    if (why) typed_refuse(&s->maker, "'%s' cannot be reached here: %s", name, why);
    return found;
}

static const snippet *find(void *arg, snippet_maker *m, const char *name)
{
    inlay_scope *s = arg;
    scope_name *n = known(s, name);
    if (n) return n->meaning;
    const snippet *found = search(s, name);
    bool passes = tool_entered_is_in(found);                         /* with what it is inserted in */
    if (!m->why[0] && !passes) scope_add(s, &s->found, name, found); /* that there is none, too */
    return m->why[0] ? NULL : found;
}

/* --- what belongs to the point --- */

static const snippet *argument(inlay_scope *s, const char *digits)
{
    char *end;
    unsigned long n = strtoul(digits, &end, 10);
    if (!*digits || *end || n >= SNIPPET_MAX_ARGS) return NULL;
    snippet *value = typed_node(&s->maker, SNIPPET_ARG, NULL, NULL, NULL);
    if (value) value->index = (uint32_t)n;
    return scope_argument(s, value);
}

static const snippet *general_register(inlay_scope *s, const char *name)
{
    enum { NUMBERS = 0x2000 };
    for (unsigned r = 0; r < NUMBERS; r++) {
        if (strcmp(inlay_reg_name(r), name) || !inlay_reg_is_value((inlay_reg)r)) continue;
        inlay_expr value = inlay_register((inlay_reg)r);
        bool whole = value && value->kind == SNIPPET_REG;
        return whole ? scope_register(&s->maker, image_ctype_int(8, true), value->reg) : value;
    }
    return NULL;
}

/* Addresses of code as the program itself has them: the tool is shown others while a program is rewritten. */
static const snippet *real_address(snippet_maker *m, const snippet *shown)
{
    const image_ctype *word_type = image_ctype_int(8, false);
    if (tool_handoff_data.role != TOOL_INSTRUMENTOR || tool_now->options.mutating || !shown) return shown;
    const snippet **args = m->alloc(m->arg, sizeof *args);
    snippet *call = typed_node(m, SNIPPET_CALL, word_type, NULL, NULL);
    if (!args || !call) return typed_refuse(m, "out of memory");
    args[0] = shown;
    call->fn = (void (*)(void))inlay_address_real;
    call->args = args;
    call->nargs = 1;
    return call;
}

static bool is_address(snippet_kind kind)
{
    return kind == SNIPPET_RETADDR || kind == SNIPPET_PC || kind == SNIPPET_TARGET || kind == SNIPPET_FALLTHROUGH;
}

static const snippet *special(void *arg, snippet_maker *m, const char *name)
{
    static const struct {
        const char *name;
        snippet_kind kind;
    } kinds[] = {{"retaddr", SNIPPET_RETADDR}, {"pc", SNIPPET_PC},
                 {"ea", SNIPPET_EA},           {"bytes", SNIPPET_ACCESS_SIZE},
                 {"value", SNIPPET_MEM_VALUE}, {"taken", SNIPPET_TAKEN},
                 {"target", SNIPPET_TARGET},   {"next", SNIPPET_FALLTHROUGH},
                 {"thread", SNIPPET_THREAD},   {"cycles", SNIPPET_CYCLES}};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(name, kinds[i].name)) {
            snippet *s = typed_node(m, kinds[i].kind, image_ctype_int(8, false), NULL, NULL);
            if (s && s->kind == SNIPPET_EA) s->role = TYPED_OBJECT; /* it can be assigned */
            return is_address(kinds[i].kind) ? real_address(m, s) : s;
        }
    if (!strcmp(name, "ret")) return scope_result_value(arg);
    if (!strncmp(name, "arg", 3)) return argument(arg, name + 3);
    if (!strcmp(name, "sp")) return scope_register(m, image_ctype_int(8, false), tool_isa()->stack_reg);
    return general_register(arg, name);
}

/* --- types, strings, new variables --- */

static const image_ctype *type(void *arg, snippet_maker *m, const char *name)
{
    (void)m;
    inlay_scope *s = arg;
    image *file = s->image ? tool_image_file(s->image) : NULL;
    const image_ctype *t = file ? image_ctype_named(file, s->address, name) : NULL;
    for (inlay_image *i = image_first(s); i && !t && strchr(name, ' '); i = inlay_image_next(i))
        if (i != s->image && (file = tool_image_file(i))) t = image_ctype_named(file, 0, name);
    return t;
}

static const snippet *string(void *arg, snippet_maker *m, const char *bytes, size_t size)
{
    (void)arg;
    void *copy = tool_carried_alloc(size);
    if (!copy) return typed_refuse(m, "out of memory");
    memcpy(copy, bytes, size);
    return scope_word(m, (uint64_t)(uintptr_t)copy);
}

static const snippet *variable(void *arg, snippet_maker *m, const char *name, const image_ctype *t)
{
    inlay_scope *s = arg;
    scope_name *n = known(s, name);
    if (n && n->is_static && image_ctype_same(n->type, t)) return n->meaning;
    if (n && n->is_static) return typed_refuse(m, "'%s' has been declared with another type", name);
    bool is_shared = tool_now->options.mutating && s->image && s->image->process->is_other;
    void *at = is_shared ? inlay_process_share(s->image->process, t->size) : tool_carried_alloc(t->size);
    if (!at) return typed_refuse(m, "%s", is_shared ? inlay_process_error() : "out of memory");
    if (!scope_add(s, &s->given->names, name, typed_object(m, t, scope_word(m, (uint64_t)(uintptr_t)at)))) return NULL;
    s->given->names->is_static = true;
    s->given->names->at = at;
    return s->given->names->meaning;
}

/* Names that are spelled nearly so: of parameters, of the tool's, of procedures. NULL: there is none. */
static const char *nearly(inlay_scope *s, image *file, const char *name)
{
    char near_ones[200];
    inl_near near;
    inl_near_begin(&near, name);
    const image_proc *own = file && !s->whole ? image_proc_at(file, s->address) : NULL;
    const image_ctype *t = own ? image_proc_type(file, own->addr) : NULL;
    const image_member *parameters;
    for (size_t k = 0, n = t ? image_ctype_members(t, &parameters) : 0; k < n; k++)
        if (parameters[k].name) inl_near_offer(&near, parameters[k].name);
    for (const scope_name *n = s->given->names; n; n = n->next) inl_near_offer(&near, n->name);
    for (inlay_image *i = image_first(s); i; i = inlay_image_next(i)) {
        const image_code_symbol *list;
        image *its = tool_image_file(i);
        for (size_t k = 0, n = its ? image_code_symbols(its, &list) : 0; k < n; k++)
            inl_near_offer(&near, list[k].name);
    }
    snprintf(s->nearly, sizeof s->nearly, "near it are %s", inl_near_text(&near, near_ones, sizeof near_ones));
    return *near_ones ? s->nearly : NULL;
}

static const char *unknown(void *arg, const char *name)
{
    inlay_scope *s = arg;
    image *file = s->image ? tool_image_file(s->image) : NULL;
    bool tells = file && !s->whole;
    const char *lacks = tells ? image_debug_lacks(file, s->address) : NULL;
    if (lacks) return lacks;
    const char *near_ones = nearly(s, file, name);
    return near_ones || !tells || image_has_types(file) ? near_ones : "the file has no debug information";
}

snippet_names scope_names(inlay_scope *s)
{
    return (snippet_names){.arg = s,
                           .find = find,
                           .special = special,
                           .type = type,
                           .variable = variable,
                           .string = string,
                           .unknown = unknown};
}
