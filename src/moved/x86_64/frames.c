/* A signal's frame on x86-64 (moved/frames.c): the mark lies in the reserved words of the context. A frame that moves
 * within the stack that the kernel has it on is built again below what is kept, and the kernel's own stays where it is,
 * since its vector state does:
 *
 *     sp: frame, as shown | kept | the kernel's own frame | vector state */
#include "moved/private.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigvectors.h"

#include <string.h>

enum { LEGACY = 512, SW_RESERVED = 464, FP_MAGIC = 0x46505853 };

uint64_t *moved_frame_marks(const run_frame *f) { return (uint64_t *)(uintptr_t)f->mc.__reserved1; }

void moved_frame_set(run_frame *f, const weave_context *c)
{
    for (unsigned r = 0; r < 16; r++) f->mc.gregs[run_frame_place(r)] = (greg_t)c->gpr[r];
    f->mc.gregs[REG_EFL] = (greg_t)c->flags;
    f->mc.gregs[REG_RIP] = (greg_t)c->pc;
}

/* The kernel's, and those made here, lead to their vector state, which tells what it is. */
const run_frame *moved_frame_on(uint64_t at, uint64_t end)
{
    enum { FURTHEST = 8192 };
    const run_frame *f = (const run_frame *)at;
    uint32_t magic;
    if (at >= end || end - at < sizeof *f) return NULL;
    const uint64_t vectors = (uint64_t)(uintptr_t)f->mc.fpregs;
    if (vectors % 64 || vectors - at < sizeof *f || vectors - at > FURTHEST || end - at < vectors - at + LEGACY)
        return NULL;
    memcpy(&magic, (const void *)(vectors + SW_RESERVED), sizeof magic);
    return magic == FP_MAGIC ? f : NULL;
}

/* The registers that addresses of string instructions have been made of. */
void moved_park_otherwise(const run_thread *t, weave_context *c, isa_regs spilled)
{
    if (spilled & WEAVE_AHEAD) c->gpr[RUN_RSI] += t->frame.ahead[0], c->gpr[RUN_RDI] += t->frame.ahead[1];
}

size_t moved_vector_bytes(const uint8_t *state)
{
    uint32_t magic, size;
    memcpy(&magic, state + SW_RESERVED, 4);
    memcpy(&size, state + SW_RESERVED + 4, 4);
    return magic == FP_MAGIC ? size : LEGACY;
}

uint64_t moved_frame_move(uint64_t from, const moved_way *way, uint64_t *room_at)
{
    run_frame f = *(const run_frame *)from;
    uint64_t low = way->below ? way->below : from;
    const void *vectors = way->below ? f.mc.fpregs : NULL;
    size_t bytes = vectors ? moved_vector_bytes(vectors) : 0;
    if (vectors) f.mc.fpregs = (fpregset_t)(low = (low - bytes) & ~63ull);
    *room_at = low = (low - way->room) & ~15ull;
    low = ((low - sizeof f) & ~15ull) - 8;
    if (low < way->least || (vectors && !run_write((uint64_t)f.mc.fpregs, vectors, bytes))) return 0;
    return run_write(low, &f, sizeof f) ? low : 0;
}

void moved_frame_enter(run_thread *t, run_frame *f, uint64_t to, const moved_handler *h, const weave_context *c)
{
    enum { FLAG_TF = 0x100, FLAG_DF = 0x400, FLAG_RF = 0x10000 };
    weave_context begins = *c;
    int signo;
    memcpy(&signo, f->info, sizeof signo);
    begins.gpr[RUN_RDI] = (uint64_t)signo;
    begins.gpr[RUN_RAX] = 0;
    begins.gpr[RUN_RSI] = to + RUN_FRAME_INFO;
    begins.gpr[RUN_RDX] = to + RUN_FRAME_CONTEXT;
    begins.gpr[RUN_RSP] = to;
    begins.pc = h->at;
    begins.flags &= ~(uint64_t)(FLAG_DF | FLAG_RF | FLAG_TF);
    moved_frame_set(f, &begins);
    f->mask = h->mask;
    f->stack = run_altstack_own(t);
    if (f->mc.fpregs) sigvectors_reset((uint8_t *)f->mc.fpregs);
}

void moved_frame_returns(uint64_t to, const moved_handler *h) { run_write(to, &h->restorer, sizeof h->restorer); }

uint64_t moved_restorer_at(void) { return (uint64_t)(uintptr_t)moved_restorer; }

/* Code of the usual form does not if it is still whole. */
bool moved_returns_by_gate(uint64_t restorer)
{
    static const uint8_t short_form[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05},
                         long_form[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
    uint8_t code[sizeof long_form];
    for (int jumps = 0; jumps < 4; jumps++) {
        int32_t distance;
        if (!run_read(code, restorer, sizeof code)) return false;
        if (code[0] != 0xe9 && code[0] != 0xeb) break;
        memcpy(&distance, code + 1, sizeof distance);
        restorer += code[0] == 0xe9 ? 5 + (uint64_t)(int64_t)distance : 2 + (uint64_t)(int8_t)code[1];
    }
    return memcmp(code, short_form, sizeof short_form) && memcmp(code, long_form, sizeof long_form);
}
