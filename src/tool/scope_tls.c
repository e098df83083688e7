/* Thread-local variables as snippets.
 *
 * Of the program, and of libraries that are loaded with it and say so, they lie at a fixed distance from the thread
 * pointer. Blocks of the others come when a thread first asks for one: the thread's table (glibc's) has them by the
 * image's number. Where there is none yet a variable reads as it is at first, by a copy, so that looking at it calls
 * nothing; an assignment has the dynamic linker make the block, as the library itself would. */
#include "image/image.h"
#include "tool/call.h"
#include "tool/scope.h"
#include "tool/wrap.h"

#include <inlay/image.h>
#include <inlay/process.h>

#include <string.h>

enum { ENTRY = 16, DTV = 1, MODULE, BLOCK };

static const image_ctype *word_type(void) { return image_ctype_int(8, false); }

static const snippet *local(snippet_maker *m, uint32_t number)
{
    snippet *s = typed_node(m, SNIPPET_LOCAL, word_type(), NULL, NULL);
    if (s) s->index = number;
    return s;
}

static const snippet *load(snippet_maker *m, const snippet *at)
{
    return typed_value(m, typed_object(m, word_type(), at));
}

static const snippet *thread_pointer(snippet_maker *m)
{
    return typed_node(m, SNIPPET_THREAD_POINTER, word_type(), NULL, NULL);
}

/* The thread's block of the image; all ones: it has none. */
static const snippet *block(snippet_maker *m, const inlay_image *i, const image_tls *t)
{
    const image_ctype *u = word_type();
    const snippet *none = typed_constant(m, u, UINT64_MAX), *dtv = local(m, DTV), *module = local(m, MODULE);
    const snippet *most = load(m, typed_word(m, SNIPPET_SUB, dtv, ENTRY));
    const snippet *has = typed_binary(m, SNIPPET_LAND, module, typed_binary(m, SNIPPET_GE, most, module));
    const snippet *entry = typed_binary(m, SNIPPET_ADD, dtv, typed_word(m, SNIPPET_MUL, module, ENTRY));
    const snippet *s = typed_choice(m, has, load(m, entry), none);
    s = typed_let(m, MODULE, load(m, scope_in_image(m, i, t->module)), s);
    return typed_let(m, DTV, load(m, typed_word(m, SNIPPET_ADD, thread_pointer(m), t->table)), s);
}

/* What it is at first. */
static const snippet *at_first(snippet_maker *m, image *file, const image_variable *v)
{
    enum { MOST = 1 << 16 };
    uint64_t start, filled = image_tls_initial(file, &start);
    const uint8_t *bytes;
    uint64_t size = v->type->size ? v->type->size : 1, at = (uint64_t)v->offset;
    void *copy = size <= MOST ? tool_carried_alloc(size) : NULL;
    if (!copy) return typed_refuse(m, "a variable of this size is not copied for threads that have none yet");
    if (at < filled && image_bytes(file, start + at, &bytes))
        memcpy(copy, bytes, filled - at < size ? filled - at : size);
    return scope_word(m, (uint64_t)(uintptr_t)copy);
}

/* As the library itself asks; the answer is for the distance that stands behind the number. */
static const snippet *asked_for(inlay_scope *s, const inlay_image *i, const image_tls *t, uint64_t address)
{
    static const char name[] = "__tls_get_addr";
    snippet_maker *m = &s->maker;
    const snippet *pair = scope_in_image(m, i, t->module);
    image_ctype *of = m->alloc(m->arg, sizeof *of);
    if (!of || !pair) return typed_refuse(m, "out of memory");
    *of = (image_ctype){.kind = IMAGE_CTYPE_FUNCTION, .name = name, .of = word_type()};
    const snippet *there = typed_as(m, word_type(), tool_call_make(m, of, scope_word(m, address), 1, &pair));
    return typed_binary(m, SNIPPET_SUB, there, load(m, typed_word(m, SNIPPET_ADD, pair, 8)));
}

/* glibc's; 0: there is none. */
static uint64_t get_address(const inlay_image *of)
{
    for (inlay_image *i = inlay_process_image_first(of->process); i; i = inlay_image_next(i)) {
        uint64_t at, size;
        image *file = tool_image_file(i);
        if (file && image_symbol(file, "_rtld_global", &at, &size) && image_symbol(file, "__tls_get_addr", &at, &size))
            return at + i->bias;
    }
    return 0;
}

/* Where the dynamic linker is must be known: in a program's file it is not. */
static bool can_be_asked(void)
{
    bool runs = tool_handoff_data.role != TOOL_INSTRUMENTOR || tool_handoff_data.target;
    return tool_can_wrap && (runs || tool_now->options.mutating || tool_now->options.attaching);
}

static const snippet *dynamic(inlay_scope *s, const inlay_image *i, image *file, const image_tls *t,
                              const image_variable *v)
{
    snippet_maker *m = &s->maker;
    uint64_t get = get_address(i);
    if (!get) return typed_refuse(m, "%s has thread-local variables of a C library that is not known", i->name);
    if (!can_be_asked())
        return typed_refuse(
            m, "%s has thread-local variables that a thread has to ask for, which it cannot from a file", i->name);
    /* All ones, or 0 where the table has grown. */
    const snippet *has = typed_word(m, SNIPPET_GT, typed_word(m, SNIPPET_ADD, local(m, BLOCK), 1), 1);
    const snippet *there = typed_word(m, SNIPPET_ADD, local(m, BLOCK), (uint64_t)v->offset);
    const snippet *read = typed_let(m, BLOCK, block(m, i, t), typed_choice(m, has, there, at_first(m, file, v)));
    if (!read) return NULL;
    snippet *object = (snippet *)(uintptr_t)typed_object(m, v->type, read);
    if (!object) return NULL;
    const snippet *asked = typed_word(m, SNIPPET_ADD, asked_for(s, i, t, get), (uint64_t)v->offset);
    object->c = typed_let(m, BLOCK, block(m, i, t), typed_choice(m, has, there, asked));
    return object->c ? object : NULL;
}

const snippet *scope_tls(inlay_scope *s, const inlay_image *i, const image_variable *v)
{
    snippet_maker *m = &s->maker;
    image_tls t;
    image *file = tool_image_file((inlay_image *)i);
    const snippet *from;
    if (!file || !image_tls_place(file, &t)) return typed_refuse(m, "%s has no thread-local variables", i->name);
    if (!i->is_main && !t.slot && t.module) return dynamic(s, i, file, &t, v);
    if (!i->is_main && !t.slot)
        return typed_refuse(m,
                            "%s does not keep where its thread-local variables are (it has neither a distance nor a "
                            "number of its own: TLS descriptors, or none in use)",
                            i->name);
    if (i->is_main) from = scope_word(m, (uint64_t)(t.program + v->offset));
    else from = typed_word(m, SNIPPET_ADD, load(m, scope_in_image(m, i, t.slot)), (uint64_t)(v->offset - t.slot_of));
    return from ? typed_object(m, v->type, typed_binary(m, SNIPPET_ADD, thread_pointer(m), from)) : NULL;
}
