/* trace: entry and exit of procedures with their times, into a file (docs/trace-format.md) that `inlay trace` reads.
 *
 * At each entry and exit one record of 16 bytes goes to memory of the thread's own: the clock, the stack pointer, the
 * procedure's number. That memory is a piece of the file, mapped, so that nothing is copied, and what was recorded is
 * there whatever becomes of the process. An exit is a return or a jump to another procedure; what leaves otherwise is
 * told by the stack pointers of later records (inlay/frames.h), by whoever reads the file.
 *
 * The clock is the time-stamp counter less what the thread has spent in Inlay. With --clock=none calls are counted, and
 * that is all. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

static trace_found *found; /* travels into a rewritten program */
static trace_settings settings = {.clock = INLAY_TRACE_CYCLES, .compress = true, .every = 1};
static inlay_buffer *records;
static bool with_libs, began, is_child;
static uint64_t min_size, min_path;
static inlay_mutex lock;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

/* --- what is inserted --- */

static inlay_expr now(void)
{
    if (settings.clock == INLAY_TRACE_MONOTONIC) return inlay_call(trace_monotonic);
    return inlay_binary(INLAY_SUB, inlay_cycles(), inlay_own_cycles());
}

static inlay_expr record_of(uint32_t what)
{
    inlay_expr high = inlay_binary(INLAY_SHR, inlay_stack_pointer(), inlay_const(32));
    inlay_expr when = inlay_binary(INLAY_OR, inlay_binary(INLAY_SHL, now(), inlay_const(16)), high);
    return inlay_append(records, INLAY_FIELD(8, when), INLAY_FIELD(4, inlay_stack_pointer()),
                        INLAY_FIELD(4, inlay_const(what)));
}

/* With what counters, and routines of the user's, have then. */
static inlay_expr step(trace_proc *p, bool leaves)
{
    inlay_expr own = trace_woven_record(p, leaves, records), counted = trace_events_record(records);
    inlay_expr record = record_of(p->number << 1 | leaves);
    if (counted) record = inlay_sequence(counted, record);
    return own ? inlay_sequence(own, record) : record;
}

static void insert_count(inlay_proc *proc, trace_proc *p)
{
    inlay_expr entry = trace_woven_call(p, false), leaves = trace_woven_call(p, true);
    inlay_insert(inlay_proc_entry(proc), inlay_count(&p->calls, 1));
    if (entry) inlay_insert(inlay_proc_entry(proc), entry);
    if (leaves) inlay_insert(inlay_proc_exit(proc), leaves);
}

static void insert(inlay_proc *proc, trace_proc *p)
{
    if (settings.clock == INLAY_TRACE_COUNTS) {
        insert_count(proc, p);
        return;
    }
    inlay_expr entry = step(p, false), arguments = trace_values_arguments(proc, p, records);
    inlay_expr result = trace_values_result(proc, p, records);
    if (arguments) entry = inlay_sequence(entry, arguments);
    inlay_insert(inlay_proc_entry(proc), trace_select_entry(p, entry));
    if (result) inlay_insert(inlay_proc_return(proc), trace_select_result(p, result)); /* before its exit */
    inlay_insert(inlay_proc_exit(proc), trace_select_exit(p, step(p, true)));
}

/* --- which procedures --- */

static trace_image *image_of(inlay_image *image)
{
    for (trace_image *i = found->images; i; i = i->next)
        if (i->id == inlay_image_id(image)) return i;
    trace_image *i = inlay_alloc(sizeof *i);
    if (!i) return NULL;
    *i = (trace_image){.next = found->images,
                       .path = keep(inlay_image_path(image)),
                       .id = inlay_image_id(image),
                       .is_main = inlay_image_is_main(image),
                       .low = inlay_image_low(image),
                       .high = inlay_image_high(image),
                       .bias = inlay_image_bias(image)};
    found->images = i;
    if (began) trace_note_image(i);
    return i;
}

/* Without --libs and --image, those of the program itself. */
static bool is_asked_for(const inlay_proc *proc)
{
    const inlay_image *image = inlay_proc_image(proc);
    bool here = with_libs || inlay_image_chosen(image) || inlay_image_is_main(image);
    return here && inlay_proc_wanted(proc) && inlay_proc_size(proc) >= min_size;
}

/* An import's, or what those of imports that are not found yet go through. */
static bool is_stub(const inlay_proc *proc)
{
    const char *name = inlay_proc_name(proc), *at = strrchr(name, '@');
    inlay_section s;
    if (at && !strcmp(at, "@plt")) return true;
    bool has = inlay_image_section_named(inlay_proc_image(proc), ".plt", &s);
    return has && inlay_proc_address(proc) - s.address < s.size;
}

static bool is_short(inlay_proc *proc) { return min_path && (is_stub(proc) || trace_shortest_way(proc) < min_path); }

/* NULL: not asked for, or out of memory. */
static trace_proc *proc_of(inlay_proc *proc)
{
    if (!is_asked_for(proc) || is_short(proc)) return NULL;
    trace_proc *p = inlay_proc_record(proc, sizeof *p);
    if (!p || p->number) return p;
    const trace_image *image = image_of(inlay_proc_image(proc));
    if (!image) return NULL;
    p->name = keep(inlay_proc_name(proc));
    p->address = inlay_proc_address(proc);
    p->size = inlay_proc_size(proc);
    p->image = image->id;
    p->is_trigger = trace_select_is_trigger(proc);
    p->how = is_stub(proc) ? INLAY_TRACE_STUB : INLAY_TRACE_DONE;
    inlay_lock(&lock); /* the last look at the end of the process may meet another thread's new code */
    p->number = ++found->count;
    *found->end = p;
    found->end = &p->next;
    inlay_unlock(&lock);
    if (inlay_proc_is_resolver(proc)) {
        p->how = INLAY_TRACE_REFUSED;
        p->why = keep("it chooses the procedure that its name stands for (a resolver)");
    }
    p->told = (inlay_trace_proc){p->name, image->path, p->address, p->size, p->number, NULL};
    return p;
}

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    trace_proc *p = proc_of(proc);
    if (!p) return;
    if (p->how != INLAY_TRACE_REFUSED) insert(proc, p);
    if (began) trace_note_proc(p);
}

static void left_alone(inlay_proc *proc, const char *why, void *arg)
{
    (void)arg;
    trace_proc *p = proc_of(proc);
    if (!p || p->how == INLAY_TRACE_REFUSED) return;
    p->how = INLAY_TRACE_REFUSED;
    p->why = keep(why);
}

/* --- the program's life --- */

static void begin(void)
{
    began = trace_file_begin(&settings, found);
    if (began) trace_routine_begin();
    if (began) trace_events_begin();
}

static void starts(void *arg)
{
    (void)arg;
    begin();
}

static void thread_starts(inlay_thread *t, void *arg)
{
    (void)arg;
    if (began) trace_note_thread(INLAY_TRACE_THREAD_BEGINS, inlay_thread_number(t), inlay_thread_tid(t));
}

static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    if (began) trace_events_thread_ends(inlay_thread_number(t));
    if (began) trace_note_thread(INLAY_TRACE_THREAD_ENDS, inlay_thread_number(t), inlay_thread_tid(t));
}

static void fork_child(void *arg)
{
    (void)arg;
    is_child = true;
    trace_file_forked();
    trace_events_forked();
    begin();
    if (began) trace_note_thread(INLAY_TRACE_THREAD_BEGINS, inlay_thread_number_now(), inlay_pid());
}

/* Procedures whose code has not been met: engines that move code have met all, or have said why not. */
static void note_unmet(void)
{
    for (inlay_image *i = inlay_image_first(); i; i = inlay_image_next(i)) {
        if (!inlay_image_is_instrumented(i)) continue;
        for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) {
            uint32_t before = found->count;
            trace_proc *of = proc_of(p);
            if (!of || found->count == before) continue;
            if (of->how != INLAY_TRACE_REFUSED) of->how = INLAY_TRACE_UNMET;
            trace_note_proc(of);
        }
    }
}

/* How often each procedure was called is told at the end. */
static bool counts(void) { return settings.clock == INLAY_TRACE_COUNTS || trace_select_samples(&settings); }

static void ends(int status, void *arg)
{
    (void)arg;
    if (!began) return;
    note_unmet();
    for (trace_proc *p = found->procs; p && counts(); p = p->next) trace_note_count(p, inlay_counter_sum(&p->calls));
    trace_events_end();
    trace_note_end(status);
    uint64_t lost = trace_file_lost();
    if (!is_child) trace_values_warn(is_asked_for);
    if (lost) inlay_warn("%llu records found no room in the file and are lost", (unsigned long long)lost);
}

static bool read_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text && value >= 0 && value < 1e9; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        *ns = (uint64_t)(value * units[i].ns);
        return true;
    }
    return false;
}

static void check_settings(const char *threshold)
{
    if (threshold && !read_time(threshold, &settings.threshold))
        inlay_option_refuse("--threshold=%s is no time: 500ns, 2us, 1.5ms, 1s", threshold);
    if (!settings.every) inlay_option_refuse("--every=0: one call in so many is recorded, at least 1");
    bool chooses = settings.inside || trace_select_samples(&settings) || settings.depth || threshold ||
                   settings.arguments || settings.results || settings.events;
    if (settings.clock == INLAY_TRACE_COUNTS && chooses)
        inlay_option_refuse(
            "--clock=none counts all calls and no more: --inside, --every, --thin, --depth, --threshold, -A, -R, "
            "--event need another clock");
    if (settings.every > 1 && settings.thin) inlay_option_refuse("--every and --thin: one of them");
    if (settings.every == 1) settings.every = 0; /* all, as if it was not given */
}

int main(int argc, char **argv)
{
    static const char *const clocks[] = {"none", "cycles", "monotonic", NULL};
    int clock = INLAY_TRACE_CYCLES;
    const char *threshold = NULL;
    inlay_option_choice(&clock, clocks, "clock", "what is read at each entry and exit; none: calls are counted alone");
    inlay_option_flag(&with_libs, "libs", 0, "procedures of libraries too (and --image PATTERN: of these)");
    inlay_option_uint(&min_size, "min-size", 0, "only procedures of at least so many bytes");
    inlay_option_uint(&min_path, "min-path", 0,
                      "only procedures whose shortest way from entry to exit has so many instructions");
    inlay_option_uint(&settings.last, "last", 0, "keep the last so many MB of records alone");
    inlay_option_flag(&settings.compress, "compress", 0, "(--no-compress: do not) compress what is written");
    inlay_option_string(&settings.inside, "inside", 0,
                        "only calls of the procedures that match, and what they call; A|B: several");
    inlay_option_uint(&settings.every, "every", 0, "record one call in so many of each procedure, and count all");
    inlay_option_uint(
        &settings.thin, "thin", 0,
        "of a procedure called more often than so, record one call in 10, behind as many again one in 100, "
        "and so on; all are counted");
    inlay_option_string(&settings.arguments, "args", 'A', "arguments: NAME@arg1/u,arg2/s;NAME (by debug information)");
    inlay_option_string(&settings.results, "results", 'R', "results: NAME/p;NAME");
    inlay_option_string(&settings.events, "event", 0, "count these, too: page-faults,cycles:u,{instructions,rHEX}");
    inlay_option_uint(&settings.depth, "depth", 0, "reports: calls nested deeper belong to who called them");
    inlay_option_string(&threshold, "threshold", 0, "reports: leave out calls shorter than 500ns, 2us, 1.5ms, 1s");
    inlay_init(&argc, &argv, "entry and exit of procedures with their times, for inlay trace report");
    settings.clock = (inlay_trace_clock)clock;
    check_settings(threshold);
    found = inlay_alloc(sizeof *found);
    if (!found || !trace_select_prepare(&settings) || !trace_values_prepare(&settings)) return 1;
    if (!trace_events_prepare(&settings))
        inlay_option_refuse("--event: a list like page-faults,cycles:u,{instructions,r1b2}");
    if (!trace_woven_prepare()) return 1;
    if (!found->end) found->end = &found->procs;
    if (settings.clock != INLAY_TRACE_COUNTS) {
        records = inlay_buffer_fed(sizeof(inlay_trace_record), trace_file_next, NULL);
        if (!records || !trace_file_prepare() || !trace_squeeze_prepare(settings.compress)) return 1;
        inlay_on_thread_start(thread_starts, NULL);
        inlay_on_thread_end(thread_ends, NULL);
    }
    inlay_on_proc(each_proc, NULL);
    inlay_on_proc_left(left_alone, NULL);
    inlay_on_start(starts, NULL);
    inlay_on_fork_child(fork_child, NULL);
    inlay_on_exit(ends, NULL);
    return inlay_start();
}
