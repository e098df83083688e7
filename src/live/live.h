/* Target "process": a plan applied to a process that runs, which gets the tool beside it.
 *
 *     live_open                 what is mapped in it; nothing is stopped
 *     (an image's target, live_target_begin; plans are made for it)
 *     live_stop                 all its threads stand still, held by ptrace; or, in front of all, live_start: a
 *                               program that has only begun
 *       live_put_in             new code, the tool, jumps over old code
 *     live_release              it runs on
 *     live_close
 *
 *   maps.c      what is mapped where, and where there is room; numbers.c: what /proc tells of
 *   roles.c     which image is the program, which the dynamic linker
 *   threads.c   stopping and releasing; keep.c: single threads
 *   park.c      where threads stand meanwhile, so that whoever holds them may be killed; <isa>/park.c, park.S
 *   start.c     from an exec to the first instruction
 *   remote.c    one thread: system calls made in it, memory, registers; <isa>/remote.c
 *   sequence.c  a thread that was stopped in a restartable sequence
 *   target.c    an image as a plan's target
 *   tables.c    what lies behind its new code; shown.c: of it, what unwinders and debuggers need
 *   put.c       putting in; ready.c: what can be written before
 *   patches.c   pages that will be written to
 *   change.h    what changes later: change.c, call.c, in_use.c, apart.c
 *   record.c    what is told in the process of the tool in it, written and read
 *   holder.c    the mutator that looks after what is in it
 *   ask.c       the tool in a process is asked for its report, or to leave; lend.c: what it needs for that where there
 * is no /proc; ask_jit.c: one under the JIT engine
 *
 * A process that cannot be had is left as it was, and so is one in which the tool does not start. Once it has started
 * it stays: should a jump over old code fail then, those that were written lead to new code, and the others' old code
 * runs. */
#ifndef INL_LIVE_LIVE_H
#define INL_LIVE_LIVE_H

#include "base/bytes.h"
#include "base/vec.h"
#include "image/module.h"
#include "live/remote.h"
#include "move/boot.h"
#include "move/live.h"
#include "move/move.h"

typedef struct live_mapping {
    uint64_t low, high, offset;
    int prot;
    char *name; /* "": none */
} live_mapping;

typedef struct live_aux_change { /* of an auxiliary vector */
    uint64_t type, value;
} live_aux_change;

typedef struct live_process {
    pid_t pid;
    INL_VEC(live_mapping) mappings; /* ascending */
    INL_VEC(remote) threads;        /* the first one leads; while they are stopped */
    INL_VEC(pid_t) seized;
    INL_VEC(pid_t) kept;         /* stand still also when the others are released (keep.c) */
    INL_VEC(live_mapping) taken; /* room that has been promised to plans */
    uint64_t syscall_at;         /* a system call instruction of its */
    uint64_t returns_at;         /* a way to rt_sigreturn, while one is needed; */
    bool return_is_put;          /* its bytes were nothing before */
    bool has_park, is_busy;      /* park.c: there is an area; another's work is still going on there */
    size_t slots, slots_used, gone;
    bool is_confined; /* by filters of its own (confined.c), which are suspended while it is held */
    bool is_empty;    /* no tool is inside yet */
    void *executed;   /* executed.c: what tells its program from others, while it is empty; NULL: not known */
    size_t executed_size;
    bool is_ours; /* it has been started for this, and is the parent of this process */
    /* roles.c; known with its images */
    uint64_t bias;   /* of the program itself */
    uint64_t linker; /* an address in the dynamic linker; 0: there is none */
    bool by_linker;  /* the linker was executed, with the program for an argument */
    uint64_t word,
        tells; /* the linker's word for debuggers, where the program does not lead to it, and what it calls */
    live_aux_change changes[4]; /* to what the kernel has told the process */
    size_t change_count;
    INL_VEC(uint64_t) listed;       /* biases of what is in the linker's first list; none: it is not known */
    INL_VEC(move_told_range) early; /* start.c: code that has run before the first instruction */
} live_process;

/* What is said where it may not be traced, and what may be done. */
inl_status live_no_right(pid_t, inl_error *);

inl_status live_check_numbers(inl_error *); /* does /proc mean the processes that this one means? */
/* Fails where it is not there, is traced already, or may not be traced, or has a tool inside. */
inl_status live_open(pid_t, live_process *, inl_error *);
/* Is it a process that ends what another one of Inlay's has begun, who may have been killed meanwhile (apart.c)? It
 * lets go soon. */
bool live_ends_work(pid_t tracer);
/* ... or has none. */
inl_status live_open_inside(pid_t, live_process *, inl_error *);
/* Whose code is to be changed: does no other process share its memory? */
inl_status live_check_alone(const live_process *, inl_error *);
inl_status live_refuse_other(pid_t, inl_error *); /* fails where a tool is inside */
void live_close(live_process *);

/* --- maps.c --- */
/* Where a tool's file is to lie that goes into it. */
uint64_t live_tool_place(pid_t);
inl_status live_read_maps(live_process *, inl_error *);
/* What lies there; false: not all of it can be read. */
bool live_read(const live_process *, uint64_t at, void *to, size_t size);
bool live_find_syscall(live_process *);
bool live_is_tools(const live_mapping *); /* where a tool that is put in lies */
/* Its memory, to read and write, also where it may not itself; or -1. */
int live_open_memory(const live_process *, inl_error *);
/* A way to rt_sigreturn, returns_at: in the vdso, where there is room, or the C library's, or in what pads an image's
 * text. And it goes. */
bool live_put_return(live_process *);
void live_take_return(live_process *);
/* Adds its images: mapped files that hold code. The paths are those that this process can open them by. */
inl_status live_find_images(live_process *, module_set *, inl_error *);
/* Is its code still mapped where it was, as far as the mappings that were read tell? */
bool live_has_image(const live_process *, const module *);
bool live_has_image_now(pid_t, const module *); /* as it is at this moment */
/* The same for what is mapped in [low, high) alone; INL_ERR_NOT_FOUND: no image is. */
inl_status live_find_image(live_process *, uint64_t low, uint64_t high, module_set *, inl_error *);
/* `size` bytes that nobody has within `reach` of [low, high), outside of what others were promised; 0: none. */
/* Less than a displacement, for what moved code itself spans. */
#define LIVE_REACH 0x60000000ull
uint64_t live_find_room(live_process *, uint64_t low, uint64_t high, uint64_t size, uint64_t reach);
/* Of the room that begins there, so many bytes are needed; 0: it is not needed. */
void live_keep_room(live_process *, uint64_t at, uint64_t size);

/* --- executed.c --- */
/* Its auxiliary vector, AT_NULL last: to be freed. NULL: it cannot be read. */
void *live_auxv(const live_process *, size_t *size, inl_error *);
/* Notes which program it runs, and reads its mappings; waits for the end of an exec that is under way. */
inl_status live_read_program(live_process *, inl_error *);
/* Has it executed another since? What is known of it is worth nothing then. */
bool live_has_execed(const live_process *);
inl_status live_check_program(const live_process *, inl_error *);
/* What it has mapped to execute since its mappings were read, or NULL: to be freed. */
char *live_opened_since(const live_process *);
/* Before the next try with one that has become another: for a time that grows with each. False: there have been enough.
 */
bool live_wait_for_program(unsigned tries);

/* --- roles.c --- */
uint64_t live_auxiliary(const live_process *, uint64_t type); /* 0: there is none */
void live_roles_find(live_process *, const module_set *, module *executed);
/* Has it another C library or linker beside it than the program: is it in another namespace (dlmopen, an auditor), or
 * opened by a static program? */
bool live_is_apart(const live_process *, const module *);
/* Has the linker told the program of its word for debuggers? Until then it may run others' code (LD_AUDIT), but has not
 * begun to load what the program needs. True also where that is not known. */
bool live_tells_program(const live_process *, const module *linker);

bool live_status_word(pid_t, const char *key, char word[32]); /* what stands behind `key` in /proc/PID/status */

/* --- confined.c --- */
bool live_is_confined(pid_t);
/* All its threads stand still: would their filters let a tool work? */
inl_status live_check_filters(const live_process *, inl_error *);
long live_seize_options(const live_process *);

/* --- threads.c --- */
inl_status live_stop(live_process *, inl_error *);
/* Says so, and why that may be. */
inl_status live_does_not_stop(pid_t, pid_t tid, inl_error *);
/* Stopped threads run for some nanoseconds, each (by index) as it is said. Threads that have ended meanwhile are gone
 * from the list, new ones are in it. `scratch`: memory of the process's for a siginfo_t, if any may be held. */
typedef enum live_run {
    LIVE_STANDS,
    LIVE_RUNS,
    LIVE_RUNS_TO_PLACE, /* a signal that it gets for the second time holds it there, and is its when it is let go */
} live_run;
inl_status live_run_some(live_process *, const live_run *how, long nanoseconds, uint64_t scratch, inl_error *);
/* For keep.c: one thread is seized, and waited for. *gone: it has ended. */
inl_status live_seize(live_process *, pid_t tid, bool *gone, inl_error *);
/* As the thread itself sees it: it may be in another namespace of processes. */
pid_t live_inner_tid(pid_t tid);
bool live_has_ended(const live_process *);
/* With the registers that the threads' `regs` hold. */
inl_status live_release(live_process *, inl_error *);

/* --- keep.c: single threads that stand still while the others run --- */
/* Those are this process's tracees until they go on, or it ends. Stopping and releasing all of them is still possible;
 * from the same thread of the caller's alone, not in a child of it. */
inl_status live_keep(live_process *, pid_t tid, inl_error *);
inl_status live_keep_no_more(live_process *, pid_t tid, inl_error *);
bool live_is_kept(const live_process *, pid_t tid);
/* Threads that this process traces and that have been killed are waited for, as their process does not end before;
 * at_rest: also those that live_stop holds. Has the first thread ended, and with it all? *status is its own then. */
bool live_reap(live_process *, bool at_rest, int *status);
/* It has been sent SIGKILL: the same, but until they have ended. */
bool live_reap_killed(live_process *, bool at_rest, int *status);
void live_keep_none(live_process *);

/* --- park.c; live_stop parks, live_release unparks --- */
inl_status live_park(live_process *, inl_error *);         /* all that are not */
inl_status live_leave_parent(live_process *, inl_error *); /* of this process; it waits for the end of this one */
void live_unpark(live_process *);                          /* they stand where their registers say, stopped */
/* The threads' registers have changed: from now on they go on with these, whatever happens. */
inl_status live_frames_tell(live_process *, inl_error *);
/* The first thread is sent into the tool's code: should the caller die, the others wait until it has come back. */
inl_status live_works(live_process *, bool works, inl_error *);
/* As live_works(false), and at the same moment each of these words becomes 1. */
inl_status live_stays(live_process *, const uint64_t *words, size_t count, inl_error *);
/* The thread is sent into a procedure of the program's, and comes back: the area stays until then. */
inl_status live_calls(live_process *, remote *, bool calls, inl_error *);
/* The descriptor that the process would close (move_park.closes) is closed. */
inl_status live_closed(live_process *, inl_error *);
/* Should the caller die before live_works(false), the process unmaps this. */
inl_status live_goes(live_process *, uint64_t low, uint64_t high, inl_error *);
/* The same for several at once, while nothing else goes; and with the same call a word of each becomes 0 (its address;
 * 0: none does). */
enum { LIVE_GO_MOST = 64 };
inl_status live_go_all(live_process *, const move_told_range *, const uint64_t *clears, size_t count, inl_error *);

/* --- start.c --- */
/* Instead of live_open and live_stop: `pid` is the caller's, seized with PTRACE_O_TRACESYSGOOD, and stands at its exec.
 * It goes on to the first instruction of the program or of a library; what the dynamic linker loads at the start is
 * there by then, and nothing but the linker itself has run. INL_ERR_NOT_FOUND: it has ended before. */
inl_status live_start(pid_t pid, live_process *, inl_error *);
/* Ends a process that is held, with a status; nothing of it has run. */
void live_end(live_process *, int status);
void live_end_by(live_process *, int signo); /* or by a signal */
/* Likewise, of one that stands at its exec, before live_start: by the signal, or (0) with the status. */
void live_end_begun(pid_t, int status, int signo);
void live_let_begin(pid_t); /* or it runs natively */

/* --- shown.c: addresses in the process --- */
typedef struct live_unwind {
    uint64_t header;   /* .eh_frame_hdr of moved code; 0: there is none */
    uint64_t at, size; /* the ELF file around the table that tells debuggers of the code */
} live_unwind;
/* Both are appended, at the link-time address that `to` has. */
inl_status live_unwind_put(const move_plan *, bool lines, inl_bytes *to, live_unwind *, inl_error *);

/* --- target.c --- */
typedef struct live_target {
    move_target target; /* its `arg` is this struct, which stays where it is */
    live_process *process;
    const module *module;
    uint64_t room, room_size; /* real */
    inl_bytes tables;         /* map and unwind table, behind the text; live_target_settle has made them */
    live_unwind unwind;
    bool lacks_lines;           /* set it before the tables are made: debuggers are told of procedures alone */
    bool lists_sites;           /* set it before the plan is made: system calls are listed that may concern the tool, */
    bool lists_all_sites;       /* ... since it watches all of them, */
    uint64_t site_count, sites; /* here (real) */
    INL_VEC(move_patch) patches; /* over old code */
} live_target;
/* `fresh`: nothing of the image has run yet. */
void live_target_begin(live_target *, live_process *, const module *, bool fresh);
void live_target_end(live_target *);
/* Where new code of so many bytes of old code may lie, with what is put behind it; link-time, 0: nowhere. Once found it
 * stays. */
link_addr live_target_room(live_target *, uint64_t code);
/* The plan is made: tables.c. */
inl_status live_target_settle(live_target *, const move_plan *, inl_error *);
/* Is the code in memory what the file says? */
inl_status live_compare(const live_target *, inl_error *);
/* The same before anything is put in: where somebody else has done so meanwhile, it is told who. */
inl_status live_compare_untouched(const live_target *, inl_error *);

/* --- put.c --- */
/* A procedure that a routine of the tool's takes the place of: it is called as the procedure would be, on the program's
 * stack, and calls the moved one by the address in the variable at `next_at`. */
typedef struct live_hook {
    uint64_t at, next;
    uint64_t function, next_at; /* in the tool */
} live_hook;
enum { LIVE_HOOK_SIZE = 32, LIVE_HOOKS = 16 };
uint64_t live_hook_at(const move_plan *, size_t n);
typedef struct live_image {
    live_target *target;
    const move_plan *plan;
    const live_hook *hooks;
    size_t hook_count;
} live_image;
/* An image's new code and the ways to its hooks behind it: to be freed; NULL: out of memory. */
uint8_t *live_text_of(const live_image *, uint64_t *size);
/* A patch as it is told of, with the hook's jump where the entry's is. */
move_told_patch live_told_patch(const live_image *, const move_patch *);
struct elf_carry;
typedef struct live_carry {
    const struct elf_carry *packed;
    const char *tool, *options; /* to be told: the tool's file, its arguments */
    bool has_output;
    const move_told_holder *holder; /* NULL: it is no mutator's */
} live_carry;
/* A stopped thread goes on where the tool says. */
inl_status live_settle(remote *, const move_live_thread *, inl_error *);
/* What stands at a hooked procedure's entry. False: it does not reach. */
bool live_hook_jump(const live_image *, size_t hook, uint8_t jump[MOVE_MOST_PATCH]);
/* All at once, while all threads are stopped. */
inl_status live_put_in(live_process *, const live_image *, size_t count, const live_carry *, inl_error *);

/* The same in steps, of which the first and the third need no thread stopped. */
typedef struct live_put live_put;
inl_status live_put_begin(live_process *, const live_image *, size_t count, const live_carry *, live_put **,
                          inl_error *);
inl_status live_put_map(live_put *, bool runs_on, inl_error *); /* stopped; then it may run */
inl_status live_put_fill(live_put *, inl_error *);
inl_status live_put_finish(live_put *, inl_error *); /* stopped again; INL_ERR_NOT_FOUND: an image has gone since */
void live_put_give_up(live_put *);                   /* instead: what was mapped goes */
void live_put_end(live_put *);                       /* in any case */

/* --- record.c --- */
enum { LIVE_TOOL_MOST = 64 << 20 }; /* bytes of a tool's image */
struct inl_bytes;
/* The record's bytes, for MOVE_TOLD_BASE; and once the tool has started, at most live_record_room ranges. */
inl_status live_record_make(const live_image *, size_t count, const live_carry *, struct inl_bytes *out, inl_error *);
size_t live_record_room(size_t images);
inl_status live_record_tell(remote *, const move_told_range *, size_t count, size_t room, inl_error *);
typedef struct live_told { /* of a process with a tool inside */
    move_told *record;
    move_told_range *ranges;
    char *tool, *options;
} live_told;
/* INL_ERR_NOT_FOUND: it has none, or one that was not put in by this version. */
inl_status live_record_read(pid_t, live_told *, inl_error *);
void live_told_free(live_told *);
/* What a tool under the JIT engine tells, from an open /proc/PID/mem. False: none is there. */
bool live_jit_told(int mem, move_told *);

/* --- holder.c --- */
void live_holder_self(move_told_holder *); /* the caller, as a mutator */
/* Its process, as this one numbers it. 0: there is none, it has ended, or it cannot be seen from here. */
pid_t live_holder(const move_told_holder *);
/* The tool's name, and, of a mutator, its process, and whether that has ended. */
void live_holder_say(const live_told *, char *out, size_t size);
/* What is in the process is still this one's: nobody has taken it out meanwhile. */
bool live_is_held_by(pid_t, const move_told_holder *);
/* It is let go as it is. */
void live_holder_leaves(pid_t, const move_told_holder *);

/* --- ask.c --- */
typedef enum live_wish { LIVE_REPORT, LIVE_LEAVE } live_wish;
/* The report goes to `out`, or, -1, where the tool's output goes. With all threads stopped for the while. self: the
 * mutator that asks, NULL: none does. INL_ERR_NOT_FOUND: there is no tool inside, or another's. */
inl_status live_ask(pid_t, live_wish, int out, const move_told_holder *self, inl_error *);

/* --- ask_jit.c --- */
/* A tool under the JIT engine is asked to leave; when this returns it has, and its report is where it was to go. */
inl_status live_ask_jit(pid_t, const live_told *, inl_error *);
/* It is asked for its report, which goes to `out`. */
inl_status live_ask_jit_report(pid_t, int out, inl_error *);
/* lend.c: can the process open its own files of /proc? Where it cannot, it gets them, opened here: its descriptors.
 * `page`: of it, for what its calls are given. */
bool live_opens_proc(remote *, uint64_t page);
inl_status live_lend_files(remote *, uint64_t page, int64_t files[MOVE_ASK_FILES], inl_error *);
int live_open_report(pid_t, int fd); /* what the process's descriptor leads to; or -1, errno */
inl_status live_copy_report(pid_t, int report, int out, inl_error *); /* which is closed */

#endif
