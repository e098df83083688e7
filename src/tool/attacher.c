/* The instrumentor of a process that runs.
 *
 *     launcher                     the same process
 *     inlay_init                     .
 *       options_parse                .
 *       attacher_enter ----------> as for a file (rewriter.c), up to inlay_start: attacher_run
 *                                    the process's images -> analysis -> plans, asking the callbacks
 *                                    stop, put in, let go
 *
 * As in a program that is written, the tool lies at MOVE_TOOL_BASE (or MOVE_TOOL_HIGH, where that is taken) and its
 * heap at MOVE_HEAP_BASE, here and in the process. Images have the addresses that they have there, so assumed addresses
 * are real ones. */
#include "tool/ahead.h"
#include "tool/finders.h"
#include "tool/injection.h"
#include "live/change.h"
#include "moved/moved.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void attacher_enter(const char *process, char **argv)
{
    inl_error e = {0};
    char link[64], *end;
    long pid = strtol(process, &end, 10);
    if (end == process || *end || pid <= 0 || pid > INT_MAX)
        tool_fail(TOOL_EXIT_USAGE, "%s is not the number of a process", process);
    if (live_check_numbers(&e) != INL_OK) tool_fail(TOOL_EXIT_FAILED, "cannot attach: %s", e.text);
    snprintf(link, sizeof link, "/proc/%ld/exe", pid);
    char *path = tool_handoff_data.program;
    ssize_t n = readlink(link, path, sizeof tool_handoff_data.program - 1);
    if (n <= 0) {
        int cause = errno;
        live_process p;
        bool known = access("/proc/self", F_OK) == 0 && live_open((pid_t)pid, &p, &e) != INL_OK;
        if (known) tool_fail(TOOL_EXIT_FAILED, "cannot attach: %s", e.text);
        tool_fail(TOOL_EXIT_FAILED, "cannot attach to process %ld: /proc/%ld/exe: %s", pid, pid, strerror(cause));
    }
    fflush(NULL);
    blame_unwatch(); /* the copy watches for itself */
    load_self(live_tool_place((pid_t)pid), MOVE_REGION_LOW, MOVE_REGION_HIGH, TOOL_INSTRUMENTOR, argv, environ, &e);
    tool_fail(TOOL_EXIT_FAILED, "cannot start the instrumentor: %s", e.text);
}

/* A program that stands at its exec: from here on this process is its instrumentor. */
void attacher_enter_at_exec(int pid, char **argv)
{
    inl_error e = {0};
    int null = open("/dev/null", O_RDWR); /* 0, and 1: they have been closed */
    if (null == 0) null = dup(null);
    if (tool_now->options.fds.err >= 0) dup2(tool_now->options.fds.err, STDERR_FILENO); /* the copy's own */
    tool_handoff_data.target = pid;
    blame_unwatch();
    load_self(live_tool_place(pid), MOVE_REGION_LOW, MOVE_REGION_HIGH, TOOL_INSTRUMENTOR, argv, environ, &e);
    bool goes_on = tool_now->options.followed; /* natively: another program has started it */
    if (goes_on) tool_say("%s runs without the tool: %s", tool_handoff_data.program, e.text);
    else tool_say("cannot start the instrumentor: %s", e.text);
    if (goes_on) live_let_begin(pid);
    else live_end_begun(pid, TOOL_EXIT_FAILED, 0);
    tool_exit(TOOL_EXIT_FAILED);
}

typedef struct attacher {
    bool fresh;        /* the process has not begun */
    const char *doing; /* what cannot be done, for messages */
    double stopped;    /* how long the process stood still, in seconds */
    rewriter r;        /* its images: those that are instrumented, then others that must know of them */
    size_t instrumented;
    live_process process;
    bool by_list;  /* see finders.h */
    bool is_other; /* than it was when this began */
} attacher;

/* --- what is there --- */

static bool is_linker(const attacher *a, const module *m)
{
    uint64_t linker = a->process.linker;
    return linker && linker >= m->low && linker < m->high;
}

/* The dynamic linker only where it is asked for: it has run for a while before the tool can come. */
static bool is_taken(const attacher *a, const module *m)
{
    if (m->is_vdso || (is_linker(a, m) && !tool_filter_images())) return false;
    return image_machine(m->image) == tool_isa()->elf_machine;
}

/* They stay where they are: targets lie in them. */
static void make_room(attacher *a)
{
    size_t n = 1;
    for (module *m = module_first(run_here.modules); m; m = m->next) n++;
    a->r.images = calloc(n, sizeof *a->r.images);
    rewriter_must((char *)a->r.images);
}

static rewriter_image *add_image(attacher *a, module *m)
{
    rewriter_image *i = &a->r.images[a->r.count++];
    *i = (rewriter_image){.path = (char *)image_path(m->image),
                          .name = (char *)image_name(m->image),
                          .out = (char *)image_path(m->image),
                          .im = m->image,
                          .m = m,
                          .bias = m->bias,
                          .is_program = m->is_main};
    return i;
}

/* The program first. It may be that only images that are mapped later are wanted. */
static void list_images(attacher *a)
{
    make_room(a);
    for (int main = 1; main >= 0; main--)
        for (module *m = module_first(run_here.modules); m; m = m->next) {
            if (m->is_main != main || !is_taken(a, m)) continue;
            if (!tool_image_of(m)) tool_fail(TOOL_EXIT_FAILED, "out of memory");
            if (!tool_filter_images() || tool_image_of(m)->wanted || (a->fresh && main)) add_image(a, m);
        }
    if (!a->r.count) tool_fail(TOOL_EXIT_FAILED, "process %d has no image that --image names", a->process.pid);
}

/* ... at all, though the program has not begun. */
static bool has_run(const attacher *a, const module *m)
{
    bool early = is_linker(a, m);
    for (size_t k = 0; k < a->process.early.count && !early; k++)
        early = a->process.early.items[k].low < m->high && a->process.early.items[k].high > m->low;
    return early;
}

static const char tried[] = "INLAY_TRIED";

/* How often this was begun before. */
static unsigned tries(void)
{
    const char *before = getenv(tried);
    return before ? (unsigned)atoi(before) : 0;
}

/* A process that has executed another program, or unloaded or opened libraries meanwhile, is not what is known of it.
 */
static void begin_anew(const attacher *a)
{
    char number[16];
    if (a->fresh || !(a->is_other || live_has_execed(&a->process)) || !live_wait_for_program(tries() + 1)) return;
    snprintf(number, sizeof number, "%u", tries() + 1);
    setenv(tried, number, 1);
    execv("/proc/self/exe", tool_now->command_line.words);
}

/* A program that is followed may be ended by another, or by its own loader (ldd asks for that): no concern of ours. */
static void fail(const attacher *a, int status, const char *why) __attribute__((noreturn));
static void fail(const attacher *a, int status, const char *why)
{
    if (tool_now->options.followed && live_has_ended(&a->process)) tool_exit(status);
    begin_anew(a);
    tool_fail(status, "cannot %s: %s", a->doing, why);
}

static void set_target(attacher *a, rewriter_image *i, bool fresh)
{
    inl_error e = {0};
    live_target_begin(&i->live, &a->process, i->m, fresh);
    i->live.lists_sites = true;
    i->live.lists_all_sites = rewriter_watches_syscalls();
    i->target = &i->live.target;
    finders_note(i, a->by_list);
    enum { LOOKS = 4 }; /* it may have been gone, and something else there, for a moment */
    inl_status s = live_compare_untouched(&i->live, &e);
    for (int k = 1; k < LOOKS && s != INL_OK; k++) {
        a->is_other = a->is_other || s == INL_ERR_NOT_FOUND || !live_has_image_now(a->process.pid, i->m);
        nanosleep(&(struct timespec){.tv_nsec = k * 1000000L}, NULL);
        s = live_compare_untouched(&i->live, &e);
    }
    if (s != INL_OK) fail(a, TOOL_EXIT_FAILED, e.text);
}

/* --- who must know of moved code --- */

static void plan_finders(attacher *a, module *m)
{
    inl_error e = {0};
    if (!finders_are_in(&a->process, m, a->by_list)) return;
    rewriter_image *i = add_image(a, m);
    set_target(a, i, false); /* the dynamic linker runs already */
    if (finders_plan(i, &e) != INL_OK) tool_fail(TOOL_EXIT_FAILED, "cannot %s: %s: %s", a->doing, i->path, e.text);
}

static bool is_listed(const rewriter *r, const module *m)
{
    for (size_t k = 0; k < r->count; k++)
        if (r->images[k].m == m) return true;
    return false;
}

/* The first is analysed here meanwhile. */
static void analyse_ahead(const attacher *a)
{
    size_t n = 0, room = 1;
    for (module *m = module_first(run_here.modules); m; m = m->next) room++;
    image **images = calloc(room, sizeof *images);
    rewriter_must((char *)images);
    for (size_t k = 1; k < a->r.count; k++) images[n++] = a->r.images[k].im;
    for (module *m = module_first(run_here.modules); m; m = m->next)
        if (!is_listed(&a->r, m) && !m->is_vdso && finders_are_in(&a->process, m, a->by_list)) images[n++] = m->image;
    tool_ahead_begin(images, n);
    free(images);
}

/* Those that --image leaves out are shown, too, and instrumented where the tool has inserted something in them. */
static void show_images(attacher *a)
{
    for (int main = 1; main >= 0; main--)
        for (module *m = module_first(run_here.modules); m; m = m->next) {
            bool listed = is_listed(&a->r, m);
            if (m->is_main != main || !is_taken(a, m) || (!listed && is_linker(a, m))) continue;
            tool_client_image(m);
            if (!listed && tool_image_has_insertions(tool_image_of(m)))
                set_target(a, add_image(a, m), a->fresh && !has_run(a, m));
        }
}

/* --- the whole --- */

/* The arguments, as they were typed. */
static void join_options(char *out, size_t size)
{
    int count;
    const char *const *options = options_given(&count);
    size_t n = 0;
    *out = 0;
    for (int i = 0; i < count && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", options[i]);
}

typedef struct put_work {
    attacher *a;
    const live_image *images;
    const elf_carry *carry;
} put_work;

/* Of one that opens libraries all the time one must do without some. */
static inl_status check_opened(const live_process *p, inl_error *e)
{
    enum { STRICT = 2 };
    char *name = tool_filter_images() ? NULL : live_opened_since(p);
    inl_status s = name && tries() < STRICT
                       ? inl_fail(e, INL_ERR_NOT_FOUND, "process %d has opened %s meanwhile; try again", p->pid, name)
                       : INL_OK;
    if (name && s == INL_OK)
        tool_say("process %d has opened %s meanwhile, which is not instrumented; attach again to have all", p->pid,
                 name);
    free(name);
    return s;
}

/* First only for what needs a thread of the process, then for the rest. */
static inl_status stop_twice(live_process *p, live_put *put, double *stopped, inl_error *e)
{
    double began = rewriter_now(), first;
    inl_status s = live_stop(p, e);
    if (s != INL_OK) return s;
    s = live_put_map(put, true, e);
    inl_status out = live_release(p, s == INL_OK ? e : NULL);
    first = rewriter_now() - began;
    if (s == INL_OK) s = out;
    if (s != INL_OK) return s;
    inl_status filled = live_put_fill(put, e);
    began = rewriter_now();
    s = live_stop(p, filled == INL_OK ? e : NULL);
    if (s != INL_OK) return filled != INL_OK ? filled : s;
    s = filled == INL_OK ? check_opened(p, e) : filled;
    if (s == INL_OK) s = live_put_finish(put, e);
    else live_put_give_up(put);
    out = live_release(p, s == INL_OK ? e : NULL);
    *stopped = first + rewriter_now() - began;
    return s == INL_OK ? out : s;
}

/* *answer: how long the process has stood still. */
static inl_status put_in_now(void *arg, void *answer, inl_error *e)
{
    put_work *w = arg;
    live_process *p = &w->a->process;
    char tool[PATH_MAX] = "", options[1024];
    if (readlink("/proc/self/exe", tool, sizeof tool - 1) < 0) *tool = 0;
    join_options(options, sizeof options);
    live_carry c = {
        .packed = w->carry, .tool = tool, .options = options, .has_output = tool_now->options.result != NULL};
    live_put *put = NULL;
    inl_status s;
    if (w->a->fresh) {
        s = live_put_in(p, w->images, w->a->r.count, &c, e);
        return s == INL_OK ? live_release(p, e) : s; /* it ends with this process */
    }
    s = live_put_begin(p, w->images, w->a->r.count, &c, &put, e);
    if (s == INL_OK) s = stop_twice(p, put, answer, e);
    live_put_end(put);
    return s;
}

/* A process that has not begun may end with this one; any other goes on, whatever becomes of this one. */
static inl_status put_in(attacher *a, const elf_carry *carry, inl_error *e)
{
    live_image *images;
    inl_status s = finders_list(a->r.images, a->r.count, a->by_list, &images, e);
    put_work work = {a, images, carry};
    if (s == INL_OK && a->fresh) s = put_in_now(&work, &a->stopped, e);
    else if (s == INL_OK) s = live_apart(a->process.pid, put_in_now, &work, &a->stopped, sizeof a->stopped, e);
    if (s == INL_OK) tool_now->held = NULL;
    a->is_other = a->is_other || s == INL_ERR_NOT_FOUND;
    free(images);
    return s;
}

typedef struct share {
    uint64_t moved, left, left_bytes;
} share;

static share share_of(const rewriter_image *i)
{
    share s = {0};
    for (uint32_t k = 0; k < i->cfg->proc_count; k++) {
        bool left = i->plan->procs[k].how == MOVE_LEFT;
        s.moved += i->plan->procs[k].how <= MOVE_MOVED_QUIETLY;
        s.left += left;
        s.left_bytes += left ? i->cfg->procs[k].size : 0;
    }
    return s;
}

/* Before anything is touched. */
static void refuse_nothing(const attacher *a)
{
    const rewriter *r = &a->r;
    uint64_t moved = 0, left = 0;
    for (size_t k = 0; k < r->count; k++) {
        share s = share_of(&r->images[k]);
        moved += s.moved;
        left += tool_filter_images() && !tool_image_of(r->images[k].m)->wanted ? 0 : s.left;
    }
    if (moved || !left || !rewriter_needs_tool(r)) return;
    for (size_t k = 0; k < r->count; k++) rewriter_say_left(&r->images[k]);
    tool_fail(TOOL_EXIT_FAILED, "cannot %s: nothing in process %d can be instrumented; %s", a->doing, a->process.pid,
              a->fresh ? "run it without --engine=live"
                       : "the JIT engine instruments all code (inlay run --attach PID TOOL)");
}

/* A tool's answer lacks what these would have told. */
static void check_points(const attacher *a)
{
    const unsigned long long refused = rewriter_refused(&a->r);
    if (refused && tool_now->options.strict)
        tool_fail(TOOL_EXIT_FAILED, "cannot %s: %llu points were refused (--strict)", a->doing, refused);
    if (refused) tool_say("%llu points refused (--report FILE says in which procedures)", refused);
}

/* Of those that are instrumented, --report and --map. */
static void report(const attacher *a)
{
    rewriter of = a->r;
    of.count = a->instrumented;
    if (!rewriter_reports(&of)) tool_exit(TOOL_EXIT_FAILED); /* it has said why */
}

/* An interpreter's loop is a few hundredths of its code, and takes most of the time. What is not told of is little, or
 * short: each C library has some. The report has all. */
static bool is_much(const share *s, const rewriter_image *i)
{
    const uint64_t text = i->cfg->text_bytes;
    return s->left_bytes * 5 > text || (s->left_bytes * 100 >= text && s->left_bytes >= 4096);
}

/* Of images of which much stays. */
static void say(const attacher *a)
{
    const rewriter *r = &a->r;
    uint64_t moved = 0, left = 0;
    for (size_t k = 0; k < a->instrumented; k++) {
        share s = share_of(&r->images[k]);
        if (is_much(&s, &r->images[k])) rewriter_say_left(&r->images[k]);
        moved += s.moved;
        left += s.left;
    }
    if (a->fresh) return;
    tool_say("in process %d now: %zu image%s, %llu procedures, %llu left alone (%.1f s, stopped for %.0f ms)",
             a->process.pid, a->instrumented, a->instrumented == 1 ? "" : "s", (unsigned long long)moved,
             (unsigned long long)left, rewriter_now() - r->started, 1e3 * a->stopped);
}

static void open_process(attacher *a, pid_t pid)
{
    inl_error e = {0};
    if (a->fresh) tool_now->held = &a->process;
    inl_status s = a->fresh ? live_start(pid, &a->process, &e) : live_open(pid, &a->process, &e);
    if (s == INL_OK && !a->fresh) s = live_check_alone(&a->process, &e);
    tool_now->held_goes_on = s == INL_OK && tool_now->options.followed;
    if (s == INL_OK) s = live_find_images(&a->process, run_here.modules, &e);
    if (s != INL_OK) fail(a, TOOL_EXIT_FAILED, e.text);
    if (!a->fresh && inject_check_jit(&a->process, &e) != INL_OK) fail(a, TOOL_EXIT_FAILED, e.text);
}

/* The process writes the report, and may have another root, or what is read-only there. Not the owner's rights, which
 * it may have given away: what has been opened is written. */
static void check_result(const attacher *a)
{
    const char *result = tool_now->options.result;
    char path[4200];
    if (!result) return;
    int n = snprintf(path, sizeof path, "/proc/%d/root%s", a->process.pid, result);
    if (n >= (int)sizeof path) return; /* the tool will say so */
    if (access(path, F_OK) != 0 && errno == ENOENT) strrchr(path, '/')[1] = 0;
    if (access(path, W_OK) == 0 || (errno != ENOENT && errno != EROFS && errno != ENOTDIR)) return;
    tool_fail(TOOL_EXIT_FAILED,
              "cannot attach: process %d, which would write the report, cannot write %s (%s): name a file that it can, "
              "or leave -o out",
              a->process.pid, result, errno == EROFS ? "it is read-only there" : "there is no such folder there");
}

/* A tool that ends the program before it begins does so with its own status. */
static int status_of(const attacher *a)
{
    int its = a->fresh && a->process.threads.count ? a->process.threads.items[0].status & 0xff : 0;
    return its ? its : TOOL_EXIT_FAILED;
}

void attacher_run(void)
{
    bool watched = isatty(STDERR_FILENO) && !tool_now->options.followed; /* else the terminal is the program's */
    attacher whole = {.r = {.watched = watched}, .fresh = tool_handoff_data.target != 0}, *a = &whole;
    inl_error e = {0};
    elf_carry carry;
    pid_t pid = a->fresh ? tool_handoff_data.target : (pid_t)strtol(tool_now->command_line.program, NULL, 10);
    a->doing = !a->fresh ? "attach" : tool_now->options.followed ? "follow the program" : "start the program";
    tool_now->blame.phase = BLAME_STARTED;
    a->r.started = rewriter_now();
    tool_heap_begin();
    tool_heap()->program = tool_handle_string(tool_handoff_data.program);
    run_here.modules = module_set_new();
    if (!run_here.modules) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    open_process(a, pid);
    if (!a->fresh) check_result(a);
    a->by_list = finders_go_by_list();
    tool_now->walker = finders_walker();
    list_images(a);
    for (size_t k = 0; k < a->r.count; k++) set_target(a, &a->r.images[k], a->fresh && !has_run(a, a->r.images[k].m));
    analyse_ahead(a);
    rewriter_prepare(&a->r);
    show_images(a);
    rewriter_plan(&a->r);
    if (!a->fresh && !rewriter_needs_tool(&a->r))
        tool_fail(TOOL_EXIT_FAILED,
                  "this tool inserts nothing in process %d, so there is nothing to put in (inlay run --attach %d has "
                  "the process run from the code cache, and the tool there)",
                  pid, pid);
    refuse_nothing(a);
    check_points(a);
    rewriter_pack(&a->r, &carry);
    a->instrumented = a->r.count;
    for (module *m = module_first(run_here.modules); m; m = m->next)
        if (!is_listed(&a->r, m) && !m->is_vdso) plan_finders(a, m);
    tool_ahead_end();
    if (a->fresh) report(a); /* before it can end, or say something */
    if (a->fresh) say(a);
    if (put_in(a, &carry, &e) != INL_OK) fail(a, status_of(a), e.text);
    rewriter_end_progress(&a->r);
    if (!tool_now->options.followed) tool_filter_warn();
    if (!a->fresh) report(a);
    if (!a->fresh) say(a);
    tool_exit(0);
}
