/* Fragments: found by application address and by cache address, linked to each other, and the map that
 * tells what the program's state is anywhere in them.
 *
 * Links. An exit's displacement leads to its stub or, linked, to the body of `to`. Both are patched by
 * one aligned store, which may happen while other threads run through it: they take the old way or the
 * new one, and both are right. `incoming` lists the exits that lead to a fragment, for the day on which
 * it is dropped. A fragment that a thread is to leave soon (a signal waits) is held: its exits lead to
 * their stubs until jit_relink.
 *
 * The map, one record an instruction (about two bytes where nothing is instrumented):
 *
 *     byte     bits 0-3  application bytes since the record before; 15: a signed varint follows
 *              bit 4     a varint follows: bytes of snippets in front of the instruction
 *              bit 5     spilled (a varint), flags_saved, scratch follow
 *              bit 6     the same instruction goes on with another state
 *              bit 7     last record
 *     varint   code bytes since the record before (from its code_at to this one's)
 */
#include "base/leb.h"
#include "base/libc_ready.h"
#include "base/log.h"
#include "base/search.h"
#include "jit/core.h"

#include <string.h>

enum { DELTA = 15, SNIPPETS = 0x10, STATE = 0x20, SAME = 0x40, LAST = 0x80 };

static uint64_t key_of(uint64_t app, bool continues, unsigned version)
{
    return app ^ (uint64_t)continues << 63 ^ (uint64_t)version << 60;
}

static uint64_t start_of(const jit_fragment *f) { return f->exec - f->start_to_exec; }

jit_fragment *jit_fragment_find(uint64_t app, bool continues, unsigned version)
{
    uint64_t value;
    return inl_map_get(&jit.by_app, key_of(app, continues, version), &value) ? (jit_fragment *)value : NULL;
}

void jit_fragment_expect(uint64_t app, bool continues) { inl_map_expect(&jit.by_app, key_of(app, continues, 0)); }

bool jit_fragment_publish(jit_fragment *f)
{
    return inl_map_put(&jit.by_app, key_of(f->app, f->continues, f->version), (uint64_t)f);
}

/* --- by cache address --- */

bool jit_piece_add(jit_arena *a, jit_fragment *f, uint32_t at, bool stubs)
{
    uint32_t *count = stubs ? &a->stub_count : &a->code_count;
    if (*count == a->max_pieces) return false;
    (stubs ? a->stubs : a->code)[*count] = (jit_piece){at, jit_meta_ref(f)};
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
    return true;
}

/* The last piece that begins at or before `at`. */
static const jit_piece *code_piece(const jit_arena *a, uint32_t at)
{
    uint32_t count = __atomic_load_n(&a->code_count, __ATOMIC_ACQUIRE);
    size_t behind = INL_FIRST(count, i, a->code[i].at > at);
    return behind ? &a->code[behind - 1] : NULL;
}

/* Stubs lie downwards: the first piece that begins at or before `at`. */
static const jit_piece *stub_piece(const jit_arena *a, uint32_t at)
{
    uint32_t count = __atomic_load_n(&a->stub_count, __ATOMIC_ACQUIRE);
    size_t first = INL_FIRST(count, i, a->stubs[i].at <= at);
    return first < count ? &a->stubs[first] : NULL;
}

jit_fragment *jit_fragment_of_cache(uint64_t exec)
{
    const jit_arena *a = jit_arena_of(exec);
    if (!a || exec - a->exec < JIT_TAILS_ROOM) return NULL;
    uint32_t at = (uint32_t)(exec - a->exec);
    const jit_piece *p = stub_piece(a, at);
    if (!p) p = code_piece(a, at);
    return p ? jit_meta_at(p->fragment) : NULL;
}

/* --- links --- */

static uint64_t stub_of(const jit_exit *e) { return e->from->exec + e->stub_at; }

static bool patch(const jit_exit *e, uint64_t target)
{
    uint64_t at = e->from->exec + e->rel32_at;
    return jit_patch(jit_write_view(e->from->arena, at), at, target);
}

void jit_link(jit_exit *e, jit_fragment *to)
{
    if (e->to || e->told_by || e->from->dropped || to->dropped || (jit.options.stress & JIT_STRESS_NO_LINK)) return;
    jit.stats.links++;
    e->to = to;
    e->next_in = to->incoming;
    to->incoming = e;
    if (!__atomic_load_n(&e->from->hold, __ATOMIC_SEQ_CST)) patch(e, to->exec);
    /* A handler may have begun to hold it in between. */
    if (__atomic_load_n(&e->from->hold, __ATOMIC_SEQ_CST)) patch(e, stub_of(e));
}

void jit_unlink_exits(jit_fragment *f)
{
    __atomic_add_fetch(&f->hold, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < f->exit_count; i++) patch(&f->exits[i], stub_of(&f->exits[i]));
}

void jit_relink(jit_fragment *f)
{
    if (__atomic_sub_fetch(&f->hold, 1, __ATOMIC_SEQ_CST) || f->dropped) return;
    for (uint32_t i = 0; i < f->exit_count; i++)
        if (f->exits[i].to) patch(&f->exits[i], f->exits[i].to->exec);
    if (__atomic_load_n(&f->hold, __ATOMIC_SEQ_CST))
        for (uint32_t i = 0; i < f->exit_count; i++) patch(&f->exits[i], stub_of(&f->exits[i]));
}

/* --- drop --- */

void jit_drop_fragment(jit_fragment *f)
{
    if (f->dropped) return;
    f->dropped = true;
    jit.stats.drops++;
    jit_cache_dropped(f);
    for (jit_exit *e = f->incoming; e; e = e->next_in) {
        e->to = NULL;
        patch(e, stub_of(e));
    }
    f->incoming = NULL;
    /* A thread inside must not go round in it, nor stay among what is dropped with it. */
    for (uint32_t i = 0; i < f->exit_count; i++) patch(&f->exits[i], stub_of(&f->exits[i]));
    if (f->landing) jit_ibl_remove(f);
    if (jit_fragment_find(f->app, f->continues, f->version) == f)
        inl_map_remove(&jit.by_app, key_of(f->app, f->continues, f->version));
}

void jit_flush_all(void)
{
    jit.stats.flushes++;
    inl_log(INL_LOG_CACHE, "flush of %zu KB in %zu fragments", jit_cache_bytes() >> 10, jit.by_app.count);
    size_t at = 0;
    uint64_t value;
    while (inl_map_next(&jit.by_app, &at, NULL, &value)) {
        jit_fragment *f = (jit_fragment *)value;
        f->dropped = true;
        /* Threads in there come out at the next exit. */
        if (run_here.thread_count > 1)
            for (uint32_t i = 0; i < f->exit_count; i++) patch(&f->exits[i], stub_of(&f->exits[i]));
    }
    if (jit.options.flushed) {
        inl_libc_ready();
        jit.options.flushed(run_here.client.arg);
    }
    inl_map_clear(&jit.by_app);
    jit_ibl_clear();
    jit_memory_clear();
    jit_wanted_clear();
    jit_cache_retire();
    jit.epoch++;
}

/* --- the map --- */

typedef struct sink {
    uint8_t *at, *end;
} sink;

static void put(sink *s, uint8_t b)
{
    if (s->at < s->end) *s->at = b;
    s->at++;
}

static void put_varint(sink *s, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) put(s, (uint8_t)(v | 0x80));
    put(s, (uint8_t)v);
}

typedef struct position {
    uint64_t app;
    uint32_t code_at;
} position;

static void put_record(sink *s, const weave_map_entry *m, position *at, unsigned bits)
{
    int64_t delta = (int64_t)(m->app - at->app);
    bool state = m->spilled || m->flags_saved || m->scratch != ISA_NO_REG;
    if (m->snippets_at < m->code_at) bits |= SNIPPETS;
    if (state) bits |= STATE;
    put(s, (uint8_t)((delta >= 0 && delta < DELTA ? delta : DELTA) | (int)bits));
    put_varint(s, m->code_at - at->code_at);
    if (delta < 0 || delta >= DELTA) put_varint(s, inl_zigzag(delta));
    if (bits & SNIPPETS) put_varint(s, m->code_at - m->snippets_at);
    if (state) {
        put_varint(s, m->spilled);
        put(s, m->flags_saved);
        put(s, m->scratch);
    }
    *at = (position){m->app, m->code_at};
}

static void put_map(sink *s, const jit_fragment *f, const weave_output *out, const jit_mark *marks, unsigned mark_count)
{
    position at = {f->app, f->start_to_exec};
    for (uint32_t i = 0, k = 0; i < out->map_count; i++) {
        put_record(s, &out->map[i], &at, i + 1 == out->map_count ? LAST : 0);
        for (; k < mark_count && marks[k].insn <= i; k++) {
            weave_map_entry m = {.app = out->map[i].app,
                                 .snippets_at = marks[k].at,
                                 .code_at = marks[k].at,
                                 .spilled = marks[k].spilled,
                                 .scratch = ISA_NO_REG};
            put_record(s, &m, &at, SAME);
        }
    }
}

static void *copy_of(const void *p, size_t bytes)
{
    void *to = bytes ? jit_meta_alloc(bytes) : NULL;
    return to ? memcpy(to, p, bytes) : NULL;
}

/* Counts point to weights in the run's arena: those come along. */
static bool copy_counts(jit_fragment *f, const weave_output *out)
{
    if (!out->count_count) return true;
    weave_count *c = copy_of(out->counts, out->count_count * sizeof *c);
    if (!c) return false;
    for (uint32_t i = 0; i < out->count_count; i++) {
        if (!c[i].weights) continue;
        c[i].weights = copy_of(c[i].weights, (c[i].last - c[i].first + 1) * sizeof(int64_t));
        if (!c[i].weights) return false;
    }
    f->counts = c;
    f->count_count = (uint16_t)out->count_count;
    return true;
}

/* Without them a crash is less well told, and that is all. */
static void copy_inlined(jit_fragment *f, const weave_output *out)
{
    if (out->inlined_count > UINT16_MAX) return;
    weave_inlined *to = copy_of(out->inlined, out->inlined_count * sizeof *to);
    for (uint32_t i = 0; to && i < out->inlined_count; i++)
        to[i].index = (uint32_t)(out->map[to[i].index].app - f->app);
    f->inlined = to;
    f->inlined_count = to ? (uint16_t)out->inlined_count : 0;
}

bool jit_fragment_encode_map(jit_fragment *f, const weave_output *out, const jit_mark *marks, unsigned mark_count)
{
    const kept_entry *kept = jit.now.build.kept;
    uint8_t *room = jit.now.map_room;
    sink s = {room, room + sizeof jit.now.map_room};
    if (!kept) put_map(&s, f, out, marks, mark_count);
    size_t bytes = kept ? kept->head->map_size : (size_t)(s.at - room);
    if (bytes > sizeof jit.now.map_room) return false;
    f->map = copy_of(kept ? kept->map : room, bytes);
    f->map_bytes = (uint32_t)bytes;
    if (out->fault_count) f->faults = copy_of(out->faults, out->fault_count * sizeof *out->faults);
    f->fault_count = f->faults ? (uint16_t)out->fault_count : 0;
    copy_inlined(f, out);
    return f->map && (f->faults || !out->fault_count) && copy_counts(f, out);
}

/* Reads one record; false at the end. */
static bool get_record(const uint8_t **p, position *at, weave_map_entry *m, uint32_t *index)
{
    uint8_t head = *(*p)++;
    uint32_t code = at->code_at + (uint32_t)inl_leb_take(p);
    int64_t delta = head & DELTA;
    if (delta == DELTA) delta = inl_leb_take_signed(p);
    *m = (weave_map_entry){
        .app = at->app + (uint64_t)delta, .snippets_at = code, .code_at = code, .scratch = ISA_NO_REG};
    if (head & SNIPPETS) m->snippets_at = code - (uint32_t)inl_leb_take(p);
    if (head & STATE) {
        m->spilled = inl_leb_take(p);
        m->flags_saved = *(*p)++;
        m->scratch = *(*p)++;
    }
    if (!(head & SAME)) ++*index;
    *at = (position){m->app, code};
    return !(head & LAST);
}

/* The record that offset `off` (from the fragment's start) lies in; its index, UINT32_MAX: before all. */
static uint32_t locate(const jit_fragment *f, uint32_t off, weave_map_entry *entry)
{
    const uint8_t *p = f->map;
    position at = {f->app, f->start_to_exec};
    uint32_t index = UINT32_MAX, found = UINT32_MAX;
    weave_map_entry m;
    for (bool more = true; more;) {
        more = get_record(&p, &at, &m, &index);
        if (m.snippets_at > off) break;
        *entry = m;
        found = index;
    }
    return found;
}

static const weave_fault *fault_of(const jit_fragment *f, uint32_t off)
{
    for (unsigned i = 0; i < f->fault_count; i++)
        if (off >= f->faults[i].from && off < f->faults[i].to) return &f->faults[i];
    return NULL;
}

/* The record of instruction `index`. */
static void record_of(const jit_fragment *f, uint32_t wanted, weave_map_entry *entry)
{
    const uint8_t *p = f->map;
    position at = {f->app, f->start_to_exec};
    uint32_t index = UINT32_MAX;
    while (get_record(&p, &at, entry, &index) && index != wanted) {}
}

static void take_fault(const jit_fragment *f, const weave_fault *w, weave_map_entry *entry)
{
    record_of(f, w->index, entry);
    entry->spilled = w->spilled;
    entry->flags_saved = w->flags_saved;
    entry->scratch = ISA_NO_REG;
}

/* In a stub the program is at the exit's target. */
static bool map_stub(const jit_fragment *f, uint64_t exec, weave_map_entry *entry)
{
    for (uint32_t i = 0; i < f->exit_count; i++) {
        if (exec - stub_of(&f->exits[i]) >= JIT_STUB_BYTES) continue;
        *entry = (weave_map_entry){.app = f->exits[i].target, .scratch = ISA_NO_REG};
        return true;
    }
    return false;
}

bool jit_fragment_map(const jit_fragment *f, uint64_t exec, weave_map_entry *entry, bool *in_snippet)
{
    uint64_t off = exec - start_of(f);
    *in_snippet = false;
    if (off >= f->size && map_stub(f, exec, entry)) return true;
    if (off < f->start_to_exec + f->check_bytes || off > f->size) { /* the check; the landing, in front or apart */
        *entry = (weave_map_entry){.app = f->app, .scratch = ISA_NO_REG, .spilled = jit_landing_spills};
        return true;
    }
    const weave_fault *w = fault_of(f, (uint32_t)off);
    if (w) {
        take_fault(f, w, entry);
        return true;
    }
    if (locate(f, (uint32_t)off, entry) == UINT32_MAX) return false;
    *in_snippet = off < entry->code_at;
    return true;
}

bool jit_fragment_inlined(const jit_fragment *f, uint64_t exec, uint64_t *app, uint64_t *routine)
{
    for (unsigned i = 0; i < f->inlined_count; i++) {
        if (f->inlined[i].exec != exec) continue;
        *app = f->app + (uint64_t)(int64_t)(int32_t)f->inlined[i].index;
        *routine = f->inlined[i].routine;
        return true;
    }
    return false;
}

void jit_fragment_undo(const jit_fragment *f, uint64_t exec, bool begun,
                       void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg)
{
    uint64_t off = exec - start_of(f);
    weave_map_entry entry;
    if (!f->count_count || off >= f->size) return;
    const weave_fault *w = fault_of(f, (uint32_t)off);
    uint32_t index = w ? w->index : locate(f, (uint32_t)off, &entry);
    weave_output out = {.counts = (weave_count *)f->counts, .count_count = f->count_count};
    if (index != UINT32_MAX) weave_undo(&out, index, begun, subtract, arg);
}
