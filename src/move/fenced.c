/* Code between two fences of traps: not to be run where it lies.
 *
 *     ud2 ud2 ud2 ... | code | ud2 ud2 ud2 ...
 *
 * A translator (valgrind) has such code for the programs that it translates, which have it instead of procedures of
 * their own. It reads it, and makes code of it that runs where nothing of Inlay's is to be found: so it stays as it is.
 * What linkers put between pieces of code is no fence. */
#include "move/isa.h"

#include <string.h>

enum { STEP = 64, LEAST = 4 * STEP, MOST_BETWEEN = 1 << 20, WORD = 4 };

/* Does an instruction that faults begin within the word there, and what is no mere filler? */
static bool is_trap(const move_work *w, const uint8_t *bytes, size_t size, uint64_t addr)
{
    isa_insn in;
    for (unsigned k = 0; k < WORD; k += w->isa->unit)
        if (bytes[k] != w->isa->filler && move_cfg(w)->isa->decode(bytes + k, size - k, addr + k, &in) <= ISA_UNKNOWN &&
            in.flow == ISA_FLOW_TRAP)
            return true;
    return false;
}

static bool repeats(const uint8_t *bytes, size_t at) { return !memcmp(bytes + at, bytes + at + WORD, WORD); }

/* From `at` on the next fence: [*low, *high). */
static bool next_fence(const move_work *w, const uint8_t *bytes, size_t size, uint64_t addr, size_t at, size_t *low,
                       size_t *high)
{
    for (; at + STEP < size; at += STEP) {
        if (!repeats(bytes, at) || !is_trap(w, bytes + at, size - at, addr + at)) continue;
        for (*low = at; *low >= WORD && repeats(bytes, *low - WORD);) *low -= WORD;
        for (*high = at + WORD; *high + WORD <= size && repeats(bytes, *high - WORD);) *high += WORD;
        if (*high - *low >= LEAST) return true;
        at = *high;
    }
    return false;
}

static void mark(const move_work *w, uint64_t low, uint64_t high, uint8_t *marks, uint8_t with)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (p->procs[i].addr < high && p->procs[i].addr + p->procs[i].size > low) marks[i] = with;
}

void move_find_fenced(const move_work *w, uint8_t *marks, uint8_t with)
{
    const image *im = move_cfg(w)->image;
    const image_segment *s;
    size_t count = image_segments(im, &s);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t size = s[i].exec ? image_bytes(im, s[i].addr, &bytes) : 0, low, high, before = 0;
        if (size > s[i].file_size) size = s[i].file_size;
        for (size_t at = 0; at < size && next_fence(w, bytes, size, s[i].addr, at, &low, &high); at = high) {
            if (before && low - before <= MOST_BETWEEN) mark(w, s[i].addr + before, s[i].addr + low, marks, with);
            before = high;
        }
    }
}
