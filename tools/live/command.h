/* What commands on running processes share: their options, the process that is meant, and the wait.
 *
 *     inlay COMMAND [OPTIONS] -p PID WORD...
 *     inlay COMMAND [OPTIONS] WORD... -- PROGRAM [ARGS]
 *
 * Each is a mutator (inlay/process.h), a program of its own that the inlay command becomes. Results go to standard
 * output or to the file of -o, what is said besides to standard error. Status 0, 1: it could not be done, 2: wrong
 * usage; with a program that it starts, that one's. */
#ifndef LIVE_COMMAND_H
#define LIVE_COMMAND_H

#include <inlay.h>

#include <stdbool.h>

typedef struct live_option { /* of one command; ends with a NULL name */
    const char *name;        /* "--then" */
    const char **value;      /* NULL: it has none, and sets *flag */
    bool *flag;
} live_option;

typedef struct live_inserted {
    inlay_insertion *insertion;
    const inlay_proc *proc; /* NULL: there is none, or nobody has to be told of what becomes of it */
} live_inserted;

typedef struct live_one { /* what is inserted in a process */
    inlay_process *process;
    live_inserted *inserted;
    unsigned count;
    bool is_past; /* it has ended, or is another program; its children may be what they were */
} live_one;

typedef struct live_command {
    const char *name, *usage;
    const live_option *options; /* may be NULL */
    int least, most;            /* words; most 0: any number */
    bool process_first;         /* the process may be named by the first word */
    bool by_thread;             /* --thread is an option */
    /* With --children programs that are executed are followed, too, where there are these two: inserts in c->process;
     * and nothing comes of it any more. */
    void (*begins)(void);
    void (*ended)(inlay_process *);
    /* What was inserted in c->process is in force, but for what inlay_proc_refused tells of; it does not run on yet.
     * May be NULL. */
    void (*is_in)(void);
    /* answers of command_begin */
    int pid;                   /* 0: a program is started */
    int thread, thread_number; /* the code is for it alone; thread 0: for all */
    bool children;             /* those of fork as well */
    double seconds, ends_at;   /* 0: no end; when, once command_wait has begun */
    bool json;
    char **words, **program;
    int word_count;
    int program_out; /* what standard output was, where results go elsewhere; 0: they do not */
    inlay_process *process;
    unsigned kinds;     /* events that are watched for, besides */
    bool has_ended;     /* answer of command_wait: the process has */
    char executed[256]; /* it has become this program, with nothing of what was inserted; "": it has not */
    live_one *ones;     /* `process`, and programs that are followed */
    unsigned one_count;
} live_command;

enum { LIVE_OK, LIVE_FAILED, LIVE_USAGE };

/* Reads the arguments and attaches, or starts the program, which stands before its first instruction. Wrong usage and
 * what fails end the command with a message. */
void command_begin(live_command *, int argc, char **argv);
/* The number that an option has for its value; or the command ends, as it is called wrongly. */
uint64_t command_number(const live_command *, const char *option, const char *text);
/* A message in the command's name. */
void command_say(const live_command *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, with why the last call failed; ends the command. */
void command_fail(const live_command *, const char *what) __attribute__((noreturn));
/* The code, as --thread has it. */
inlay_expr command_for_thread(const live_command *, inlay_expr code);
/* What was inserted is put in, and events are watched for; the program that was started runs from now on. */
void command_commit(live_command *);
/* As inlay_insert; false: refused. What is refused nobody has to be told of again. */
bool command_insert(live_command *, inlay_point *, inlay_expr);
/* One that was made elsewhere, in a procedure (NULL: in none). */
void command_note(live_command *, inlay_insertion *, const inlay_proc *);
/* How many of those in c->process are not in force, since their procedures stay as they are; why is said of some. For
 * is_in. */
unsigned command_refused(const live_command *);
/* All that was inserted and noted goes, at once. */
void command_remove(live_command *);
/* Until SIGINT or SIGTERM, the end of --for, or the process's, which is also that it executes another program (where it
 * was started, it is waited for). `each` is called ten times a second, and when there is an event; it takes events, and
 * ends the wait by false. May be NULL. Behind it no more programs are followed. */
void command_wait(live_command *, bool (*each)(void *arg), void *arg);
/* For `each`: the next event, if there is one and the wait is not over. */
bool command_next(const live_command *, inlay_event *);
/* The same as command_remove, if that was not called; and the process goes on. `status`, or that of the program that
 * was started, once it has ended. */
int command_end(live_command *, int status);

/* What was printed goes out. False: it does not, and never will. */
bool command_flush(void);

/* Calls `each` for the procedures of that name, or that match the pattern; in one image where the name is IMAGE:NAME.
 * How many. */
/* "; near it are ..." for a name that no procedure has; "". */
const char *command_nearly(const live_command *, const char *name);
unsigned command_each_proc(live_command *, const char *name, void (*each)(inlay_proc *, void *arg), void *arg);

#endif
