/* faults: lets calls fail that would have succeeded, to see what a program makes of it.
 *
 *     inlay run ./faults --call=openat --error=24 --from=3 -- app         the third openat and all later ones: EMFILE
 *     inlay run ./faults --call=write --error=28 --from=2 --times=1 -- app         the second write: ENOSPC
 *     inlay run ./faults --procedure=malloc --from=100 --times=1 -- app         the hundredth malloc answers NULL
 *
 * With --below=TEXT only system calls count of which an argument is a path that contains it. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

static const char *call, *procedure, *below;
static uint64_t error = 5, from = 1, times = UINT64_MAX;
static long number = -1;
static struct shared {
    uint64_t made, failed;
} * shared;

/* A path may be any of a call's first arguments. */
static bool is_below(const inlay_syscall *s)
{
    char path[4096];
    if (!below) return true;
    for (int i = 0; i < 3; i++)
        if (inlay_memory_string(path, (uint64_t)s->args[i], sizeof path) > 0 && strstr(path, below)) return true;
    return false;
}

static void entry(inlay_thread *t, inlay_syscall *s, void *arg)
{
    (void)t, (void)arg;
    if (s->number != number || !is_below(s)) return;
    uint64_t n = __atomic_add_fetch(&shared->made, 1, __ATOMIC_RELAXED);
    if (n < from || n - from >= times) return;
    __atomic_fetch_add(&shared->failed, 1, __ATOMIC_RELAXED);
    s->skip = true;
    s->result = -(long)error;
}

/* Goes back to the caller, with 0. */
static void fail(const inlay_context *now)
{
    inlay_context c = *now;
    __atomic_fetch_add(&shared->failed, 1, __ATOMIC_RELAXED);
    inlay_memory_read(&c.pc, c.gpr[INLAY_RSP], sizeof c.pc);
    c.gpr[INLAY_RSP] += sizeof c.pc;
    c.gpr[INLAY_RAX] = 0;
    inlay_resume(&c);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *p = procedure ? inlay_image_proc_named(image, procedure) : NULL;
    if (!p) return;
    inlay_expr made = inlay_atomic_add(inlay_pointer(&shared->made), inlay_const(1), 8); /* as it was before */
    inlay_expr later = inlay_binary(INLAY_SUB, made, inlay_const(from - 1));
    inlay_expr fails = inlay_binary(INLAY_ULT, later, inlay_const(times));
    inlay_insert(inlay_proc_entry(p), inlay_if(fails, inlay_call(fail, inlay_context_arg()), NULL));
}

static void report(int status, void *arg)
{
    (void)arg;
    fprintf(inlay_out(), "%s: %" PRIu64 " of %" PRIu64 " failed: %s; the program ended with %s %d\n",
            call ? call : procedure, shared->failed, shared->made, call ? strerror((int)error) : "0",
            status & 0x7f ? "signal" : "status", status & 0x7f ? status & 0x7f : status >> 8);
}

int main(int argc, char **argv)
{
    inlay_option_string(&call, "call", 'c', "the system call that fails");
    inlay_option_uint(&error, "error", 'e', "the number of its error (default 5, EIO)");
    inlay_option_string(&procedure, "procedure", 'p', "... or the procedure that answers 0");
    inlay_option_uint(&from, "from", 'f', "the first that fails (default 1)");
    inlay_option_uint(&times, "times", 't', "how many fail (default: all from there on)");
    inlay_option_string(&below, "below", 'b', "only where a path contains this");
    inlay_init(&argc, &argv, "lets system calls, or calls of a procedure, fail");
    if (call) number = inlay_syscall_number(call);
    if (!procedure == (number < 0)) {
        inlay_warn("--call=NAME must name a system call, or --procedure=NAME be given");
        return 2;
    }
    shared = inlay_alloc(sizeof *shared);
    if (call) inlay_on_syscall_entry(entry, NULL);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
