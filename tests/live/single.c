/* A mutator that looks at threads one by one, in a process of many.c: points.py. Each line of its output is one thing
 * that holds, or "not: " and what does not. */
#include <inlay.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, LONG = 60 };
static inlay_process *process;
static inlay_image *image;
static int tids[THREADS];

static void holds(const char *what, bool good)
{
    printf("%s%s%s%s\n", good ? "" : "not: ", what, good ? "" : ": ", good ? "" : inlay_process_error());
    fflush(stdout);
    if (!good) exit(1);
}

static long turns(int k)
{
    long all[THREADS] = {0};
    inlay_process_read(process, all, inlay_image_symbol(image, "turns"), sizeof all);
    return all[k];
}

/* Does it turn again, sooner or later? */
static bool goes_on(int k)
{
    long from = turns(k);
    for (int i = 0; i < LONG * 100; i++, usleep(10000))
        if (turns(k) > from + 2) return true;
    return false;
}

/* The others go on, and it does not. */
static bool stands(int k)
{
    long from = turns(k);
    for (int i = 0; i < THREADS; i++)
        if (i != k && !goes_on(i)) return false;
    return turns(k) == from && inlay_process_thread_is_stopped(process, tids[k]);
}

/* A counter at `turn` for one thread alone. */
static bool counts_one(int k)
{
    static inlay_insertion *mine, *all;
    long *one = inlay_process_share(process, sizeof *one), *each = inlay_process_share(process, sizeof *each);
    inlay_point *at = inlay_proc_entry(inlay_image_proc_named(image, "turn"));
    int number = inlay_process_thread_number(process, tids[k]);
    if (!one || !each || number < 0) return false;
    mine = inlay_insert(at, inlay_on_thread(number, inlay_atomic_add(inlay_pointer(one), inlay_const(1), 8)));
    all = inlay_insert(inlay_proc_entry(inlay_image_proc_named(image, "turn")),
                       inlay_atomic_add(inlay_pointer(each), inlay_const(1), 8));
    long before = turns(k);
    if (!mine || !all || !inlay_process_commit(process)) return false;
    for (int i = 0; i < THREADS; i++)
        if (!inlay_process_thread_is_stopped(process, tids[i]) && !goes_on(i)) return false;
    long at_most = turns(k) - before + 2;
    bool good = *one > 2 && *each > *one && *one <= at_most;
    inlay_remove(mine);
    inlay_remove(all);
    return inlay_process_commit(process) && good;
}

static void one_by_one(void)
{
    holds("a counter for one thread", counts_one(1));
    holds("one is stopped", inlay_process_thread_stop(process, tids[1]) && stands(1));
    holds("once more is nothing", inlay_process_thread_stop(process, tids[1]) && stands(1));
    holds("changes are made meanwhile", counts_one(2));
    holds("it still stands", stands(1));
    holds("another one too", inlay_process_thread_stop(process, tids[2]) && goes_on(0));
    holds("all stop and go on, but for these", inlay_process_stop(process) && inlay_process_continue(process) &&
                                                   goes_on(0) && inlay_process_thread_is_stopped(process, tids[1]) &&
                                                   inlay_process_thread_is_stopped(process, tids[2]));
    holds("it goes on", inlay_process_thread_continue(process, tids[2]) && goes_on(2) && stands(1));
    holds("taking out is refused", !inlay_process_take_out(process));
    holds("it goes on at last", inlay_process_thread_continue(process, tids[1]) && goes_on(1));
    holds("a thread that is none", !inlay_process_thread_stop(process, getpid()));
    holds("the first thread", inlay_process_thread_stop(process, inlay_process_pid(process)));
    for (int i = 0; i < THREADS; i++) holds("the others run", goes_on(i));
    holds("and on", inlay_process_thread_continue(process, inlay_process_pid(process)));
}

/* One stands still while the process is killed, or executes a program, which its thread would hold up. */
static void ends_with_one(inlay_event_kind kind)
{
    inlay_event e = {0};
    holds("it is watched", inlay_process_watch(process, 1u << kind | INLAY_EVENTS(EXIT)));
    holds("one is stopped", inlay_process_thread_stop(process, tids[1]));
    if (kind == INLAY_EVENT_EXIT) kill(inlay_process_pid(process), SIGKILL);
    else puts("now");
    fflush(stdout);
    holds("its end is told of", inlay_event_next(&e, LONG * 1000) && e.kind == kind);
    if (kind == INLAY_EVENT_EXIT) holds("by the signal", e.number == SIGKILL);
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    process = inlay_process_attach(atoi(argv[1]));
    holds("attached", process);
    image = inlay_process_image_first(process);
    inlay_process_read(process, tids, inlay_image_symbol(image, "tids"), sizeof tids);
    if (!strcmp(argv[2], "one-by-one")) one_by_one();
    if (!strcmp(argv[2], "killed")) ends_with_one(INLAY_EVENT_EXIT);
    if (!strcmp(argv[2], "exec")) ends_with_one(INLAY_EVENT_EXEC);
    if (!strcmp(argv[2], "dies")) {
        holds("one is stopped", inlay_process_thread_stop(process, tids[1]) && stands(1));
        raise(SIGKILL);
    }
    return 0;
}
