/* For frames.c and gate.S. Only #defines. */
#ifndef INL_MOVED_X86_64_FRAMES_H
#define INL_MOVED_X86_64_FRAMES_H

/* Left free below a signal's frame for its way down; 8 more than a multiple of 16. */
#define MOVED_FRAME_RESERVE 1224

#endif
