/* Writing the new file: under a temporary name in the folder of the output, which takes the output's name
 * when it is complete. Whatever goes wrong, the input is untouched and no partial file stays. Set-ID bits and the
 * file's capabilities are not taken over, with a notice: the file is another owner's, perhaps, and carries code that
 * the original does not.
 *
 * A process that exceeds its limit of file size gets SIGXFSZ, which ends it; blocked meanwhile and taken
 * back, it leaves the call with EFBIG, an error as others.
 */
#include "elf/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { copy_size = 4 << 20 };

static inl_status failed(const char *path, const char *what, int cause, inl_error *e)
{
    inl_status code = cause == EACCES || cause == EPERM || cause == EROFS ? INL_ERR_ACCESS
                      : cause == ENOENT || cause == ENOTDIR               ? INL_ERR_NOT_FOUND
                      : cause == ENOMEM                                   ? INL_ERR_NO_MEMORY
                                                                          : INL_ERR_SYSTEM;
    const char *why = strerrordesc_np(cause);
    return inl_fail(e, code, "%s: %s: %s", path, what, why ? why : "failed");
}

inl_status elf_check_output(const elf_writer *w, const char *path, inl_error *e)
{
    struct stat in, out;
    if (stat(path, &out) != 0) {
        if (errno == ENOENT) return INL_OK;
        return failed(path, "cannot be written", errno, e);
    }
    if (stat(image_path(w->im), &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return inl_fail(e, INL_ERR_USAGE, "%s: the output is the input", path);
    if (!S_ISREG(out.st_mode))
        return inl_fail(e, INL_ERR_USAGE, "%s: %s, not a regular file", path,
                        S_ISDIR(out.st_mode) ? "a folder" : "a device or pipe");
    return INL_OK;
}

static int write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
    while (size) {
        ssize_t n = pwrite(fd, bytes, size < 1 << 30 ? size : 1 << 30, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENOSPC;
        bytes += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

/* A tool's memory may be large and hardly used: what is zero is left out, and takes no room on the disk. Not the last
 * part, behind which the file may end. */
static int write_data(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
    enum { PART = 64 << 10 };
    static const uint8_t zeros[PART];
    int cause = 0;
    for (size_t at = 0; at < size && !cause; at += PART) {
        size_t n = size - at < PART ? size - at : PART;
        if (at + n == size || memcmp(bytes + at, zeros, n) != 0) cause = write_all(fd, bytes + at, n, offset + at);
    }
    return cause;
}

static int edit_order(const void *a, const void *b)
{
    const elf_edit *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The part of an edit that lies in [from, from + size) of the file. */
static void apply(const elf_edit *edit, uint8_t *buffer, uint64_t from, uint64_t size)
{
    uint64_t low = edit->offset > from ? edit->offset : from;
    uint64_t high = edit->offset + edit->size < from + size ? edit->offset + edit->size : from + size;
    if (low < high) memcpy(buffer + (low - from), edit->bytes + (low - edit->offset), high - low);
}

/* The original's bytes with the edits, through a buffer. */
static int write_original(elf_writer *w, int fd)
{
    uint8_t *buffer = malloc(copy_size);
    size_t edit = 0;
    int cause = buffer ? 0 : ENOMEM;
    if (w->edits.count) qsort(w->edits.items, w->edits.count, sizeof *w->edits.items, edit_order);
    for (uint64_t at = 0; at < w->old_size && !cause; at += copy_size) {
        uint64_t size = w->old_size - at < copy_size ? w->old_size - at : copy_size;
        memcpy(buffer, w->old + at, size);
        if (at == 0) memcpy(buffer, &w->header, sizeof w->header);
        for (; edit < w->edits.count && w->edits.items[edit].offset < at + size; edit++)
            apply(&w->edits.items[edit], buffer, at, size);
        cause = write_all(fd, buffer, size, at);
        /* What reaches into the next part is applied there once more. */
        while (edit > 0 && w->edits.items[edit - 1].offset + w->edits.items[edit - 1].size > at + size) edit--;
    }
    free(buffer);
    return cause;
}

/* Where what belongs to the file as ELF ends. */
static uint64_t end_of_elf(const elf_writer *w)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;
    const image_segment *segments;
    size_t count = image_segments(w->im, &segments);
    uint64_t end = 0;
    memcpy(&h, w->old, sizeof h);
    if (w->im->view.section_count) end = h.e_shoff + (uint64_t)w->im->view.section_count * sizeof s;
    for (size_t i = 0; i < count; i++)
        if (segments[i].file_offset + segments[i].file_size > end)
            end = segments[i].file_offset + segments[i].file_size;
    for (uint32_t i = 0; i < w->im->view.section_count; i++)
        if (image_view_section(&w->im->view, i, &s) && s.sh_type != SHT_NOBITS && s.sh_size <= w->old_size &&
            s.sh_offset <= w->old_size - s.sh_size && s.sh_offset + s.sh_size > end)
            end = s.sh_offset + s.sh_size;
    return end;
}

bool elf_appended(const elf_writer *w, uint64_t *from)
{
    *from = end_of_elf(w);
    for (uint64_t i = *from; i < w->old_size; i++)
        if (w->old[i]) return true;
    return false;
}

/* What is appended stays where it was, since the program may know it by its offset, and is at the new file's end again,
 * for who counts from there, or from the end of the section headers (elf_sections.c). */
static int write_appended(const elf_writer *w, int fd)
{
    uint64_t from, end = w->tail.addr + w->tail.size;
    if (!elf_appended(w, &from)) return 0;
    return write_all(fd, w->old + from, w->old_size - from, end + ((from - end) & (elf_isa_here.page - 1)));
}

static int write_parts(elf_writer *w, int fd, mode_t mode)
{
    const move_plan *p = w->plan;
    int cause = write_original(w, fd);
    if (!cause) cause = write_all(fd, p->text, p->text_size, w->text_at - w->shift);
    if (!cause) cause = write_all(fd, w->boot.data, w->boot.size, w->boot.addr - w->shift);
    if (!cause) cause = write_data(fd, w->ro.data, w->ro.size, w->ro.addr - w->shift);
    if (!cause) cause = write_all(fd, w->rw.data, w->rw.size, w->rw.addr - w->shift);
    if (!cause) cause = write_all(fd, w->tail.data, w->tail.size, w->tail.addr);
    if (!cause) cause = write_appended(w, fd);
    if (!cause && fchmod(fd, mode) != 0) cause = errno;
    return cause;
}

/* The folder's part of the path with a name that is not taken. */
static int open_temporary(const char *path, char **name)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    if (asprintf(name, "%.*s.inlay-XXXXXX", folder, path) < 0) {
        *name = NULL;
        errno = ENOMEM;
        return -1;
    }
    return mkostemp(*name, O_CLOEXEC);
}

static int write_temporary(elf_writer *w, int fd, mode_t mode)
{
    sigset_t big, before, pending;
    struct timespec now = {0};
    sigemptyset(&big);
    sigaddset(&big, SIGXFSZ);
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, &big, &before);
    int cause = write_parts(w, fd, mode);
    if (close(fd) != 0 && !cause) cause = errno;
    if (cause == EFBIG && !sigismember(&pending, SIGXFSZ)) sigtimedwait(&big, NULL, &now);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return cause;
}

inl_status elf_write_file(elf_writer *w, const char *path, inl_error *e)
{
    struct stat in;
    char *name = NULL;
    if (stat(image_path(w->im), &in) != 0) return failed(image_path(w->im), "cannot be read", errno, e);
    int fd = open_temporary(path, &name);
    if (fd < 0) {
        inl_status st = failed(path, "cannot be written", errno, e);
        free(name);
        return st;
    }
    if (in.st_mode & (S_ISUID | S_ISGID))
        elf_notice(w, "not set-user-ID or set-group-ID as the original is: it runs with the rights of whoever "
                      "starts it");
    if (getxattr(image_path(w->im), "security.capability", NULL, 0) > 0)
        elf_notice(
            w, "without the capabilities that the original has (getcap): it runs with the rights of whoever starts it");
    int cause = write_temporary(w, fd, in.st_mode & 0777);
    if (!cause && rename(name, path) != 0) cause = errno;
    if (cause) unlink(name);
    free(name);
    return cause ? failed(path, "cannot be written", cause, e) : INL_OK;
}
