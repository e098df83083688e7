/* Retee: what a program that runs already writes to its standard output goes to a file too (the second application of
 * the paper on dynamic instrumentation; `inlay tee` is one for daily use).
 *
 *     inlay cc -O2 examples/live/retee.c -o retee
 *     ./retee PID FILE
 *
 * At each return of the C library's `write` the bytes that it has written come here as messages, until Ctrl-C. */
#include <inlay.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void on_end(int signo)
{
    (void)signo;
    ended = 1;
}

static int fail(const char *what)
{
    fprintf(stderr, "retee: %s: %s\n", what, inlay_process_error());
    return 1;
}

/* In the process, where a call of write(1, ...) is about to return. What the arguments were is in `call`. */
static void written(const uint64_t *call, long size)
{
    const char *at = (const char *)call[1];
    for (long n; size > 0; at += n, size -= n) {
        n = size < INLAY_MESSAGE_MOST / 2 ? size : INLAY_MESSAGE_MOST / 2;
        inlay_message(0, at, (size_t)n);
    }
}

/* A thread's arguments wait here from the entry to the return. */
enum { THREADS = 1024, WORDS = 2 };

static inlay_expr arguments_of(const uint64_t *calls, unsigned word)
{
    inlay_expr thread = inlay_binary(INLAY_AND, inlay_thread_id(), inlay_const(THREADS - 1));
    inlay_expr offset = inlay_binary(INLAY_MUL, thread, inlay_const(8 * WORDS));
    return inlay_binary(INLAY_ADD, inlay_pointer(&calls[word]), offset);
}

static bool insert(inlay_proc *write)
{
    uint64_t *calls = inlay_alloc(THREADS * WORDS * sizeof *calls);
    if (!calls) return false;
    inlay_expr note = inlay_sequence(inlay_store(arguments_of(calls, 0), inlay_argument(0), 8),
                                     inlay_store(arguments_of(calls, 1), inlay_argument(1), 8));
    inlay_expr is_stdout = inlay_binary(INLAY_EQ, inlay_load(arguments_of(calls, 0), 4), inlay_const(1));
    inlay_expr tell = inlay_call(written, arguments_of(calls, 0), inlay_return_value());
    return inlay_insert(inlay_proc_entry(write), note) &&
           inlay_insert(inlay_proc_return(write), inlay_if(is_stdout, tell, NULL));
}

static inlay_proc *find(inlay_process *p, const char *name)
{
    inlay_proc *proc = NULL;
    for (inlay_image *i = inlay_process_image_first(p); i && !proc; i = inlay_image_next(i))
        proc = inlay_image_proc_named(i, name);
    return proc;
}

int main(int argc, char **argv)
{
    inlay_event e;
    bool runs = true;
    inlay_mutator(&argc, &argv);
    if (argc != 3) return fprintf(stderr, "usage: retee PID FILE\n"), 2;
    signal(SIGINT, on_end);
    inlay_process *p = inlay_process_attach(atoi(argv[1]));
    if (!p) return fail("cannot attach");
    FILE *out = fopen(argv[2], "w");
    inlay_proc *write = find(p, "write");
    if (!out || !write) return fprintf(stderr, "retee: no %s\n", out ? "procedure write" : argv[2]), 1;
    if (!insert(write) || !inlay_process_watch(p, INLAY_EVENTS(MESSAGE) | INLAY_EVENTS(EXIT))) return fail("cannot insert");
    if (!inlay_process_commit(p)) return fail("cannot insert");
    fprintf(stderr, "retee: process %s is followed\n", argv[1]);
    while (runs && !ended) {
        if (!inlay_event_next(&e, 200)) continue;
        if (e.kind == INLAY_EVENT_MESSAGE) fwrite(e.data, 1, e.size, out);
        if (e.lost) fprintf(stderr, "retee: %llu messages are lost\n", (unsigned long long)e.lost);
        runs = e.kind != INLAY_EVENT_EXIT;
        fflush(out);
    }
    return fclose(out) || !inlay_process_let_go(p);
}
