/* A thread that ptrace holds stopped: system calls made in it, its memory read and written, sent on its way. It stands
 * at its exec (remote_begin), or anywhere (remote_take).
 *
 * From then (a thread that stands anywhere: from remote_park) to remote_go or remote_give_back all its signals are held
 * back, so that the only stops are those of our own system calls. Bodies: remote.c, and <isa>/remote.c for what touches
 * registers. */
#ifndef INL_LIVE_REMOTE_H
#define INL_LIVE_REMOTE_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

typedef struct weave_context weave_context;

typedef struct remote {
    pid_t pid;                    /* the thread's */
    struct user_regs_struct regs; /* at the stop */
    uint64_t code_at;             /* of a system call instruction */
    long code_word;               /* what stood there, where one was put */
    bool code_put;
    uint64_t sigmask;
    uint64_t slot;     /* its place in the parking area (park.c), 0: none yet */
    uint64_t restarts; /* the number of the call that its stop has interrupted, or stands right behind; 0: none */
    bool is_parked;    /* it stands there, and all its signals are held back */
    bool is_first;
    int stop_signal; /* a stop signal that came meanwhile; given at the end */
    bool gone;       /* it died */
    int status;      /* remote_run */
    int let_in;      /* threads.c: a sent signal that it has got, to be held when it comes again; 0: none */
    bool is_held;    /* it stands where it gets one, */
    bool sleeps;     /* when it had been let go for a while (threads.c); */
    uint64_t ran;    /* in nanoseconds, for how long it had a processor then */
    uint32_t out;    /* the look that found it out of the tool's code first (ask.c); 0: it is not, or has been let go */
    siginfo_t held;  /* this one */
} remote;

/* errno says why; a process that is not there any more is gone. */
inl_status remote_fail(remote *, const char *what, inl_error *);
/* A child that was seized with PTRACE_O_TRACEEXEC: up to its exec. False: it has ended instead. */
bool remote_wait_for_exec(pid_t pid);
/* `pid` is at PTRACE_EVENT_EXEC. */
inl_status remote_begin(remote *, pid_t pid, inl_error *);
/* The same, with nothing written to the process: it stands at its first instruction then. */
inl_status remote_begin_at(remote *, pid_t pid, inl_error *);
/* The thread stands in a stop that is no signal's. Its slot is kept. */
inl_status remote_take(remote *, pid_t tid, inl_error *);
/* Whoever holds it may be killed from now on: it goes on by itself, as `regs` say. remote_tell: they have changed. */
inl_status remote_park(remote *, inl_error *);
inl_status remote_tell(remote *, inl_error *);
/* The opposite: it stands where `regs` say, still held. */
inl_status remote_unpark(remote *, inl_error *);
/* A call of a thread that stands where it was stopped, with a frame below its stack: `returns` is a way to
 * rt_sigreturn. INL_ERR_RANGE: its stack has no room. */
inl_status remote_call_alone(remote *, uint64_t returns, long *answer, long nr, const long args[6], inl_error *);
/* The kernel's answer in *answer, -errno on failure. */
inl_status remote_call(remote *, long *answer, long nr, const long args[6], inl_error *);
inl_status remote_read(remote *, uint64_t from, void *to, size_t size, inl_error *);
inl_status remote_write(remote *, uint64_t to, const void *from, size_t size, inl_error *);
/* Several words by one call: all of them, or, of a process that has ended, any. At most REMOTE_WORDS_MOST. */
enum { REMOTE_WORDS_MOST = 128 };
inl_status remote_write_words(remote *, const uint64_t *at, const uint64_t *values, size_t count, inl_error *);
/* Over memory that the process itself may not write to. */
inl_status remote_patch(remote *, uint64_t to, const void *from, size_t size, inl_error *);
/* Runs from `pc` on, with its own registers else and the stack at `sp`, up to the system call that ends at `until`,
 * which is not made. Where it would end instead it does not, and this fails (`status` is what it would have ended
 * with). spared: nor by a fault. */
inl_status remote_run(remote *, uint64_t pc, uint64_t sp, uint64_t until, bool spared, inl_error *);
/* Calls code in the thread: registers for `frame` with the stack at `sp`, up to where it returns. The stack has room
 * from remote_put_frame. patience: seconds, 0: for ever. `results` (NULL: not wanted): the integers that it returns, of
 * which there may be two. */
enum { REMOTE_WORDS = 14 };
typedef struct remote_call_frame {
    uint64_t pc;
    uint64_t back, slot; /* remote_put_frame fills these in: what it returns to, in the parking area */
    uint64_t args[6];
    unsigned count, reals;        /* reals: so many vector registers hold arguments */
    uint64_t words[REMOTE_WORDS]; /* arguments on the stack, the first lowest */
    unsigned word_count;
    bool faults_end; /* a fault in it is the call's end, and nobody's signal */
} remote_call_frame;
inl_status remote_put_frame(remote *, remote_call_frame *, uint64_t top, uint64_t *sp, inl_error *);
inl_status remote_run_call(remote *, const remote_call_frame *, uint64_t sp, unsigned patience, uint64_t results[2],
                           inl_error *);
/* Goes on by itself, up to the next stop: *stop says which. `signo`: of the signal that has stopped it, if it is to
 * come; 0: none. Its `regs` are those of the stop. */
typedef enum remote_stop_kind { REMOTE_CALL_BEGINS, REMOTE_CALL_ENDS, REMOTE_SIGNAL } remote_stop_kind;
typedef struct remote_stop {
    remote_stop_kind kind;
    long nr;          /* a call that begins, */
    uint64_t args[6]; /* and what it is given */
    long answer;      /* of one that ends */
    int signo;
    uint64_t fault; /* where a signal says that something cannot be had; 0: nowhere */
} remote_stop;
inl_status remote_next(remote *, int signo, remote_stop *stop, inl_error *e);
inl_status remote_set_registers(remote *, inl_error *); /* to what `regs` holds */
/* The vector state, to be given back to *state later; freed with free. */
inl_status remote_vectors(remote *, void **state, size_t *size, inl_error *);
inl_status remote_set_vectors(remote *, const void *state, size_t size, inl_error *);
/* Undoes what remote_begin did to the process, and lets it go on at pc, free of us. */
inl_status remote_go(remote *, uint64_t pc, uint64_t sp, inl_error *);
/* It runs on, still held by us, with the registers and mask that it had. */
void remote_continue(remote *);
/* One step, or into a signal's handler; `regs` are those behind it, and it is parked again. */
inl_status remote_step(remote *, inl_error *);
/* Registers and mask as they are in `r` (`regs` may have been changed), free of us. */
inl_status remote_give_back(remote *, inl_error *);
inl_status remote_leave_parked(remote *, inl_error *);       /* it goes on by itself */
inl_status remote_keep(remote *, long options, inl_error *); /* the same, but it stays stopped, and a tracee */
/* Ends the process with a status, before it ran an instruction. */
void remote_end(remote *, int status);
/* sequence.c: what the kernel was told of the thread's restartable sequences (its struct ptrace_rseq_configuration).
 * False: nothing. */
typedef struct remote_rseq {
    uint64_t area;
    uint32_t size, signature, flags, pad;
} remote_rseq;
bool remote_sequences(const remote *, remote_rseq *);
/* Where `regs` are in one they are at its abort handler then. */
void remote_leave_sequence(remote *);
/* Its registers at the stop; those of a context into them. */
void remote_context(const remote *, weave_context *);
void remote_set_context(remote *, const weave_context *);

/* Can tools be put into processes of this architecture that run? */
inl_status remote_check(inl_error *);

/* For remote.c, in the ISA's folder. */
bool remote_is_ours(const remote *); /* the right width and mode */
char remote_state(pid_t tid);        /* as the kernel tells it, 'S' for instance; 0: there is no such thread */
bool remote_has_ended(pid_t tid);
/* It stands at a stop for this signal: is it one of a fault that comes again when the instruction is begun again? */
bool remote_comes_again(pid_t tid, int signo);
void remote_registers_call(struct user_regs_struct *, uint64_t code, long nr, const long args[6]);
void remote_registers_set_argument(struct user_regs_struct *, unsigned index, uint64_t value);
void remote_registers_start(struct user_regs_struct *, uint64_t pc, uint64_t sp);
/* A call that the stop has interrupted is to be made once more, as the kernel would have done; nothing is left for the
 * kernel to do. */
void remote_registers_restart(struct user_regs_struct *);
/* The number of a call that has been interrupted more than once, which the kernel calls restart_syscall: as the code in
 * front of the call has it, or the stack. Where neither has it, restart_syscall. */
long remote_asked_for(remote *);
/* That call is to begin anew, by its number: the kernel does not know any more how it went on. */
void remote_registers_anew(struct user_regs_struct *, uint64_t nr);
void remote_registers_jump(struct user_regs_struct *, uint64_t pc, uint64_t sp);
long remote_registers_answer(const struct user_regs_struct *);
uint64_t remote_registers_first(const struct user_regs_struct *); /* argument of the call that begins */
uint64_t remote_registers_pc(const struct user_regs_struct *);
uint64_t remote_registers_sp(const struct user_regs_struct *);
/* The register that leads to a thread's block; what of the registers the block holds where woven code looks for it. */
long remote_registers_number(const struct user_regs_struct *); /* of the call that begins */
void remote_skip_call(const remote *);                         /* which is not made */
uint64_t remote_registers_block(const struct user_regs_struct *);
void remote_registers_set_block(struct user_regs_struct *, uint64_t block);
typedef struct weave_frame weave_frame;
void remote_fill_slots(const remote *, weave_frame *);
/* A jump to anywhere, in LIVE_HOOK_SIZE bytes. */
void remote_put_jump(uint8_t *at, uint64_t target);
/* What the C library scrambles addresses in jump buffers with, 0: not known; and one that it has scrambled. */
uint64_t remote_guard(remote *);
uint64_t remote_unscrambled(uint64_t word, uint64_t guard);
/* What a call's frame is, for remote.c: registers; bytes on the stack, below its top; where the result is
 * when the thread is about to make the system call that it has returned to. */
void remote_registers_frame(struct user_regs_struct *, const remote_call_frame *, uint64_t sp);
enum { REMOTE_FRAME_BYTES = 32 + 8 * REMOTE_WORDS };
size_t remote_frame_bytes(const remote_call_frame *, uint8_t out[REMOTE_FRAME_BYTES]);
void remote_registers_results(const struct user_regs_struct *, uint64_t out[2]);
enum { REMOTE_STEP_BYTES = 2 };
/* What an instruction with these bytes has left of the step itself. */
void remote_after_step(remote *, const struct user_regs_struct *before, const uint8_t code[REMOTE_STEP_BYTES]);
/* Of remote_vectors' state: the low 64 bits of the register for floating-point argument n; 0 and 1: the results', too.
 */
uint64_t remote_vectors_real(const void *state, unsigned n);
void remote_vectors_set_real(void *state, unsigned n, uint64_t bits);
/* Of the call that is about to be made (again). */
long remote_registers_wanted(const struct user_regs_struct *);
void remote_registers_set_sp(struct user_regs_struct *, uint64_t sp);
/* Of the parking area: its code; a slot that lies at `at`, from `regs`, mask and vector state; ways to rt_sigreturn. */
const uint8_t *remote_park_code(size_t *size);
size_t remote_slot_size(void);
inl_status remote_slot_make(remote *, uint64_t at, void *bytes, inl_error *);
/* Its vector registers become those in its slot. */
inl_status remote_slot_vectors(remote *, inl_error *);
typedef struct remote_pattern {
    unsigned size; /* 0: the last */
    uint8_t bytes[12];
} remote_pattern;
extern const remote_pattern remote_returns[];
void remote_registers_return(struct user_regs_struct *, uint64_t from, uint64_t slot);
void remote_registers_instead(struct user_regs_struct *, uint64_t from, long nr, const long args[6]);
uint64_t remote_below_stack(const struct user_regs_struct *, size_t size); /* where nothing of the thread's is */
extern const uint8_t remote_syscall_insn[8];
extern const unsigned remote_syscall_size;
/* Code that ends with a call that is not made, up to `until` in it; without whoever holds the thread, to the parking
 * area. */
extern const uint8_t remote_tail[];
extern const size_t remote_tail_size, remote_tail_until;
extern const int remote_vector_set; /* of PTRACE_GETREGSET */

#endif
