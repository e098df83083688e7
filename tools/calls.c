/* calls: how often each procedure is called; with --time also the cycles spent in it and in what it
 * calls.
 *
 * A call is each time control reaches the procedure's first instruction. Time is kept by a shadow
 * stack for each thread: a frame is pushed at entry and popped at exit, and frames that a longjmp or
 * an exception has left behind are told by the stack pointer. A recursive procedure's time is that
 * of its outermost frame. */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 4096, MAX_DEPTH = 1 << 16 };

typedef struct row {
    struct row *next;
    inlay_counter calls;
    const char *proc, *image;
    uint64_t address, call_sum, cycle_sum;
} row;

typedef struct frame {
    row *r;
    uint64_t start, sp;
    bool outermost;
} frame;

typedef struct shadow {
    unsigned depth;
    uint64_t dropped; /* frames beyond MAX_DEPTH: calls counted, time not */
    frame frames[MAX_DEPTH];
} shadow;

static shadow *shadows[MAX_THREADS];
static row *rows;
static size_t row_count;
static bool with_time;
static uint64_t top = 40;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

/* --- analysis --- */

static bool is_open(const shadow *s, const row *r)
{
    for (unsigned i = s->depth; i-- > 0;) {
        if (s->frames[i].r == r) return true;
    }
    return false;
}

/* Cycles since the frame was opened, when it is the one to be counted; else 0. */
static uint64_t close_frame(shadow *s, uint64_t now)
{
    frame *f = &s->frames[--s->depth];
    return f->outermost ? now - f->start : 0;
}

/* Adds to the totals by hand: a frame that is left behind is not the current procedure's. */
static void add_cycles(row *r, uint64_t cycles)
{
    __atomic_fetch_add(&r->cycle_sum, cycles, __ATOMIC_RELAXED);
}

static void drop_left_behind(shadow *s, uint64_t sp, uint64_t now)
{
    while (s->depth && s->frames[s->depth - 1].sp < sp) {
        row *r = s->frames[s->depth - 1].r;
        add_cycles(r, close_frame(s, now));
    }
}

static void enter(row *r, unsigned thread, uint64_t sp, uint64_t now)
{
    if (thread >= MAX_THREADS) return;
    shadow *s = shadows[thread];
    if (!s) s = shadows[thread] = inlay_alloc(sizeof *s);
    if (!s) return;
    drop_left_behind(s, sp, now);
    if (s->depth == MAX_DEPTH) {
        s->dropped++;
        return;
    }
    s->frames[s->depth] = (frame){r, now, sp, !is_open(s, r)};
    s->depth++;
}

/* At a return SP is what it was at entry; at a tail call too. */
static void leave(row *r, unsigned thread, uint64_t sp, uint64_t now)
{
    shadow *s = thread < MAX_THREADS ? shadows[thread] : NULL;
    if (!s) return;
    drop_left_behind(s, sp, now);
    if (s->depth && s->frames[s->depth - 1].r == r && s->frames[s->depth - 1].sp == sp) {
        add_cycles(r, close_frame(s, now));
    }
}

/* --- instrumentation --- */

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    row *r = inlay_proc_record(proc, sizeof *r);
    if (!r) return;
    r->proc = keep(inlay_proc_name(proc));
    r->image = keep(inlay_image_name(inlay_proc_image(proc)));
    r->address = inlay_proc_address(proc);
    r->next = rows;
    rows = r;
    row_count++;
    inlay_insert(inlay_proc_entry(proc), inlay_count(&r->calls, 1));
    if (!with_time) return;
    inlay_insert(inlay_proc_entry(proc),
                 inlay_call(enter, inlay_pointer(r), inlay_thread_id(), inlay_stack_pointer(),
                            inlay_cycles()));
    inlay_insert(inlay_proc_exit(proc),
                 inlay_call(leave, inlay_pointer(r), inlay_thread_id(), inlay_stack_pointer(),
                            inlay_cycles()));
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
        if (with_time) {
            fprintf(out, " %18" PRIu64 " %12" PRIu64, r->cycle_sum, r->cycle_sum / r->call_sum);
        }
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
    row **list = calloc(row_count + 1, sizeof *list);
    if (!list) return;
    size_t count = 0;
    uint64_t calls = 0;
    for (row *r = rows; r; r = r->next) {
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
    inlay_option_flag(&with_time, "time", 't', "measure cycles spent in each procedure, callees included");
    inlay_option_uint(&top, "top", 'n', "procedures to show as text; 0: all (default 40)");
    inlay_init(&argc, &argv, "calls of each procedure; with --time also cycles");
    inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
