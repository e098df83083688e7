/* glibc's thread control block on x86-64, at FS base:
 *
 *     fs:0x00  self      fs:0x08  dtv         fs:0x10  self
 *     fs:0x18  multiple_threads: nonzero makes malloc and stdio take their locks
 *     fs:0x28  stack protector's canary       fs:0x30  pointer guard
 *     ...      the thread's id, at an offset found by looking for the first thread's
 */
#include "tool/glibc.h"
#include "tool/state.h"
#include "base/sys.h"

#include <sys/syscall.h>

enum {
    TCB_SELF = 0x00,
    TCB_SELF_TOO = 0x10,
    TCB_MULTIPLE = 0x18,
    TCB_CANARY = 0x28,
    TCB_GUARD = 0x30,
    TID_FROM = 0x200,
    TID_TO = 0x600
};

char *tls_block_own(void)
{
    char *p;
    __asm__("mov %%fs:0, %0" : "=r"(p));
    return p;
}

static uint64_t *word(void *tls, unsigned offset) { return (uint64_t *)((char *)tls + offset); }

static unsigned tid_offset(void)
{
    unsigned found = tool_now->tid_offset;
    if (found) return found;
    int tid = (int)sys_call0(SYS_gettid);
    for (unsigned at = TID_FROM; at < TID_TO && !found; at += sizeof(int))
        if (*(int *)(tls_block_own() + at) == tid) found = at;
    return tool_now->tid_offset = found;
}

void tls_block_set_tid(char *tls, int tid)
{
    unsigned at = tid_offset();
    if (at) *(int *)(tls + at) = tid;
}

void tls_block_prepare(void)
{
    tid_offset();
    *(int *)(tls_block_own() + TCB_MULTIPLE) = 1;
}

void tls_block_fill(char *tls)
{
    *word(tls, TCB_SELF) = *word(tls, TCB_SELF_TOO) = (uint64_t)(uintptr_t)tls;
    *(int *)(tls + TCB_MULTIPLE) = 1;
    *word(tls, TCB_CANARY) = *word(tls_block_own(), TCB_CANARY);
    *word(tls, TCB_GUARD) = *word(tls_block_own(), TCB_GUARD);
}
