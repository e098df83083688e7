/* Records in fewer bytes, as chunks that are written have them (inlay/trace_format.h, trace-format.md). What the kernel
 * takes to find room for a file's pages is most of what a record costs, so this is quicker than not to do it. */
#include "trace.h"

#include <string.h>

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

/* --- four at a time: most records are of the short form, and so are their neighbours --- */

typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

/* Lanes by turns, of the lower halves and of the upper ones; both lower halves, both upper ones. */
#define LOW(a, b)    __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b)   __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define FIRST(a, b)  __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define SECOND(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)

typedef struct before { /* of the record before, in the last lane */
    four time, high, sp;
} before;

static uint64_t time_of(const inlay_trace_record *r) { return r->when >> 16; }
static uint64_t sp_of(const inlay_trace_record *r) { return (r->when & 0xffff) << 32 | r->stack; }

static before last_of(const packing *p)
{
    const uint32_t high = (uint32_t)(p->time >> 32 << 16 | p->sp >> 32);
    return (before){{0, 0, 0, (uint32_t)p->time}, {0, 0, 0, high}, {0, 0, 0, (uint32_t)p->sp}};
}

/* The records before: up a lane, and the last one's in the first. */
static four shifted(four last, four now) { return __builtin_shufflevector(last, now, 3, 4, 5, 6); }

/* False: one of them is of another form, and nothing is done. */
static bool put_four(packing *p, const inlay_trace_record *r, before *last)
{
    four a, b, c, d;
    memcpy(&a, r, sizeof a);
    memcpy(&b, r + 1, sizeof b);
    memcpy(&c, r + 2, sizeof c);
    memcpy(&d, r + 3, sizeof d);
    four ab = LOW(a, b), cd = LOW(c, d), ab_more = HIGH(a, b), cd_more = HIGH(c, d);
    four when = FIRST(ab, cd), when_high = SECOND(ab, cd);
    before now = {.time = when >> 16 | when_high << 16,
                  .high = (when & 0xffff) | (when_high & 0xffff0000),
                  .sp = FIRST(ab_more, cd_more)};
    four what = SECOND(ab_more, cd_more);
    four dt = now.time - shifted(last->time, now.time);
    four up = now.sp - shifted(last->sp, now.sp) + INLAY_TRACE_SHORT_SP / 2;
    four odd = dt / INLAY_TRACE_SHORT_TIME | what / INLAY_TRACE_SHORT_WHAT | (up & ~(INLAY_TRACE_SHORT_SP - 16u)) |
               (now.high ^ shifted(last->high, now.high));
    halves any = (halves)odd;
    if (any[0] | any[1]) return false;
    four packed = what << 21 | up << 11 | dt; /* up / 16 << 15 */
    memcpy(p->to, &packed, sizeof packed);
    p->to += sizeof packed / sizeof *p->to;
    *last = now;
    return true;
}

static void put_one(packing *p, const inlay_trace_record *r)
{
    if (r->what == (uint32_t)INLAY_TRACE_VALUE) {
        if (!put_more(p, r)) put_whole(p, r);
        return;
    }
    uint64_t time = time_of(r), sp = sp_of(r), dt = time - p->time;
    int64_t ds = (int64_t)(sp - p->sp);
    if (!put_short(p, dt, ds, r->what) && !put_long(p, dt, ds, r->what)) put_whole(p, r);
    p->time = time;
    p->sp = sp;
}

size_t trace_pack(uint32_t *out, size_t room, const inlay_trace_record *r, size_t count)
{
    enum { FOUR = 4, MOST = 5 };
    packing p = {.to = out, .end = out + room / sizeof *out};
    before last = last_of(&p);
    bool late = false; /* `p` does not know yet of the record before, but `last` does */
    for (const inlay_trace_record *end = r + count; r < end;) {
        if (p.end - p.to < FOUR * MOST) return 0;
        const bool whole = end - r >= FOUR;
        if (whole && put_four(&p, r, &last)) {
            r += FOUR;
            late = true;
            continue;
        }
        if (late) p.time = time_of(r - 1), p.sp = sp_of(r - 1);
        late = false;
        for (const inlay_trace_record *up_to = whole ? r + FOUR : end; r < up_to; r++) put_one(&p, r);
        last = last_of(&p);
    }
    return (size_t)(p.to - out) * sizeof *out;
}
