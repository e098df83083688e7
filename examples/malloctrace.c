/* malloctrace: each allocation and release, in order. Blocks have numbers instead of addresses, so that two runs, and
 * two engines, can be compared:
 *
 *     malloc(472) = 1
 *     free(1)
 *
 *     inlay run ./malloctrace -- ls                          inlay rewrite ./malloctrace /bin/ls --with-libs new
 *
 * It needs the image in which `malloc` is (libc.so.6, or a static program) to be instrumented. What an allocator's
 * procedures call of each other is not shown, nor what they jump to last: realloc(0, n) is one line, though malloc
 * does the work, or what that jumps to in its turn, and returns for it. A call is told by where its return address
 * lies on the stack: each return of the image is compared with that, which takes no routine. */
#include <inlay.h>

#include <inttypes.h>

typedef struct block { /* the record of an address: the block that is there */
    uint64_t number;
} block;
typedef struct pending { /* of a thread: the call under way, if `stack` is not 0 */
    uint64_t stack, kind, a, b;
    bool left; /* by a return, or by a jump to what returns for it */
} pending;

static struct shared {
    inlay_mutex lock;
    uint64_t blocks;
} * shared;
static inlay_local *calls;
static const char *const names[] = {"malloc", "calloc", "realloc", "free"};

static block *at(uint64_t address) { return inlay_record(address, sizeof(block)); }

static uint64_t take(uint64_t address)
{
    block *b = address ? at(address) : NULL;
    uint64_t number = b ? b->number : 0;
    if (b) b->number = 0;
    return number;
}

static void enter(pending *p, uint64_t stack, uint64_t kind, uint64_t a, uint64_t b)
{
    bool within = p->stack && stack <= p->stack && (!p->left || stack == p->stack);
    p->left = false;
    if (within) return;
    inlay_lock(&shared->lock);
    *p = (pending){stack, kind, kind >= 2 ? take(a) : a, b, false};
    if (kind == 3 && p->a) fprintf(inlay_out(), "free(%" PRIu64 ")\n", p->a);
    inlay_unlock(&shared->lock);
}

static void leave(pending *p, uint64_t stack)
{
    if (stack == p->stack) p->left = true;
}

static void returns(pending *p, uint64_t result)
{
    p->stack = 0;
    if (p->kind == 3) return;
    inlay_lock(&shared->lock);
    block *made = result ? at(result) : NULL;
    if (made) made->number = ++shared->blocks;
    fprintf(inlay_out(), "%s(%" PRIu64, names[p->kind], p->a);
    if (p->kind) fprintf(inlay_out(), ", %" PRIu64, p->b);
    fprintf(inlay_out(), ") = %" PRIu64 "\n", made ? made->number : 0);
    inlay_unlock(&shared->lock);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_proc_named(image, "calloc") || !inlay_image_proc_named(image, "free")) return;
    inlay_expr mine = inlay_local_address(calls), stack = inlay_stack_pointer(), under_way = inlay_load(mine, 8);
    for (unsigned kind = 0; kind < 4; kind++) {
        inlay_proc *p = inlay_image_proc_named(image, names[kind]);
        if (!p) continue;
        inlay_expr which = inlay_const(kind);
        inlay_insert(inlay_proc_entry(p), inlay_call(enter, mine, stack, which, inlay_argument(0), inlay_argument(1)));
        inlay_insert(inlay_proc_exit(p), inlay_call(leave, mine, stack));
    }
    inlay_expr over = inlay_call(returns, mine, inlay_return_value());
    for (inlay_proc *p = inlay_image_proc_first(image); p; p = inlay_proc_next(p))
        inlay_insert(inlay_proc_return(p), inlay_if(inlay_binary(INLAY_EQ, under_way, stack), over, NULL));
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "allocations and releases, in order");
    shared = inlay_alloc(sizeof *shared);
    calls = inlay_local_new(sizeof(pending));
    inlay_on_image_load(image_loaded, NULL);
    return inlay_start();
}
