/* Records in fewer bytes, as chunks that are written have them (inlay/trace_format.h, trace-format.md). What the kernel
 * takes to find room for a file's pages is most of what a record costs, so this is quicker than not to do it. */
#include "trace.h"

typedef struct packing {
    uint32_t *to, *end;
    uint64_t time, sp; /* of the record before */
    uint64_t counted[INLAY_TRACE_EVENTS_MOST];
} packing;

static bool put_short(packing *p, uint64_t dt, int64_t ds, uint32_t what)
{
    uint64_t down = (uint64_t)(ds + INLAY_TRACE_SHORT_SP / 2);
    if (dt >= INLAY_TRACE_SHORT_TIME || what >= INLAY_TRACE_SHORT_WHAT || down >= INLAY_TRACE_SHORT_SP || down % 16)
        return false;
    *p->to++ = what << 21 | (uint32_t)(down / 16) << 15 | (uint32_t)dt;
    return true;
}

static bool put_long(packing *p, uint64_t dt, int64_t ds, uint32_t what)
{
    uint64_t down = (uint64_t)(ds + INLAY_TRACE_LONG_SP / 2);
    if (dt >= INLAY_TRACE_LONG_TIME || what >= INLAY_TRACE_LONG_WHAT || down >= INLAY_TRACE_LONG_SP || down % 8)
        return false;
    down /= 8;
    *p->to++ = INLAY_TRACE_IS_LONG | what << 10 | (uint32_t)(down & 1023);
    *p->to++ = (uint32_t)(down >> 10) << 26 | (uint32_t)dt;
    return true;
}

/* A counter's value. */
static bool put_more(packing *p, const inlay_trace_record *r)
{
    uint32_t event = r->stack & 0xff;
    if ((r->stack >> 8 & 0xff) != 'e' || r->stack >> 16 != sizeof(uint64_t) || event >= INLAY_TRACE_EVENTS_MOST)
        return false;
    uint64_t more = r->when - p->counted[event];
    if (more >= INLAY_TRACE_MUCH) return false;
    p->counted[event] = r->when;
    if (more < INLAY_TRACE_SHORT_MORE) {
        *p->to++ = INLAY_TRACE_IS_MORE | event << 24 | (uint32_t)more;
        return true;
    }
    *p->to++ = INLAY_TRACE_IS_MUCH | event << 24 | (uint32_t)(more >> 32);
    *p->to++ = (uint32_t)more;
    return true;
}

static void put_whole(packing *p, const inlay_trace_record *r)
{
    *p->to++ = INLAY_TRACE_IS_WHOLE;
    *p->to++ = (uint32_t)r->when;
    *p->to++ = (uint32_t)(r->when >> 32);
    *p->to++ = r->stack;
    *p->to++ = r->what;
}

size_t trace_pack(uint32_t *out, size_t room, const inlay_trace_record *r, size_t count)
{
    enum { MOST = 5 };
    packing p = {.to = out, .end = out + room / sizeof *out};
    for (const inlay_trace_record *end = r + count; r < end; r++) {
        if (p.end - p.to < MOST) return 0;
        if (r->what == (uint32_t)INLAY_TRACE_VALUE) {
            if (!put_more(&p, r)) put_whole(&p, r);
            continue;
        }
        uint64_t time = r->when >> 16, sp = (r->when & 0xffff) << 32 | r->stack, dt = time - p.time;
        int64_t ds = (int64_t)(sp - p.sp);
        if (!put_short(&p, dt, ds, r->what) && !put_long(&p, dt, ds, r->what)) put_whole(&p, r);
        p.time = time;
        p.sp = sp;
    }
    return (size_t)(p.to - out) * sizeof *out;
}
