/* The tool on its way into a process: inject.c, and inject_join.c for one that runs. */
#ifndef INL_TOOL_INJECTION_H
#define INL_TOOL_INJECTION_H

#include "live/live.h"
#include "live/remote.h"
#include "tool/tool.h"

#include <elf.h>

enum { INJECT_AUXV = 64 };
typedef struct injection {
    remote r;
    const inject_job *job;
    uint64_t low, high;
    uint64_t stack_low, stack_high, image;
    Elf64_auxv_t auxv[INJECT_AUXV];
    unsigned auxv_count;
} injection;

/* Fails where it runs under the JIT already: its code is in a cache then. */
inl_status inject_check_jit(const live_process *, inl_error *);
uint64_t inject_stack_size(const inject_job *);
/* In this order. */
inl_status inject_reserve(injection *, uint64_t stack_size, inl_error *);
inl_status inject_reserve_at(injection *, uint64_t low, uint64_t high, uint64_t stack_size, inl_error *);
inl_status inject_map_stack(injection *, uint64_t size, inl_error *);
inl_status inject_map_image(injection *, inl_error *);
inl_status inject_build_stack(injection *, uint64_t *sp, inl_error *);
/* What the copy of the tool is to know, besides what is known here. */
inl_status inject_hand_over(injection *, const tool_handoff *more, inl_error *);

inl_status inject_map_or_fail(injection *, uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset,
                              inl_error *);
uint64_t inject_entry(void);                                    /* of its file, from its begin */
uint64_t inject_there(const injection *, const void *variable); /* where a variable of ours is in the process */

#endif
