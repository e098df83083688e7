/* Processes, so far the present one; and what changes in one after its code was first seen: insertions that are
 * removed, code that is shown again. */
#include "tool/entered.h"
#include "tool/state.h"
#include "moved/moved.h"

#include <inlay/point.h>
#include <inlay/process.h>

inlay_process *inlay_process_self(void) { return &tool_now->own; }

int inlay_process_pid(const inlay_process *p) { return p == &tool_now->own ? inlay_pid() : mutator_pid(p); }

const char *inlay_process_program(const inlay_process *p)
{
    return p == &tool_now->own ? inlay_program() : mutator_program(p);
}

/* --- threads --- */

inlay_process *inlay_thread_process(const inlay_thread *t)
{
    (void)t;
    return inlay_process_self();
}

inlay_thread *inlay_process_thread_first(inlay_process *p)
{
    (void)p;
    bool entered = tool_enter();
    inlay_thread *first = (inlay_thread *)run_here.threads;
    tool_leave(entered);
    return first;
}

inlay_thread *inlay_process_thread_next(inlay_process *p, const inlay_thread *of)
{
    (void)p;
    bool entered = tool_enter();
    const run_thread *t = run_here.threads;
    while (t && t != (const run_thread *)of) t = t->next;
    inlay_thread *next = t ? (inlay_thread *)t->next : NULL;
    tool_leave(entered);
    return next;
}

/* --- code that changes --- */

/* Copies of the program's code that an engine has made go; those that have been written stay. */
static void code_changed(uint64_t low, uint64_t high)
{
    const run_watch *watch = run_here.engine ? run_here.engine->watch : NULL;
    tool_now->kept.changed = true;
    if (watch && high > low) watch->shown_again(low, high);
}

/* NULL: what was inserted for ever may change now. */
static const char *too_late(void)
{
    bool carried = tool_handoff_data.role == TOOL_CARRIED;
    if (carried && moved_is_live())
        return "a process that a tool was put into has its new code already; inlay_switched makes code that is "
               "switched "
               "off and on, inlay run (also --attach) shows code again";
    if (carried) return "the program has been written";
    if (tool_now->plans) return "the program is being written";
    return tool_here.sees_code ? "this is for callbacks that are not shown code, and for analysis routines" : NULL;
}

bool inlay_process_show_again(inlay_process *p, uint64_t low, uint64_t high)
{
    const char *why = p && low < high ? too_late() : "there is none";
    if (why) {
        tool_say_limited("cannot show the code at 0x%llx again: %s", (unsigned long long)low, why);
        return false;
    }
    bool entered = tool_enter();
    code_changed(low, high);
    tool_leave(entered);
    return true;
}

bool inlay_reinstrument_insn(uint64_t address)
{
    return inlay_process_show_again(inlay_process_self(), address, address + 1);
}

bool inlay_reinstrument_proc(const inlay_proc *p)
{
    return inlay_process_show_again(inlay_process_self(), inlay_proc_address(p),
                                    inlay_proc_address(p) + inlay_proc_size(p));
}

bool inlay_reinstrument_image(const inlay_image *i)
{
    return inlay_process_show_again(inlay_process_self(), inlay_image_low(i), inlay_image_high(i));
}

bool inlay_reinstrument_all(void) { return inlay_process_show_again(inlay_process_self(), 0, UINT64_MAX); }

_Static_assert((int)INLAY_VERSIONS == (int)RUN_VERSIONS, "the engine has as many");

bool inlay_code_version_switch(unsigned version)
{
    const run_engine *engine = run_here.engine;
    const char *why = version >= RUN_VERSIONS              ? "there are eight"
                      : !engine || !engine->switch_version ? "code is instrumented once here"
                      : tool_here.sees_code                ? "this is for callbacks that are not shown code, and for "
                                                             "analysis routines"
                                                           : NULL;
    if (why) tool_say_limited("cannot go on in version %u of the code: %s", version, why);
    else engine->switch_version(run_self(), version);
    return !why;
}

unsigned inlay_code_version(void)
{
    const run_engine *engine = run_here.engine;
    if (!engine || !engine->version) return 0;
    return engine->version(tool_here.sees_code ? NULL : run_self());
}

static const char *remove_from_procedure(const inlay_insertion *i)
{
    const char *why = too_late();
    if (why) return why;
    inlay_proc *of = i->at->proc;
    bool entry = i->at->kind == POINT_PROC_ENTRY;
    proc_insert **at = entry ? &of->entry : &of->exit;
    while (*at && *at != i->kept) at = &(*at)->next;
    if (!*at) return "it has been removed before";
    *at = i->kept->next;
    code_changed(of->low, entry ? of->low + 1 : of->high);
    return NULL;
}

/* Of code that is being shown the callback's own; of a static view what applies to runs to come. */
static const char *remove_from_code(const inlay_insertion *i)
{
    weave_run *run = i->at->run;
    const weave_insn *at = &run->insns[tool_point_insn(i->at)];
    const char *why = run->view ? too_late() : NULL;
    if (why || !i->node) return why;
    if (!weave_remove(weave_list_at(run, tool_point_where(i->at), i->at->index), i->node))
        return "it has been removed before";
    if (!run->view) return NULL;
    tool_code_unnote(at);
    code_changed(at->in.addr, at->in.addr + at->in.len);
    return NULL;
}

static inlay_expr code_of_insertion(const inlay_insertion *i)
{
    if (!i->at->run) return i->kept->code;
    return i->node ? i->node->code : NULL;
}

bool inlay_remove(inlay_insertion *i)
{
    /* A handle that travelled leads nowhere. */
    const char *why = !i ? "it was refused" : tool_handoff_data.role == TOOL_CARRIED ? too_late() : NULL;
    bool entered = tool_enter();
    if (!why && i->gone) why = "it has been removed before";
    inlay_expr code = why ? NULL : code_of_insertion(i);
    if (!why) why = i->at->run ? remove_from_code(i) : remove_from_procedure(i);
    if (!why) i->gone = true;
    if (!why && tool_entered_is_in(code)) tool_entered_end(code);
    if (!why && mutator_keeps_points(i->at->run)) mutator_removed(i);
    tool_leave(entered);
    if (why) tool_say_limited("cannot remove an insertion: %s", why);
    return !why;
}
