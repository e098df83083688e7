/* The vector state of a thread outside of its code: at its begin, and in the frame that the kernel builds for a
 * handler, as records, each with a magic word and its size:
 *
 *     FPSIMD   status, control, the low 16 bytes of each vector; always there
 *     ESR      the processor's syndrome of the last fault
 *     EXTRA    where records do not fit into the context: where they go on, behind the end
 *     SVE      whole vectors and all predicates, as in the thread's area; or the length alone
 *
 * and an end, all 0.
 *
 * A handler begins with the vectors of what it interrupts.
 */
#include "run/aarch64/sigvectors.h"

#include <asm/sigcontext.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "run/aarch64/sigframe.h"
#include "weave/aarch64/vectors.h"

enum {
    ROOM = sizeof((mcontext_t *)0)->__reserved,
    HEAD = sizeof(struct _aarch64_ctx),
    END = 16, /* the record at the end */
    FPSIMD = sizeof(struct fpsimd_context),
    ESR = sizeof(struct esr_context),
    EXTRA = sizeof(struct extra_context),
    SVE = sizeof(struct sve_context),
    LENGTH_BITS = 0xffff, /* in the answer of PR_SVE_GET_VL */
    /* Of extensions that are not followed: they stay as they are. */
    TPIDR2 = 0x54504902,
    MATRIX = 0x54366345, /* ZA */
    TABLE = 0x5a544e01,  /* ZT0 */
    FPMR = 0x46504d52,
    OVERLAYS = 0x504f4530,
};

/* Bytes of a vector of this thread of execution, 0: they are short. */
static unsigned vector_length(void)
{
    long answer = sys_call1(SYS_prctl, PR_SVE_GET_VL);
    return sys_failed(answer) ? 0 : (unsigned)answer & LENGTH_BITS;
}

static size_t long_bytes(unsigned length) { return 32 * (size_t)length + 17 * (size_t)length / 8; }

static size_t sve_bytes(unsigned length) { return (SVE + long_bytes(length) + 15) & ~(size_t)15; }

void run_sigframe_init(void) {}

size_t run_vector_room(void) { return WEAVE_VECTOR_ROOM; }

void run_vectors_init(run_thread *t) { memset(t->frame.vector_area, 0, run_vector_room()); }

void run_vectors_begin(run_thread *t)
{
    weave_vectors_choose(&t->frame);
    run_vectors_init(t);
}

void run_vectors_inherit(run_thread *child, const run_thread *t)
{
    memcpy(child->frame.vector_area, t->frame.vector_area, run_vector_room());
}

void run_vectors_note(run_thread *t, const void *uc)
{
    (void)t;
    (void)uc;
}

/* --- written --- */

static size_t first_bytes(const run_thread *t) { return FPSIMD + (t->trap_err ? ESR : 0); }

size_t sigvectors_bytes(const run_thread *t)
{
    unsigned length = vector_length();
    size_t n = first_bytes(t) + END;
    if (length) n += sve_bytes(length);
    return n <= ROOM ? n : n + EXTRA + END;
}

static uint8_t *put_first(const run_thread *t, uint8_t *to)
{
    const uint8_t *area = t->frame.vector_area;
    struct fpsimd_context f = {.head = {FPSIMD_MAGIC, FPSIMD}};
    memcpy(f.vregs, area, sizeof f.vregs);
    memcpy(&f.fpsr, area + VECTOR_STATUS, 4);
    memcpy(&f.fpcr, area + VECTOR_STATUS + 4, 4);
    memcpy(to, &f, sizeof f);
    to += sizeof f;
    if (!t->trap_err) return to;
    struct esr_context esr = {{ESR_MAGIC, ESR}, t->trap_err};
    memcpy(to, &esr, sizeof esr);
    return to + sizeof esr;
}

static uint8_t *put_end(uint8_t *to) { return (uint8_t *)memset(to, 0, END) + END; }

static uint8_t *put_extra(uint8_t *to, uint64_t at, size_t bytes)
{
    struct extra_context x = {.head = {EXTRA_MAGIC, EXTRA}, .datap = at + EXTRA + END, .size = (uint32_t)bytes};
    memcpy(to, &x, sizeof x);
    return put_end(to + sizeof x);
}

void sigvectors_put(const run_thread *t, uint8_t *to, uint64_t at)
{
    const uint8_t *area = t->frame.vector_area;
    unsigned length = vector_length();
    size_t all = sigvectors_bytes(t);
    uint8_t *p = put_first(t, to);
    if (all > ROOM) p = put_extra(p, at + (uint64_t)(p - to), sve_bytes(length) + END);
    if (length) {
        struct sve_context s = {.head = {SVE_MAGIC, (uint32_t)sve_bytes(length)}, .vl = (uint16_t)length};
        memset(p, 0, sve_bytes(length));
        memcpy(p, &s, sizeof s);
        memcpy(p + SVE, area + VECTOR_LONG, long_bytes(length));
        p += sve_bytes(length);
    }
    put_end(p);
}

/* --- read --- */

typedef struct records {
    struct fpsimd_context fpsimd;
    const uint8_t *sve; /* NULL: none with vectors in it */
} records;

static bool take_record(records *r, const struct _aarch64_ctx *h, const uint8_t *at, unsigned length)
{
    struct sve_context s;
    switch (h->magic) {
    case FPSIMD_MAGIC:
        if (r->fpsimd.head.magic || h->size != FPSIMD) return false;
        memcpy(&r->fpsimd, at, FPSIMD);
        return true;
    case ESR_MAGIC:
    case TPIDR2:
    case MATRIX:
    case TABLE:
    case FPMR:
    case OVERLAYS: return true;
    case SVE_MAGIC:
        if (!length || r->sve || h->size < SVE) return false;
        memcpy(&s, at, sizeof s);
        if (s.vl != length) return false;
        if (h->size == SVE) return true;
        r->sve = at + SVE;
        return h->size >= SVE + long_bytes(length);
    default: return false;
    }
}

/* In the context's room, or, once only, behind it. */
static bool take_records(records *r, const uint8_t *from, size_t size, unsigned length, struct extra_context *more)
{
    for (size_t at = 0; size - at >= HEAD;) {
        struct _aarch64_ctx h;
        memcpy(&h, from + at, sizeof h);
        if (!h.magic) return !h.size;
        if (h.size < HEAD || h.size % 16 || h.size > size - at) return false;
        if (h.magic == EXTRA_MAGIC) {
            if (!more || more->head.magic || h.size != EXTRA) return false;
            memcpy(more, from + at, EXTRA);
        } else if (!take_record(r, &h, from + at, length)) {
            return false;
        }
        at += h.size;
    }
    return false;
}

static void fill_area(uint8_t *area, const records *r, unsigned length)
{
    memset(area, 0, WEAVE_VECTOR_ROOM);
    memcpy(area, r->fpsimd.vregs, sizeof r->fpsimd.vregs);
    memcpy(area + VECTOR_STATUS, &r->fpsimd.fpsr, 4);
    memcpy(area + VECTOR_STATUS + 4, &r->fpsimd.fpcr, 4);
    if (r->sve) memcpy(area + VECTOR_LONG, r->sve, long_bytes(length));
    for (unsigned i = 0; length && i < 32; i++) /* what both have is the former's */
        memcpy(area + VECTOR_LONG + (size_t)i * length, &r->fpsimd.vregs[i], 16);
}

bool sigvectors_take(run_thread *t, uint64_t room)
{
    uint8_t here[ROOM], behind[SIGVECTORS_MOST];
    unsigned length = vector_length();
    struct extra_context more = {.size = 0};
    records r = {.sve = NULL};
    if (!run_read(here, room, sizeof here) || !take_records(&r, here, sizeof here, length, &more)) return false;
    if (more.head.magic && (more.size > sizeof behind || !run_read(behind, more.datap, more.size) ||
                            !take_records(&r, behind, more.size, length, NULL)))
        return false;
    if (!r.fpsimd.head.magic) return false;
    fill_area(t->frame.vector_area, &r, length);
    return true;
}

uint64_t sigvectors_syndrome(const uint8_t *room)
{
    for (size_t at = 0; at + ESR <= ROOM;) {
        struct esr_context esr;
        memcpy(&esr, room + at, sizeof esr);
        if (esr.head.magic == ESR_MAGIC) return esr.esr;
        if (!esr.head.magic || esr.head.size < HEAD) return 0;
        at += esr.head.size;
    }
    return 0;
}
