/* Procedures and calls that are to be replaced or wrapped, as the tool says: noted by address, for code_inserts.c. In a
 * file of its own, which brings reads.c with it: what a tool does that uses none of this never changes the way that the
 * program takes. */
#include "tool/code.h"
#include "tool/wrap.h"
#include "cfg/changes.h"

#include <inlay/wrap.h>

static bool replace_at(tool_code *c, uint64_t at, const snippet *code, unsigned bits)
{
    code_touch(c, at, 1);
    return inl_map_put(&c->replaced, at, (uint64_t)(uintptr_t)code | bits);
}

/* The image's direct calls of and jumps to a procedure whose code is not its own (an import stub): `call` and `jump`
 * are put there. */
static bool replace_calls(tool_code *c, inlay_proc *of, const snippet *call, const snippet *jump, unsigned bits)
{
    for (inlay_proc *p = inlay_image_proc_first(c->image); p; p = inlay_proc_next(p))
        for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
            const weave_insn *i = (const weave_insn *)inlay_block_last(b);
            bool calls = i->in.flow == ISA_FLOW_CALL;
            if (i->in.target != of->low || (!calls && i->in.flow != ISA_FLOW_JUMP)) continue;
            if (!replace_at(c, i->in.addr, calls ? call : jump, CODE_AT_CALL | bits)) return false;
        }
    return true;
}

bool inlay_proc_replace(inlay_proc *p, inlay_expr result)
{
    char mistake[sizeof tool_here.mistake];
    const char *why = result ? "out of memory" : tool_mistaken(mistake, sizeof mistake);
    if (!p) {
        tool_say_limited("cannot replace a procedure that is NULL: what was looked up is not there");
        return false;
    }
    bool entered = tool_enter(), good = false;
    tool_code *c = code_of(p->image);
    if (tool_here.run_arena) {
        why = "this is for procedure and image callbacks";
    } else if (!c) {
        why = "out of memory";
    } else if (result && snippet_check(result, &why)) {
        const snippet *code = inlay_set_register((inlay_reg)code_result_register(), result);
        bool whole = inlay_proc_known(p, &why) == INLAY_WHOLE;
        good = whole ? replace_at(c, p->low, code, 0) : replace_calls(c, p, code, code, 0);
    }
    if (good) c->image->process->code_inserted = true;
    else tool_say_limited("cannot replace %s: %s", p->name, why);
    tool_leave(entered);
    return good;
}

bool inlay_call_replace(inlay_insn *call, inlay_expr result)
{
    const weave_insn *i = (const weave_insn *)call;
    char mistake[sizeof tool_here.mistake];
    const char *why = "out of memory";
    bool entered = tool_enter(), good = false;
    if (tool_here.run_arena) {
        why = "this is for procedure and image callbacks";
    } else if (!result && tool_here.mistake[0]) { /* what was to be something is not made nothing */
        why = tool_mistaken(mistake, sizeof mistake);
    } else if (!i || i->in.flow != ISA_FLOW_CALL) {
        why = "it is no call";
    } else if (!code_nothing(i->in.len).size) {
        why = "it is of unusual length";
    } else if (!result || snippet_check(result, &why)) {
        tool_code *c = code_view_behind(i->run)->code;
        const snippet *code = result ? inlay_set_register((inlay_reg)code_result_register(), result) : inlay_const(0);
        good = code && replace_at(c, i->in.addr, code, CODE_AT_CALL);
        if (good) c->image->process->code_inserted = true;
    }
    if (!good) tool_say_limited("cannot replace a call at 0x%llx: %s", i ? (unsigned long long)i->in.addr : 0, why);
    tool_leave(entered);
    return good;
}

static bool restore_at(tool_code *c, uint64_t at)
{
    uint64_t found;
    const char *why = tool_now->options.mutating ? "nothing is replaced there" : "only mutators take it back";
    bool good = tool_now->options.mutating && c && inl_map_get(&c->replaced, at, &found);
    if (good) inl_map_remove(&c->replaced, at);
    if (good) code_touch(c, at, -1);
    else tool_say_limited("cannot restore what is at 0x%llx: %s", (unsigned long long)at, why);
    return good;
}

bool inlay_proc_restore(inlay_proc *p) { return p ? restore_at(code_of(p->image), p->low) : restore_at(NULL, 0); }

bool inlay_call_restore(inlay_insn *call)
{
    const weave_insn *i = (const weave_insn *)call;
    return i && i->run->view ? restore_at(code_view_behind(i->run)->code, i->in.addr) : restore_at(NULL, 0);
}

/* --- procedures that are wrapped --- */

static bool jumps_on(const cfg_program *cfg, uint32_t proc)
{
    const cfg_proc *p = &cfg->procs[proc];
    if (p->status != CFG_PROC_WHOLE) return true;
    for (uint32_t i = p->first_block; i < p->first_block + p->block_count; i++) {
        const cfg_block *b = &cfg->blocks[i];
        if (b->flags & (CFG_BLOCK_TAIL_IND | CFG_BLOCK_UNRESOLVED)) return true;
        for (uint32_t k = 0; k < b->edge_count; k++)
            if (cfg->edges[b->first_edge + k].kind == CFG_EDGE_TAIL) return true;
    }
    return false;
}

static bool wrap_code(inlay_proc *p, tool_wrap *w, const char **why)
{
    tool_code *c = code_of(p->image);
    if (!c) return false;
    inlay_block *first = inlay_proc_block_first(p);
    bool whole = inlay_proc_known(p, why) == INLAY_WHOLE;
    uint32_t b = c->cfg && first ? cfg_block_at(c->cfg, p->low - p->image->bias) : CFG_NONE;
    if (b != CFG_NONE) w->changes = cfg_proc_changes(c->cfg, c->cfg->blocks[b].proc);
    w->jumps_on = b == CFG_NONE || jumps_on(c->cfg, c->cfg->blocks[b].proc);
    w->has_loop = first && inlay_block_flags(first) & INLAY_BLOCK_TARGET;
    tool_now->process->code_inserted = true;
    if (whole || !code_shows_whole()) {
        const snippet *code = tool_wrap_code(w, WRAP_ENTRY, inlay_context_arg());
        return code && replace_at(c, p->low, code, CODE_IS_WRAP);
    }
    const snippet *call = tool_wrap_code(w, WRAP_CALL, inlay_context_arg()),
                  *jump = tool_wrap_code(w, WRAP_JUMP, inlay_context_arg());
    return call && jump && replace_calls(c, p, call, jump, CODE_IS_WRAP);
}

static const char *fault_of(inlay_proc *p, void (*routine)(void), unsigned words)
{
    if (!p || !routine) return "there is no such procedure, or no routine";
    if (!tool_can_wrap) return "not on this processor yet";
    if (words > TOOL_WRAP_WORDS) return "at most 16 words of arguments can be on the stack";
    if (tool_here.run_arena) return "this is for procedure and image callbacks";
    return NULL;
}

bool inlay_proc_wrap(inlay_proc *p, void (*routine)(void), unsigned words)
{
    const char *why = fault_of(p, routine, words);
    const cfg_changed all = {~(isa_regs)0, UINT32_MAX};
    bool entered_here = tool_enter(), good = false;
    if (!why) {
        tool_wrap *w = tool_handle_alloc(sizeof *w);
        if (w)
            *w = (tool_wrap){.routine = routine,
                             .name = tool_handle_string(p->name),
                             .entry = p->low,
                             .words = words,
                             .changes = all};
        why = "out of memory";
        good = w && wrap_code(p, w, &why);
    }
    if (!good) tool_say_limited("cannot stand in for %s: %s", p ? p->name : "a procedure", why);
    tool_leave(entered_here);
    return good;
}
