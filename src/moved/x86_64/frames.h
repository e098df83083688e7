/* Sizes of a signal's frame, for frames.c and gate.S. Only #defines. */
#ifndef INL_REWRITE_X86_64_FRAMES_H
#define INL_REWRITE_X86_64_FRAMES_H

#define MOVED_FRAME_SIZE    440  /* the kernel's, without the vector state: */
#define MOVED_FRAME_CONTEXT 8    /* restorer, ucontext, */
#define MOVED_FRAME_INFO    312  /* siginfo */
#define MOVED_FRAME_RESERVE 1224 /* left free below it for the frame's way down; 8 more than a multiple of 16 */

#endif
