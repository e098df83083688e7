/* What a mutator has executed once: snippets, procedures, the loading of a library; values with their types. */
#include "tool/mutator.h"
#include "snippet/real.h"
#include "snippet/typed.h"
#include "tool/call.h"

#include <inlay/evaluate.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PATIENCE = 10, DLOPEN_NOW = 2, NAME = 4096, EVALUATED_PARTS = 16 };

/* --- what the process must have for it --- */

static bool in_heap(const snippet *s)
{
    bool any = s && s->kind == SNIPPET_CONST && tool_heap_holds((const void *)(uintptr_t)s->value);
    for (unsigned i = 0; s && i < s->nargs && !any; i++) any = in_heap(s->args[i]);
    return any || (s && (in_heap(s->a) || in_heap(s->b) || in_heap(s->c)));
}

/* Strings and static variables of a text, which no commit has put there yet. */
static inl_status put_heap(mutatee *m, inl_error *e)
{
    uint64_t now = tool_heap()->next, high = inl_page_up(now);
    inl_status s = INL_OK;
    if (high > m->heap_mapped) {
        live_text more = {.at = m->heap_mapped, .room = high - m->heap_mapped, .prot = PROT_READ | PROT_WRITE};
        s = live_map(&m->live, &more, e);
    }
    if (s == INL_OK && now > m->heap_sent)
        s = remote_write(&m->live.threads.items[0], m->heap_sent, (const void *)(uintptr_t)m->heap_sent,
                         now - m->heap_sent, e);
    return s;
}

static void heap_is_there(mutatee *m)
{
    m->heap_sent = tool_heap()->next;
    if (inl_page_up(m->heap_sent) > m->heap_mapped) m->heap_mapped = inl_page_up(m->heap_sent);
}

/* --- values --- */

static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return tool_alloc(bytes);
}

/* `bits` as a node of the type has them. */
static void set_value(inlay_value *v, const image_ctype *t, uint64_t bits)
{
    static const char formats[] = {[IMAGE_CTYPE_BOOL] = 'u',  [IMAGE_CTYPE_INT] = 'u',     [IMAGE_CTYPE_ENUM] = 'u',
                                   [IMAGE_CTYPE_FLOAT] = 'f', [IMAGE_CTYPE_POINTER] = 'p', [IMAGE_CTYPE_OTHER] = 0};
    v->format = formats[t->kind];
    if (v->format == 'u' && t->is_signed) v->format = 'i';
    v->size = t->size;
    v->u = v->format ? bits : 0;
    image_ctype_text(t, v->type, sizeof v->type);
}

typedef struct evaluation {
    int tid;
    const snippet *object; /* its address is asked for; NULL: it has none */
    const snippet *value;  /* NULL: a whole structure */
    bool heap;
    mutator_needs needs;
    const snippet *parts[EVALUATED_PARTS]; /* of one in registers: 8 bytes each */
    unsigned part_count;
    size_t size; /* bytes that are asked for */
} evaluation;
typedef struct evaluated {
    uint64_t address, bits;
    uint8_t room[TOOL_CALL_ROOM];
    bool heap_is_there; /* whatever comes of the rest */
    uint64_t bytes[];
} evaluated;

/* Its bytes, while all stands still. */
static inl_status take_bytes(mutatee *m, remote *r, const evaluation *w, evaluated *out, inl_error *e)
{
    inl_status s = INL_OK;
    for (unsigned i = 0; i < w->part_count && s == INL_OK; i++)
        s = mutator_run(m, r, w->parts[i], out->room, &out->bytes[i], e);
    if (s != INL_OK || w->part_count || !w->size || !w->object) return s;
    const void *own = mutator_run_room(out->room, out->address, w->size);
    if (own) memcpy(out->bytes, own, w->size);
    else if (inlay_process_read(&m->process, out->bytes, out->address, w->size) != w->size)
        return inl_fail_at(e, INL_ERR_USAGE, out->address, "process %d has nothing to read at 0x%llx", m->live.pid,
                           (unsigned long long)out->address);
    if (own) out->address = 0;
    return s;
}

static inl_status evaluate(mutatee *m, void *arg, void *answer, inl_error *e)
{
    const evaluation *w = arg;
    evaluated *out = answer;
    remote *r;
    inl_status s = w->heap ? put_heap(m, e) : INL_OK;
    out->heap_is_there = w->heap && s == INL_OK;
    if (s == INL_OK && w->needs.calls) s = mutator_calm(m, w->tid, &r, e);
    else if (s == INL_OK) s = (r = mutator_thread(m, w->tid, e)) ? INL_OK : INL_ERR_NOT_FOUND;
    if (s == INL_OK && w->object) s = mutator_run(m, r, w->object, out->room, &out->address, e);
    if (s == INL_OK && w->value) s = mutator_run(m, r, w->value, out->room, &out->bits, e);
    return s == INL_OK ? take_bytes(m, r, w, out, e) : s;
}

static bool is_whole(const image_ctype *t) { return image_ctype_is_whole(t) || t->kind == IMAGE_CTYPE_ARRAY; }

static inl_status run_once(mutatee *m, evaluation *w, evaluated *out, inl_error *e)
{
    const char *why = mutator_run_refuses(w->object, &w->needs);
    if (!why) why = mutator_run_refuses(w->value, &w->needs);
    w->heap = w->needs.tool || in_heap(w->object) || in_heap(w->value);
    for (unsigned i = 0; i < w->part_count && !why; i++) {
        why = mutator_run_refuses(w->parts[i], &w->needs);
        w->heap = w->heap || w->needs.tool || in_heap(w->parts[i]);
    }
    if (why) return inl_fail(e, INL_ERR_UNSUPPORTED, "%s", why);
    inl_status s = w->heap && !m->has_tool ? mutator_put(m, e) : INL_OK;
    if (s == INL_OK) s = mutator_work(m, evaluate, w, out, sizeof *out + (w->size + 7) / 8 * 8, e);
    if (out->heap_is_there) heap_is_there(m);
    return s;
}

/* What is computed: an address, a value, the parts of what has none. */
static bool ask_for(evaluation *w, snippet_maker *maker, inlay_expr code, size_t room)
{
    const image_ctype *t = typed_type(code);
    bool whole = typed_is_object(code) && is_whole(t), none = t->kind == IMAGE_CTYPE_VOID;
    bool pieces = whole && code->role == TYPED_PIECES;
    if (!whole) w->value = none ? code : typed_value(maker, code);
    if (!w->value && !whole) return mutator_refuse(INL_ERR_USAGE, "%s", maker->why);
    if (code->role == TYPED_OBJECT && code->kind == SNIPPET_LOAD) w->object = code->a;
    if (!room) return true;
    if (t->size > room || (pieces && t->size > sizeof w->parts))
        return mutator_refuse(INL_ERR_USAGE, "it has %llu bytes", (unsigned long long)t->size);
    w->size = (size_t)t->size;
    for (uint64_t i = 0; pieces && i < t->size; i += 8) {
        const snippet *part = typed_part(maker, code, i, (unsigned)(t->size - i < 8 ? t->size - i : 8));
        if (!part) return mutator_refuse(INL_ERR_USAGE, "%s", maker->why);
        w->parts[w->part_count++] = part;
    }
    return true;
}

/* Of what is a value: as it would lie in memory. */
static void value_bytes(const inlay_value *v, void *bytes)
{
    uint64_t bits = v->format == 'f' && v->size == sizeof(float) ? real_narrow(v->u) : v->u;
    if (v->format && v->size <= sizeof bits) memcpy(bytes, &bits, v->size);
}

bool inlay_process_evaluate_bytes(inlay_process *p, int tid, inlay_expr code, inlay_value *value, void *bytes,
                                  size_t room)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    inlay_value ours;
    snippet_maker maker = {.alloc = alloc};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!code) return mutator_refuse(INL_ERR_USAGE, "there is no snippet");
    tool_process_mean(p);
    evaluation w = {.tid = tid};
    if (!ask_for(&w, &maker, code, room)) return false;
    evaluated *out = calloc(1, sizeof *out + w.size + 8);
    if (!out) return mutator_refuse(INL_ERR_NO_MEMORY, "out of memory");
    bool done = run_once(m, &w, out, &e) == INL_OK || mutator_fail(&e);
    const image_ctype *t = w.value ? typed_type(w.value) : typed_type(code);
    ours = (inlay_value){.address = out->address};
    set_value(&ours, t, out->bits);
    if (!w.value) ours.format = 's';
    if (done && w.size && (!w.value || w.object)) memcpy(bytes, out->bytes, w.size);
    else if (done && w.size) value_bytes(&ours, bytes);
    if (done && value) *value = ours;
    free(out);
    return done;
}

bool inlay_process_evaluate(inlay_process *p, int tid, inlay_expr code, inlay_value *value)
{
    return inlay_process_evaluate_bytes(p, tid, code, value, NULL, 0);
}

/* --- procedures --- */

typedef struct calling {
    int tid;
    live_call call;
    const char *text; /* the first argument is its address; NULL: it is as it is */
    uint64_t error;   /* called when the result is 0; 0: nothing */
} calling;
typedef struct called {
    uint64_t result, real;
    char why[200];
} called;

/* On the stack, above what the procedure that is called will have there. */
static inl_status put_text(remote *r, calling *c, inl_error *e)
{
    enum { BELOW = 512 };
    size_t size = strlen(c->text) + 1;
    c->call.ints[0] = (remote_registers_sp(&r->regs) - BELOW - size) & ~15ull;
    c->call.below = remote_registers_sp(&r->regs) - c->call.ints[0];
    inl_status s = remote_write(r, c->call.ints[0], c->text, size, e);
    return s == INL_OK ? s : inl_fail(e, INL_ERR_NO_MEMORY, "thread %d has no room on its stack", r->pid);
}

static void ask_why(mutatee *m, remote *r, uint64_t dlerror, called *out)
{
    inl_error ignored;
    live_call c = {.pc = dlerror, .patience = PATIENCE};
    if (mutator_call(m, r, &c, &ignored) != INL_OK || !c.results[0]) return;
    for (size_t n = 0; n + 1 < sizeof out->why; n++)
        if (inlay_process_read(&m->process, &out->why[n], c.results[0] + n, 1) != 1 || !out->why[n]) break;
}

static inl_status call_now(mutatee *m, void *arg, void *answer, inl_error *e)
{
    calling c = *(const calling *)arg;
    called *out = answer;
    remote *r;
    inl_status s = mutator_calm(m, c.tid, &r, e);
    if (s == INL_OK && c.text) s = put_text(r, &c, e);
    if (s == INL_OK) s = mutator_call(m, r, &c.call, e);
    out->result = c.call.results[0];
    out->real = c.call.real_results[0];
    if (s == INL_OK && !out->result && c.error) ask_why(m, r, c.error, out);
    return s;
}

static bool set_arguments(live_call *c, unsigned count, const inlay_value *arguments)
{
    for (unsigned i = 0; i < count; i++) {
        const inlay_value *v = &arguments[i];
        bool real = v->format == 'f';
        uint64_t bits = !real ? v->u : v->size == sizeof(float) ? real_narrow(real_bits(v->f)) : real_bits(v->f);
        if (!live_call_pass(c, real, bits))
            return mutator_refuse(INL_ERR_UNSUPPORTED,
                                  "a procedure is called with at most %d arguments behind those in "
                                  "registers",
                                  REMOTE_WORDS);
    }
    return true;
}

static void set_result(inlay_value *v, const called *of)
{
    bool narrow = v->size == 1 || v->size == 2 || v->size == 4;
    *v = (inlay_value){.format = v->format, .size = v->size};
    if (v->format == 'f') v->u = v->size == sizeof(float) ? real_widen(of->real & UINT32_MAX) : of->real;
    else v->u = narrow ? snippet_extend(of->result, (unsigned)v->size, v->format == 'i') : of->result;
}

bool inlay_process_call(inlay_process *p, int tid, uint64_t procedure, unsigned count, const inlay_value *arguments,
                        inlay_value *result)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    calling c = {.tid = tid, .call = {.pc = procedure, .patience = PATIENCE}};
    called out = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!module_at(m->modules, procedure))
        return mutator_refuse(INL_ERR_USAGE, "process %d has no code at 0x%llx", m->live.pid,
                              (unsigned long long)procedure);
    if (!set_arguments(&c.call, count, arguments)) return false;
    tool_process_mean(p);
    if (mutator_work(m, call_now, &c, &out, sizeof out, &e) != INL_OK) return mutator_fail(&e);
    if (result) set_result(result, &out);
    return true;
}

/* --- libraries --- */

static uint64_t address_of(mutatee *m, const char *name)
{
    for (module *x = module_first(m->modules); x; x = x->next) {
        inlay_image *i = x->is_vdso ? NULL : tool_image_of(x);
        inlay_proc *p = i ? inlay_image_proc_named(i, name) : NULL;
        if (p && !x->is_main) return inlay_proc_address(p);
    }
    return 0;
}

uint64_t inlay_process_load(inlay_process *p, int tid, const char *path)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    called out = {0};
    if (!m || !path || strlen(path) >= NAME) {
        mutator_refuse(INL_ERR_USAGE, !m ? MUTATOR_NO_OTHER : path ? "the path is too long" : "there is no path");
        return 0;
    }
    tool_process_mean(p);
    calling c = {.tid = tid,
                 .call = {.pc = address_of(m, "dlopen"), .ints = {0, DLOPEN_NOW}, .int_count = 2, .patience = PATIENCE},
                 .text = path,
                 .error = address_of(m, "dlerror")};
    if (!c.call.pc) {
        mutator_refuse(INL_ERR_UNSUPPORTED,
                       "process %d has no dlopen, by which libraries are loaded: its program is static, or has another "
                       "C library",
                       m->live.pid);
        return 0;
    }
    if (mutator_work(m, call_now, &c, &out, sizeof out, &e) != INL_OK) mutator_fail(&e), out.result = 0;
    else if (!out.result) mutator_refuse(INL_ERR_NOT_FOUND, "process %d: %s", m->live.pid, out.why);
    else if (live_read_maps(&m->live, &e) != INL_OK || live_find_images(&m->live, m->modules, &e) != INL_OK)
        mutator_fail(&e);
    return out.result;
}
