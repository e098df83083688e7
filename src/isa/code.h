/* Code being written: a window of bytes together with the address at which they will run (the two differ: code
 * memory has a write view and an execute view). What writes into it is an instruction set's emitter, which puts an
 * instruction there whole or not at all; whoever called checks once, at the end:
 *
 *     full         there was no room; nothing more is written from then on
 *     unreachable  an instruction was left out because an operand has no encoding, or is out of its reach
 */
#ifndef INL_ISA_CODE_H
#define INL_ISA_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct isa_code {
    uint8_t *write;  /* base of the write view */
    uint64_t exec;   /* address at which write[0] will run */
    size_t at, size; /* bytes emitted, room */
    bool full;
    bool unreachable;
} isa_code;

/* Bytes as they are: all or nothing. */
void isa_put(isa_code *, const void *bytes, size_t n);

static inline uint64_t isa_here(const isa_code *c) { return c->exec + c->at; }

/* A jump forward whose target is said later; `kind` is the emitter's: how far it reaches, and how it is encoded. */
typedef struct isa_label {
    size_t at;
    uint8_t kind;
} isa_label;

#endif
