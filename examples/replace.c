/* replace: a procedure is asked for something else, or not at all. Here it is malloc, or another one that takes a size
 * first: what is too large is refused without asking it, what is small is rounded up before it is asked, and what it
 * answers is looked at.
 *
 *     inlay run ./replace --most=100000 -- app
 *     inlay run ./replace --name=g_malloc --round=64 -- app
 *
 * The replacement calls the original by returning: it then runs with the arguments that have been set, and the routine
 * at the exit sees its result. Where it shall not be called, the replacement sends the program on behind the call. */
#include <inlay.h>

#include <inttypes.h>

static const char *name = "malloc";
static uint64_t most = UINT64_MAX, round_to = 16;
static struct shared {
    uint64_t calls, refused, rounded, failed;
} * shared;

static void add(uint64_t *to) { __atomic_fetch_add(to, 1, __ATOMIC_RELAXED); }

/* As if it had been called: the return address is on the stack. */
static void answer(const inlay_context *now, uint64_t result)
{
    inlay_context c = *now;
    if (inlay_memory_read(&c.pc, c.gpr[INLAY_RSP], sizeof c.pc) != sizeof c.pc) return;
    c.gpr[INLAY_RSP] += sizeof c.pc;
    c.gpr[INLAY_RAX] = result;
    inlay_resume(&c);
}

static void refuse(const inlay_context *now)
{
    add(&shared->refused);
    answer(now, 0);
}

static void round_up(uint64_t *size)
{
    uint64_t rounded = (*size + round_to - 1) / round_to * round_to;
    if (rounded != *size) add(&shared->rounded);
    *size = rounded;
}

static void returned(uint64_t result)
{
    if (!result) add(&shared->failed);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_image_proc_named(image, name);
    if (!p) return;
    inlay_point *entry = inlay_proc_entry(p);
    inlay_expr is_too_large = inlay_binary(INLAY_UGT, inlay_argument(0), inlay_const(most));
    inlay_insert(entry, inlay_atomic_add(inlay_pointer(&shared->calls), inlay_const(1), 8));
    inlay_insert(entry, inlay_if(is_too_large, inlay_call(refuse, inlay_context_arg()), NULL));
    inlay_insert(entry, inlay_call(round_up, inlay_register_ref(INLAY_RDI)));
    inlay_insert(inlay_proc_exit(p), inlay_call(returned, inlay_return_value()));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%s: %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " rounded up, %" PRIu64 " failed\n",
            name, shared->calls, shared->refused, shared->rounded, shared->failed);
}

int main(int argc, char **argv)
{
    inlay_option_string(&name, "name", 0, "the procedure (default malloc)");
    inlay_option_uint(&most, "most", 'm', "the largest size that it is asked for (default: any)");
    inlay_option_uint(&round_to, "round", 'r', "sizes are multiples of this (default 16)");
    inlay_init(&argc, &argv, "asks a procedure for something else, or not at all");
    if (!round_to) round_to = 1;
    shared = inlay_alloc(sizeof *shared);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
