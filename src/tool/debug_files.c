/* The files of --debug-info, in a folder of the user's:
 *
 *     perf-PID.map    what perf looks for in /tmp: address, size and name of each piece of translated code. A line
 *                     is written at once: it is there however the process ends
 *     inlay-PID.gdb   commands: where the tool's symbols are, by which gdb finds its JIT interface, and how frames
 *                     are walked over from Inlay's own code into the program's. gdb -x inlay-PID.gdb
 *
 * They are made anew and never through a link: the folder may be everybody's.
 */
#include "tool/debug_info.h"
#include "tool/glibc.h"
#include "tool/state.h"

#include "base/sys.h"
#include "run/kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put_text(inl_bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put_text(inl_bytes *b, const char *fmt, ...)
{
    char text[4352];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0) inl_bytes_put(b, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* `goes_on`: the process has been here before its exec. */
static int open_own(const char *folder, const char *kind, const char *suffix, bool goes_on)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s-%d.%s", folder, kind, inlay_pid(), suffix);
    if (n < 0 || n >= (int)sizeof path) return -1;
    if (!goes_on) unlink(path);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (goes_on ? 0 : O_EXCL), 0600);
}

static void write_all(int fd, const inl_bytes *b)
{
    for (size_t at = 0; at < b->size && !b->failed;) {
        long n = sys_call3(SYS_write, fd, (long)(b->data + at), (long)(b->size - at));
        if (n <= 0) return;
        at += (size_t)n;
    }
}

/* It was loaded beside the tool, whose file is the process's. */
static void put_program(inl_bytes *script)
{
    for (const module *m = module_first(run_here.modules); m; m = m->next)
        if (m->is_main)
            put_text(script, "add-symbol-file '%s' -o %#lx\n", image_path(m->image), (unsigned long)m->bias);
}

/* gdb looks for the list of files when it attaches, with the symbols that it knows then. */
static void put_tool(inl_bytes *script, int tool)
{
    char path[4096];
    if (!run_proc_fd_path(tool, path, sizeof path)) return;
    put_text(script, "add-symbol-file '%s' -o %#lx\n", path, (unsigned long)(uintptr_t)&__ehdr_start);
    put_text(script, "detach\nattach %d\n", inlay_pid());
}

static void write_script(const char *folder)
{
    const tool_handoff *h = &tool_handoff_data;
    inl_bytes script = {0};
    put_text(&script, "# gdb -x this file\nset pagination off\nattach %d\n", inlay_pid());
    debug_border_script(&script);
    if (h->loaded) put_program(&script);
    else put_tool(&script, h->fds.tool);
    int fd = open_own(folder, "inlay", "gdb", false);
    if (fd >= 0) {
        write_all(fd, &script);
        close(fd);
    }
    inl_bytes_free(&script);
}

void debug_files_open(debug_files *f, const char *folder, bool goes_on)
{
    int fd = open_own(folder, "perf", "map", goes_on);
    f->map = fd < 0 ? -1 : resident_hide(fd);
    write_script(folder);
}

void debug_files_add(const debug_files *f, const debug_code *code, size_t count)
{
    inl_bytes lines = {0};
    if (f->map < 0) return;
    for (size_t i = 0; i < count; i++)
        put_text(&lines, "%lx %lx %s\n", (unsigned long)code[i].addr, (unsigned long)code[i].size, code[i].name);
    write_all(f->map, &lines);
    inl_bytes_free(&lines);
}
