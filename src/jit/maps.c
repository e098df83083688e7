/* /proc/self/maps as the program should see it: a file in memory with the kernel's lines, less the
 * ranges that are Inlay's. The kernel merges neighbours of one kind, so a line may be ours in part.
 *
 * The text is that of the moment of opening. Names of the kernel's that belong to the parts that stay
 * are kept; protection is what the page table says, which for pages with translated code may lack
 * the write permission. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "jit/kernel.h"

enum { PAGE = 4096, LINE = 4608 };

static bool put(int out, const char *text, size_t n)
{
    while (n) {
        long done = sys_call3(SYS_write, out, (long)text, (long)n);
        if (done <= 0) return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

/* "low-high perms offset dev inode      name" */
typedef struct line {
    uint64_t low, high, offset;
    char perms[8], dev[16];
    unsigned long inode;
    const char *name;
} line;

static bool put_piece(int out, const line *l, uint64_t low, uint64_t high)
{
    enum { NAME_COLUMN = 73 };
    char text[LINE];
    uint64_t offset = l->inode ? l->offset + (low - l->low) : l->offset;
    int n = snprintf(text, sizeof text, "%08lx-%08lx %s %08lx %s %lu ", (long)low, (long)high,
                     l->perms, (long)offset, l->dev, l->inode);
    if (*l->name)
        n += snprintf(text + n, sizeof text - (size_t)n, "%*s%s",
                      n < NAME_COLUMN ? NAME_COLUMN - n : 0, "", l->name);
    if (n >= (int)sizeof text - 1) return false;
    text[n++] = '\n';
    return put(out, text, (size_t)n);
}

static bool ours(uint64_t page) { return jit_memory_is_ours(page, page + PAGE); }

/* The ends of a run of equal pages are looked for page by page: lines that are ours in part are few. */
static bool put_line(int out, const line *l)
{
    if (!jit_memory_is_ours(l->low, l->high)) return put_piece(out, l, l->low, l->high);
    for (uint64_t at = l->low; at < l->high;) {
        uint64_t from = at;
        bool mine = ours(at);
        while (at < l->high && ours(at) == mine) at += PAGE;
        if (!mine && !put_piece(out, l, from, at)) return false;
    }
    return true;
}

static bool put_text(int out, char *text)
{
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        line l = {0};
        unsigned long low, high, offset;
        int name_at = 0;
        if (sscanf(at, "%lx-%lx %7s %lx %15s %lu %n", &low, &high, l.perms, &offset, l.dev,
                   &l.inode, &name_at) < 6)
            return false;
        l.low = low;
        l.high = high;
        l.offset = offset;
        l.name = at + name_at;
        if (!put_line(out, &l)) return false;
    }
    return true;
}

static char *read_all(int fd)
{
    size_t size = 0, room = 64 << 10;
    char *text = malloc(room);
    for (;;) {
        long n = text ? sys_call3(SYS_read, fd, (long)(text + size), (long)(room - size - 1)) : -1;
        if (n < 0) {
            free(text);
            return NULL;
        }
        size += (size_t)n;
        if (n == 0) break;
        if (room - size < PAGE) {
            char *more = realloc(text, room *= 2);
            if (!more) free(text);
            text = more;
        }
    }
    text[size] = 0;
    return text;
}

long jit_maps_replace(int fd, int flags)
{
    char *text = read_all(fd);
    int out = (int)sys_call2(SYS_memfd_create, (long)"maps", 1 /* MFD_CLOEXEC */);
    inl_lock_take(&jit.lock);
    bool good = text && out >= 0 && put_text(out, text);
    inl_lock_release(&jit.lock);
    if (good) {
        sys_call3(SYS_lseek, out, 0, SEEK_SET);
        sys_call3(SYS_dup3, out, fd, flags & O_CLOEXEC);
    } else {
        sys_call3(SYS_lseek, fd, 0, SEEK_SET);
    }
    if (out >= 0) sys_call1(SYS_close, out);
    free(text);
    return fd;
}
