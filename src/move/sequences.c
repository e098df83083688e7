/* Restartable sequences (rseq): the kernel compares a thread's address with the range of the sequence that it is
 * in, and goes on at the sequence's abort handler when it was preempted there. The ranges are original addresses,
 * given by descriptors in a section of their own, so code with such a sequence stays where it is:
 *
 *     __rseq_cs:   version, flags | start | length | abort handler      32 bytes each
 *
 * The abort handler stays too, for the kernel looks at a signature in front of it. */
#include "move/plan.h"

#include <string.h>

enum { DESCRIPTOR = 32, START = 8, ABORT = 24 };

static const image_section *descriptors(image *im)
{
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(s[i].name, "__rseq_cs") && s[i].addr && s[i].size % DESCRIPTOR == 0) return &s[i];
    return NULL;
}

static void stay(move_work *w, uint64_t addr)
{
    const char *why = "it holds a restartable sequence (rseq), whose addresses the kernel knows";
    uint32_t proc = addr ? cfg_proc_covering(move_cfg(w), addr) : CFG_NONE;
    if (proc != CFG_NONE && move_is_moved(w, proc)) move_leave(w, proc, why);
}

void move_leave_sequences(move_work *w)
{
    image *im = move_cfg(w)->image;
    const image_section *s = descriptors(im);
    const image_reloc *r;
    size_t count = s ? image_relocs(im, &r) : 0;
    for (uint64_t at = 0; s && at < s->size; at += DESCRIPTOR) {
        const uint8_t *bytes;
        uint64_t words[DESCRIPTOR / 8];
        if (image_bytes(im, s->addr + at, &bytes) < DESCRIPTOR) return;
        memcpy(words, bytes, DESCRIPTOR);
        stay(w, words[START / 8]);
        stay(w, words[ABORT / 8]);
    }
    for (size_t i = 0; i < count; i++) /* where they are filled in when the image is loaded */
        if (r[i].offset - s->addr < s->size &&
            ((r[i].offset - s->addr) % DESCRIPTOR == START || (r[i].offset - s->addr) % DESCRIPTOR == ABORT))
            stay(w, r[i].value);
}
