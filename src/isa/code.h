/* Code being written: a window of bytes together with the address at which they will run (the two differ: code
 * memory has a write view and an execute view). What writes into it is an instruction set's emitter, which puts an
 * instruction there whole or not at all; whoever called checks once, at the end:
 *
 *     full         there was no room; nothing more is written from then on
 *     unreachable  an instruction was left out because an operand has no encoding, or is out of its reach
 *
 * Code that is to lie elsewhere than `exec` says, or not only there, is given a list for its fix-ups: every field whose
 * bytes depend on the place, because it counts the distance to something outside the window. The emitter's own
 * function (weave_isa.place) sets them for another address. What jumps within the window moves along as it is, and
 * where an emitter has shorter forms for what is near, it takes none for what is outside. Without a list nothing is
 * kept, and nothing is done.
 */
#ifndef INL_ISA_CODE_H
#define INL_ISA_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct isa_fixup {
    uint32_t at;  /* of the field, from the window's begin */
    uint8_t kind; /* the emitter's: how it is written */
    uint64_t target;
} isa_fixup;
typedef struct isa_fixups {
    isa_fixup *items;
    uint32_t count, room; /* without room for one more the code becomes full */
    bool absolute;        /* the code holds addresses of the program as numbers as well */
} isa_fixups;

typedef struct isa_code {
    uint8_t *write;  /* base of the write view */
    uint64_t exec;   /* address at which write[0] will run */
    size_t at, size; /* bytes emitted, room */
    bool full;
    bool unreachable;
    isa_fixups *fixups; /* NULL: it stays where it is */
} isa_code;

/* Bytes as they are: all or nothing. */
void isa_put(isa_code *, const void *bytes, size_t n);

static inline uint64_t isa_here(const isa_code *c) { return c->exec + c->at; }

/* Does the address move along with the code? */
static inline bool isa_moves_along(const isa_code *c, uint64_t at) { return !c->fixups || at - c->exec < c->size; }

void isa_keep_fixup(isa_code *, isa_fixup);

/* The field that was just written at offset `at` depends on how far `target` is. */
static inline void isa_fix_later(isa_code *c, size_t at, unsigned kind, uint64_t target)
{
    if (c->fixups && !c->full && !isa_moves_along(c, target))
        isa_keep_fixup(c, (isa_fixup){(uint32_t)at, (uint8_t)kind, target});
}

/* What was or will be written holds an address of the program's that does not depend on where the code is. */
static inline void isa_note_absolute(isa_code *c)
{
    if (c->fixups) c->fixups->absolute = true;
}

/* A jump forward whose target is said later; `kind` is the emitter's: how far it reaches, and how it is encoded. */
typedef struct isa_label {
    size_t at;
    uint8_t kind;
} isa_label;

#endif
