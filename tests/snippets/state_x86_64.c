#include "state.h"

#include <string.h>

enum { FLAGS = 0xcd5, ALWAYS = 0x202, EXCEPTIONS_MASKED = 0x1f80, REAL = 0x607f | EXCEPTIONS_MASKED };

int state_has_avx;

void state_learn(void) { state_has_avx = __builtin_cpu_supports("avx") != 0; }

void state_settle(struct state *s)
{
    s->reg[4] = 0;
    s->flags = (s->flags & FLAGS) | ALWAYS;
    s->real_flags = (s->real_flags & REAL) | EXCEPTIONS_MASKED;
}
