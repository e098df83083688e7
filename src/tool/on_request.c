/* A report in the program's midst, or the last one when the tool is taken out: somebody has asked for it
 * (moved/leave.c).
 *
 * It goes to a file in memory where it is to be read from outside: as the tool's result, and as its standard error, to
 * which all else goes that the tool says. The other threads stand still, none is in the tool's code. Where the program
 * may write small files only, as whose that counts, it goes to a pipe, which nobody limits but its own size: whoever
 * reads it sees when that was not enough (live_copy_report). */
#include "tool/state.h"
#include "base/sys.h"
#include "run/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct captured {
    int file, to, err; /* read from, written to; what standard error was; its number is kept */
    tool_output output;
} captured;

static bool may_write_much(void)
{
    enum { MUCH = 64 << 20 };
    struct rlimit limit;
    long r = sys_call4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);
    return sys_failed(r) || limit.rlim_cur >= MUCH; /* RLIM_INFINITY is the largest number */
}

/* *to: where it is written; the answer: from where it is read. */
static int open_capture(int *to)
{
    enum { ROOM = 1 << 20 }; /* as much as everybody may ask for */
    int ends[2];
    if (!may_write_much() && !sys_failed(sys_call2(SYS_pipe2, (long)ends, O_CLOEXEC | O_NONBLOCK))) {
        fcntl(ends[0], F_SETPIPE_SZ, ROOM);
        *to = resident_hide(ends[1]);
        return resident_hide(ends[0]);
    }
    int file = (int)sys_call2(SYS_memfd_create, (long)"inlay report", 1 /* MFD_CLOEXEC */);
    return *to = file < 0 ? -1 : resident_hide(file);
}

static void give_up_capture(const captured *c, FILE *f)
{
    const int all[] = {c->file, c->to, c->err};
    if (f) f->_fileno = -1;
    if (f) fclose(f);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] >= 0 && (i == 0 || all[i] != all[0])) run_fd_close(all[i]);
}

static bool begin_capture(captured *c)
{
    *c = (captured){.file = -1, .to = -1, .err = -1, .output = tool_now->output};
    c->file = open_capture(&c->to);
    if (c->file < 0 || c->to < 0) {
        give_up_capture(c, NULL);
        return false;
    }
    fflush(stdout);
    fflush(stderr);
    c->err = resident_hide(fcntl(tool_handoff_data.fds.err, F_DUPFD_CLOEXEC, 3));
    FILE *f = fdopen(c->to, "w");
    if (!f || c->err < 0) {
        give_up_capture(c, f);
        return false;
    }
    setvbuf(f, NULL, _IOFBF, 64 << 10);
    dup3(c->to, tool_handoff_data.fds.err, O_CLOEXEC);
    tool_now->output = (tool_output){.stream = f, .left_over = c->output.left_over};
    return true;
}

/* The stream goes, its descriptor stays. */
static void end_capture(captured *c)
{
    FILE *f = tool_now->output.stream;
    fflush(stdout);
    fflush(stderr);
    fflush(f);
    f->_fileno = -1;
    fclose(f);
    dup3(c->err, tool_handoff_data.fds.err, O_CLOEXEC);
    run_fd_close(c->err);
    if (c->to != c->file) run_fd_close(c->to);
    tool_now->output = c->output;
}

/* What is written beyond the program's limit of file size would end the program. */
typedef struct big {
    uint64_t mask, pending;
} big;

static const uint64_t big_bit = (uint64_t)1 << (SIGXFSZ - 1);

static big hold_big(void)
{
    big b = {0};
    sys_call2(SYS_rt_sigpending, (long)&b.pending, sizeof b.pending);
    sys_call4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&big_bit, (long)&b.mask, sizeof b.mask);
    return b;
}

static void let_big(const big *b)
{
    const struct timespec now = {0};
    uint64_t pending = 0;
    sys_call2(SYS_rt_sigpending, (long)&pending, sizeof pending);
    if (pending & ~b->pending & big_bit) sys_call4(SYS_rt_sigtimedwait, (long)&big_bit, 0, (long)&now, sizeof big_bit);
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&b->mask, 0, sizeof b->mask);
}

static int report(run_thread *t, bool ends, bool captures)
{
    captured c = {.file = -1, .to = -1, .err = -1};
    if (ends) {
        tool_buffers_flush_all();
    } else {
        tool_buffers_flush(t);
        tool_buffers_flush_others(t);
    }
    tool_output_flush();
    bool captured = captures && begin_capture(&c);
    tool_sums_add();
    tool_derive_report(true);
    TOOL_CALL(ON_EXIT, void (*)(int, void *), 0);
    tool_derive_report(false);
    if (captured) end_capture(&c);
    else tool_output_flush();
    if (ends) tool_output_close();
    fflush(NULL);
    return captured ? c.file : -1;
}

int tool_report_on_request(run_thread *t, bool ends, bool captures)
{
    enum { WAITS = 2000 }; /* ms, for workers: none is to write to what is captured, nor to it when that has ended */
    bool rest = ends || run_workers_pause(WAITS);
    big b = hold_big();
    int file = report(t, ends, captures && rest);
    let_big(&b);
    if (!ends) run_workers_resume();
    return file;
}
