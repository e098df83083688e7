/* Exception tables read whole: what their call sites refer to behind them, actions, types and lists of types, whose
 * sizes no table tells. See lsda.c for what stands in front. */
#include "image/frames.h"
#include "image/reader.h"

enum { MOST_TYPES = 1 << 24, MOST_ACTIONS = 1 << 28 };

typedef struct table {
    image *im;
    image_except *out;
    inl_map seen; /* actions that have been followed */
} table;

/* A list of an exception specification: numbers of types, ended by 0. */
static bool follow_list(const table *t, int64_t filter)
{
    uint64_t ttype = t->out->lsda.ttype;
    if (filter < -MOST_TYPES) return false;
    image_reader r = image_reader_at(t->im, ttype + (uint64_t)(-filter) - 1);
    if (r.bad) return false;
    for (uint64_t type; (type = image_next_uleb(&r)) != 0;) {
        if (type > MOST_TYPES) return false;
        if (type > t->out->type_count) t->out->type_count = (size_t)type;
    }
    if (r.c.addr - ttype > t->out->list_size) t->out->list_size = (size_t)(r.c.addr - ttype);
    return !r.bad;
}

static bool follow_actions(table *t, uint64_t action)
{
    image_except *x = t->out;
    uint64_t from = x->lsda.actions_at, at = from + action - 1, known;
    for (;;) {
        if (at < from || at - from > MOST_ACTIONS) return false;
        image_reader r = image_reader_at(t->im, at);
        if (r.bad) return false;
        if (inl_map_get(&t->seen, at, &known)) return true;
        if (!inl_map_put(&t->seen, at, 0)) return false;
        int64_t filter = image_next_sleb(&r);
        uint64_t next_at = r.c.addr;
        int64_t next = image_next_sleb(&r);
        if (r.bad) return false;
        if (r.c.addr - from > x->action_size) x->action_size = (size_t)(r.c.addr - from);
        if (filter > MOST_TYPES) return false;
        if (filter > 0 && (size_t)filter > x->type_count) x->type_count = (size_t)filter;
        if (filter < 0 && !follow_list(t, filter)) return false;
        if (next == 0) return true;
        at = next_at + (uint64_t)next;
    }
}

static bool read_table(table *t, const image_fde *fde)
{
    image_lsda *lsda = &t->out->lsda;
    uint64_t end = 0, action = 0;
    if (!image_lsda_read(t->im, fde->lsda, fde->addr, lsda)) return false;
    if (lsda->lpstart_encoding != IMAGE_PE_OMIT && lsda->lpstart_encoding & IMAGE_PE_INDIRECT) return false;
    for (size_t i = 0; i < lsda->count; i++) {
        const image_call_site *s = &lsda->sites[i];
        if (s->start < end || s->start + s->length < s->start) return false;
        end = s->start + s->length;
        if (s->action && s->action != action && !follow_actions(t, s->action)) return false;
        action = s->action;
    }
    return lsda->ttype_encoding != IMAGE_PE_OMIT || (t->out->type_count == 0 && t->out->list_size == 0);
}

bool image_except_read(image *im, const image_fde *fde, image_except *out)
{
    table t = {.im = im, .out = out};
    bool good = read_table(&t, fde);
    inl_map_free(&t.seen);
    return good;
}

void image_except_free(image_except *x) { image_lsda_free(&x->lsda); }

bool image_except_type(image *im, const image_except *x, size_t n, uint64_t *type)
{
    size_t size = image_format_size(x->lsda.ttype_encoding);
    if (size == 0) return false;
    image_reader r = image_reader_at(im, x->lsda.ttype - n * size); /* they stand backwards */
    *type = image_next_pointer(&r, x->lsda.ttype_encoding);
    return !r.bad;
}

static bool has_types(image *im, const image_except *x)
{
    uint64_t type;
    for (size_t n = x->type_count; n > 0; n--)
        if (!image_except_type(im, x, n, &type)) return false;
    return true;
}

static bool has_bytes(image *im, uint64_t addr, size_t size)
{
    const uint8_t *bytes;
    return size == 0 || image_bytes(im, addr, &bytes) >= size;
}

const char *image_except_fault(image *im, const image_fde *fde)
{
    image_except x = {0};
    const char *why = NULL;
    if (!image_except_read(im, fde, &x)) why = "its exception table is not understood";
    else if (x.type_count && (x.lsda.ttype_encoding & IMAGE_PE_RELATIVE) == IMAGE_PE_ABSPTR &&
             im->view.header.e_type == ET_DYN)
        why = "its exception table holds addresses to be relocated";
    else if (!has_bytes(im, x.lsda.actions_at, x.action_size) || !has_types(im, &x) ||
             !has_bytes(im, x.lsda.ttype, x.list_size))
        why = "its exception table reaches beyond the file";
    image_except_free(&x);
    return why;
}
