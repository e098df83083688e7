/* Calls and returns that the processor predicts in pairs.
 *
 * A translated return is an indirect jump, predicted like any other; a program that returns to very many places has
 * many of them predicted wrongly. Paired, the translation of a call contains one of the processor's own, behind which
 * there is a landing for the original return address, and a return ends with `ret`: the processor's return stack knows
 * where it leads (x86_64/lower.c). Both take the thread's table of returns for their stack: the call writes its landing
 * into the entry of the return address, and the `ret` takes it from there, while the program's stack pointer waits in
 * a register. So nothing on the program's stack nor below it is other than natively.
 *
 * Where indirect jumps are predicted well a pair costs more than it gives. So a program begins without; when it has
 * returned to so many places (WORTH_IT) everything is flushed, and made anew with pairs, or taken from disk, where
 * translations with and without them may be kept side by side.
 *
 *   - An entry may lead into any fragment that the thread has run in, dropped ones included: the landing goes on by a
 *     direct exit, which is right as long as there is memory. Who comes from code that was flushed empties its table
 *     (dispatch.c), and a flush blocks it until then (ibl.c).
 *   - An entry that is empty, or another address's, leads to the table of indirect branches: so what returns without a
 *     paired call finds its way, and pairs and others may be mixed.
 *   - Of that table an entry may have to stay (watched, ibl.c), past which a pair would lead: once a tool calls
 *     procedures of the program's, or inserts calls that could, nothing is paired any more.
 */
#include "base/sys.h"
#include "jit/core.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { WORTH_IT = 16384, UNDER_STRESS = 16 };

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

/* --- a thread's table of returns --- */

void jit_paired_empty(run_thread *t)
{
    uint64_t *entries = jit_of(t)->returns;
    for (unsigned i = 0; entries && i < JIT_ENTRIES; i++) entries[i] = (uint64_t)jit_return_miss;
}

void jit_paired_protect(run_thread *t, int prot)
{
    if (jit_of(t)->returns) sys_call3(SYS_mprotect, (long)jit_of(t)->returns, JIT_RETURNS_BYTES, prot);
}

static bool make(run_thread *t)
{
    long p = sys_call(SYS_mmap, (long)((char *)t + WEAVE_BLOCK_SIZE), JIT_RETURNS_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (sys_failed(p)) return false;
    jit_of(t)->returns = (uint64_t *)p;
    jit_paired_empty(t);
    return true;
}

static bool is_worth_it(void)
{
    bool stress = jit.options.stress & JIT_STRESS_PAIRED;
    if (jit.paired.on || jit.paired.never) return false;
    return jit.stats.landings >= (stress ? UNDER_STRESS : WORTH_IT);
}

void jit_paired_look(run_thread *t)
{
    if (is_worth_it()) {
        jit.paired.on = true;
        jit_flush_all();
    }
    if (jit.paired.on && !jit_of(t)->returns && !make(t)) jit_paired_end();
}
