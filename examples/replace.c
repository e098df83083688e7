/* replace: a procedure is asked for something else, or not at all. Here it is malloc, or another one that takes a size
 * first: what is too large is refused without asking it, what is small is rounded up before it is asked, and what it
 * answers is looked at.
 *
 *     inlay run ./replace --most=100000 -- app
 *     inlay run ./replace --name=g_malloc --round=64 -- app
 *
 * Its calls come to `stand_in`, which calls it, or does not, as a function. */
#include <inlay.h>

#include <inttypes.h>

static const char *name = "malloc";
static uint64_t most = UINT64_MAX, round_to = 16;
static struct shared {
    uint64_t calls, refused, rounded, failed;
} * shared;

static void add(uint64_t *to) { __atomic_fetch_add(to, 1, __ATOMIC_RELAXED); }

static uint64_t stand_in(uint64_t size)
{
    uint64_t rounded = (size + round_to - 1) / round_to * round_to;
    add(&shared->calls);
    if (size > most) {
        add(&shared->refused);
        return 0;
    }
    if (rounded != size) add(&shared->rounded);
    uint64_t answer = inlay_call_original(stand_in, rounded);
    if (!answer) add(&shared->failed);
    return answer;
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_image_proc_named(image, name);
    if (p) inlay_proc_wrap(p, (void (*)(void))stand_in, 0);
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
