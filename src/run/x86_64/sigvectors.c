/* The vector state of a thread outside of its code: at its begin, and in the frame that the kernel builds for a
 * handler, whose bytes 464..511 tell size and features:
 *
 *     0      legacy part (FXSAVE's)
 *     464    magic, size with the last word, features, size
 *     512    header and components in XSAVE's standard form; then a second magic word
 *
 * Features are those that the process may use; one that must be asked for (AMX's tiles) is in a thread's frame from
 * the moment the thread has used it, as the kernel's buffer grows then. Inlay learns that from the frames that the
 * kernel builds for Inlay's own handler, and from what XSAVE has written. Without XSAVE a frame ends at byte 512.
 */
#include <string.h>
#include <ucontext.h>

#include "run/x86_64/sigvectors.h"
#include "weave/x86_64/vectors.h"

enum {
    LEGACY = X86_XSAVE_LEGACY,
    HEADER = X86_XSAVE_HEADER,
    SW_RESERVED = 464,
    MXCSR = 24,
    MXCSR_MASK = 28,
    DEFAULT_MXCSR = 0x1f80,
    DEFAULT_CONTROL = 0x37f,
    OLDEST_MXCSR_MASK = 0xffbf,
};
#define INITIAL_PKRU 0x55555554u

struct sw_bytes {
    uint32_t magic1, extended_size;
    uint64_t features;
    uint32_t xstate_size, padding[7];
};
_Static_assert(sizeof(struct sw_bytes) == 48, "kernel ABI");

static const x86_xstate *layout;
static uint32_t mxcsr_mask;

void sigvectors_use(const x86_xstate *x) { layout = x ? x : x86_xstate_here(); }

void run_sigframe_init(void)
{
    _Alignas(64) uint8_t legacy[LEGACY] = {0};
    if (!layout) sigvectors_use(NULL);
    __asm__ volatile("fxsave64 %0" : "=m"(legacy));
    memcpy(&mxcsr_mask, legacy + MXCSR_MASK, 4);
    if (!mxcsr_mask) mxcsr_mask = OLDEST_MXCSR_MASK;
}

size_t run_vector_room(void) { return x86_xstate_here()->room; }

/* --- begin --- */

static void set_pkru(uint8_t *area)
{
    uint64_t bv = 1ull << X86_PART_PKRU;
    uint32_t pkru = INITIAL_PKRU;
    memcpy(area + LEGACY, &bv, sizeof bv);
    memcpy(area + layout->part[X86_PART_PKRU].offset, &pkru, sizeof pkru);
}

static void set_legacy(uint8_t *area)
{
    uint32_t mxcsr = DEFAULT_MXCSR;
    uint16_t control = DEFAULT_CONTROL;
    memset(area, 0, SW_RESERVED);
    memcpy(area, &control, sizeof control);
    memcpy(area + MXCSR, &mxcsr, sizeof mxcsr);
}

void run_vectors_init(run_thread *t)
{
    uint8_t *area = t->frame.vector_area;
    set_legacy(area);
    memset(area + SW_RESERVED, 0, LEGACY + HEADER - SW_RESERVED);
    if (layout->features >> X86_PART_PKRU & 1) set_pkru(area);
}

void sigvectors_reset(uint8_t *state)
{
    struct sw_bytes sw;
    memcpy(&sw, state + SW_RESERVED, sizeof sw);
    set_legacy(state);
    if (sw.magic1 != FP_XSTATE_MAGIC1) return;
    memset(state + LEGACY, 0, HEADER);
    if (sw.features >> X86_PART_PKRU & 1) set_pkru(state);
}

void run_vectors_begin(run_thread *t)
{
    if (!layout) sigvectors_use(NULL);
    weave_vectors_choose(&t->frame);
    run_vectors_init(t);
}

/* A child begins without what must be asked for. */
void run_vectors_inherit(run_thread *child, const run_thread *t)
{
    uint64_t bv;
    uint8_t *area = child->frame.vector_area;
    memcpy(area, t->frame.vector_area, run_vector_room());
    memcpy(&bv, area + LEGACY, sizeof bv);
    bv &= ~X86_XSAVE_DYNAMIC;
    memcpy(area + LEGACY, &bv, sizeof bv);
}

/* --- features that must be asked for --- */

void run_vectors_note(run_thread *t, const void *uc)
{
    const uint8_t *state = (const uint8_t *)((const ucontext_t *)uc)->uc_mcontext.fpregs;
    struct sw_bytes sw;
    if (!state || !(layout->features & X86_XSAVE_DYNAMIC)) return;
    memcpy(&sw, state + SW_RESERVED, sizeof sw);
    if (sw.magic1 == FP_XSTATE_MAGIC1) t->dynamic |= sw.features & X86_XSAVE_DYNAMIC;
}

/* Other threads may be saving or loading at this moment; what is new to their mask is unused in their state. */
void run_vectors_permitted(void)
{
    x86_xstate_refresh();
    inl_lock_take(&run_here.lock);
    for (run_thread *t = run_here.threads; t; t = t->next)
        __atomic_store_n(&t->frame.xsave_mask, x86_xstate_here()->features, __ATOMIC_RELAXED);
    inl_lock_release(&run_here.lock);
}

static uint64_t features_of(const run_thread *t) { return layout->features & (~X86_XSAVE_DYNAMIC | t->dynamic); }

void sigvectors_prepare(run_thread *t)
{
    uint64_t bv;
    memcpy(&bv, (const uint8_t *)t->frame.vector_area + LEGACY, sizeof bv);
    t->dynamic |= bv & X86_XSAVE_DYNAMIC & layout->features;
}

/* --- frames --- */

uint64_t sigvectors_bytes(const run_thread *t)
{
    uint32_t size = x86_xstate_size(layout, features_of(t));
    return layout->xsave ? size + sizeof(uint32_t) : size;
}

static bool put_extended(const run_thread *t, uint64_t to, uint32_t size)
{
    const uint8_t *area = t->frame.vector_area;
    uint64_t bv;
    uint32_t magic2 = FP_XSTATE_MAGIC2;
    memcpy(&bv, area + LEGACY, sizeof bv);
    bv = (bv & features_of(t)) | X86_XSAVE_ALWAYS; /* XSAVE has written these in any case */
    return run_write(to + LEGACY, &bv, sizeof bv) && run_write(to + LEGACY + 8, area + LEGACY + 8, size - LEGACY - 8) &&
           run_write(to + size, &magic2, sizeof magic2);
}

bool sigvectors_put(const run_thread *t, uint64_t to)
{
    uint32_t size = x86_xstate_size(layout, features_of(t));
    struct sw_bytes sw = {.magic1 = FP_XSTATE_MAGIC1,
                          .extended_size = size + (uint32_t)sizeof(uint32_t),
                          .features = layout->xsave ? features_of(t) : 0,
                          .xstate_size = size};
    return run_write(to, t->frame.vector_area, SW_RESERVED) && run_write(to + SW_RESERVED, &sw, sizeof sw) &&
           (!layout->xsave || put_extended(t, to, size));
}

/* True when the frame's image is more than the 512 legacy bytes. */
static bool is_extended(const run_thread *t, const struct sw_bytes *sw, uint64_t from)
{
    uint32_t magic2;
    if (sw->magic1 != FP_XSTATE_MAGIC1 || sw->xstate_size < LEGACY + HEADER ||
        sw->xstate_size > x86_xstate_size(layout, features_of(t)) || sw->xstate_size > sw->extended_size)
        return false;
    return run_read(&magic2, from + sw->xstate_size, sizeof magic2) && magic2 == FP_XSTATE_MAGIC2;
}

bool sigvectors_take(run_thread *t, uint64_t from)
{
    uint8_t *area = t->frame.vector_area;
    run_vectors_init(t);
    if (!from) return true;
    struct sw_bytes sw;
    if (!run_read(&sw, from + SW_RESERVED, sizeof sw)) return false;
    uint64_t header[HEADER / 8] = {X86_XSAVE_ALWAYS};
    if (!run_read(area, from, SW_RESERVED)) return false;
    if (is_extended(t, &sw, from)) {
        if (!run_read(header, from + LEGACY, HEADER) ||
            !run_read(area + LEGACY + HEADER, from + LEGACY + HEADER, sw.xstate_size - LEGACY - HEADER))
            return false;
        for (unsigned i = 1; i < HEADER / 8; i++)
            if (header[i]) return false;
        header[0] &= features_of(t) & sw.features;
    }
    memcpy(area + LEGACY, header, HEADER);
    uint32_t mxcsr;
    memcpy(&mxcsr, area + MXCSR, sizeof mxcsr);
    return !(mxcsr & ~mxcsr_mask);
}
