/* The tool's result.
 *
 * The first process writes to the file of -o, which the launcher opened before the program started.
 * A forked child, and what it execs, opens FILE.<pid> when it first has something to say, from a
 * descriptor of the folder: the program may have changed its root, its folder or its user since. Where
 * it may no longer make files there, its text is added to the first process's. So it is where FILE is no file: a
 * device or a pipe is everybody's, and nothing is made beside it.
 * Without -o all goes to what was standard error when the first launcher started.
 */
#include "tool/state.h"
#include "base/sys.h"

#include <inlay/output.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static tool_output *state(void) { return &tool_now->output; }

/* The hidden number of the parent's file is taken over: there are not many of them. */
static int take_place(int fd)
{
    if (state()->left_over < 0) return resident_hide(fd);
    int place = dup3(fd, state()->left_over, O_CLOEXEC);
    if (place < 0) return resident_hide(fd);
    close(fd);
    state()->left_over = -1;
    return place;
}

/* -1: what the first process writes to is a file. Raw bytes of several processes are a device's business (/dev/null),
 * but would be a mess in a pipe. */
static int everybodys(void)
{
    struct stat st;
    int shared = tool_handoff_data.fds.shared;
    if (shared < 0 || fstat(shared, &st) != 0 || S_ISREG(st.st_mode)) return -1;
    if (!S_ISCHR(st.st_mode)) return shared;
    int own = fcntl(shared, F_DUPFD_CLOEXEC, 3);
    return own < 0 ? shared : (tool_handoff_data.fds.out = take_place(own));
}

static int open_other(void)
{
    int common = everybodys();
    if (common >= 0) return common;
    const char *path = tool_now->options.output, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int dir = tool_handoff_data.fds.out_dir;
    int fd = result_open_other(dir < 0 ? AT_FDCWD : dir, name);
    if (fd < 0 && tool_handoff_data.fds.shared >= 0) return tool_handoff_data.fds.shared;
    if (fd < 0) {
        tool_say("cannot write %s.%d in the folder of %s: %s", name, inlay_pid(), path, strerror(errno));
        return -1;
    }
    return tool_handoff_data.fds.out = take_place(fd);
}

void tool_output_begin(void)
{
    if (tool_handoff_data.empties && ftruncate(tool_handoff_data.fds.out, 0) != 0 && errno != EINVAL)
        tool_say("%s: old content stays: %s", tool_now->options.output, strerror(errno));
    tool_handoff_data.empties = 0;
}

static FILE *open_locked(void)
{
    if (state()->stream) return state()->stream;
    tool_output_begin();
    int fd = tool_handoff_data.fds.err;
    if (tool_now->options.output) {
        int file = tool_handoff_data.fds.out >= 0 ? tool_handoff_data.fds.out : open_other();
        state()->is_file = file >= 0;
        if (file < 0) state()->failed = true;
        else fd = file;
    }
    state()->stream = fdopen(fd, "w");
    if (!state()->stream) return stderr;
    setvbuf(state()->stream, NULL, _IOFBF, 64 << 10);
    return state()->stream;
}

FILE *inlay_out(void)
{
    if (!tool_handoff_data.resident) return tool_now->options.mutating ? stdout : stderr;
    inl_lock_take(&tool_now->locks.output);
    FILE *f = open_locked();
    inl_lock_release(&tool_now->locks.output);
    return f;
}

bool inlay_format_is_json(void) { return tool_now->options.json; }

bool inlay_write(const void *bytes, size_t size)
{
    FILE *f = inlay_out();
    inl_lock_take(&tool_now->locks.output);
    fflush(f);
    bool mixed = fileno(f) == tool_handoff_data.fds.shared; /* not raw bytes into another's */
    errno = EACCES;
    const char *at = bytes;
    while (size && !mixed) {
        ssize_t n = write(fileno(f), at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        at += n;
        size -= (size_t)n;
    }
    if (size && !state()->failed) {
        state()->failed = true;
        tool_say("cannot write the output: %s", strerror(errno));
    }
    inl_lock_release(&tool_now->locks.output);
    return size == 0;
}

void tool_output_flush(void)
{
    if (state()->stream && fflush(state()->stream) != 0 && !state()->failed) {
        state()->failed = true;
        tool_say("cannot write the output: %s", strerror(errno));
    }
}

void tool_output_close(void)
{
    tool_output_flush();
    if (state()->stream && state()->is_file) {
        fclose(state()->stream);
        tool_handoff_data.fds.out = -1;
        state()->stream = NULL;
    }
}

/* Without -o the descriptor is not the stream's own. */
void tool_output_end(tool_output *o)
{
    if (!o->stream) return;
    fflush(o->stream);
    if (!o->is_file) o->stream->_fileno = -1;
    fclose(o->stream);
    *o = (tool_output){.left_over = -1};
}

/* The stream's buffer holds what the parent will write. The stream itself is given up, not closed: its
 * descriptor waits to be taken over, unless it is the parent's as well. */
void tool_output_fork_child(void)
{
    if (state()->stream) __fpurge(state()->stream);
    state()->stream = NULL;
    if (tool_handoff_data.fds.out >= 0 && !run_here.shares_files) state()->left_over = tool_handoff_data.fds.out;
    tool_handoff_data.fds.out = -1;
    state()->is_file = state()->failed = false;
}
