/* A signal's frame on AArch64 (moved/frames.c): the mark lies in the room that the context has for larger masks. The
 * frame is one piece with its records and the two words that x29 leads to behind them, and moves as one: what is kept
 * lies behind it then.
 *
 *     sp: frame, as shown | further records | x29, x30 | kept */
#include "moved/private.h"
#include "run/aarch64/abi.h"

#include <string.h>

enum { EXTRA_HERE = 0x45585401, RECORD_HEAD = 8, VECTORS_HERE = 0x46508001, VECTORS_SIZE = 528 };

typedef struct record { /* in front of each of the context's records; one of no size ends them */
    uint32_t magic, size;
} record;
typedef struct extra_record {
    record head;
    uint64_t at;
    uint32_t size, reserved[3];
} extra_record;

uint64_t *moved_frame_marks(const run_frame *f) { return (uint64_t *)(uintptr_t)f->mask_room; }

void moved_frame_set(run_frame *f, const weave_context *c)
{
    memcpy(f->mc.regs, c->gpr, sizeof f->mc.regs);
    f->mc.sp = run_sp(c);
    f->mc.pc = c->pc;
    f->mc.pstate = c->flags;
}

/* The record of vector registers is each frame's first. */
const run_frame *moved_frame_on(uint64_t at, uint64_t end)
{
    const run_frame *f = (const run_frame *)at;
    record first;
    if (at % 16 || at >= end || end - at < sizeof *f) return NULL;
    memcpy(&first, f->mc.__reserved, sizeof first);
    return first.magic == VECTORS_HERE && first.size == VECTORS_SIZE ? f : NULL;
}

void moved_park_otherwise(const run_thread *t, weave_context *c, isa_regs spilled) { (void)t, (void)c, (void)spilled; }

/* The record that says where more of them are; NULL: there are no more. */
static extra_record *extra_of(run_frame *f)
{
    uint8_t *at = f->mc.__reserved, *end = at + sizeof f->mc.__reserved;
    while (at + sizeof(extra_record) <= end) {
        record *r = (record *)at;
        if (r->magic == EXTRA_HERE) return (extra_record *)r;
        if (r->size < RECORD_HEAD) return NULL;
        at += r->size;
    }
    return NULL;
}

static size_t bytes_of(run_frame *f)
{
    extra_record *extra = extra_of(f);
    return (extra ? extra->at + extra->size - (uint64_t)(uintptr_t)f : sizeof *f) + RUN_FRAME_LINK;
}

/* The handler sees the registers of the frame in the two words behind it, too. */
static void show_link(run_frame *f, size_t bytes)
{
    memcpy((uint8_t *)f + bytes - RUN_FRAME_LINK, &f->mc.regs[RUN_X29], RUN_FRAME_LINK);
}

uint64_t moved_frame_move(uint64_t from, const moved_way *way, uint64_t *room_at)
{
    run_frame *f = (run_frame *)from;
    extra_record *extra = extra_of(f);
    size_t bytes = bytes_of(f);
    uint64_t low = way->below ? way->below : from + bytes, at = extra ? extra->at : 0;
    *room_at = low = (low - way->room) & ~15ull;
    low = (low - bytes) & ~15ull;
    if (low < way->least) return 0;
    show_link(f, bytes);
    if (extra) extra->at += low - from;
    bool written = run_write(low, f, bytes); /* from below on: it may overlap */
    if (extra && way->below) extra->at = at; /* the kernel's own goes on being one */
    return written ? low : 0;
}

void moved_frame_enter(run_thread *t, run_frame *f, uint64_t to, const moved_handler *h, const weave_context *c)
{
    weave_context begins = *c;
    int signo;
    memcpy(&signo, f->info, sizeof signo);
    begins.gpr[RUN_X0] = (uint64_t)signo;
    begins.gpr[RUN_X1] = to;
    begins.gpr[RUN_X2] = to + RUN_FRAME_CONTEXT;
    begins.gpr[RUN_X29] = to + bytes_of(f) - RUN_FRAME_LINK;
    begins.gpr[RUN_X30] = h->restorer;
    run_set_sp(&begins, to);
    begins.pc = h->at;
    moved_frame_set(f, &begins);
    f->mask = h->mask;
    f->stack = run_altstack_own(t);
}

void moved_frame_returns(uint64_t to, const moved_handler *h) { (void)to, (void)h; /* it is in x30 */ }

uint64_t moved_restorer_at(void) { return moved_handoff_data.return_to; }

/* Code of the usual form does not if it is still whole. */
bool moved_returns_by_gate(uint64_t restorer)
{
    static const uint32_t usual[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */
    uint32_t code[2];
    return run_read(code, restorer, sizeof code) && memcmp(code, usual, sizeof code) != 0;
}
