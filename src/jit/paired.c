/* Calls and returns that the processor predicts in pairs.
 *
 * A translated return is an indirect jump, predicted like any other; a program that returns to very many places has
 * many of them predicted wrongly. Paired, the translation of a call contains one of the processor's own, behind which
 * there is a landing for the original return address, and a return ends with `ret`: the processor's return stack knows
 * where it leads (x86_64/lower.c). This costs some instructions a call, so it is for programs
 *   - that return to many addresses, and
 *   - that have run long enough for everything to be translated once more: translations of both kinds work together,
 *     but each return of the one kind to a call of the other is predicted wrongly.
 *
 * A paired call puts its landing into the thread's own table, and nowhere else. So
 *   - an entry of that table may lead into any fragment that the thread has run in, dropped ones included: the landing
 *     goes on by a direct exit, which is right as long as there is memory;
 *   - who comes from code that was flushed empties its table (dispatch.c), and a flush blocks it until then (ibl.c);
 *   - an entry that must stay (watched, ibl.c) could be overwritten: once a tool calls procedures of the program's, or
 *     inserts calls that could, nothing is paired any more.
 */
#include "base/log.h"
#include "jit/core.h"
#include INL_ARCH_HEADER(run, abi)

enum { MANY_TARGETS = 10000, TIMES_THE_WORK = 16 };

void jit_paired_begin(void) { jit.paired.on = jit.paired.ever = jit.options.stress & JIT_STRESS_PAIRED; }

bool jit_paired_consider(const run_thread *t)
{
    if (jit.paired.on || jit.paired.never || t->no_cycles) return false;
    if (!jit.paired.since) jit.paired.since = run_cycles();
    if (jit_ibl_targets(jit_of(t)->version) < MANY_TARGETS) return false;
    if (run_cycles() - jit.paired.since < TIMES_THE_WORK * t->frame.own_cycles) return false;
    inl_log(INL_LOG_CACHE, "calls and returns are paired from now on");
    jit.paired.on = jit.paired.ever = true;
    jit_flush_all();
    return true;
}

void jit_paired_end(void)
{
    jit.paired.never = true;
    if (!jit.paired.on) return;
    jit.paired.on = false;
    jit_flush_all();
}

static bool has_call(const weave_list *list)
{
    for (const weave_insert *n = list->first; n; n = n->next)
        if (snippet_has(n->code, SNIPPET_CALL)) return true;
    return false;
}

void jit_paired_heed(const weave_run *run)
{
    if (jit.paired.never) return;
    bool calls = false;
    for (uint32_t i = 0; i < run->block_count && !calls; i++) calls = has_call(&run->blocks[i].anywhere);
    for (uint32_t i = 0; i < run->insn_count && !calls; i++) {
        const weave_insn *n = &run->insns[i];
        calls = has_call(&n->before) || has_call(&n->after) || has_call(&n->taken);
    }
    if (calls) jit_paired_end();
}

bool jit_paired_wanted(const jit_build *b)
{
    return jit.paired.on && !b->once && !b->step && !b->checked && !b->section;
}
