/* What the recorder's files share: libinlay-trace.a, which programs are linked with whose objects are instrumented.
 *
 *     <isa>/stub.S   an entry or exit: a record, in some 25 instructions
 *     recorder.c     what is rare: a new thread, a procedure's first record, a full window, a fork
 *     program.c      of the public headers, what the file's writers (tools/trace_*.c) use, for an ordinary program
 *     output.c       the file: its name, and that it stays this process's alone
 *
 * It is a part of somebody's program: its symbols are its own (but the two that objects call), it takes no memory by
 * malloc, holds one descriptor, and leaves registers, errno and signals as they were. */
#ifndef INL_RECORD_RECORDER_H
#define INL_RECORD_RECORDER_H

#include "record/tells.h"

#include <inlay/trace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A thread's. <isa>/stub.S knows the first three. */
typedef struct record_thread {
    char *cursor, *end; /* where the next record goes; the window's end. Both NULL: it has none */
    uint64_t own;       /* cycles it has spent here */
    char *begin;
    char *next, *limit; /* instead of the first two where the program has routines (inlay/trace.h): all come here */
    uint64_t values[INLAY_TRACE_VALUES_MOST]; /* that these store */
    void *local;                              /* of inlay_local_now */
    uint32_t number, ended;                   /* 0: it has none now; the one that it had before it ended */
    bool inside; /* here; a handler that interrupts it, and what it calls itself, record nothing */
} record_thread;
extern __thread record_thread record_me __attribute__((tls_model("initial-exec")));

/* What is rare, with all registers saved and `sp` as it is at the entry or exit; those that have arguments are
 * saved[1] to saved[4], saved[-1], saved[-2]. */
void record_slow(record_tells *, unsigned leaves, uint64_t sp, const uint64_t *saved);

/* --- output.c --- */
int record_output_open(void); /* the descriptor; -1: none, said once */
void record_output_close(void);
int record_output_now(void); /* the descriptor, opened again where the program has closed it; -1: it cannot be had */

/* --- program.c --- */
void *record_memory(size_t bytes); /* zeroed, never given back; NULL */
void record_memory_forked(void);   /* in the child */
int record_fileno(FILE *);

#endif
