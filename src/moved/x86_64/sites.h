/* Facts of x86-64 for sites.c and numbers.c. */
#ifndef INL_MOVED_X86_64_SITES_H
#define INL_MOVED_X86_64_SITES_H

enum {
    MOVED_JUMP = 5,          /* bytes of a jump to a piece */
    MOVED_NEAR = 0x70000000, /* how far it may be */
    MOVED_PIECE = 96,        /* of a piece, at most */
    MOVED_FILLER = 0xcc,     /* what must not be executed */
    MOVED_NUMBER = 0,        /* the register of a call's number */
    MOVED_CALLEE_SAVED = 0xf028,
    MOVED_SYSCALL_CLOBBERED = 0x803,
    MOVED_SEES_FIXED = 1,   /* the gate passes mappings by that are for no fixed address */
    MOVED_NEEDS_GROUND = 0, /* ways to the gate use nothing of the program's memory */
};

#endif
