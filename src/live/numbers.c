/* Whose numbers /proc has. Where it was mounted in another namespace of processes than this one (unshare --pid without
 * --mount-proc), what lies there under a process's number is another process. */
#include "live/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

inl_status live_check_numbers(inl_error *e)
{
    char own[32];
    ssize_t n = readlink("/proc/self", own, sizeof own - 1);
    if (n <= 0) return INL_OK; /* there is none: whoever needs it says so */
    own[n] = 0;
    if (strtol(own, NULL, 10) == (long)getpid()) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "/proc has other numbers for processes than this namespace (this one is %ld here and %s there): "
                    "mount one of this namespace (mount -t proc proc /proc; unshare --mount-proc)",
                    (long)getpid(), own);
}
