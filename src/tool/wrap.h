/* Procedures that the tool stands in for (wrap.c), and what an instruction set's own files do of it: <isa>/wrap.S,
 * <isa>/wrapped.c. */
#ifndef INL_TOOL_WRAP_H
#define INL_TOOL_WRAP_H

#include "cfg/changes.h"
#include "run/run.h"
#include "tool/stack.h"
#include "weave/run.h"

enum { TOOL_WRAP_WORDS = 16 }; /* of arguments on the stack, at most */
typedef struct tool_wrap {     /* made when code is instrumented, and travels */
    void (*routine)(void);
    const char *name;
    uint64_t entry;
    unsigned words; /* of arguments on the stack */
    bool has_loop;  /* its own branches lead to its beginning */
    bool jumps_on;  /* ... or may lead to that of another procedure */
    /* Its callers may know that it leaves other registers alone. */
    cfg_changed changes;
} tool_wrap;

/* Where control is when the routine is called: at the procedure's beginning, at a call of it, at a jump to it. */
typedef enum tool_wrap_where { WRAP_ENTRY, WRAP_CALL, WRAP_JUMP } tool_wrap_where;

/* --- code_inserts.c --- */
void tool_code_apply_wraps(weave_run *);

/* --- wrap.c --- */
/* What is inserted there; `context`: the expression. NULL: out of memory. */
const snippet *tool_wrap_code(const tool_wrap *, tool_wrap_where, const snippet *context);
/* run_client.returned */
void tool_wrap_returned(void *arg, run_thread *, bool is_intact);
/* The registers of whoever has called the procedure that the routine which runs stands in for, behind that call. False:
 * none runs. */
bool tool_wrap_caller(const run_thread *, weave_context *out);
/* Of a thread's calls, read from its process: whose procedure returns to the engine, with this stack pointer behind its
 * return, was it called by? */
stack_passed tool_wrap_passes(const stack_process *, const run_call *calls, uint64_t stack, stack_caller *out);
/* The routine that runs is given up, if it stands in for a procedure. */
void tool_wrap_leave(run_thread *);

/* --- wrap_stacks.c --- */
struct tool_stacks;
/* The thread's next stack is in use, empty. False: no memory, or too many. */
bool tool_wrap_stack_more(run_thread *);
/* The one that `end` is the end of something on is in use. */
void tool_wrap_stack_at(run_thread *, uint64_t end);
void tool_wrap_stacks_end(run_thread *, struct tool_stacks *);

/* Registers of a call: arguments, or results. */
typedef struct tool_wrap_values {
    uint64_t integer[8], answer[2];
    uint8_t vector[8][16];
} tool_wrap_values;
typedef enum tool_wrap_part { WRAP_ARGUMENTS, WRAP_RESULTS } tool_wrap_part;

/* A procedure of the program's is called by a routine that goes on to what called it; `of` is made for this one call.
 * False: there is no room on the stack. */
/* How many such calls are under way: those that the program has not left. */
unsigned tool_wrap_depth(const run_thread *, const weave_context *);
bool tool_wrap_program(const tool_wrap *of, const weave_context *, tool_wrap_values *, const uint64_t *stack);

/* For assembly: a routine has called the original; `stack`: where further arguments are. `values` stand at the stack's
 * end, and what is below them is free. */
void tool_wrap_begin(tool_wrap_values *, const uint64_t *stack) __attribute__((noreturn));

/* --- <isa>/wrap.S, <isa>/wrapped.c --- */
extern const bool tool_can_wrap;
/* Calls the routine; what it returns goes to `values`. */
void tool_wrap_call(void (*routine)(void), tool_wrap_values *, const uint64_t *stack, size_t words);
void tool_wrap_original(void); /* what inlay_original answers: calls tool_wrap_begin */
void tool_wrap_back(tool_wrap_values *) __attribute__((noreturn)); /* to behind that call */
void tool_wrap_take(const weave_context *, tool_wrap_values *, tool_wrap_part);
/* Those of `which` alone. */
void tool_wrap_put(weave_context *, const tool_wrap_values *, tool_wrap_part, cfg_changed which);
/* What a procedure may expect of flags and floating point, whatever is at the place of the program's that it is called
 * from; and where its return address may be. */
uint64_t tool_wrap_fresh(weave_context *, unsigned words);
/* The frame as the code knows it that called a routine before, but for what is the thread's own. */
void tool_wrap_put_frame(run_thread *, const weave_frame *before);

#endif
