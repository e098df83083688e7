/* The instrumentor: writes a program that carries the tool.
 *
 *     launcher                     the same process
 *     inlay_init                     .
 *       options_parse                .
 *       rewriter_enter ----------> rewriter_begin (before main): the carried heap
 *         maps the tool's file     main, inlay_init, callbacks are registered
 *         to MOVE_TOOL_BASE     inlay_start: rewriter_run
 *                                    images -> analysis -> plan, asking the callbacks -> files
 *
 * In the program that is written the tool lies at MOVE_TOOL_BASE and its carried heap at
 * MOVE_HEAP_BASE. The instrumentor lies at the same addresses, so whatever points into the tool or
 * into the heap means the same there: routines, counters, inlay_pointer of a variable, and pointers
 * within the heap. Nothing else travels.
 *
 * Images are not mapped: each is given a bias such that they do not overlap, and all addresses that the
 * tool sees are those assumed ones, here and in the carried tool.
 */
#include "tool/rewriter.h"
#include "tool/ahead.h"
#include "tool/code.h"
#include "tool/finders.h"
#include "tool/source.h"
#include "elf/elf.h"
#include "move/boot.h"
#include "moved/moved.h"
#include "base/own.h"
#include "base/region.h"

#include <elf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double rewriter_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the launcher's part --- */

/* A file in the current folder comes before one in PATH: it is an input, not a command. */
static void find_program(const char *name, char out[4096])
{
    struct stat st;
    inl_error e = {0};
    if (stat(name, &st) == 0 && S_ISREG(st.st_mode) && strlen(name) < 4096) {
        strcpy(out, name);
        return;
    }
    if (program_find(name, out, &e) != INL_OK) tool_fail(TOOL_EXIT_FAILED, "cannot rewrite %s", e.text);
    if (stat(out, &st) != 0) tool_fail(TOOL_EXIT_FAILED, "cannot rewrite %s: %s", out, strerror(errno));
    if (!S_ISREG(st.st_mode)) tool_fail(TOOL_EXIT_FAILED, "cannot rewrite %s: not a regular file", out);
}

void rewriter_enter(const char *program, char **argv)
{
    inl_error e = {0};
    find_program(program, tool_handoff_data.program);
    fflush(NULL);
    blame_unwatch(); /* the copy watches for itself */
    load_self(MOVE_TOOL_BASE, MOVE_REGION_LOW, MOVE_REGION_HIGH, TOOL_INSTRUMENTOR, argv, environ, &e);
    tool_fail(TOOL_EXIT_FAILED, "cannot start the instrumentor: %s", e.text);
}

void rewriter_begin(void)
{
    if (!tool_heap_create())
        tool_fail(TOOL_EXIT_FAILED, "cannot start the instrumentor: no memory at 0x%llx",
                  (unsigned long long)MOVE_HEAP_BASE);
}

/* --- progress, for a person --- */

void rewriter_progress(void *arg, const char *stage, uint64_t done, uint64_t of)
{
    rewriter *r = arg;
    double t = r->watched ? rewriter_now() : 0;
    if (!r->watched || t - r->shown < 0.1 || t - r->started < 0.5) return;
    r->shown = t;
    fprintf(stderr, "\r%s: %s %3.0f %%\033[K", r->now ? r->now->name : "", stage,
            of ? 100.0 * (double)done / (double)of : 0.0);
    fflush(stderr);
}

void rewriter_end_progress(const rewriter *r)
{
    if (r->watched && rewriter_now() - r->started >= 0.5) fputs("\r\033[K", stderr);
}

static void notice(void *arg, const char *what)
{
    const rewriter *r = arg;
    rewriter_end_progress(r);
    tool_say("%s: %s", r->now->out, what);
}

/* --- giving up --- */

/* Nothing half-done is left. */
void rewriter_give_up(const rewriter *r, const char *fmt, const char *what, const char *why)
{
    rewriter_end_progress(r);
    for (size_t i = 0; i < r->count; i++)
        if (r->images[i].written) unlink(r->images[i].out);
    if (r->made_folder) rmdir(tool_now->options.with_libs);
    tool_fail(TOOL_EXIT_FAILED, fmt, what, why);
}

/* The same for an error whose text may begin with the path, and with what give_up says anyway. */
void rewriter_give_up_for(const rewriter *r, const char *fmt, const char *path, const inl_error *e)
{
    static const char again[] = "cannot be written: ";
    const char *text = e->text;
    size_t n = strlen(path);
    if (!strncmp(text, path, n) && text[n] == ':') text += n + 1 + (text[n + 1] == ' ');
    if (!strncmp(text, again, sizeof again - 1)) text += sizeof again - 1;
    rewriter_give_up(r, fmt, path, text);
}

char *rewriter_must(char *s)
{
    if (!s) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    return s;
}

char *rewriter_join(const char *folder, const char *name)
{
    char *out = malloc(strlen(folder) + strlen(name) + 2);
    sprintf(rewriter_must(out), "%s/%s", folder, name);
    return out;
}

/* --- analysis and plan --- */

/* Tools that insert everything when an image is loaded have said by now where. */
static bool shows_code(void)
{
    return tool_now->callbacks[ON_PROC] || tool_now->callbacks[ON_BLOCK] || tool_now->callbacks[ON_INSN] ||
           !tool_client_sees_code();
}

static bool is_touched(const inlay_image *image, const cfg_program *p, uint32_t index)
{
    const cfg_proc *proc = &p->procs[index];
    if (tool_code_touched(image, index)) return true;
    for (uint32_t b = proc->first_block; tool_now->process->proc_points && b < proc->first_block + proc->block_count;
         b++) {
        const inlay_proc *of = tool_proc_at(p->blocks[b].addr + image->bias);
        if (of && (of->entry || of->exit)) return true;
    }
    return false;
}

static bool wanted(void *arg, const cfg_program *p, uint32_t index)
{
    const rewriter *r = arg;
    const cfg_proc *proc = &p->procs[index];
    if (r->now->live.process && proc->addr + r->now->bias == r->now->live.process->tells)
        return false; /* it is hooked */
    if (!tool_filter_images() && !tool_filter_procs()) return true;
    if (finders_is_one(r->now, proc->addr)) return true;
    for (uint32_t b = proc->first_block; b < proc->first_block + proc->block_count; b++)
        if (tool_address_wanted(p->blocks[b].addr + r->now->bias)) return true;
    return is_touched(tool_image_of(r->now->m), p, index); /* by a callback of images, which are shown all the same */
}

/* What is hooked moves, whether anything is inserted or not. */
static bool is_empty(void *arg, const cfg_program *p, uint32_t index)
{
    const rewriter *r = arg;
    if (finders_is_one(r->now, p->procs[index].addr)) return false;
    return !is_touched(tool_image_of(r->now->m), p, index);
}

static void instrument(void *arg, const cfg_program *p, uint32_t index, weave_run *run)
{
    const rewriter *r = arg;
    tool_client_instrument(run);
    if (!rewriter_wrap(run, p, index, tool_image_of(r->now->m)))
        rewriter_note_refusal(p->procs[index].addr + r->now->bias, "procedure", "out of memory");
}

static void decide_sums(const rewriter *r)
{
    inlay_image **images = calloc(r->count, sizeof *images);
    rewriter_must((char *)images);
    for (size_t k = 0; k < r->count; k++) images[k] = tool_image_of(r->images[k].m);
    tool_sums_decide(images, r->count);
    free(images);
}

/* What a tool stands in for, or has replaced, in a procedure that stays as it is: the answer would be a wrong one. */
static void tell_kept(const rewriter_image *i)
{
    uint64_t address, code;
    const tool_code *c = tool_image_of(i->m)->code;
    for (size_t at = 0; c && inl_map_next(&c->replaced, &at, &address, &code);) {
        const uint32_t k = cfg_proc_covering(i->cfg, address - i->bias);
        if (k == CFG_NONE || i->plan->procs[k].how < MOVE_MOVED_QUIETLY) continue;
        const char *why = rewriter_reason(i, k);
        rewriter_note_refusal(address, "procedure", why ? why : "not asked for");
        tool_say_limited("cannot %s %s%s in %s: %s", code & CODE_IS_WRAP ? "stand in for" : "replace",
                         code & CODE_AT_CALL ? "what is called in " : "", inlay_proc_name(inlay_proc_at(address)),
                         i->name, why ? why : "not asked for");
    }
}

inl_status rewriter_plan_image(rewriter *r, rewriter_image *i, inl_error *e)
{
    cfg_options options = {rewriter_progress, r};
    r->now = i;
    i->cfg = tool_code_take(tool_image_of(i->m));
    inl_status s = i->cfg ? INL_OK : tool_analyse(i->im, &options, &i->cfg, e);
    if (s == INL_OK) s = move_plan_make(i->cfg, i->bias, i->target, &r->client, &i->plan, e);
    if (s == INL_OK) s = move_commit(i->plan, i->target, e);
    if (s == INL_OK) tell_kept(i);
    return s == INL_OK && i->target == &i->live.target ? live_target_settle(&i->live, i->plan, e) : s;
}

static void make_plan(rewriter *r, rewriter_image *i)
{
    inl_error e = {0};
    if (rewriter_plan_image(r, i, &e) != INL_OK)
        rewriter_give_up_for(r, i->cfg ? "cannot rewrite %s: %s" : "cannot analyse %s: %s", i->path, &e);
}

static bool registered_something(void)
{
    for (int k = 0; k < ON_KINDS; k++)
        if (tool_now->callbacks[k]) return true;
    return false;
}

/* Before the work, not after it. */
static void refuse_library(const rewriter *r)
{
    if (registered_something() && !r->images[0].is_program)
        rewriter_give_up(r, "cannot rewrite %s: %s", r->images[0].path,
                         "a library cannot carry a tool; rewrite a program that loads it, "
                         "with --with-libs DIR and --lib naming this library if the program opens it later");
}

/* A tool that registered nothing is not needed in the program. */
bool rewriter_needs_tool(const rewriter *r)
{
    if (registered_something()) return true;
    for (size_t i = 0; i < r->count; i++)
        if (r->images[i].plan->uses_frame) return true;
    return false;
}

/* --- files --- */

/* An image with addresses of its own may be made for where the tool has its own. */
static void check_place(const rewriter *r, const rewriter_image *i, const elf_pack_image *p)
{
    enum { ROOM = 64 << 20 }; /* of the tool; of what the writer adds behind moved code */
    uint64_t low = p->link_low + p->bias, high = p->link_high + p->bias + ROOM, base = inl_own_base();
    if (high > base && low < base + ROOM)
        rewriter_give_up(r, "cannot rewrite %s: %s", i->path,
                         "it is linked to addresses from 0x70000000 on, which the tool inside needs; use inlay run");
}

void rewriter_pack(const rewriter *r, elf_carry *carry)
{
    inl_error e = {0};
    int argc;
    const char *const *options = options_carried(&argc);
    const char **argv = calloc((size_t)argc + 2, sizeof *argv);
    tool_heap()->sources = source_carry();
    elf_pack_image *images = calloc(r->count, sizeof *images);
    if (!argv || !images) rewriter_give_up(r, "cannot write %s: %s", r->images[0].out, "out of memory");
    argv[0] = tool_name();
    memcpy(argv + 1, options, (size_t)argc * sizeof *argv);
    for (size_t k = 0; k < r->count; k++) {
        const rewriter_image *i = &r->images[k];
        images[k] = (elf_pack_image){.path = i->path, .soname = k ? i->name : NULL, .bias = i->bias};
        rewriter_extent(i->im, &images[k].link_low, &images[k].link_high);
        uint64_t end = i->plan->text_addr - i->bias + i->plan->text_size;
        if (end > images[k].link_high) images[k].link_high = end;
        if (!i->live.process) check_place(r, i, &images[k]); /* in a process room was looked for */
    }
    elf_pack p = {
        .tool_path = "/proc/self/exe",
        .tool_base = inl_own_base(),
        .heap = tool_heap(),
        .heap_size = tool_heap_size(),
        .argc = argc + 1,
        .argv = argv,
        .images = images,
        .image_count = r->count,
    };
    if (elf_carry_pack(&p, carry, &e) != INL_OK) rewriter_give_up_for(r, "cannot write %s: %s", r->images[0].out, &e);
    free(argv);
    free(images);
}

static void write_files(rewriter *r)
{
    elf_carry carry;
    bool carries = rewriter_needs_tool(r);
    if (carries) rewriter_pack(r, &carry);
    for (size_t k = r->count; k-- > 0;) { /* the program last */
        rewriter_image *i = &r->images[k];
        inl_error e = {0};
        r->now = i;
        elf_write_options o = {
            .carry = carries && k == 0 ? &carry : NULL,
            .has_tool = carries,
            .set = carries ? ((const move_carry_head *)carry.data)->id : 0,
            .run_path = tool_now->options.with_libs ? "$ORIGIN" : NULL,
            .progress = rewriter_progress,
            .notice = notice,
            .arg = r,
        };
        if (elf_write(&i->file, i->plan, &o, i->out, &e) != INL_OK)
            rewriter_give_up_for(r, "cannot write %s: %s", i->out, &e);
        i->written = true;
    }
    if (carries) elf_carry_free(&carry);
}

static bool keeps_entry(void *arg, const cfg_program *p, uint32_t proc)
{
    const rewriter *r = arg;
    return finders_is_one(r->now, p->procs[proc].addr);
}

static void tell_left(const rewriter_image *i)
{
    for (uint32_t k = 0; k < i->cfg->proc_count; k++) {
        const move_how how = i->plan->procs[k].how;
        const char *why = how == MOVE_LEFT || how == MOVE_MOVED_QUIETLY ? rewriter_reason(i, k) : NULL;
        inlay_proc *p = why ? inlay_proc_at(i->cfg->procs[k].addr + i->bias) : NULL;
        if (p && p->wanted) TOOL_CALL(ON_PROC_LEFT, void (*)(inlay_proc *, const char *, void *), p, why);
    }
}

bool rewriter_watches_syscalls(void)
{
    return tool_now->callbacks[ON_SYSCALL_ENTRY] || tool_now->callbacks[ON_SYSCALL_EXIT];
}

/* A tool in a process has to know all that has moved, and the system calls in it, whatever it is there for. */
void rewriter_set_client(rewriter *r)
{
    bool in_process = r->images[0].live.process != NULL;
    bool shows = tool_client_sees_code() || rewriter_watches_syscalls() || tool_handoff_data.target ||
                 (in_process && registered_something());
    r->client = (move_client){
        .arg = r,
        .wanted = wanted,
        .empty = shows_code() ? NULL : is_empty,
        .instrument = shows ? instrument : NULL,
        .progress = rewriter_progress,
        .keeps_entry = in_process ? keeps_entry : NULL,
        .go_back = tool_return_anywhere,
        .gate = {.at = (int32_t)MOVED_GATE, .matters = moved_syscall_matters},
    };
    r->client.weave.places = &tool_now->places;
    if (tool_now->options.stress & JIT_STRESS_RANDOM_REGS) r->client.weave.stress |= WEAVE_STRESS_RANDOM_REGS;
    if (!(tool_now->options.stress & TOOL_STRESS_IN_PLACE) && !r->counts_stay) {
        r->client.new_counter = tool_derive_counter;
        r->client.placed = tool_derive_placed;
    }
}

/* In a process that runs, frames on its stacks come back into the middle of procedures: what follows from flows would
 * not be right there, nor what waits for the end. So counts stay where they are. */
void rewriter_prepare(rewriter *r)
{
    moved_watch_syscalls(rewriter_watches_syscalls());
    r->counts_stay = tool_now->options.attaching;
    rewriter_set_client(r);
}

void rewriter_plan(rewriter *r)
{
    tool_now->plans = true;
    if (!r->counts_stay) decide_sums(r);
    for (size_t k = 0; k < r->count; k++) make_plan(r, &r->images[k]);
    for (size_t k = 0; k < r->count && tool_now->callbacks[ON_PROC_LEFT]; k++) tell_left(&r->images[k]);
    if (tool_derive_failed())
        rewriter_give_up(r, "cannot rewrite %s: %s", r->images[0].path,
                         "the tool first asked for a counter's value (inlay_counter_value) when procedures with counts "
                         "had been written; it must make such an expression in main or for the first code it is shown");
}

/* The program is analysed here meanwhile. */
static void analyse_ahead(const rewriter *r)
{
    image **images = calloc(r->count, sizeof *images);
    rewriter_must((char *)images);
    for (size_t k = 1; k < r->count; k++) images[k - 1] = r->images[k].im;
    tool_ahead_begin(images, r->count - 1);
    free(images);
}

/* The program was there when the launcher looked. */
static char *whole_path(const rewriter *r, const char *program)
{
    char *path = realpath(program, NULL);
    if (!path && errno == ENOMEM) rewriter_must(path);
    if (!path)
        rewriter_give_up(r, "cannot rewrite %s: %s; has the tool's main gone to another folder?", program,
                         strerror(errno));
    return path;
}

void rewriter_run(void)
{
    tool_now->blame.phase = BLAME_STARTED;
    rewriter whole = {.watched = isatty(STDERR_FILENO)}, *r = &whole;
    const char *program = tool_handoff_data.program;
    tool_heap_begin();
    tool_heap()->program = tool_handle_string(program);
    r->started = rewriter_now();
    r->images = calloc(1, sizeof *r->images);
    r->count = 1;
    rewriter_must((char *)r->images);
    r->images[0] = (rewriter_image){
        .path = whole_path(r, program),
        .name = (char *)rewriter_skip_folders(program),
    };
    rewriter_open_image(r, &r->images[0]);
    refuse_library(r);
    r->made_folder = rewriter_make_folder(tool_now->options.with_libs);
    r->images[0].out = rewriter_program_out(program);
    if (tool_now->options.with_libs) rewriter_add_libraries(r);
    rewriter_check_outputs(r);
    if (r->made_folder) rmdir(tool_now->options.with_libs); /* none is left where this is interrupted */
    rewriter_place(r);
    for (size_t k = 0; k < r->count; k++) {
        elf_target_begin(&r->images[k].file, r->images[k].im);
        r->images[k].target = &r->images[k].file.target;
    }
    analyse_ahead(r);
    rewriter_prepare(r);
    for (size_t k = 0; k < r->count; k++) tool_client_image(r->images[k].m);
    rewriter_plan(r);
    tool_ahead_end();
    if (r->made_folder) rewriter_make_folder(tool_now->options.with_libs);
    write_files(r);
    rewriter_end_progress(r);
    bool good = rewriter_reports(r);
    tool_filter_warn();
    rewriter_summary(r);
    if (tool_now->options.strict && rewriter_refused(r))
        rewriter_give_up(r, "%s: %s", r->images[0].out, "not written, since points were refused (--strict)");
    tool_exit(good ? 0 : TOOL_EXIT_FAILED);
}
