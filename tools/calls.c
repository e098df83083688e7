/* calls: how often each procedure is called; with --time also the cycles spent in it and in what it
 * calls.
 *
 * A call is each time control reaches the procedure's first instruction. Time is kept by the frames of each thread
 * (inlay/frames.h), which know exceptions and longjmp by the stack pointers, and stacks beside the thread's. An import
 * stub is left when it jumps to the imported procedure. A recursive procedure's time is that of its outermost frame: a
 * thread counts how often each procedure is open. What is still open when a thread or the process ends is closed at the
 * time of the thread's last entry or exit.
 *
 * The clock is the time-stamp counter less what the thread has spent in Inlay, which would otherwise
 * be charged to whoever first meets new code. What stays in: the two analysis routines of each call
 * (100 to 300 cycles a call, charged to the callers), waiting, and other processes' turns. */
#include <inlay.h>
#include <inlay/frames.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1 << 16, MAX_ROWS = 1 << 20, OUTERMOST = 1 };

typedef struct row {
    struct row *next;
    inlay_counter calls;
    const char *proc, *image;
    uint64_t address, call_sum, cycle_sum;
    size_t index; /* from 0 */
    bool is_stub;
} row;

typedef struct shadow {
    const inlay_thread *thread;
    uint64_t last; /* time of the last entry or exit */
    inlay_frames frames;
    inlay_frame room[MAX_DEPTH]; /* each with its row in `user`, and OUTERMOST where it is that */
    uint32_t open[MAX_ROWS];     /* by row: how many of its frames are there */
} shadow;                        /* large, but only what is touched takes memory */

static inlay_local *shadows;
/* What instrumentation leaves for the report, in memory that travels into a rewritten program. */
static struct {
    row *rows;
    size_t row_count;
} * found;
static bool with_time;
static uint64_t top = 40;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

/* Of several procedures one is chosen by the name: what chooses is not meant by it. */
static const char *keep_name(const inlay_proc *proc)
{
    static const char mark[] = " (resolver)";
    const char *name = inlay_proc_name(proc);
    if (!inlay_proc_is_resolver(proc)) return keep(name);
    char *text = inlay_alloc(strlen(name) + sizeof mark);
    return text ? strcat(strcpy(text, name), mark) : keep(name);
}

/* --- analysis --- */

static row *row_of(const inlay_frame *f) { return (row *)(uintptr_t)(f->user & ~(uint64_t)OUTERMOST); }

/* The outermost frame of a procedure adds its time to the total, which threads share. */
static void add_time(const inlay_frame *f, uint64_t now)
{
    if (f->user & OUTERMOST && now > f->start)
        __atomic_fetch_add(&row_of(f)->cycle_sum, now - f->start, __ATOMIC_RELAXED);
}

static void closed(inlay_frames *frames, const inlay_frame *f, uint64_t now, void *arg)
{
    (void)frames;
    ((shadow *)arg)->open[row_of(f)->index]--;
    add_time(f, now);
}

static void enter(row *r, shadow *s, uint64_t sp, uint64_t now)
{
    s->last = now -= inlay_thread_own_cycles(s->thread);
    if (r->index >= MAX_ROWS) return; /* the time is the caller's */
    inlay_frame *f = inlay_frames_enter(&s->frames, (uint32_t)r->index + 1, sp, now);
    if (f) f->user = (uint64_t)(uintptr_t)r | (s->open[r->index]++ == 0 ? OUTERMOST : 0);
}

static void leave(row *r, shadow *s, uint64_t sp, uint64_t now)
{
    s->last = now -= inlay_thread_own_cycles(s->thread);
    inlay_frames_leave(&s->frames, (uint32_t)r->index + 1, r->is_stub, sp, now);
}

/* For the report: other threads may still run, so their frames are only read. */
static void add_open(const shadow *s)
{
    for (uint32_t n = 0; s && n < s->frames.seen; n++) {
        const inlay_frame_stack *stack = &s->frames.stacks[n];
        for (uint32_t at = stack->top; at; at = s->room[at].below)
            add_time(&s->room[at], stack->runs ? s->last : stack->since);
    }
}

static void thread_starts(inlay_thread *t, void *arg)
{
    (void)arg;
    shadow *s = inlay_local_of(shadows, t);
    s->thread = t;
    inlay_frames_init(&s->frames, s->room, MAX_DEPTH, closed, s);
}

static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    shadow *s = inlay_local_of(shadows, t);
    inlay_frames_end(&s->frames, s->last);
}

/* The parent reports what was before, and what is open in it. */
static void fork_child(void *arg)
{
    (void)arg;
    shadow *s = inlay_local_now(shadows);
    inlay_frames_end(&s->frames, s->last);
    for (row *r = found->rows; r; r = r->next) r->cycle_sum = 0;
}

/* --- instrumentation --- */

/* An import's, or what those of imports that are not found yet go through. */
static bool is_stub(const inlay_proc *proc)
{
    const char *at = strrchr(inlay_proc_name(proc), '@');
    inlay_section s;
    if (at && !strcmp(at, "@plt")) return true;
    bool has = inlay_image_section_named(inlay_proc_image(proc), ".plt", &s);
    return has && inlay_proc_address(proc) - s.address < s.size;
}

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    row *r = inlay_proc_record(proc, sizeof *r);
    if (!r) return;
    r->proc = keep_name(proc);
    r->image = keep(inlay_image_name(inlay_proc_image(proc)));
    r->address = inlay_proc_address(proc);
    r->is_stub = with_time && is_stub(proc);
    r->next = found->rows;
    r->index = found->row_count++;
    found->rows = r;
    inlay_insert(inlay_proc_entry(proc), inlay_count(&r->calls, 1));
    if (!with_time) return;
    inlay_insert(inlay_proc_entry(proc), inlay_call(enter, inlay_pointer(r), inlay_local_address(shadows),
                                                    inlay_stack_pointer(), inlay_cycles()));
    inlay_insert(inlay_proc_exit(proc), inlay_call(leave, inlay_pointer(r), inlay_local_address(shadows),
                                                   inlay_stack_pointer(), inlay_cycles()));
}

/* --- the report --- */

static int hotter(const void *a, const void *b)
{
    const row *x = *(row *const *)a, *y = *(row *const *)b;
    if (with_time && x->cycle_sum != y->cycle_sum) return x->cycle_sum < y->cycle_sum ? 1 : -1;
    if (x->call_sum != y->call_sum) return x->call_sum < y->call_sum ? 1 : -1;
    int order = strcmp(x->image, y->image);
    if (order) return order;
    order = strcmp(x->proc, y->proc);
    return order ? order : x->address < y->address ? -1 : x->address > y->address;
}

static void print_text(row **list, size_t count, uint64_t calls)
{
    FILE *out = inlay_out();
    char name[4096];
    size_t shown = top && top < count ? (size_t)top : count;
    fprintf(out, "%s: %" PRIu64 " calls of %zu procedures\n\n", inlay_program(), calls, count);
    fprintf(out, "%14s", "calls");
    if (with_time) fprintf(out, " %18s %12s", "cycles", "a call");
    fprintf(out, "  procedure\n");
    for (size_t i = 0; i < shown; i++) {
        row *r = list[i];
        fprintf(out, "%14" PRIu64, r->call_sum);
        if (with_time) { fprintf(out, " %18" PRIu64 " %12" PRIu64, r->cycle_sum, r->cycle_sum / r->call_sum); }
        fprintf(out, "  %s (%s)\n", inlay_demangle(r->proc, name, sizeof name), r->image);
    }
    if (shown < count) fprintf(out, "  ... %zu more (--top=0 shows all)\n", count - shown);
}

static void print_json(row **list, size_t count, uint64_t calls)
{
    char text[4096];
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "calls");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_uint("calls", calls);
    inlay_json_begin("procedures", '[');
    for (size_t i = 0; i < count; i++) {
        inlay_json_begin(NULL, '{');
        const char *plain = inlay_demangle(list[i]->proc, text, sizeof text);
        inlay_json_string("name", list[i]->proc);
        if (plain == text) inlay_json_string("demangled", plain);
        inlay_json_string("image", list[i]->image);
        inlay_json_uint("address", list[i]->address);
        inlay_json_uint("calls", list[i]->call_sum);
        if (with_time) inlay_json_uint("cycles", list[i]->cycle_sum);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    row **list = calloc(found->row_count + 1, sizeof *list);
    if (!list) return;
    size_t count = 0;
    uint64_t calls = 0;
    inlay_process *self = inlay_process_self();
    for (inlay_thread *t = inlay_process_thread_first(self); t && with_time; t = inlay_process_thread_next(self, t))
        add_open(inlay_local_of(shadows, t));
    for (row *r = found->rows; r; r = r->next) {
        r->call_sum = inlay_counter_sum(&r->calls);
        calls += r->call_sum;
        if (r->call_sum) list[count++] = r;
    }
    qsort(list, count, sizeof *list, hotter);
    if (inlay_format_is_json()) print_json(list, count, calls);
    else print_text(list, count, calls);
    free(list);
}

int main(int argc, char **argv)
{
    inlay_option_flag(&with_time, "time", 't',
                      "cycles in each procedure and its callees, without Inlay's translating; measuring costs "
                      "100 to 300 cycles a call, which are in");
    inlay_option_uint(&top, "top", 'n', "procedures to show as text; 0: all (default 40)");
    inlay_init(&argc, &argv, "calls of each procedure; with --time also cycles");
    found = inlay_alloc(sizeof *found);
    if (!found) return 1;
    inlay_on_proc(each_proc, NULL);
    if (with_time) {
        shadows = inlay_local_new(sizeof(shadow));
        if (!shadows) return 1;
        inlay_on_thread_start(thread_starts, NULL);
        inlay_on_thread_end(thread_ends, NULL);
        inlay_on_fork_child(fork_child, NULL);
    }
    inlay_on_exit(report, NULL);
    return inlay_start();
}
