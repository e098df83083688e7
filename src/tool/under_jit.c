/* The JIT engine under a tool, in a build that has it; the others have without_jit.c. */
#include "tool/debug_info.h"
#include "tool/gdb.h"
#include "tool/kept.h"
#include "tool/state.h"

#include <inttypes.h>
#include <stdio.h>

const char *tool_jit_missing(void) { return NULL; }

inl_status tool_jit_set_up(const run_client *client, const run_start_state *start, inl_error *e)
{
    const tool_options *o = &tool_now->options;
    jit_options options = {.instrument = tool_client_sees_code() ? tool_client_sees : NULL,
                           .refused = tool_client_refused,
                           .stress = o->stress,
                           .chain_jumps = true,
                           .dump = o->dump,
                           .dump_low = o->dump_low,
                           .dump_high = o->dump_high,
                           .stats = o->stats,
                           .shows = &tool_reads_registers != NULL,
                           .dump_wanted = tool_filter_images() || tool_filter_procs() ? tool_address_wanted : NULL};
    if (!gdb_begin(&options.debugger)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (o->debug_info) {
        options.made = debug_info_made;
        options.flushed = debug_info_flushed;
    }
    options.reporter = (jit_reporter){.make = tool_told_report, .taken = tool_told_taken};
    options.weave.places = &tool_now->places;
    tool_kept_fill(&options.keeping);
    if (!&tool_reads_counters && !options.keeping.key) options.weave.joint = tool_joint;
    if (options.stress & JIT_STRESS_RANDOM_REGS) options.weave.stress |= WEAVE_STRESS_RANDOM_REGS;
    inl_status s = jit_init(client, &options, start, e);
    if (!s && o->debug_info && !debug_info_begin()) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return s;
}

void tool_jit_run(void) { jit_run(); }

run_thread *tool_jit_join(const jit_joining *j, bool first, inl_error *e) { return jit_join(j, first, e); }

void tool_jit_joined(void) { jit_joined(); }

bool tool_jit_leave(const char **why)
{
    *why = jit_leave_barred();
    if (!*why) jit_leave_ask();
    return !*why;
}

void tool_jit_image_gone(const image *im) { debug_info_image_gone(im); }

void tool_jit_forked(void)
{
    debug_info_forked();
    gdb_forked();
}

/* --- --gdb --- */

int tool_jit_gdb_launch(void) { return gdb_launch(tool_now->options.gdb); }

size_t tool_jit_gdb_state(char *out, size_t size) { return gdb_handed_on(out, size); }

const char *tool_jit_take_gdb(const char *state) { return gdb_take_handed_on(state); }

void tool_jit_gdb_ended(run_thread *t, int status, int signo) { gdb_ended(t, status, signo); }

void tool_jit_gdb_execs(run_thread *t, bool follows) { gdb_execs(t, follows); }

/* --- --stats --- */

static void row(const char *name, uint64_t value) { fprintf(stderr, "  %-34s %14" PRIu64 "\n", name, value); }

static void show_branches(const jit_stats *s)
{
    static const char *const kinds[JIT_KINDS] = {"returns", "indirect calls", "indirect jumps",
                                                 "system calls' ways back"};
    char name[64];
    for (unsigned k = 0; k < JIT_KINDS; k++) {
        uint64_t missed = s->missed[k] - s->unknown[k];
        if (k != JIT_KIND_SYSCALL) row(kinds[k], s->executed[k]);
        snprintf(name, sizeof name, "%s, found late", kinds[k]);
        row(name, s->missed[k] > s->unknown[k] ? missed : 0);
        snprintf(name, sizeof name, "%s, not found", kinds[k]);
        row(name, s->unknown[k]);
    }
}

static void show_dispatches(const jit_stats *s)
{
    static const char *const reasons[JIT_REASONS] = {
        [RUN_LEAVE_EXIT] = "dispatched: direct exits",    [RUN_LEAVE_INDIRECT] = "dispatched: indirect branches",
        [RUN_LEAVE_SYSCALL] = "dispatched: system calls", [RUN_LEAVE_SIGNAL] = "dispatched: signals",
        [RUN_LEAVE_START] = "dispatched: beginnings",     [RUN_LEAVE_SPECIAL] = "dispatched: instructions",
        [RUN_LEAVE_STALE] = "dispatched: stale code",     [RUN_LEAVE_STEP] = "dispatched: writes to own code",
        [RUN_LEAVE_FLAGS] = "dispatched: steps begun",    [RUN_LEAVE_SECTION] = "dispatched: restartable sequences",
    };
    for (unsigned k = 0; k < JIT_REASONS; k++)
        if (reasons[k]) row(reasons[k], s->dispatches[k]);
}

void tool_jit_ends(void)
{
    jit_stats s;
    if (tool_handoff_data.role == TOOL_RESIDENT) jit_kept_save();
    if (!tool_now->options.stats || tool_handoff_data.role != TOOL_RESIDENT) return;
    jit_stats_take(&s);
    fprintf(stderr, "%s: stats of %s, process %d\n", tool_name(), inlay_program(), inlay_pid());
    row("superblocks", s.superblocks);
    row("superblocks taken from disk", s.kept);
    row("superblocks cut for length", s.cut);
    row("superblocks that are checked", s.checked);
    row("blocks", s.blocks);
    row("instructions", s.instructions);
    row("bytes of code", s.code_bytes);
    row("bytes of stubs", s.stub_bytes);
    row("landings", s.landings);
    row("links", s.links);
    row("superblocks dropped", s.drops);
    row("flushes", s.flushes);
    row("writes to translated pages", s.writes);
    show_branches(&s);
    show_dispatches(&s);
    row("signals that were sent", s.sent);
    row("faults", s.faults);
    row("restartable sequences aborted", s.aborted);
    row("cycles in the dispatcher", s.dispatcher_cycles);
    row("cycles of them for translation", s.translation_cycles);
    row("cycles since the start", s.cycles);
    fflush(stderr);
}
