/* A tool's two roles and what they share.
 *
 * One file is both. Run by a person it is the LAUNCHER: it reads the options, finds the program,
 * starts a short-lived helper, and then becomes the program by execve, so that the program has the
 * launcher's process id, parent, terminal and descriptors and there is nothing to forward. At the
 * exec stop, before the program's first instruction, the helper maps this same file into the program
 * and points the thread at its _start. There the file runs a second time as the RESIDENT: its own C
 * library initialises the ordinary way, main runs with the launcher's arguments, inlay_init returns,
 * and inlay_start hands the program's registers to the engine.
 *
 *     launcher                       helper                      program's process
 *     inlay_init                        .                              .
 *       options_parse                   .                              .
 *       program_find, program_check     .                              .
 *       launch ---- clone, clone ---->  seize, options                 .
 *         execve - - - - - - - - - - - - - - - - - - - - - - - - - ->  exec stop
 *                                    inject: map, stack, handoff       .
 *                                    detach, exit ------------------>  _start, main, inlay_init
 *                                                                      inlay_start: jit_run
 *
 * Where ptrace is denied the launcher loads the program beside itself instead (load.c) and goes on
 * as the resident without an exec.
 *
 * The handoff is a variable of the tool's own image: the helper, which is the same image at another
 * address, fills its copy and writes it to the same place in the program's copy.
 */
#ifndef INL_TOOL_TOOL_H
#define INL_TOOL_TOOL_H

#include "base/error.h"
#include "jit/jit.h"

#include <inlay/types.h>

#include <stdarg.h>

enum { TOOL_EXIT_FAILED = 1, TOOL_EXIT_USAGE = 2 };

/* Descriptors that a tool keeps out of the program's sight; -1 where there is none. They pass from
 * launcher to resident, and through the program's own execs to the next launcher. */
enum { TOOL_FDS = 6 };
typedef struct tool_fds {
    int32_t tool;    /* the tool's own file */
    int32_t err;     /* standard error as the first launcher had it */
    int32_t out;     /* the file of -o, only in the process that writes to it */
    int32_t out_dir; /* the folder of the file of -o, for reports of other processes */
    int32_t shared;  /* the first process's file again, for others that may not make their own */
    int32_t gdb;     /* the way to the debugger of --gdb, only in the process that it looks at */
} tool_fds;

typedef enum tool_role {
    TOOL_LAUNCHER,     /* run by a person */
    TOOL_RESIDENT,     /* inside a program that runs under the JIT */
    TOOL_INSTRUMENTOR, /* writes a program that carries the tool (rewriter.c) */
    TOOL_CARRIED,      /* inside such a program (carried.c) */
} tool_role;

/* A thread of a process that ran before the tool came to it (join.c); it stands still. */
typedef struct tool_joined {
    uint64_t tid, sigmask;
    uint64_t stack, stack_flags, stack_size; /* its alternate one; answer: that the kernel is to know */
    uint64_t clear_tid, robust, robust_size; /* what the kernel knows of it */
    uint64_t rseq, rseq_signature;           /* its area; 0: none */
    uint64_t restarts; /* it is about to go on with a call that the kernel has interrupted: that one's number */
    uint64_t slot;     /* its place in the parking area */
    weave_context ctx;
    uint64_t block; /* answer */
} tool_joined;

typedef struct tool_handoff {
    uint64_t role;     /* tool_role */
    uint64_t resident; /* nonzero: this copy runs inside the program (TOOL_RESIDENT, TOOL_CARRIED) */
    uint64_t loaded;   /* nonzero: without ptrace, in the launcher's own process */
    run_start_state start;
    uint64_t region_low, region_high; /* where the tool's own later mappings go */
    tool_fds fds;
    uint32_t empties; /* nonzero: what the file of -o holds goes when the tool begins, not if it refuses to */
    int32_t helper;   /* process id of the helper, to be reaped */
    uint64_t joined,
        joined_count;   /* tool_joined each, the first is the thread that starts the tool; 0: it is an exec */
    int32_t target;     /* instrumentor: a process that stands at its exec, traced by it; 0: none does */
    char program[4096]; /* path of the program, as found */
} tool_handoff;
/* Static: it is filled in from outside, before anything of this copy of the tool runs. */
extern tool_handoff tool_handoff_data;

/* --- options.c, options_parse.c --- */
typedef struct tool_glob {
    const char *pattern;
    char letter; /* the option's, where that was given instead of its name; or 0 */
    bool hit;    /* something matched */
} tool_glob;
typedef struct tool_globs {
    tool_glob *items;
    unsigned count;
} tool_globs;
/* Of `inlay run`: code is translated as it is met, or instrumented in the process before it begins. */
typedef enum tool_engine { ENGINE_JIT, ENGINE_LIVE } tool_engine;
/* Rewriting: counts stay where they are inserted. */
enum { TOOL_STRESS_IN_PLACE = 1 << 16, TOOL_STRESS_ASTRIDE = 1 << 17 };
typedef struct tool_options {
    const char *output;       /* -o */
    const char *output_given; /* ... before the process's rank was added */
    bool json, no_ptrace, no_sums, strict, debug, no_follow, stats;
    bool cache, no_cache; /* translations and analyses are kept from run to run */
    int format;           /* index in options_formats */
    int engine;           /* tool_engine */
    tool_globs images, procs, not_procs, libs, follow;
    uint32_t stress;  /* JIT_STRESS_*, TOOL_STRESS_* */
    bool attaching;   /* into a process that runs: `inlay attach` */
    const char *join; /* likewise, to run it under the JIT engine */
    bool mutating;    /* a mutator, or its file in a process that it changes */
    bool rewriting;   /* write a program, do not run one: */
    const char *rewrite_out, *with_libs, *report, *map;
    const char *result; /* -o of the program that is written */
    uint32_t dump;      /* JIT_DUMP_* */
    uint64_t dump_low, dump_high;
    const char *gdb;        /* where gdb comes from; "": it is started; NULL: no gdb */
    const char *debug_info; /* the folder for its files; NULL: not wanted */
    /* Internal, from a tool's resident to the next launcher when the program execs. */
    const char *exec_path; /* run this file; argv[0] stays as the program gave it */
    bool followed;         /* not the first process: reports go to FILE.<pid> */
    tool_fds fds;          /* handed down */
} tool_options;
/* Fills the state's options and the tool's own options; returns the index of the program in argv.
 * Prints and exits on --help, --version and wrong usage. */
int options_parse(int argc, char **argv, const char *help);
bool tool_keeps(void); /* analysed.c: are they? */
/* When rewriting: the arguments for the carried tool's main, "--" last. */
const char *const *options_carried(int *count);
const char *const *options_given(int *count); /* as they were typed */

/* --- unnamed.c --- */
typedef struct finders_unnamed { /* link-time addresses in a static program */
    struct image *of;            /* NULL: there is none */
    uint64_t object, list;       /* _dl_find_object, dl_iterate_phdr */
} finders_unnamed;

/* --- say.c --- */
const char *tool_name(void); /* the tool's, for messages */
/* One line, "NAME: text", to the tool's messages; and the same with an exit. */
void tool_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tool_say_list(const char *fmt, va_list);
/* An analysis routine instead of a return (resume.c; move_client.go_back). */
extern void (*const tool_return_anywhere)(void);
void tool_fail(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

void tool_cannot_start(const inl_error *) __attribute__((noreturn)); /* inside a process */
void tool_exit(int status) __attribute__((noreturn));                /* what is to be said has been said */

/* --- program.c --- */
typedef enum program_kind {
    PROGRAM_OK,
    PROGRAM_REFUSED, /* cannot be run at all: the kernel would refuse as well */
    PROGRAM_FOREIGN, /* the kernel may run it, a tool cannot be put into it */
} program_kind;
/* As a shell finds it: in PATH when the name has no slash. */
inl_status program_find(const char *name, char out[4096], inl_error *e);
/* May it be executed but not read? Of such a program the kernel lets nobody have the process. */
inl_status program_hidden(const char *path, inl_error *e);
/* Can it be run under the tool? Follows #! lines. */
program_kind program_check(const char *path, inl_error *e);

/* --- launch.c --- */
/* Becomes the program, or, without ptrace, returns with the program loaded beside the tool. */
void tool_launch(const char *path, char **argv, char **launcher_argv);
/* Opens the file of -o, and its folder; fails aloud. keeps: what it holds stays for now. */
void launch_open_output(tool_fds *, const char *path, bool keeps);

/* --- result.c --- */
/* For writing, nobody else's; -1 with errno. The first process's, which may end up under another name; and
 * another process's, NAME.<pid> in a folder. */
int result_open_first(const char *path, bool keeps);
int result_open_other(int folder, const char *name);
const char *result_name(const char *file); /* with the process's rank, where an MPI launcher says that it has one */
void result_run_began(void);               /* now, unless --inlay-began said when */
const char *result_take_beginning(const char *text); /* NULL, or what is wrong with it */
void result_tell_beginning(char *out, size_t size);

/* --- inject.c --- */
struct live_process;
typedef struct inject_job {
    int pid;             /* the process, stopped at its exec */
    int tool_fd;         /* as numbered in the process */
    char **argv, **envp; /* the launcher's */
    const char *output;  /* inject_join: of -o, from the root on; NULL: none */
} inject_job;
/* Maps the tool into the stopped process and points it at the tool's start. */
inl_status inject_tool(const inject_job *, inl_error *);
/* The same for a process that runs, whose threads are parked: `leader` starts the tool in it, and all are sent to the
 * engine. job->tool_fd: -1, it is opened there. */
inl_status inject_join(struct live_process *, const inject_job *, inl_error *);
/* Where a tool's mappings go in an address space: random like the kernel's own choices, fixed where
 * the user switched randomisation off. */
void inject_choose_region(uint64_t *low, uint64_t *high);

/* --- join.c, <isa>/join.S --- */
/* `inlay run --attach PID`: the tool is put into that process. */
void join_process(const char *process, char **argv) __attribute__((noreturn));
/* In the process: the engine is there, all threads are known to it, and the first waits to be sent to it as well. */
void join_begin(void);                         /* before the engine is set up */
void join_end(void) __attribute__((noreturn)); /* after it */
void join_settle(const tool_joined *, size_t count);
void join_wait(void) __attribute__((noreturn)); /* the call that ends at join_until is not made */
extern const char join_until[];

/* --- <isa>/places.c --- */
typedef struct tool_address_places {
    uint64_t program, libraries; /* where the kernel puts them without randomisation */
    uint64_t zone_low, zone_random,
        zone_size;       /* a tool's mappings: up to `random` above `low` there are `size` bytes; */
    uint64_t zone_least; /* of a process that has something there, further down, but not below this */
} tool_address_places;
extern const tool_address_places tool_places;

/* --- load.c --- */
/* Maps the program into this process and fills the handoff. */
inl_status load_program(const char *path, char **argv, char **envp, inl_error *);
void load_start_context(weave_context *, uint64_t pc, uint64_t sp); /* <isa>/load.c */
/* Maps the tool's own file once more, to `base`, and goes on in its _start as `role`, with a first stack
 * of its own at the low end of [region_low, region_high), where its later mappings go too. Returns
 * only when that is not possible. */
inl_status load_self(uint64_t base, uint64_t region_low, uint64_t region_high, tool_role role, char **argv, char **envp,
                     inl_error *);
void load_enter(uint64_t pc, uint64_t sp) __attribute__((noreturn)); /* <isa>/load.c */
size_t load_proc_link(void *arg, const char *path, char *out, size_t size);

/* --- resident.c --- */
void resident_begin(void); /* before main, or after the program was loaded */
int resident_hide(int fd); /* out of the program's sight; the number may change */

/* --- rewriter.c: the instrumentor --- */
void rewriter_enter(const char *program, char **argv) __attribute__((noreturn)); /* from the launcher */
void rewriter_begin(void);                                                       /* before main */
void rewriter_run(void) __attribute__((noreturn));                               /* inlay_start */

/* --- attacher.c: the instrumentor of a process that runs --- */
void attacher_enter(const char *process, char **argv) __attribute__((noreturn)); /* from the launcher */
/* The same for the process of a program that is to be run, which stands at its exec and is traced by this one. */
void attacher_enter_at_exec(int pid, char **argv) __attribute__((noreturn));
void attacher_run(void) __attribute__((noreturn)); /* inlay_start */

/* --- carried.c: inside a rewritten program --- */
void carried_begin(void); /* before main */
void carried_run(void);   /* inlay_start */

/* --- libc.c --- */
struct sigaction;
int libc_sigaction(int signo, const struct sigaction *, struct sigaction *); /* sigaction is refused in programs */
void libc_redirect_stdio(int fd);                                            /* standard output and error of the tool */

#endif
