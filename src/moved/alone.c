/* Stretches of the tool's work in a held process in which whoever holds it need not look at system calls: each would
 * stop the thread twice, and all others wait. The tool says when a stretch begins, by a call that means nothing else,
 * and is waited for at its end, since the holder has to be there when it goes on (live/remote.c):
 *
 *     word    MOVE_ALONE_NOT    nobody looks away (and nobody ever does who does not know of this)
 *             MOVE_ALONE_GOES   the holder lets the thread run, and looks at the word now and then
 *             MOVE_ALONE_DONE   the thread waits
 *             MOVE_ALONE_SEEN   it has been stopped, and goes on with its system calls looked at
 *             MOVE_ALONE_LOST   nobody came: the holder has died, or is to behave as if it had
 *
 * Nothing that may end the process is done in a stretch. */
#include "moved/private.h"
#include "base/sys.h"
#include "move/live.h"

#include <sys/syscall.h>
#include <time.h>

enum { NAP_NS = 200000, NAPS = 50000, NAPS_A_LOOK = 100 };

void moved_alone_begin(void)
{
    if (!moved_is_live()) return;
    moved_now.alone = MOVE_ALONE_NOT;
    sys_call2(SYS_getpid, MOVE_ALONE_MAGIC, (long)&moved_now.alone);
    moved_now.knows_holder = moved_now.alone == MOVE_ALONE_GOES && run_is_traced();
}

/* The holder is not seen from another namespace of processes, or without /proc: then for how long it did not come
 * counts. */
static bool is_lost(unsigned naps)
{
    return moved_now.knows_holder ? naps % NAPS_A_LOOK == 0 && !run_is_traced() : naps >= NAPS;
}

/* By a call that leaves nothing in the kernel to be restarted when it is interrupted: there is what the program's own
 * call, which this thread will go on with, has left. */
static void nap(void)
{
    struct timespec some = {.tv_nsec = NAP_NS};
    sys_call4(SYS_ppoll, 0, 0, (long)&some, 0);
}

void moved_alone_end(void)
{
    uint64_t *word = &moved_now.alone, done = MOVE_ALONE_DONE;
    if (!moved_is_live() || __atomic_load_n(word, __ATOMIC_ACQUIRE) != MOVE_ALONE_GOES) return;
    __atomic_store_n(word, done, __ATOMIC_RELEASE);
    for (unsigned n = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) == MOVE_ALONE_DONE; n++) {
        nap();
        if (is_lost(n))
            __atomic_compare_exchange_n(word, &done, MOVE_ALONE_LOST, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
}
