/* Events: what a mutator (process.h) learns of its processes while they run.
 *
 *     inlay_process_watch(p, INLAY_EVENTS(EXIT) | INLAY_EVENTS(FORK) | INLAY_EVENTS(MESSAGE));
 *     inlay_event e;
 *     while (inlay_event_next(&e, -1) && e.kind != INLAY_EVENT_EXIT) ...
 *
 * One by one from inlay_event_next; or by callbacks, which that calls; it waits, or a descriptor is polled that becomes
 * readable when there is something. Nothing is stopped for any of this, nothing is traced: the mutator's file in the
 * process (inlay_process_commit) writes events into memory that both have. A process goes on when nobody takes its
 * events; what finds no room is counted (`lost`). */
#ifndef INLAY_EVENT_H
#define INLAY_EVENT_H

#include <inlay/context.h>
#include <inlay/snippet.h>
#include <inlay/stack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum inlay_event_kind {
    INLAY_EVENT_EXIT,             /* the process has ended. number: its status as from waitpid; ~0: not known */
    INLAY_EVENT_SIGNAL,           /* tid is about to enter its handler, or to die of it. number; data: its siginfo_t */
    INLAY_EVENT_FORK,             /* tid has made a process. number: its pid as the process sees it. The new one is not
                                   * watched, what is inserted is in it as well. Of vfork: when that is over */
    INLAY_EVENT_EXEC,             /* it has become another program; name. Nothing of the mutator is in it any more: the
                                   * handle is good for waiting, letting go and terminating */
    INLAY_EVENT_THREAD_BEGIN,     /* tid; number as inlay_thread_id() has it */
    INLAY_EVENT_THREAD_END,       /* tid; number. Of those that end with the process, of one at most */
    INLAY_EVENT_LIBRARY_LOADED,   /* name; number: where it lies (its bias). It is among the process's images now */
    INLAY_EVENT_LIBRARY_UNLOADED, /* name; number */
    INLAY_EVENT_MESSAGE,          /* tid has called inlay_message. number, data, size */
    INLAY_EVENT_BREAK,            /* tid waits in inlay_break_here. number; context */
    INLAY_EVENT_BEGIN,            /* a program that is followed (inlay_process_follow) begins: name; `process` is a new
                                   * handle, of which nothing has run, as of inlay_process_create. NULL: none can be
                                   * had, inlay_process_error() says why, and it runs */
    INLAY_EVENT_OPENED,           /* tid has loaded what INLAY_EVENT_LIBRARY_LOADED has told since the last one, and
                                   * waits before anything of that runs (inlay_process_wait_at_load) */
    INLAY_EVENT_KINDS
} inlay_event_kind;
#define INLAY_EVENTS(kind) (1u << INLAY_EVENT_##kind)
enum { INLAY_EVENTS_ALL = (1 << INLAY_EVENT_KINDS) - 1 };

typedef struct inlay_event {
    inlay_event_kind kind;
    inlay_process *process;
    int pid, tid; /* who tells it, as it sees itself: the process, or a child (inlay_process_share_with_children) */
    uint64_t number;
    const char *name; /* NULL: of kinds that have none, and not known */
    const void *data;
    size_t size;
    const inlay_context *context; /* of the program; what its pointers lead to is in the process */
    uint64_t lost;                /* so many of this process found no room since the last one */
    unsigned place;               /* of a thread that waits */
} inlay_event;                    /* pointers hold until the next one is asked for */

/* From now on these, and no others. Any but EXIT alone put the mutator's file into the process first, as a commit does.
 * LIBRARY_LOADED: libraries that have come since it was attached to, and that nobody has told, are among its images. */
bool inlay_process_watch(inlay_process *, unsigned kinds);
/* Readable while there is something, or perhaps something. The same one for all processes, for ever; -1: none. */
int inlay_events_descriptor(void);
/* The next event of any process; its callbacks have been called. Waits so many milliseconds for one (-1: for ever).
 * False: there is none; or, waiting for ever, there will be none, as no process is watched. */
bool inlay_event_next(inlay_event *, int milliseconds);
/* Calls f for each event of these kinds. */
void inlay_on_event(unsigned kinds, void (*f)(const inlay_event *, void *arg), void *arg);
/* The thread that waits, in inlay_break_here or where it has loaded libraries, goes on. */
bool inlay_event_resume(const inlay_event *);

/* Memory that the process and the mutator have both, at the same address, zeroed: a variable of snippets that can be
 * looked at here at any time, also when the process has ended. At most 64 MiB a process. A child of fork has a copy of
 * its own. It goes with the handle. NULL: inlay_process_error() says why. */
void *inlay_process_share(inlay_process *, size_t bytes);
/* From now on children of fork, and theirs, go on with the same memory: counters in it count what they do, too. Their
 * messages, breakpoints and forks are events of this process, with a `pid` of their own. What is inserted stays in them
 * until they end or execute another program, or inlay_process_take_out takes it out of them as well; inlay detach does
 * when the mutator has ended. */
bool inlay_process_share_with_children(inlay_process *, bool yes);
/* Such children that run now with what is inserted in them, those that have executed another program not: their numbers
 * as this process sees them, `most` at most. How many there are. As long as there is one, a handle whose process has
 * ended or has become another program still tells of it. */
unsigned inlay_process_children(inlay_process *, int *pids, unsigned most);

/* From now on each program that the process executes, or a child of fork or vfork, comes as INLAY_EVENT_BEGIN, and is
 * to be let run (inlay_process_continue). Its own children are not followed before it is asked for, of the new handle.
 * Until the mutator has taken the event they wait in front of the exec; a program that has begun, and has not been let
 * run, ends with the mutator. What gets rights from its file (setuid) is not followed. */
bool inlay_process_follow(inlay_process *, bool yes);

/* From now on a thread that has loaded libraries, and what these need, waits before anything of them runs, constructors
 * and resolvers of symbols included, until inlay_event_resume of INLAY_EVENT_OPENED: what a commit inserts in them
 * before sees all that they do (with glibc before 2.41 they are not relocated yet). What the mutator itself has the
 * process load does not wait. It has the dynamic linker's lock, and signals wait for it, too. Watches LIBRARY_LOADED
 * besides. When the mutator lets the process go, or has ended, it goes on. */
bool inlay_process_wait_at_load(inlay_process *, bool yes);

/* --- of the process that tells an event, which may be a child --- */

/* Its number as this process sees it; 0: it is not there any more. */
int inlay_event_pid(const inlay_event *);
/* Its memory. How many bytes. */
size_t inlay_event_read(const inlay_event *, void *to, uint64_t from, size_t bytes);
/* The frames of the thread that waits (inlay_break_here), as inlay_process_stack has them (stack.h). */
unsigned inlay_event_stack(const inlay_event *, inlay_stack_frame *out, unsigned most);

/* --- in the process: called from snippets (inlay_call) and from the mutator's routines there --- */

enum { INLAY_MESSAGE_MOST = 64 << 10 };
/* An event for the mutator, if it watches MESSAGE. False: it is lost, and counted. Where nobody watches: false. */
bool inlay_message(uint64_t number, const void *data, size_t size);
/* A breakpoint: an event, if the mutator watches BREAK, and the thread waits until inlay_event_resume, until the
 * mutator lets the process go or has ended. Other threads run; so do not wait while holding locks of the tool's. A
 * child of vfork goes on earlier where its parent is to be stopped, which cannot be before.
 *
 *     inlay_insert(point, inlay_if(condition, inlay_call(inlay_break_here, inlay_const(1), inlay_context_arg()),
 * NULL)); */
void inlay_break_here(uint64_t number, const inlay_context *);

#ifdef __cplusplus
}
#endif

#endif
