/* What the program may set, other than registers, so that Inlay's own code would fault: of that, AArch64 has nothing
 * that Inlay knows. Unaligned accesses are the kernel's affair, and what may be executed may be read. */
#include "run/kernel.h"

bool run_settings_fault(run_thread *t, int signo, void *uc)
{
    (void)t;
    (void)signo;
    (void)uc;
    return false;
}

bool run_stepped_over(run_thread *t, int signo, const siginfo_t *info, void *uc)
{
    (void)t;
    (void)signo;
    (void)info;
    (void)uc;
    return false;
}

uint32_t run_rights_open(void) { return 0; }

void run_rights_close(uint32_t rights) { (void)rights; }
