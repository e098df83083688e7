/* What a mutator (process.h) has executed once, now, in a process: snippets, procedures, the loading of a library; and
 * values of variables by name and type.
 *
 *     inlay_scope *names = inlay_scope_new(inlay_process_image_first(p), 0);
 *     inlay_value v;
 *     inlay_process_evaluate(p, 0, inlay_scope_parse(names, "config.limit"), &v)            v.i, v.type
 *     inlay_process_evaluate(p, 0, inlay_scope_parse(names, "config.limit = 7"), NULL)
 *
 * All threads stand still meanwhile, unless they do already; what a procedure waits for on another thread it waits for
 * in vain, and it is given up after some seconds. */
#ifndef INLAY_EVALUATE_H
#define INLAY_EVALUATE_H

#include <inlay/process.h>
#include <inlay/typed.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_value {
    char format; /* 'i', 'u': an integer; 'f': floating point; 'p': a pointer; 's': a structure, an array, a number of
                  * 16 bytes, of which `address` is known alone; 0: none */
    size_t size; /* in memory; 0: not known */
    union {
        int64_t i;
        uint64_t u;
        double f;
    };
    uint64_t address; /* of what lies in memory; else 0 */
    char type[96];    /* as C writes it */
} inlay_value;

/* The snippet's value, as if it were executed at the place where the thread is (0: the first one); its effects are
 * there when this returns. `value` may be NULL. Registers are those of the thread where it stands in the program's own
 * code. Refused, with nothing done: what belongs to a point (arguments, effective addresses ...), counters. Where
 * memory cannot be read or written it stops there. A snippet that calls waits for a safe place (inlay_process_call).
 *
 * A routine of the mutator's own, by inlay_call or by a name of inlay_scope_routine, runs in the process, in that
 * thread, on the process's copies of the mutator's variables, as where inserted code calls it; what it answers is the
 * value:
 *
 *     inlay_process_evaluate(p, tid, inlay_call(count_entries, inlay_pointer(table)), &v)
 *
 * The mutator's file is put into the process for it, as by a commit. One that faults or does not come back within ten
 * seconds is given up, with what it has done so far: locks that it holds it keeps. */
bool inlay_process_evaluate(inlay_process *, int tid, inlay_expr, inlay_value *value);

/* The same, and its bytes as they lie in memory, whatever its type is; false where these are more than `room`. */
bool inlay_process_evaluate_bytes(inlay_process *, int tid, inlay_expr, inlay_value *value, void *bytes, size_t room);

/* Calls a procedure of the process in a thread (0: the first one), which must be at a safe place: in code of the
 * program or of a library other than the C library and the dynamic linker, or waiting in the kernel for input, time or
 * a child. Of a running process it is let run until it is, for some seconds. Arguments are integers,
 * pointers and doubles (format 'f'; size 4: float), 14 behind those that are passed in registers at most (snippets pass
 * structures). Before the call result->format and ->size say what is
 * returned
 * ('i' or 'u' with 1, 2, 4 or 8 bytes, 'p', 'f'). NULL: nothing. */
bool inlay_process_call(inlay_process *, int tid, uint64_t procedure, unsigned count, const inlay_value *arguments,
                        inlay_value *result);
/* Has a thread (0: the first one) load a library, by dlopen (RTLD_NOW), likewise. Its image is among the process's
 * afterwards. `path`: as the process sees it. Answer: dlopen's; 0: it failed. Of a static program it is refused. */
uint64_t inlay_process_load(inlay_process *, int tid, const char *path);

/* Threads that run now; `number` as inlay_thread_id() has it, -1 as long as nothing has been committed. How many there
 * are, of which at most `most` are told. */
typedef struct inlay_process_thread {
    int tid, number;
} inlay_process_thread;
unsigned inlay_process_threads(inlay_process *, inlay_process_thread *, unsigned most);

/* One thread, by its tid, for snippets that it alone executes (inlay_on_thread): its number, for which the mutator's
 * file is put into the process, as by a commit. Numbers are not given twice. -1: inlay_process_error() says why. */
int inlay_process_thread_number(inlay_process *, int tid);
/* One thread stands still while the others run, and goes on. It stays so behind inlay_process_stop and _continue, and
 * commits can be made meanwhile; these are then made by the mutator itself, as while all stand still. A call that it
 * waits in is made once more. The others may wait for it. It goes on when the handle is let go, or the mutator ends.
 * One that is killed, or ends because another thread executes a program, is waited for by inlay_event_next, and by
 * inlay_process_is_running; until then its process does not end. */
bool inlay_process_thread_stop(inlay_process *, int tid);
bool inlay_process_thread_continue(inlay_process *, int tid);
bool inlay_process_thread_is_stopped(const inlay_process *, int tid);

#ifdef __cplusplus
}
#endif

#endif
