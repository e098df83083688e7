/* A tool that goes wrong in one place in one way, as the environment says: BLAME=PLACE:WAY (blame_ways.h).
 * --insert=PLACE is what it inserts, whether that goes wrong or not.
 */
#include <inlay.h>

#include "blame_ways.h"

#include <signal.h>
#include <unistd.h>

static const char *insert = "";
static bool inserts(const char *place) { return !strcmp(insert, place); }

static void routine(void) { wrong_at("routine"); }
static void nothing(int signo) { zero = signo; }
/* Signals are the program's, and forks. */
static void handle(void)
{
    static bool once;
    struct sigaction a = {.sa_handler = nothing};
    if (!__atomic_exchange_n(&once, true, __ATOMIC_RELAXED) && fork() == 0) kill(getpid(), SIGKILL);
    for (int s = 1; s < NSIG; s++) sigaction(s, &a, NULL);
    signal(SIGABRT, nothing);
}
static void inlined(int *counter) { *counter += 1; } /* mark: inlined */
static void each_image(inlay_image *i, void *arg) { wrong_at("image"); }
static void each_proc(inlay_proc *p, void *arg) { wrong_at("proc"); }
static void each_insn(inlay_insn *i, void *arg) { wrong_at("insn"); }
static void starts(void *arg) { wrong_at("start"); }
static void ends(int status, void *arg) { wrong_at("exit"); }
static void thread_starts(inlay_thread *t, void *arg) { wrong_at("thread"); }
static void thread_ends(inlay_thread *t, void *arg) { wrong_at("threadend"); }
static void forked(void *arg) { wrong_at("fork"); }
static void calls(inlay_thread *t, inlay_syscall *s, void *arg) { wrong_at("syscall"); }
static void full(const void *records, size_t count, unsigned thread, void *arg) { wrong_at("buffer"); }

static inlay_buffer *buffer;

static void each_block(inlay_block *b, void *arg)
{
    wrong_at("block");
    if (inserts("routine")) inlay_insert(inlay_block_entry(b), inlay_call(routine));
    if (inserts("handlers")) inlay_insert(inlay_block_entry(b), inlay_call(handle));
    if (inserts("inlined")) inlay_insert(inlay_block_entry(b), inlay_call(inlined, inlay_const(16)));
    if (inserts("expression"))
        inlay_insert(inlay_block_entry(b), inlay_store(inlay_const(16), inlay_load(inlay_const(16), 8), 8));
    if (inserts("buffer")) inlay_insert(inlay_block_entry(b), inlay_append(buffer, INLAY_FIELD(8, inlay_pc())));
}

__attribute__((constructor)) static void constructed(void) { wrong_at("constructor"); }

int main(int argc, char **argv)
{
    inlay_option_string(&insert, "insert", 0, "what to insert");
    wrong_at("before");
    inlay_init(&argc, &argv, "goes wrong");
    wrong_at("after");
    buffer = inlay_buffer_new(8, 64, full, NULL);
    inlay_on_image_load(each_image, NULL);
    inlay_on_proc(each_proc, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_start(starts, NULL);
    inlay_on_exit(ends, NULL);
    inlay_on_thread_start(thread_starts, NULL);
    inlay_on_thread_end(thread_ends, NULL);
    inlay_on_fork_child(forked, NULL);
    if (inserts("syscall")) inlay_on_syscall_entry(calls, NULL);
    return inlay_start();
}
