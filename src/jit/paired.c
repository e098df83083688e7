/* Calls and returns that the processor predicts in pairs.
 *
 * A translated return is an indirect jump, predicted like any other; a program that returns to very many places has
 * many of them predicted wrongly. Paired, the translation of a call contains one of the processor's own, behind which
 * there is a landing for the original return address, and a return ends with `ret`: the processor's return stack knows
 * where it leads (x86_64/lower.c). It pays in programs that return to some 10,000 addresses and more. But a paired
 * return leaves an address of the cache below the stack pointer, where the program may look: so there are pairs only
 * where
 * --stress=paired asks for them.
 *
 * A paired call puts its landing into the thread's own table, and nowhere else. So
 *   - an entry of that table may lead into any fragment that the thread has run in, dropped ones included: the landing
 *     goes on by a direct exit, which is right as long as there is memory;
 *   - who comes from code that was flushed empties its table (dispatch.c), and a flush blocks it until then (ibl.c);
 *   - an entry that must stay (watched, ibl.c) could be overwritten: once a tool calls procedures of the program's, or
 *     inserts calls that could, nothing is paired any more.
 */
#include "jit/core.h"

void jit_paired_begin(void) { jit.paired.on = jit.paired.ever = jit.options.stress & JIT_STRESS_PAIRED; }

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
