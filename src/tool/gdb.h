/* --gdb: a program under the JIT engine, seen through gdb's remote protocol as it would be natively: original
 * addresses, the program's own bytes and registers.
 *
 *     gdb_relay.c          the launcher: listens, or starts gdb; a process that passes bytes on and knows of ^C
 *     gdb_serve.c          in the program's process, in the thread that has stopped: packets and answers
 *     gdb_wire.c           packets as bytes
 *     gdb_query.c          what gdb asks about the process
 *     gdb_resume.c         how threads go on, signals' numbers
 *     <isa>/gdb_regs.c     registers
 *     jit/stops.c          who stops, and where
 */
#ifndef INL_TOOL_GDB_H
#define INL_TOOL_GDB_H

#include "tool/state.h"

#include <signal.h>
#include <stdarg.h>

enum { GDB_PACKET = 0x4000 }; /* bytes of a packet's content, at most */

typedef struct gdb_wire {
    int fd; /* -1: gdb is gone */
    bool no_ack;
    size_t have, at; /* in `in` */
    char in[4096], frame[2 * GDB_PACKET + 8];
} gdb_wire;

typedef struct tool_gdb {
    gdb_wire wire;
    bool knows_exec;     /* gdb understands that a program has exec'ed another */
    bool has_stopped;    /* it waits for no report */
    bool goes_on;        /* it has said how */
    run_thread *stopped; /* that it has been told of, and why: */
    jit_stop why;
    siginfo_t info;
    int chosen; /* the thread that requests are about */
    uint64_t passed;
    char request[GDB_PACKET + 1], answer[GDB_PACKET + 1];
    size_t request_size, answer_size;
} tool_gdb;

/* --- gdb_relay.c, in the launcher --- */
/* Returns in the process that becomes the program, with its end of the way to gdb. */
int gdb_launch(const char *where);

/* --- gdb_serve.c, in the program's process --- */
bool gdb_begin(jit_debugger *d); /* false: no memory */
void gdb_ended(run_thread *t, int status, int signo);
void gdb_forked(void);
/* The process is about to exec what the tool follows, or, without it, what it does not. */
void gdb_execs(run_thread *t, bool follows);
size_t gdb_handed_on(char *out, size_t size); /* what the next launcher is told */
const char *gdb_take_handed_on(const char *text);

/* --- gdb_wire.c --- */
/* The next packet's content, ended by a 0; false: gdb is gone. */
bool gdb_receive(gdb_wire *w, char *out, size_t *size);
bool gdb_send(gdb_wire *w, const char *data, size_t size);
int gdb_hex(char c); /* -1: is none */
size_t gdb_put_hex(char *out, const void *bytes, size_t size);
size_t gdb_take_hex(void *out, const char *text, size_t room); /* bytes */
uint64_t gdb_take_number(const char **text);

/* Answers. */
void gdb_say(tool_gdb *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gdb_say_bytes(tool_gdb *g, const void *bytes, size_t size); /* in hexadecimal */

/* --- gdb_query.c --- */
void gdb_query(tool_gdb *g, const char *q); /* q..., Q... */
/* --- gdb_resume.c --- */
void gdb_resume(tool_gdb *g, const char *actions); /* of vCont */
int gdb_signal_out(int signo);                     /* gdb's number */
int gdb_signal_in(int number);                     /* the kernel's; 0: there is none */

/* --- <isa>/gdb_regs.c --- */
unsigned gdb_register_count(void);
/* Its size; 0: there is none of that number. */
size_t gdb_register_get(const run_thread *t, unsigned n, uint8_t out[16]);
size_t gdb_register_set(run_thread *t, unsigned n, const uint8_t in[16]);
size_t gdb_register_size(unsigned n);
/* The description of all in XML; its length, which may be more than `size`. */
size_t gdb_register_text(char *out, size_t size);

#endif
