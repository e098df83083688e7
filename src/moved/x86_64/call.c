/* A tool's routine calls a procedure of the program's, natively: it returns to the boot code. A frame on the program's
 * stack makes that a call as any other, which unwinders and exceptions pass through (elf/x86_64/isa.c has its entry),
 * and by which control is found again:
 *
 *     frame       the return address of the program's own
 *     - 8         rbx, which is `frame` meanwhile
 *     - 16        a mark: what is above is still what it was
 *                 room, so that the stack is aligned
 *                 arguments
 *     begin_sp    the address in the boot code
 *
 * An address of code that has moved is made the new one, since unwinders look at it. */
#include "moved/private.h"
#include "run/x86_64/abi.h"

#include <string.h>

enum { ARGUMENTS = 64, ABOVE = 2, MOST = ABOVE + 1 + ARGUMENTS + 1 };

static uint64_t mark_of(uint64_t frame, uint64_t behind) { return moved_cookie() ^ frame ^ behind << 1; }

bool moved_call(run_thread *t, run_call *c)
{
    uint64_t words[MOST], to = moved_at(c->behind) ? 0 : moved_to((real_addr){c->behind}).at;
    unsigned count = ABOVE + c->words + 1, first = MOST - ABOVE;
    if (!moved_handoff_data.return_to || c->words > ARGUMENTS) return false;
    if (to) c->behind = to;
    count += count & 1;
    memset(words, 0, sizeof words);
    words[MOST - 1] = t->ctx.gpr[RUN_RBX];
    words[MOST - 2] = mark_of(c->frame, c->behind);
    first = MOST - count;
    words[first] = moved_handoff_data.return_to;
    memcpy(&words[first + 1], c->stack, c->words * sizeof *words);
    c->begin_sp = c->frame - count * sizeof *words;
    c->sp = c->frame + sizeof *words;
    if (!run_write(c->frame, &c->behind, sizeof c->behind)) return false;
    if (!run_write(c->begin_sp, &words[first], count * sizeof *words)) return false;
    moved_of(t)->returned = moved_returned;
    t->ctx.gpr[RUN_RBX] = c->frame;
    run_set_sp(&t->ctx, c->begin_sp);
    return true;
}

/* Who was waiting has been given up: the program goes on behind the call. */
void moved_call_returned(run_thread *t)
{
    uint64_t frame = t->ctx.gpr[RUN_RBX], above[ABOVE + 1];
    bool intact = run_read(above, frame - ABOVE * sizeof *above, sizeof above) && above[0] == mark_of(frame, above[2]);
    t->frame.app_tls_base = t->ctx.tls_base;
    t->ctx.vectors = t->frame.vector_area;
    if (intact) {
        t->ctx.gpr[RUN_RBX] = above[1];
        t->ctx.pc = above[2];
        run_set_sp(&t->ctx, frame + sizeof frame);
    }
    run_here.client.returned(run_here.client.arg, t, intact);
    moved_resume(t);
    __builtin_trap();
}
