/* heapsites: from where memory is asked for. Each chain of calls that leads to malloc, calloc or realloc, with how
 * often it did and how many bytes that were:
 *
 *          3 calls,       144 bytes: make (list.c:12) < build (list.c:30) < main (list.c:41)
 *
 *     inlay run ./heapsites -o >(sort -rnk3) -- ls             inlay rewrite ./heapsites /bin/ls --with-libs new
 *
 * It needs the image in which `malloc` is (libc.so.6, or a static program) to be instrumented. What the C library asks
 * itself for is counted to whoever has called it, what one of the three has asked another for is not counted; realloc
 * of nothing jumps to malloc. A chain is a record whose key is a sum of its addresses. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { DEEPEST = 32 };
typedef struct chain {
    uint64_t calls, bytes, places[DEEPEST];
    unsigned depth;
} chain;

static inlay_mutex lock;
static uint64_t depth = 8;
static const char *const names[] = {"malloc", "calloc", "realloc"};

static bool is_one_of_them(const inlay_proc *p)
{
    return p && (inlay_proc_matches(p, names[0]) || inlay_proc_matches(p, names[1]) || inlay_proc_matches(p, names[2]));
}

/* The first frame is that of the procedure which is called. */
static void asked(const inlay_context *now, uint64_t bytes)
{
    inlay_stack_frame frames[DEEPEST + 1];
    unsigned n = inlay_process_stack(inlay_process_self(), now, frames, (unsigned)depth + 1);
    uint64_t sum = n;
    if (n < 2 || is_one_of_them(inlay_proc_at(frames[1].address))) return;
    for (unsigned k = 1; k < n; k++) sum = (sum ^ frames[k].address) * 0x9e3779b97f4a7c15;
    inlay_lock(&lock);
    chain *c = inlay_record(sum, sizeof *c);
    if (c && !c->calls++) {
        c->depth = n - 1;
        for (unsigned k = 1; k < n; k++) c->places[k - 1] = frames[k].address;
    }
    if (c) c->bytes += bytes;
    inlay_unlock(&lock);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_proc_named(image, "calloc") || !inlay_image_proc_named(image, "free")) return;
    for (unsigned k = 0; k < 3; k++) {
        inlay_proc *p = inlay_image_proc_named(image, names[k]);
        inlay_expr first = inlay_argument(0), second = inlay_argument(1), now = inlay_context_arg();
        inlay_expr bytes = k == 0 ? first : k == 1 ? inlay_binary(INLAY_MUL, first, second) : second;
        inlay_expr counts = k == 2 ? first : inlay_const(1);
        if (p) inlay_insert(inlay_proc_entry(p), inlay_if(counts, inlay_call(asked, now, bytes), NULL));
    }
}

static void show(uint64_t key, void *record, void *arg)
{
    const chain *c = record;
    (void)key, (void)arg;
    fprintf(inlay_out(), "%8" PRIu64 " calls, %9" PRIu64 " bytes:", c->calls, c->bytes);
    for (unsigned k = 0, line; k < c->depth; k++) {
        const char *file, *slash;
        const inlay_proc *p = inlay_proc_at(c->places[k]);
        fprintf(inlay_out(), "%s %s", k ? " <" : "", p ? inlay_proc_display_name(p) : "?");
        if (!inlay_line_at(c->places[k], &file, &line)) continue;
        slash = strrchr(file, '/');
        fprintf(inlay_out(), " (%s:%u)", slash ? slash + 1 : file, line);
    }
    fprintf(inlay_out(), "\n");
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    inlay_records(show, NULL);
}

int main(int argc, char **argv)
{
    inlay_option_uint(&depth, "depth", 'd', "how many callers are told apart, 32 at most (default 8)");
    inlay_init(&argc, &argv, "from where memory is asked for");
    if (!depth || depth > DEEPEST) inlay_option_refuse("--depth=%" PRIu64 ": 1 to %d", depth, DEEPEST);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
