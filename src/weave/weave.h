/* The weaver: a run of instructions plus the snippets at their points in; machine code and the map
 * between old and new addresses out. Register allocation, flag saving, argument passing and
 * inlining live here, once, for all engines.
 *
 * What the weaver keeps true:
 *  - At every instruction of the program the machine state is the program's own, except registers
 *    that wait in their spill slots, dead registers and dead flags; the map says which.
 *  - At every call into the engine (`lower`) the state is wholly the program's own.
 *  - Nothing is ever stored on the program's stack, nor below its pointer where the ABI lets programs keep data there
 *    (a red zone).
 *
 * Control transfers belong to the engine: the weaver calls `engine->lower` for each instruction
 * whose flow is not ISA_FLOW_NEXT, in place.
 */
#ifndef INL_WEAVE_WEAVE_H
#define INL_WEAVE_WEAVE_H

#include "base/error.h"
#include "isa/code.h"
#include "weave/banks.h"
#include "weave/run.h"

/* One entry of the map, for each program instruction, in code order. At cache offset `code_at` (the
 * first byte of the translated instruction itself, after its "before" snippets) the program's state
 * is: PC = `app`, registers in `spilled` (bit mask) hold their values in their slots instead;
 * `flags_saved`: the arithmetic flags are in the frame's flags slot. From `snippets_at` (<= code_at)
 * on, code of snippets inserted before this instruction is running; right there the state is that
 * of `before`. */
typedef struct weave_parked {
    isa_regs spilled; /* in their slots instead */
    isa_regs junk;    /* dead: what they hold is the weaver's own */
    uint8_t flags_saved;
    uint8_t pending; /* the frame holds more: what snippets behind the instruction will read */
} weave_parked;
typedef struct weave_map_entry {
    uint64_t app;
    uint32_t snippets_at, code_at;
    isa_regs spilled, junk;
    uint8_t flags_saved, pending;
    uint8_t scratch; /* a register that the translated instruction itself uses in place of a
                        PC-relative or GS operand (in `spilled` too), or ISA_NO_REG */
    weave_parked before;
} weave_map_entry;

/* Code that is not where the map would look for it: loads that may fault on the program's behalf
 * (SNIPPET_MEM_VALUE reads the program's memory before the instruction does) and side exits out of
 * line. State of the program there, PC = map[index].app. */
typedef struct weave_fault {
    uint32_t from, to; /* cache offsets */
    uint32_t index;    /* into map */
    isa_regs spilled, junk;
    uint8_t flags_saved;
} weave_fault;

/* Constant counts of one counter that were merged and are added in one place, before instruction
 * `position`, for the instructions first..last. weights[k] belongs to the execution of instruction
 * first + k; NULL: `each` to every one, and `extra` more to the first. `in_place`: the amount is
 * added by the inserts themselves, in their order. The addition may stand for those of other
 * records of the counter too, and lie anywhere in from..to: control that leaves there by a side exit
 * has been made up for. */
typedef struct weave_count {
    uint32_t counter, first, last, position;
    uint32_t from, to;
    int64_t total, each, extra;
    const int64_t *weights;
    bool in_place;
} weave_count;

/* An instruction of a routine that was written in place of a call, where it may fault: for who tells whose fault it is.
 * Code out of line may lie in another window: hence the address. */
typedef struct weave_inlined {
    uint64_t exec;    /* where it is */
    uint64_t routine; /* the instruction that it was made from */
    uint32_t index;   /* into map: at this instruction */
} weave_inlined;

/* Where a condition that can be switched (SNIPPET_SWITCH) decides: one byte, on or off. It is the displacement of a
 * jump: whichever of the two a processor fetches while it is written, it executes one whole instruction. */
typedef struct weave_switch {
    uint64_t exec; /* the byte's address */
    uint32_t index, number;
    uint8_t on, off;
} weave_switch;

typedef struct weave_output {
    weave_map_entry *map; /* in run->arena, insn_count entries and a last one behind the last
                             instruction (PC = the address that follows it) */
    uint32_t map_count;
    weave_fault *faults; /* ascending, in run->arena */
    uint32_t fault_count;
    weave_count *counts; /* in run->arena */
    uint32_t count_count;
    weave_inlined *inlined; /* in run->arena, in the order in which they were written */
    uint32_t inlined_count;
    weave_switch *switches; /* likewise; `index` into map */
    uint32_t switch_count;
    uint32_t cold_at;     /* where code out of line begins, behind the run's end */
    uint64_t entry_regs;  /* whose values at the run's entry may be read or seen; the others may */
    uint32_t entry_flags; /* hold anything (a live_at hook can hand these on) */
    bool shows;           /* a snippet reads what its instruction does not: a value that code which led here may have
                             taken for dead */
} weave_output;

/* The program's state when the code of the run stands at cache offset `at`: a map entry (copied to
 * *entry, with `spilled` and `flags_saved` exact for that offset), its index as the answer; -1 when
 * `at` lies before the first entry. */
int weave_locate(const weave_output *out, uint32_t at, weave_map_entry *entry);

/* When instruction map_index faulted (it and what follows did not execute), counters hold what was
 * added in advance or lack what is still to be added: calls back with the amount to subtract, which
 * may be negative. `begun`: the instruction is carried out elsewhere, without what stands before it. */
void weave_undo(const weave_output *out, uint32_t map_index, bool begun,
                void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg);

/* An instruction's effects on what the program has values in, as the weaver takes them. */
typedef struct weave_fx {
    isa_regs reads, writes, kills;
    uint32_t flags_read, flags_touched, flags_kill;
} weave_fx;
struct weave_isa;
weave_fx weave_effects(const struct weave_isa *, const isa_insn *);
bool weave_may_fault(const struct weave_isa *, const isa_insn *);

typedef struct weave_engine {
    /* Emits the translation of control-transfer instruction `in` (index i of the run; the last
     * instruction may also be a non-branch after which `fallthrough` is called). */
    bool (*lower)(void *arg, isa_code *code, const weave_run *run, uint32_t i);
    /* Emits an unconditional direct transfer to application address `target`. */
    bool (*exit_to)(void *arg, isa_code *code, uint64_t target);
    /* The same behind the run's last instruction; NULL: exit_to does it. */
    bool (*end_to)(void *arg, isa_code *code, uint64_t target);
    /* Around each instruction that the engine has marked as guarded, in the program's own state: right before its
     * translation, and right behind. What the first emits may leave the run, as if the instruction had faulted. */
    bool (*guard)(void *arg, isa_code *code, const weave_run *run, uint32_t i);
    bool (*guard_ends)(void *arg, isa_code *code, const weave_run *run, uint32_t i);
    void *arg;
    /* Optional: where code out of line goes, at its end; NULL: behind the run's end. Such code then has no
     * entries in weave_output.faults. */
    isa_code *cold;
    /* Optional: which registers and flags code at `target` may read or show (see entry_regs); what
     * is left out may hold anything when the exit is taken. Without it: everything is wanted. */
    void (*live_at)(void *arg, uint64_t target, uint64_t *regs, uint32_t *flags);
    /* Optional: the same for control transfer i of the run where it has no direct target or does not
     * leave for good: a call, a return, an indirect jump. Without it: everything is wanted. */
    void (*live_behind)(void *arg, const weave_run *run, uint32_t i, uint64_t *regs, uint32_t *flags);
    /* Optional: registers that `lower` stores to their slots at control transfer i, before it needs others: those that
     * the instruction does not read may be there alone. `held`: slots that hold the program's values, so that nothing
     * need be stored; what the last call before `lower` says. */
    isa_regs (*parks)(void *arg, const weave_run *run, uint32_t i, isa_regs held);
} weave_engine;

/* What counts once for several counters: a joint counter, of which each stands for that amount in `counter`. */
typedef struct weave_term {
    uint32_t counter;
    int64_t amount;
} weave_term;

enum {                               /* weave_options.stress */
       WEAVE_STRESS_RANDOM_REGS = 1, /* choose scratch registers at random */
       WEAVE_STRESS_NO_DEAD = 2,     /* take nothing for dead: spill and save always */
};
typedef struct weave_options {
    uint32_t stress;
    uint32_t seed;
    bool save_all;        /* save the whole vector state around every analysis call */
    bool cold_exits;      /* a side exit may restore registers out of line: exit_to is then called
                             for it behind the run's end, at offsets from weave_output.cold_at on.
                             Such code has entries in weave_output.faults: the state there is that
                             of the branch, not yet executed */
    bool hide_dead;       /* what the program will not read again counts as dead, even where a fault
                             handler could look at it */
    bool stops_stepping;  /* an instruction that would make the program step itself (x86-64: popf) faults as undefined
                             instead */
    bool appends_ahead;   /* records of a stretch are appended with one look at the buffer's end. Nobody may enter the
                             code in its middle */
    bool pc_relative;     /* the code may run elsewhere than it was made for, together with what it
                             was made from: addresses of PC-relative operands are computed there */
    weave_places *places; /* what adds to counters is divided among their banks; NULL: all to the first */
    /* Optional: the counter that stands for these terms, of different counters, and for no others; 0: there is none.
     * Without it each counter is added to by itself. */
    uint32_t (*joint)(const weave_term *terms, uint32_t count);
} weave_options;

/* Registers and flags of the program that the snippets of a list at `insn` read. */
typedef struct weave_need {
    uint64_t regs;
    uint32_t flags;
} weave_need;
weave_need weave_list_reads(const weave_run *run, const weave_insn *insn, const weave_list *list);

/* Weaves `run` into `code`. After the last instruction, if it can fall through, engine->exit_to is
 * called with the address behind it. Fails with INL_ERR_RANGE when `code` is too small (the caller
 * retries with more room), INL_ERR_UNSUPPORTED with a text when a snippet cannot be compiled.
 * Runs at translation time under the engine's lock; allocates only from run->arena (and a process-
 * wide cache of what analysis routines clobber). */
inl_status weave_compile(const weave_run *run, const weave_engine *engine, const weave_options *options, isa_code *code,
                         weave_output *out, inl_error *e);

/* For an engine that takes the before-snippets of an instruction away since they have run: its `placed`. */
unsigned weave_sets_places(const weave_insn *);

#endif
