/* Small analysis routines, compiled several ways (weave_inline.c). */
#ifndef WEAVE_ROUTINES_H
#define WEAVE_ROUTINES_H

#include <stdint.h>

enum { CELLS = 512, MOST_ROUTINES = 64 };
extern uint64_t cells[CELLS] __attribute__((visibility("hidden")));
extern uint64_t *cell_pointer __attribute__((visibility("hidden")));

typedef struct routine {
    const char *name;
    void (*fn)(void);
    unsigned nargs;
} routine;
typedef struct routine_set {
    const char *how;
    unsigned count;
    routine list[MOST_ROUTINES];
} routine_set;

#endif
