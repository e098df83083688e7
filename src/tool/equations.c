#include "tool/equations.h"
#include "base/leb.h"
#include "base/vec.h"
#include "tool/state.h"

#include <string.h>

typedef struct chunk {
    struct chunk *next;
    uint32_t first, count; /* numbers of the procedures in it */
    uint32_t used, room;   /* of bytes */
    uint8_t bytes[];
} chunk;

enum { CHUNK = 32 << 10 };
enum { OUTSIDE, NEW, BEFORE, FOLLOWS };                   /* a node */
enum { NO_COUNTER, NEXT_COUNTER, OTHER_COUNTER };         /* an edge's counter */
enum { NEW_COUNTER = 1, FAR_EDGE = 2, MOST_AMOUNT = 63 }; /* of a term */

/* --- writing --- */

typedef struct writer {
    INL_VEC(uint8_t) out;
    bool failed;
} writer;

static void put(writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        if (!inl_vec_push(&w->out, (uint8_t)(v | 0x80))) w->failed = true;
    if (!inl_vec_push(&w->out, (uint8_t)v)) w->failed = true;
}

static void put_signed(writer *w, int64_t v) { put(w, inl_zigzag(v)); }

static unsigned way_of(uint32_t node, tool_edge_reader *r)
{
    if (node == 0) return OUTSIDE;
    if (node == r->high + 1) {
        r->high++;
        return NEW;
    }
    return node == r->before ? BEFORE : FOLLOWS;
}

static void put_edge(writer *w, const move_flow_edge *e, tool_edge_reader *r)
{
    unsigned from = way_of(e->from, r), to = way_of(e->to, r);
    unsigned counter = !e->counter ? NO_COUNTER : e->counter == r->counter + 1 ? NEXT_COUNTER : OTHER_COUNTER;
    put(w, from | to << 2 | counter << 4);
    if (from == FOLLOWS) put(w, e->from);
    if (to == FOLLOWS) put(w, e->to);
    if (counter == OTHER_COUNTER) put_signed(w, (int64_t)e->counter - (int64_t)r->counter);
    if (e->counter) r->counter = e->counter;
    r->before = e->to;
}

static void put_term(writer *w, const move_flow_term *t, const move_flow_term *last)
{
    unsigned head = t->counter == last->counter ? 0 : NEW_COUNTER;
    if (t->edge != last->edge + 1) head |= FAR_EDGE;
    if (t->amount <= MOST_AMOUNT) head |= (unsigned)t->amount << 2;
    if (!inl_vec_push(&w->out, (uint8_t)head)) w->failed = true;
    if (head & NEW_COUNTER) put_signed(w, (int64_t)t->counter - (int64_t)last->counter);
    if (head & FAR_EDGE) put_signed(w, (int64_t)t->edge - (int64_t)last->edge);
    if (head >> 2 == 0) put(w, t->amount);
}

static void put_flows(writer *w, const move_flows *f)
{
    tool_edge_reader r = {0};
    move_flow_term last = {0};
    put(w, f->node_count);
    put(w, f->edge_count);
    put(w, f->term_count);
    for (uint32_t i = 0; i < f->edge_count; i++) put_edge(w, &f->edges[i], &r);
    for (uint32_t i = 0; i < f->term_count; last = f->terms[i++]) put_term(w, &f->terms[i], &last);
}

static chunk *chunk_for(size_t bytes)
{
    void **root = &tool_heap()->roots[ROOT_FLOWS];
    chunk *last = *root;
    if (last && bytes <= last->room - last->used) return last;
    size_t room = bytes > CHUNK ? bytes : CHUNK;
    if (room > UINT32_MAX) return NULL;
    chunk *c = tool_carried_alloc(sizeof *c + room);
    if (!c) return NULL;
    *c = (chunk){.next = last, .first = last ? last->first + last->count : 1, .room = (uint32_t)room};
    return *root = c;
}

uint32_t tool_equations_add(const move_flows *f)
{
    writer body = {0}, size = {0};
    chunk *c = NULL;
    put_flows(&body, f);
    put(&size, body.out.count);
    if (!body.failed && !size.failed) c = chunk_for(size.out.count + body.out.count);
    if (c) {
        memcpy(c->bytes + c->used, size.out.items, size.out.count);
        memcpy(c->bytes + c->used + size.out.count, body.out.items, body.out.count);
        c->used += (uint32_t)(size.out.count + body.out.count);
        c->count++;
    }
    inl_vec_free(&body.out);
    inl_vec_free(&size.out);
    return c ? c->first + c->count - 1 : 0;
}

/* --- reading --- */

static tool_equations_walk enter(const chunk *c)
{
    if (!c) return (tool_equations_walk){0};
    return (tool_equations_walk){c, c->bytes, c->count, c->first};
}

tool_equations_walk tool_equations_first(void)
{
    tool_heap_root *heap = tool_heap();
    return enter(heap ? heap->roots[ROOT_FLOWS] : NULL);
}

bool tool_equations_next(tool_equations_walk *w, tool_equations *e)
{
    while (w->chunk && !w->left) *w = enter(((const chunk *)w->chunk)->next);
    if (!w->chunk) return false;
    uint64_t size = inl_leb_take(&w->at);
    const uint8_t *at = w->at;
    w->at += size;
    w->left--;
    e->number = w->number++;
    e->node_count = (uint32_t)inl_leb_take(&at);
    e->edge_count = (uint32_t)inl_leb_take(&at);
    e->term_count = (uint32_t)inl_leb_take(&at);
    e->edges = at;
    return true;
}

bool tool_equations_find(uint32_t number, tool_equations *e)
{
    tool_equations_walk w = tool_equations_first();
    while (w.chunk && number < w.number) w = enter(((const chunk *)w.chunk)->next);
    while (tool_equations_next(&w, e))
        if (e->number == number) return true;
    return false;
}

tool_edge_reader tool_equations_edges(const tool_equations *e) { return (tool_edge_reader){.at = e->edges}; }

static uint32_t take_node(tool_edge_reader *r, unsigned way)
{
    switch (way) {
    case OUTSIDE: return 0;
    case NEW: return ++r->high;
    case BEFORE: return r->before;
    default: return (uint32_t)inl_leb_take(&r->at);
    }
}

move_flow_edge tool_equations_edge(tool_edge_reader *r)
{
    unsigned head = *r->at++, counter = head >> 4;
    move_flow_edge e = {0};
    e.from = take_node(r, head & 3);
    e.to = take_node(r, head >> 2 & 3);
    if (counter == NEXT_COUNTER) e.counter = r->counter + 1;
    if (counter == OTHER_COUNTER) e.counter = r->counter + (uint32_t)inl_leb_take_signed(&r->at);
    if (e.counter) r->counter = e.counter;
    r->before = e.to;
    return e;
}

tool_term_reader tool_equations_terms(const tool_edge_reader *behind_all_edges)
{
    return (tool_term_reader){.at = behind_all_edges->at};
}

move_flow_term tool_equations_term(tool_term_reader *r)
{
    unsigned head = *r->at++;
    move_flow_term t = {r->last.counter, r->last.edge + 1, head >> 2};
    if (head & NEW_COUNTER) t.counter = r->last.counter + (uint32_t)inl_leb_take_signed(&r->at);
    if (head & FAR_EDGE) t.edge = r->last.edge + (uint32_t)inl_leb_take_signed(&r->at);
    if (head >> 2 == 0) t.amount = inl_leb_take(&r->at);
    return r->last = t;
}
