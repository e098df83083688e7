/* What was done and what was not: the honesty report (--report, JSON), the map of addresses (--map), and
 * one line for the person who waits. */
#include "tool/rewriter.h"
#include "base/vec.h"

#include <inlay/output.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef tool_refusal refusal;

void rewriter_note_refusal(uint64_t address, const char *what, const char *why)
{
    inl_vec_push(&tool_now->refusals, (refusal){address, strdup(what), strdup(why)});
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const refusal *)a)->address, y = ((const refusal *)b)->address;
    return x < y ? -1 : x > y;
}

/* --- sums --- */

typedef struct sums {
    uint64_t procs, moved, quietly, calls_stay, left, unwanted, points, refused;
} sums;

static sums sum_up(const rewriter_image *i)
{
    sums s = {.procs = i->cfg->proc_count};
    for (uint32_t k = 0; k < i->cfg->proc_count; k++) {
        const move_proc *p = &i->plan->procs[k];
        s.moved += p->how == MOVE_MOVED || p->how == MOVE_MOVED_SHORT;
        s.quietly += p->how == MOVE_MOVED_QUIETLY;
        s.calls_stay += p->calls_stay;
        s.left += p->how == MOVE_LEFT;
        s.unwanted += p->how == MOVE_UNWANTED;
        s.points += p->points;
        s.refused += p->refused;
    }
    return s;
}

/* --- the report --- */

static const char *status_of(const move_proc *p)
{
    switch ((move_how)p->how) {
    case MOVE_MOVED:
    case MOVE_MOVED_SHORT: return "moved";
    case MOVE_MOVED_QUIETLY: return "moved without snippets";
    case MOVE_LEFT: return "left alone";
    case MOVE_UNWANTED: return "not asked for";
    }
    return "?";
}

static const char *entry_of(const move_proc *p)
{
    if (p->how == MOVE_MOVED_SHORT) return "short jump to a springboard";
    return p->new_addr ? "jump" : NULL;
}

/* Points that the plan was never asked for, since they were refused when they were inserted. */
static void print_refusals(uint64_t low, uint64_t size)
{
    bool begun = false;
    for (size_t i = 0; i < tool_now->refusals.count; i++) {
        const refusal *r = &tool_now->refusals.items[i];
        if (r->address - low >= size) continue;
        if (!begun) inlay_json_begin("not_inserted", '[');
        begun = true;
        inlay_json_begin(NULL, '{');
        inlay_json_uint("address", r->address);
        inlay_json_string("what", r->what);
        inlay_json_string("why", r->why);
        inlay_json_end();
    }
    if (begun) inlay_json_end();
}

static void print_proc(const rewriter_image *i, uint32_t k)
{
    const cfg_proc *c = &i->cfg->procs[k];
    const move_proc *p = &i->plan->procs[k];
    const char *reason = rewriter_reason(i, k);
    char name[40];
    snprintf(name, sizeof name, "sub_%" PRIx64, c->addr);
    inlay_json_begin(NULL, '{');
    inlay_json_string("name", c->name ? c->name : name);
    inlay_json_uint("address", c->addr + i->bias);
    inlay_json_uint("size", c->size);
    inlay_json_string("status", status_of(p));
    if (entry_of(p)) inlay_json_string("entry", entry_of(p));
    if (reason) inlay_json_string("reason", reason);
    if (p->new_addr) {
        inlay_json_uint("new_address", p->new_addr);
        inlay_json_uint("new_size", p->new_size);
    }
    if (p->points) inlay_json_uint("points", p->points);
    if (p->refused) inlay_json_uint("points_refused", p->refused);
    if (tool_now->refusals.count) print_refusals(c->addr + i->bias, c->size);
    inlay_json_end();
}

static void print_image(const rewriter_image *i)
{
    sums s = sum_up(i);
    inlay_json_begin(NULL, '{');
    inlay_json_string("path", i->path);
    inlay_json_string("output", i->out);
    inlay_json_uint("bias", i->bias);
    inlay_json_uint("procedures", s.procs);
    inlay_json_uint("moved", s.moved);
    inlay_json_uint("moved_without_snippets", s.quietly);
    inlay_json_uint("calls_in_place", s.calls_stay);
    inlay_json_uint("left_alone", s.left);
    inlay_json_uint("not_asked_for", s.unwanted);
    inlay_json_uint("points", s.points);
    inlay_json_uint("points_refused", s.refused);
    inlay_json_uint("text_bytes", i->cfg->text_bytes);
    inlay_json_uint("understood_bytes", i->cfg->covered_bytes);
    inlay_json_uint("moved_bytes", i->plan->moved_bytes);
    inlay_json_uint("new_text_bytes", i->plan->text_size);
    rewriter_print_bytes(i);
    inlay_json_begin("list", '[');
    for (uint32_t k = 0; k < i->cfg->proc_count; k++) print_proc(i, k);
    inlay_json_end();
    inlay_json_end();
}

static void print_report(const rewriter *r, FILE *f)
{
    if (tool_now->refusals.count)
        qsort(tool_now->refusals.items, tool_now->refusals.count, sizeof(refusal), by_address);
    tool_json_to(f);
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", tool_name());
    inlay_json_string("program", r->images[0].path);
    inlay_json_begin("images", '[');
    for (size_t k = 0; k < r->count; k++) print_image(&r->images[k]);
    inlay_json_end();
    inlay_json_end();
    tool_json_to(NULL);
}

/* --- the map: old new size procedure, one line a block that has moved --- */

static void print_map(const rewriter *r, FILE *f)
{
    fputs("# old new size procedure; addresses as in the report (link-time address + bias)\n", f);
    for (size_t n = 0; n < r->count; n++) {
        const rewriter_image *i = &r->images[n];
        const cfg_program *p = i->cfg;
        fprintf(f, "# image %s, bias 0x%" PRIx64 "\n", i->path, i->bias);
        for (uint32_t b = 0; b < p->block_count; b++) {
            const cfg_block *block = &p->blocks[b];
            const cfg_proc *proc = &p->procs[block->proc];
            assumed_addr old = move_assume(i->plan, (link_addr){block->addr}),
                         now = move_new_address(i->plan, old, false);
            if (!now.at) continue;
            fprintf(f, "%" PRIx64 " %" PRIx64 " %u ", old.at, now.at, block->size);
            if (proc->name) fprintf(f, "%s\n", proc->name);
            else fprintf(f, "sub_%" PRIx64 "\n", proc->addr);
        }
    }
}

/* --- both --- */

static bool write_one(const rewriter *r, const char *path, void (*print)(const rewriter *, FILE *))
{
    if (!path) return true;
    FILE *f = fopen(path, "we");
    if (f) print(r, f);
    if (f && !ferror(f) && fclose(f) == 0) return true;
    tool_say("cannot write %s: %s", path, strerror(errno));
    if (f) remove(path);
    return false;
}

bool rewriter_reports(const rewriter *r)
{
    bool report = write_one(r, tool_now->options.report, print_report);
    bool map = write_one(r, tool_now->options.map, print_map);
    return report && map;
}

/* In all images: when they were inserted, and by the weaver. */
uint64_t rewriter_refused(const rewriter *r)
{
    uint64_t n = tool_now->refusals.count;
    for (size_t k = 0; k < r->count; k++) n += sum_up(&r->images[k]).refused;
    return n;
}

/* Calls, signals and the like may be all that a tool wants to see. */
static void say_if_empty(const rewriter *r)
{
    uint64_t points = rewriter_refused(r);
    for (size_t k = 0; k < r->count; k++) points += sum_up(&r->images[k]).points;
    bool only_code = !tool_now->callbacks[ON_SYSCALL_ENTRY] && !tool_now->callbacks[ON_SYSCALL_EXIT];
    if (points || !only_code || !r->client.instrument) return;
    bool libs = tool_now->options.with_libs;
    tool_say("nothing was inserted%s%s%s", libs ? "" : " in ", libs ? "" : r->images[0].name,
             libs ? "" : ": if what the tool looks for lies in a library, rewrite that too (--with-libs DIR)");
}

void rewriter_summary(const rewriter *r)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double seconds = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - r->started;
    for (size_t k = 0; k < r->count; k++) {
        const rewriter_image *i = &r->images[k];
        struct stat st = {0};
        sums s = sum_up(i);
        stat(i->out, &st);
        uint64_t moved = s.moved + s.quietly;
        double share = i->cfg->text_bytes ? 100.0 * (double)i->plan->moved_bytes / (double)i->cfg->text_bytes : 0.0;
        fprintf(stderr,
                "%s: %s: %" PRIu64 " of %" PRIu64 " procedures moved, %" PRIu64 " left alone; %.1f %% of %" PRIu64
                " bytes of code; %s, %" PRIu64 " bytes",
                tool_name(), i->name, moved, s.procs, s.left, share, i->cfg->text_bytes, i->out, (uint64_t)st.st_size);
        if (k == 0 && rewriter_refused(r)) fprintf(stderr, "; %" PRIu64 " points refused", rewriter_refused(r));
        if (k == 0) fprintf(stderr, "; %.2f s", seconds);
        fputc('\n', stderr);
        rewriter_say_left(i);
    }
    sums of = sum_up(&r->images[0]);
    if (r->client.instrument && !of.moved && !of.unwanted)
        tool_say("nothing of %s can be instrumented: it may run and end without the tool", r->images[0].name);
    else say_if_empty(r);
}
