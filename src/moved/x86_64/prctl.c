/* arch_prctl beside moved code: as ever, but that GS base leads to the thread's block. Of a program that sets GS for
 * itself becomes one of three:
 *
 *     the tool leaves, and it goes on natively: where the tool can be taken out; the call is made from old code
 *     GS base is a virtual one (gs.c): where no code that was left as it is uses GS; moved code has the frame's copy
 *     it ends with a message: otherwise, for what it would read by GS is the tool's
 *
 * Setting it to 0, which it is, changes nothing. */
#include "base/sys.h"
#include "moved/private.h"
#include "run/x86_64/abi.h"

#include <asm/prctl.h>

static bool sets_gs(const weave_context *c) { return run_number(c) == SYS_arch_prctl && run_arg(c, 0) == ARCH_SET_GS; }

uint64_t moved_goes_native(run_thread *t, const weave_context *c)
{
    if (!sets_gs(c) || run_arg(c, 1) == t->frame.app_gs_base) return 0;
    if (!moved_is_live() || !moved_now.hooks.leaves || !moved_now.hooks.leaves(t)) return 0;
    return (uint64_t)(uintptr_t)moved_gate_wait;
}

uint64_t moved_call_again(void) { return (uint64_t)(uintptr_t)moved_gate_wait; }

long moved_arch_prctl(run_thread *t, weave_context *c)
{
    if (sets_gs(c) && run_arg(c, 1) != t->frame.app_gs_base && !moved_gs_is_free()) {
        run_say("the program sets GS for itself (arch_prctl), and has code that cannot be moved and uses it: it ends "
                "here; run it under the JIT engine (inlay run)");
        run_process_exit(t, 1);
    }
    return run_arch_prctl(t, (int)run_arg(c, 0), run_arg(c, 1));
}
