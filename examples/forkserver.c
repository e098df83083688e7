/* forkserver: a fuzzer's server and its bitmap. The program is run from main on, again and again, each time in a child
 * of fork that begins there, and how often each edge between blocks was taken lies in memory that all of them have.
 *
 *     inlay run ./forkserver --runs=1000 --image=app -- app input
 *
 * A tool must not fork: the program does, as if main had begun with a call of fork (inlay_resume), and has its
 * registers back behind that. It ends as the last run does. A program without symbols begins at its entry. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { EDGES = 1 << 16 };
static uint64_t runs = 1;
static inlay_local *last; /* of each thread: half of the block's number that it came from */
static struct shared {
    uint64_t begin, done, fork, registers[INLAY_REG_COUNT];
    bool is_run;
} * shared;
static uint8_t *edges;

static void took(uint64_t *from, uint64_t block)
{
    edges[(*from ^ block) % EDGES]++;
    *from = block / 2;
}

static uint64_t find_fork(void)
{
    inlay_image *i = inlay_image_first();
    while (i && !inlay_image_proc_named(i, "fork")) i = inlay_image_next(i);
    return inlay_proc_address(inlay_image_proc_named(i, "fork"));
}

static void go_on(const inlay_context *now, uint64_t pc, uint64_t stack)
{
    inlay_context c = *now;
    c.pc = pc;
    memcpy(c.gpr, shared->registers, sizeof c.gpr);
    c.gpr[INLAY_RSP] = stack;
    inlay_resume(&c);
}

/* Below what main's caller may have below its stack pointer, and as a call leaves the stack. */
static void call_fork(const inlay_context *now)
{
    uint64_t back = inlay_address_real(shared->begin), stack = ((shared->registers[INLAY_RSP] - 256) & ~15ull) - 8;
    memset(edges, 0, EDGES);
    if (inlay_memory_write(stack, &back, sizeof back) == sizeof back) go_on(now, shared->fork, stack);
}

static void began(const inlay_context *now)
{
    if (shared->is_run) return;
    if (!shared->fork) {
        memcpy(shared->registers, now->gpr, sizeof now->gpr);
        if ((shared->fork = find_fork())) call_fork(now);
        inlay_warn("%s has no fork to call", inlay_program());
    }
    int child = shared->fork ? (int)now->gpr[INLAY_RAX] : 0, status = 0, taken = 0;
    shared->is_run = child <= 0;
    if (shared->is_run) go_on(now, shared->begin, shared->registers[INLAY_RSP]);
    waitpid(child, &status, 0);
    for (int i = 0; i < EDGES; i++) taken += edges[i] != 0;
    fprintf(inlay_out(), "run %" PRIu64 ": status 0x%x, %d edges\n", ++shared->done, (unsigned)status, taken);
    if (shared->done == runs) inlay_end(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    call_fork(now);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_image_proc_named(image, "main");
    if (!inlay_image_is_main(image)) return;
    if (!p) p = inlay_proc_at(inlay_image_entry(image));
    shared->begin = inlay_proc_address(p);
    inlay_insert(inlay_proc_entry(p), inlay_call(began, inlay_context_arg()));
}

static void each_block(inlay_block *b, void *arg)
{
    uint64_t low = inlay_image_low(inlay_block_image(b)), number = (inlay_block_address(b) - low) * 0x9e3779b97f4a7c15u;
    (void)arg;
    inlay_insert(inlay_block_entry(b), inlay_call(took, inlay_local_address(last), inlay_const(number >> 48)));
}

int main(int argc, char **argv)
{
    inlay_option_uint(&runs, "runs", 'n', "how often the program is run");
    inlay_init(&argc, &argv, "runs of a program from main on, with the edges that each has taken");
    shared = inlay_alloc(sizeof *shared);
    last = inlay_local_new(sizeof(uint64_t));
    edges = mmap(NULL, EDGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_block(each_block, NULL);
    return inlay_start();
}
