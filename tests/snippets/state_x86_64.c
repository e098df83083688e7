#include "state.h"

#include <string.h>

enum { FLAGS = 0xcd5, ALWAYS = 0x202, EXCEPTIONS_MASKED = 0x1f80, SEEN = 0x3f, CONTROL = 0x6040 };

int state_has_avx;

void state_learn(void) { state_has_avx = __builtin_cpu_supports("avx") != 0; }

void state_settle(struct state *s, bool any_control)
{
    s->reg[4] = 0;
    s->flags = (s->flags & FLAGS) | ALWAYS;
    s->real_flags = (s->real_flags & (any_control ? SEEN | CONTROL : SEEN)) | EXCEPTIONS_MASKED;
}
