/* Code that is switched off and on (include/inlay/switch.h). In a tool a byte is looked at. In a mutator the new code
 * in each process has jumps (weave_switch) whose places are looked up in the pieces again when these have changed. */
#include "tool/mutator.h"

#include <inlay/process.h>
#include <inlay/switch.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct switch_place {
    mutatee *of;
    uint64_t at;
    uint8_t on, off;
} switch_place;

struct inlay_switch {
    bool is_on; /* first: what code looks at */
    uint32_t number;
    uint64_t seen; /* the change after which places were looked up */
    INL_VEC(switch_place) places;
};

inlay_switch *inlay_switch_new(bool on)
{
    inlay_switch *s = inlay_alloc(sizeof *s);
    if (s) *s = (inlay_switch){.is_on = on, .number = ++tool_now->mutating.switches, .seen = UINT64_MAX};
    return s;
}

bool inlay_switch_is_on(const inlay_switch *s) { return s && s->is_on; }

inlay_expr inlay_switched(inlay_switch *s, inlay_expr code)
{
    if (!s || !code) return NULL;
    if (!tool_now->options.mutating) return inlay_if(inlay_load(inlay_pointer(&s->is_on), 1), code, NULL);
    inlay_expr on = tool_snippet_of(
        (snippet){.kind = SNIPPET_SWITCH, .index = s->number, .value = (uint64_t)(uintptr_t)&s->is_on});
    return on ? inlay_if(on, code, NULL) : NULL;
}

/* --- in processes --- */

static bool look_up_in(inlay_switch *s, mutatee *m, const mutator_piece *p)
{
    for (; p; p = p->next)
        for (size_t k = 0; p->is_there && k < p->plan->switch_count; k++) {
            const move_switch *x = &p->plan->switches[k];
            if (x->number != s->number) continue;
            if (!inl_vec_push(&s->places, (switch_place){m, p->plan->text_addr + x->at, x->on, x->off})) return false;
        }
    return true;
}

/* Threads may be in new code that has been replaced since, too. */
static bool look_up(inlay_switch *s)
{
    if (s->seen == tool_now->mutating.changes) return true;
    s->places.count = 0;
    for (mutatee *m = tool_now->mutating.first; m; m = m->next)
        if (!look_up_in(s, m, m->pieces) || !look_up_in(s, m, m->dead))
            return mutator_refuse(INL_ERR_NO_MEMORY, "out of memory");
    s->seen = tool_now->mutating.changes;
    return true;
}

static bool open_memory(mutatee *m)
{
    char path[64];
    if (m->mem >= 0) return true;
    snprintf(path, sizeof path, "/proc/%d/mem", m->live.pid);
    m->mem = open(path, O_RDWR | O_CLOEXEC);
    return m->mem >= 0;
}

bool inlay_switch_set(inlay_switch *s, bool on)
{
    bool good = true;
    if (tool_now->options.mutating && tool_handoff_data.role == TOOL_CARRIED)
        return mutator_refuse(INL_ERR_USAGE, "a mutator's switches are set by the mutator");
    if (!s) return mutator_refuse(INL_ERR_USAGE, "no switch");
    s->is_on = on;
    if (!tool_now->options.mutating) return true;
    if (!look_up(s)) return false;
    for (size_t k = 0; k < s->places.count; k++) {
        const switch_place *p = &s->places.items[k];
        uint8_t byte = on ? p->on : p->off;
        if (open_memory(p->of) && pwrite(p->of->mem, &byte, 1, (off_t)p->at) == 1) continue;
        good = mutator_refuse(INL_ERR_SYSTEM, "cannot write to process %d: %s", p->of->live.pid, strerror(errno));
    }
    return good;
}
