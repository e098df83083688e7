/* arch_prctl in a rewritten program: as ever, but that GS is Inlay's. */
#include "base/sys.h"
#include "moved/private.h"
#include "run/x86_64/abi.h"

#include <asm/prctl.h>
#include <errno.h>

long moved_arch_prctl(run_thread *t, weave_context *c)
{
    if (run_arg(c, 0) != ARCH_SET_GS) return run_arch_prctl(t, (int)run_arg(c, 0), run_arg(c, 1));
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        run_say("the program wants GS for itself (arch_prctl), which a rewritten program cannot have");
    return -EPERM;
}
