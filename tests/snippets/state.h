/* A processor's state before and after a procedure. */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stdint.h>

enum { REGS = 16, VECTORS = 16, VECTOR_BYTES = 32, BELOW = 128, PLAIN = 4 };

struct state { /* the assembly knows it */
    uint64_t reg[REGS];
    uint64_t flags, real_flags;
    uint8_t vector[VECTORS][VECTOR_BYTES];
    uint8_t below[BELOW]; /* the red zone */
};

extern void (*const points[])(void);
extern void (*const plain[PLAIN])(void);
/* Calls it with all of the state, and takes all of it back. */
void run_point(struct state *, void (*point)(void));
/* What can be in a state, of what was filled in at random. any_control: with any way of rounding. */
void state_settle(struct state *, bool any_control);
void state_learn(void); /* about the processor, once */

#endif
