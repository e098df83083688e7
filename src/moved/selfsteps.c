/* Steps that the program makes itself, by the trap flag: natively one ends at each of its instructions. Here others end
 * in between, where no instruction of the program's begins, and are passed over; the flag stays. */
#include "moved/private.h"

#include <signal.h>

/* Whoever steps itself does: natively the first step ends the program otherwise. */
static bool handles_steps(const run_thread *t)
{
    uint64_t handler = t->signals->action[SIGTRAP].handler;
    return handler != RUN_DEFAULT && handler != RUN_IGNORE;
}

/* The gate, a routine, a signal's way: parts of an instruction. */
static bool in_tool(const run_thread *t, uint64_t pc)
{
    return t->where == RUN_IN_RUNTIME || t->frame.in_tool ||
           (pc >= run_here.start.tool_low && pc < run_here.start.tool_high);
}

/* Likewise inserted code, and jumps that lead from old code to new. */
static bool in_midst(uint64_t pc, moved_where *at)
{
    uint64_t old;
    moved_locate(pc, NULL, 0, false, at);
    if (moved_jumps_to(pc) || moved_site_jumps(pc)) return true;
    return !at->known || at->before || (moved_site_original(pc, true, &old) && !old);
}

/* What sets the flag is no step yet, but what is inserted behind it would end one. */
static bool begins(const moved_own *own, const moved_where *at)
{
    uint64_t before = at->image ? moved_code_of(at->image, at->pc - 1) : 0;
    return before && moved_sets_flags(before) && own->trapped != at->pc - 1;
}

bool moved_is_no_step(run_thread *t, const void *uc)
{
    uint64_t pc = run_uc_pc(uc);
    moved_own *own = moved_of(t);
    moved_where at;
    bool flag = moved_uc_steps(uc);
    if (in_tool(t, pc)) {
        if (!flag || !handles_steps(t)) return false; /* an error of Inlay's, or sent */
        own->calls |= moved_in_gate(pc);
        return true;
    }
    bool midst = in_midst(pc, &at);
    if (!flag) return moved_at(pc) && !at.known; /* one of Inlay's that is told late */
    if (midst) return true;
    /* A system call ends together with the instruction behind it. */
    bool none = own->calls || begins(own, &at);
    own->calls = false;
    own->trapped = at.pc;
    return none;
}
