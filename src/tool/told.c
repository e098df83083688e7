/* What is told in a program's process of the tool that runs it (move_told), for inlay detach and inlay ps. */
#include "base/page.h"
#include "base/sys.h"
#include "jit/jit.h"
#include "move/live.h"
#include "tool/injection.h"
#include "tool/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 8192 };

/* The tool's options, as they would be typed. */
static void join_options(char *out, size_t room)
{
    const tool_command *c = &tool_now->command;
    size_t n = 0;
    *out = 0;
    for (int i = 1; i < c->options_end && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%s", n ? " " : "", c->argv[i]);
}

static bool map_at(uint64_t place)
{
    long at = sys_call(SYS_mmap, (long)place, SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return at == (long)place;
}

/* Where both places are taken there is none, and the tool stays. */
void tool_told_begin(void)
{
    uint64_t at = map_at(MOVE_TOLD_JIT) ? MOVE_TOLD_JIT : map_at(MOVE_TOLD_OTHER) ? MOVE_TOLD_OTHER : 0;
    if (!at) return;
    run_own_locked(at, at + SIZE, true);
    move_told *told = (move_told *)at;
    char *tool = (char *)(told + 1), path[32];
    size_t room = SIZE / 2 - sizeof(move_told);
    snprintf(path, sizeof path, "/proc/self/fd/%d", tool_handoff_data.fds.tool);
    ssize_t n = readlink(path, tool, room - 1);
    if (n <= 0) snprintf(tool, room, "%s", tool_name());
    char *options = (char *)told + SIZE / 2;
    join_options(options, SIZE / 2);
    *told = (move_told){.layout = sizeof(move_told),
                        .size = SIZE,
                        .user = getuid(),
                        .seconds = (uint64_t)time(NULL),
                        .tool = (uint64_t)(uintptr_t)tool,
                        .options = (uint64_t)(uintptr_t)options,
                        .has_output = tool_now->options.output != NULL,
                        .tool_low = tool_handoff_data.start.tool_low,
                        .tool_high = tool_handoff_data.start.tool_high,
                        .started = MOVE_TOLD_RUNS_JIT};
    told->magic = MOVE_TOLD_MAGIC;
    tool_now->told = told;
}

/* The last report's descriptor has done its duty. */
static void forget_report(move_told *r)
{
    uint64_t before = __atomic_exchange_n(&r->report, 0, __ATOMIC_SEQ_CST);
    if (before == MOVE_REPORT_MADE) run_fd_close((int)r->report_fd);
}

/* Another one's stays, which he may not have opened yet. */
void tool_told_taken(uint32_t who)
{
    if (tool_now->told && tool_now->told->report_to == who) forget_report(tool_now->told);
}

void tool_told_report(run_thread *t, uint32_t who, const run_thread *late)
{
    if (!tool_now->told) return;
    move_told *r = tool_now->told;
    forget_report(r);
    r->report_fd = late ? -1 : tool_report_on_request(t, false, true);
    r->report_late = late ? (uint64_t)late->tid : 0;
    r->report_to = who;
    uint64_t what = late ? MOVE_REPORT_LATE : r->report_fd >= 0 ? MOVE_REPORT_MADE : MOVE_REPORT_ELSEWHERE;
    __atomic_store_n(&r->report, what, __ATOMIC_SEQ_CST);
}

void tool_told_end(void)
{
    if (tool_now->told) __atomic_store_n(&tool_now->told->started, MOVE_TOLD_LEAVES_JIT, __ATOMIC_SEQ_CST);
}

inl_status inject_check_jit(const live_process *p, inl_error *e)
{
    uint64_t low = tool_places.zone_low, high = low + tool_places.zone_random + tool_places.zone_size;
    for (size_t i = 0; i < p->mappings.count; i++)
        if (*p->mappings.items[i].name == '/' && p->mappings.items[i].low >= low && p->mappings.items[i].high <= high)
            return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d runs under a tool (%s) already", p->pid,
                            p->mappings.items[i].name);
    live_told t;
    inl_error ignored;
    inl_status s = INL_OK;
    if (live_record_read(p->pid, &t, &ignored) == INL_OK && t.record->started == MOVE_TOLD_RUNS_JIT)
        s = inl_fail(e, INL_ERR_UNSUPPORTED, "process %d runs under a tool (%s) already", p->pid, t.tool);
    live_told_free(&t);
    return s;
}
