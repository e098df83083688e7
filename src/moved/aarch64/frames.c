/* A signal's frame on AArch64 (moved/frames.c): the mark lies in the room that the context has for larger masks. The
 * frame is one piece with its records and the two words that x29 leads to behind them, and moves as one: what is kept
 * lies behind it then.
 *
 *     sp: frame, as shown | further records | x29, x30 | kept */
#include "moved/private.h"
#include "run/aarch64/abi.h"

#include <string.h>

enum { EXTRA_HERE = 0x45585401, RECORD_HEAD = 8 };

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

/* The handler sees the registers of the frame in the two words behind it, too. */
static void show_link(run_frame *f, size_t bytes)
{
    memcpy((uint8_t *)f + bytes - RUN_FRAME_LINK, &f->mc.regs[RUN_X29], RUN_FRAME_LINK);
}

uint64_t moved_frame_move(uint64_t from, size_t room, bool to_own_stack, uint64_t *kept_at)
{
    run_frame *f = (run_frame *)from;
    extra_record *extra = extra_of(f);
    size_t bytes = (extra ? extra->at + extra->size - from : sizeof *f) + RUN_FRAME_LINK;
    uint64_t low = to_own_stack ? f->mc.sp : from + bytes;
    show_link(f, bytes);
    *kept_at = low = (low - room) & ~15ull;
    low = (low - bytes) & ~15ull;
    if (extra) extra->at += low - from;
    return run_write(low, f, bytes) ? low : 0; /* from below on: it may overlap */
}

uint64_t moved_restorer_at(void) { return moved_handoff_data.return_to; }

/* Code of the usual form does not if it is still whole. */
bool moved_returns_by_gate(uint64_t restorer)
{
    static const uint32_t usual[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */
    uint32_t code[2];
    return run_read(code, restorer, sizeof code) && memcmp(code, usual, sizeof code) != 0;
}
