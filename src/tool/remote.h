/* A process of our own making, stopped by ptrace at its exec: system calls made in it, its memory
 * read and written, its thread sent on its way.
 *
 * From remote_begin to remote_go all its signals are held back, so that the only stops are those of
 * our own system calls. Bodies: remote.c, and <isa>/remote.c for what touches registers. */
#ifndef INL_TOOL_REMOTE_H
#define INL_TOOL_REMOTE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

typedef struct weave_context weave_context;

typedef struct remote {
    pid_t pid;
    struct user_regs_struct regs; /* at the exec */
    uint64_t code_at;             /* where a system call instruction was put */
    long code_word;               /* what stood there */
    uint64_t sigmask;
    int stop_signal; /* a stop signal that came meanwhile; given at the end */
    bool gone;       /* it died */
} remote;

/* `pid` is at PTRACE_EVENT_EXEC. */
inl_status remote_begin(remote *, pid_t pid, inl_error *);
/* The kernel's answer in *answer, -errno on failure. */
inl_status remote_call(remote *, long *answer, long nr, const long args[6], inl_error *);
inl_status remote_read(remote *, uint64_t from, void *to, size_t size, inl_error *);
inl_status remote_write(remote *, uint64_t to, const void *from, size_t size, inl_error *);
/* Undoes what remote_begin did to the process, and lets it go on at pc, free of us. */
inl_status remote_go(remote *, uint64_t pc, uint64_t sp, inl_error *);
/* Ends the process with a status, before it ran an instruction. */
void remote_end(remote *, int status);
/* Its registers at the exec. */
void remote_context(const remote *, weave_context *);

/* For remote.c, in the ISA's folder. */
bool remote_is_ours(const remote *); /* the right width and mode */
void remote_registers_call(struct user_regs_struct *, uint64_t code, long nr, const long args[6]);
void remote_registers_start(struct user_regs_struct *, uint64_t pc, uint64_t sp);
long remote_registers_answer(const struct user_regs_struct *);
uint64_t remote_registers_pc(const struct user_regs_struct *);
uint64_t remote_registers_sp(const struct user_regs_struct *);
extern const uint8_t remote_syscall_insn[8];

#endif
