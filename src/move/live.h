/* How a tool finds a process that ran already when it was put into it: what whoever puts it in tells it, and what it
 * answers. Both are in the process's memory; the carried data leads there (boot.h). */
#ifndef INL_MOVE_LIVE_H
#define INL_MOVE_LIVE_H

#include "base/arch.h"

#include "move/boot.h"

#include <stdint.h>

#include INL_ARCH_HEADER(weave, frame)

typedef struct move_live_image {
    move_boot_links links;
    uint64_t unwind; /* address of the .eh_frame_hdr of its moved code, 0: it has none */
} move_live_image;

typedef struct move_live_thread {
    uint64_t tid, sigmask;
    uint64_t stack, stack_flags, stack_size; /* its alternate one, as the kernel has it; answer: as it is to be told */
    weave_context ctx;                       /* as it stands; answer: pc where it is to go on */
    uint64_t block;                          /* answer: its thread block */
    uint64_t tells_stack;                    /* answer: is it to be told? */
} move_live_thread;

/* The first thread is the one that starts the tool. */
typedef struct move_live {
    uint64_t image_count, images; /* address of a move_live_image each */
    uint64_t thread_count;
    uint64_t started; /* answer: the tool is there */
    uint64_t helper;  /* process id of whoever puts the tool in, where that is a child of this process; else 0 */
    move_live_thread threads[];
} move_live;

#endif
