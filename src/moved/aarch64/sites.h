/* Facts of AArch64 for sites.c and numbers.c. */
#ifndef INL_MOVED_AARCH64_SITES_H
#define INL_MOVED_AARCH64_SITES_H

enum {
    MOVED_JUMP = 4,         /* bytes of a jump to a piece */
    MOVED_NEAR = 0x7000000, /* how far it may be */
    MOVED_PIECE = 96,       /* of a piece, at most */
    MOVED_FILLER = 0,       /* what must not be executed */
    MOVED_NUMBER = 8,       /* the register of a call's number */
    MOVED_CALLEE_SAVED = 0x3ff80000,
    MOVED_SYSCALL_CLOBBERED = 1,
    MOVED_SEES_FIXED = 0,   /* all mappings are looked at by the runtime */
    MOVED_NEEDS_GROUND = 1, /* ways to the gate push, and find the block by what the thread pointer leads to */
};

#endif
