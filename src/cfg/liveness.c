/* Backward liveness over a straight line; see the header for what is asked. */
#include "cfg/liveness.h"

static cfg_need join(cfg_need a, cfg_need b) { return (cfg_need){a.regs | b.regs, a.flags | b.flags}; }

static cfg_need without(cfg_need a, cfg_need b) { return (cfg_need){a.regs & ~b.regs, a.flags & ~b.flags}; }

void cfg_liveness(const cfg_step *steps, size_t count, cfg_need all, cfg_live *live)
{
    for (size_t i = count; i-- > 0;) {
        const cfg_step *s = &steps[i];
        cfg_live at = {{0, 0}, {0, 0}};
        if (!s->ends) at = live[i + 1];
        at.live = without(at.live, s->kills);
        at.seen = without(at.seen, s->kills);
        if (s->exits) {
            at.live = join(at.live, s->exit);
            at.seen = join(at.seen, s->exit);
        }
        at.live = join(at.live, s->reads);
        at.seen = join(at.seen, s->reads);
        if (s->may_fault) at.seen = all;
        live[i] = at;
    }
}
