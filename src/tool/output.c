/* The tool's result.
 *
 * The first process writes to the file of -o, which the launcher opened before the program started.
 * A forked child, and what it execs, opens FILE.<pid> when it first has something to say, from a
 * descriptor of the folder: the program may have changed its root, its folder or its user since. Where
 * it may no longer make files there, its text is added to the first process's.
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
#include <sys/syscall.h>
#include <unistd.h>

static FILE *out;
static bool out_is_file, failed;
static int left_over = -1; /* the parent's file, in a forked child that has not opened its own */

/* The hidden number of the parent's file is taken over: there are not many of them. */
static int take_place(int fd)
{
    if (left_over < 0) return resident_hide(fd);
    int place = dup3(fd, left_over, O_CLOEXEC);
    if (place < 0) return resident_hide(fd);
    close(fd);
    left_over = -1;
    return place;
}

static int open_other(void)
{
    const char *path = tool_options_now.output, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int dir = tool_handoff_data.fds.out_dir;
    int fd = result_open_other(dir < 0 ? AT_FDCWD : dir, name);
    if (fd < 0 && tool_handoff_data.fds.shared >= 0) return tool_handoff_data.fds.shared;
    if (fd < 0) {
        tool_say("cannot write %s.%d in the folder of %s: %s", name, inlay_pid(), path, strerror(errno));
        return -1;
    }
    return tool_handoff_data.fds.out = take_place(fd);
}

static FILE *open_locked(void)
{
    if (out) return out;
    int fd = tool_handoff_data.fds.err;
    if (tool_options_now.output) {
        int file = tool_handoff_data.fds.out >= 0 ? tool_handoff_data.fds.out : open_other();
        out_is_file = file >= 0;
        if (file < 0) failed = true;
        else fd = file;
    }
    out = fdopen(fd, "w");
    if (!out) return stderr;
    setvbuf(out, NULL, _IOFBF, 64 << 10);
    return out;
}

FILE *inlay_out(void)
{
    if (!tool_handoff_data.resident) return stderr;
    inl_lock_take(&tool_output_lock);
    FILE *f = open_locked();
    inl_lock_release(&tool_output_lock);
    return f;
}

bool inlay_format_is_json(void) { return tool_options_now.json; }

bool inlay_write(const void *bytes, size_t size)
{
    FILE *f = inlay_out();
    inl_lock_take(&tool_output_lock);
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
    if (size && !failed) {
        failed = true;
        tool_say("cannot write the output: %s", strerror(errno));
    }
    inl_lock_release(&tool_output_lock);
    return size == 0;
}

void tool_output_flush(void)
{
    if (out && fflush(out) != 0 && !failed) {
        failed = true;
        tool_say("cannot write the output: %s", strerror(errno));
    }
}

void tool_output_close(void)
{
    tool_output_flush();
    if (out && out_is_file) {
        fclose(out);
        tool_handoff_data.fds.out = -1;
        out = NULL;
    }
}

/* The stream's buffer holds what the parent will write. The stream itself is given up, not closed: its
 * descriptor waits to be taken over. */
void tool_output_fork_child(void)
{
    if (out) __fpurge(out);
    out = NULL;
    if (tool_handoff_data.fds.out >= 0) left_over = tool_handoff_data.fds.out;
    tool_handoff_data.fds.out = -1;
    out_is_file = failed = false;
}
