/* Who is to blame when the process ends where it should not: see blame.c.
 *
 * The tool's code runs in its main, in callbacks and in analysis routines. What it is in at a moment is told by
 * `phase` (main), tool_here.doing (callbacks) and the thread's frame (routines); a fault where it is in none of them is
 * Inlay's own. */
#ifndef INL_TOOL_BLAME_H
#define INL_TOOL_BLAME_H

#include "run/run.h"

#include <signal.h>
#include <stdint.h>

typedef enum blame_phase {
    BLAME_BEFORE_INIT, /* main, or constructors */
    BLAME_INLAY,       /* inlay_init, inlay_start */
    BLAME_BEFORE_START,
    BLAME_STARTED, /* the program runs, or is rewritten */
} blame_phase;

enum { BLAME_SIGNALS = 8 };
typedef struct tool_blame {
    blame_phase phase;
    bool told;                /* by one thread; others wait for the end */
    bool ends;                /* Inlay itself ends the process, with a message of its own */
    bool refuses;             /* the tool does, as it is called wrongly, and has said why */
    int pid;                  /* of the process that is the tool's: children that it has made are not */
    int64_t began, began_cpu; /* when it began to watch, and the thread's time then: milliseconds */
    struct sigaction before[BLAME_SIGNALS];
    void *stack;                        /* for handlers */
    stack_t stack_before;               /* none, as a rule */
    const char *image_callback;         /* what the tool calls it; NULL: that */
    const struct source_table *sources; /* carried */
} tool_blame;

/* While main runs, and in the instrumentor: faults and what asks to end come here. In other processes the engine's
 * handlers do that later on; before it takes over, and before an exec, the kernel's actions are as they were. */
void blame_watch(void);
void blame_unwatch(void);
void blame_leave(void); /* the kernel has the signals of a process that the tool does not stay in */
/* What the tool calls its image callback. Static text. */
void blame_name_images(const char *);

/* run_client.crashed */
void blame_crash(void *arg, run_thread *, const run_crash *);
/* The C library's own: the process ends from somewhere in the tool. `from`: the return address of that
 * function. The first returns; *status is what to end with. */
void blame_exit(int *status, const void *from);
void blame_abort(const void *from) __attribute__((noreturn));

/* TOOL --inlay-blame ...: a process of its own looks the lines up in the tool's file. */
void blame_answer(int argc, char **argv);

#endif
