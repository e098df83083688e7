/* What runs beside moved code in the program's process: the carried tool's side.
 *
 * Threads, fork, the end of the process and most of signals are the process runtime's (src/run), which this engine
 * hangs itself into: see run_engine in run/run.h. The program runs natively, in moved code and in its own.
 *
 *   run.c         the beginning
 *   images.c      what is mapped where, moved_original; mapped.c: reading it
 *   procedures.c  which procedure of a mapped image an address is in
 *   gate.c        system calls that concern the tool, on the tool's stack; <isa>/gate.S their way there
 *   deliver.c     signals; frames.c what handlers see and come back to; <isa>/frames.c, settle.c, step.c
 *   reap.c        the helper of a program that was started for this
 *   locate.c      where a signal found the thread, by states.c; undo.c what counters are there
 *   live.c, leave.c, back.c  a tool in a process that ran already comes, and goes; finders.c
 *   later.c       images that such a process maps later
 *   sites.c       system calls of code that is not rewritten, patched in memory; numbers.c: which they are
 */
#ifndef INL_MOVED_MOVED_H
#define INL_MOVED_MOVED_H

#include "base/addr.h"
#include "base/error.h"
#include "move/live.h"
#include "run/thread.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offset in the thread frame of the gate's address. Instead of `syscall`:
 *     lea  behind(%rip), %rcx
 *     jmp  *%gs:MOVED_GATE
 *   behind:
 */
#define MOVED_GATE offsetof(run_thread, syscall_gate)

/* Known when rewriting: must a call of this number go through the gate? A negative number: it is not
 * known; true. All do when the tool watches system calls. */
bool moved_syscall_matters(long nr);
void moved_watch_syscalls(bool all);
bool moved_watches_syscalls(void);

/* The assumed address of original code for a code address at run time: moved -> original, real ->
 * assumed. What belongs to no rewritten image is returned as it is. Any thread, any time, also from
 * woven code; before moved_begin (and in the instrumentor) the identity. */
assumed_addr moved_original(real_addr);
/* Likewise, where a system call of the program's is that returns to `behind`. */
assumed_addr moved_asked_at(real_addr behind);

/* For an address of an image's data: real - assumed, of the image whose lowest assumed address this is. */
uint64_t moved_shift(assumed_addr low);

/* An image that is mapped, as the dynamic linker names it, and was not rewritten. */
typedef struct moved_mapped {
    const char *path; /* as long as it is mapped */
    uint64_t low, high, bias;
} moved_mapped;
/* The k-th; path NULL: its place is free. False: there are no more. */
bool moved_others(size_t k, moved_mapped *out);

/* --- for whoever puts a tool into a process that runs --- */
/* alone.c: what is done in between needs nobody who looks at system calls. Nothing happens where nobody does, or at an
 * end without a begin. */
void moved_alone_begin(void);
void moved_alone_end(void);
/* Was this tool put into one? */
bool moved_is_live(void);
/* --- <isa>/settle.c: registers of a thread in the gate, at or behind the call made there, become what they would be in
 * the program's own code, or where the gate is entered. Only TELLS leaves it to the caller to tell the tool that the
 * call has been made. */
typedef enum moved_settled { MOVED_SETTLED_NOT, MOVED_SETTLED, MOVED_SETTLED_TELLS } moved_settled;
moved_settled moved_settle_registers(const run_thread *, weave_context *);
/* Is the thread where the gate is entered, with nothing of the program's lost but `junk`? Then `behind` is the address
 * that the call returns to, 0: not known. */
bool moved_gate_asks(uint64_t pc, const weave_context *c, uint64_t *behind, isa_regs *junk);
/* Of a process that has the same file at the same place: which instruction of the program's the one at `pc` was, in
 * what took a system call's place in code that has not moved; 0: it is in none. `read` copies that process's memory. */
typedef bool moved_reader(const void *arg, const void *from, void *to, size_t size);
uint64_t moved_site_there(uint64_t pc, moved_reader *read, const void *arg);
/* On a thread that stands in the program's code, on its stack: what the tool does there is done as an analysis routine
 * does it, on the private stack and with the tool's thread pointer. Signals are held back by whoever sent it here. */
void moved_on_behalf(void (*f)(void *), void *arg);
/* ... before anything of the program ran? */
bool moved_began_here(void);
bool moved_is_starting(void);  /* put into a process by another one, which waits for it */
bool moved_is_being_put(void); /* into a process that ran already; it has not started yet */
/* Then: the tool's file, as whoever put it in has named it. */
const char *moved_live_tool(void);
/* The next system call in bytes that may be anything, or what else must be replaced because it sets that by which the
 * thread's frame is found; NULL: none. Whoever puts a tool in lists them beforehand (move_live_image). */
const uint8_t *moved_next_site(const uint8_t *from, const uint8_t *end);
/* A procedure of the C library's or the dynamic linker's that must know of moved code: `function` takes its place, and
 * goes on to the original by what is put into *next. Exceptions need one that unwinds; those that walk
 * are one image's, all of them or none. NULL ends them (finders.c). */
typedef enum moved_finds { MOVED_FINDS, MOVED_UNWINDS, MOVED_WALKS } moved_finds;
typedef struct moved_finder {
    const char *name;
    void *function, *next;
    moved_finds kind;
} moved_finder;
enum { MOVED_FINDERS = 16 };
/* Is there an image whose procedures that walk are taken the place of? */
bool moved_walks(void);
extern const moved_finder moved_finders[MOVED_FINDERS + 1];

/* --- images that are mapped later (later.c) --- */
/* What has been made for one: by whoever serves moved_hooks.opened. The lists are ascending. */
typedef struct moved_later {
    struct moved_later *next;
    move_live_image told;
    uint64_t low, high; /* of the mapping that holds its new code; high 0: it has gone */
    bool is_shown;      /* told.shown is told to debuggers */
    const move_told_patch *patches;
    const move_told_table *tables;
    uint64_t patch_count, table_count;
} moved_later;
typedef struct moved_later_bytes { /* text, and from the begin of a page on what goes with it */
    const void *text, *tables;
    uint64_t text_size, tables_at, tables_size;
    uint64_t held; /* what moved_later_hold has got there; 0: nothing */
} moved_later_bytes;
/* While new code is made other threads map memory: nobody else gets what is held. 0, or -errno: -EEXIST if somebody has
 * it. And it is let go. */
long moved_later_hold(uint64_t low, uint64_t size);
void moved_later_let_go(uint64_t low, uint64_t size);
/* At `low`, which is held or nobody has, and what is held besides is let go; *high is filled in. And away again. */
inl_status moved_later_place(moved_later *, const moved_later_bytes *, inl_error *);
void moved_later_drop(moved_later *);

/* --- for src/tool/carried.c --- */

struct run_client;
typedef struct moved_hooks {
    /* The process (or a child of vfork) is about to become another program, most likely; it may go on after
     * all. argv may be no readable memory. */
    void (*exec)(run_thread *, const char *path, char *const *argv);
    void (*exec_failed)(run_thread *); /* it goes on */
    /* Of the flows with this number (move_client.placed), `times` end in this block of the procedure, which
     * they have entered or are about to. From a signal's handler. */
    void (*flow_ends)(run_thread *, uint32_t number, uint32_t block, bool entered, int64_t times);
    /* The report is wanted now: in a file without a name, whose descriptor is answered, or (-1) where it always goes.
     * `ends`: it is the last one. All other threads stand still in the program's code. */
    int (*report)(run_thread *, bool ends, bool captures);
    /* The program is about to do what it can only do natively: is the tool being taken out? False: it cannot be. */
    bool (*leaves)(run_thread *);
    /* The dynamic linker has mapped an image; nothing of it has run. Its new code is in its place; NULL: it stays as it
     * is. And one has gone, of whatever time; it has no path any more. */
    moved_later *(*opened)(run_thread *, const moved_mapped *);
    void (*closed)(run_thread *, const moved_mapped *);
    /* The dynamic linker has loaded an image, or it is gone (without a name). In the gate. */
    void (*listed)(const char *name, uint64_t bias, bool gone);
    void (*all_listed)(void); /* behind all of a change of the list */
} moved_hooks;
void moved_hook(moved_hooks);

/* What the boot code has told this copy of the tool. */
extern move_handoff moved_handoff_data;

/* In inlay_start: finds the images, patches what makes system calls and is not rewritten, makes the caller
 * the first thread. Then run_go goes back to the boot code, and so to the program. */
inl_status moved_begin(const struct run_client *, inl_error *);

#endif
