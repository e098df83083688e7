/* glibc's thread control block on AArch64, to which tpidr_el0 points; the description of the thread lies before it:
 *
 *     tp - size   the description; in it the thread's id, at an offset that the library tells debuggers
 *     tp + 0      dtv
 *     tp + 8      nobody's: the way to the thread's frame
 *
 * Canary and pointer guard are the library's and not the thread's; so is whether there are several threads.
 */
#include "tool/glibc.h"

#include <stdint.h>

/* What the library says of itself to debuggers: of a field its bits, number and offset; of a structure its size. */
extern const uint32_t _thread_db_pthread_tid[3], _thread_db_sizeof_pthread;

char *tls_block_own(void)
{
    char *p;
    __asm__("mrs %0, tpidr_el0" : "=r"(p));
    return p;
}

void tls_block_set_tid(char *tls, int tid)
{
    *(int *)(tls - _thread_db_sizeof_pthread + _thread_db_pthread_tid[2]) = tid;
}

void tls_block_prepare(void) {}

void tls_block_fill(char *tls) { (void)tls; }
