/* Finding the program and saying beforehand, in one clear line, why it cannot be run. What the
 * kernel would refuse is told apart from what it would run but a tool cannot be put into: the
 * first is an error, the second a program that an instrumented one may still start natively. */
#include "tool/glibc.h"
#include "tool/tool.h"
#include "base/sys.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, MAX_SCRIPTS = 5, HEAD = 4096 };

/* This file's own header: what runs the tool is what a program must be for. */

static bool is_candidate(const char *path, int *why)
{
    struct stat st;
    if (stat(path, &st) != 0) return false;
    if (S_ISDIR(st.st_mode)) return *why = EISDIR, false;
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0) return *why = EACCES, false;
    return true;
}

static bool join(char out[PATH_SIZE], const char *dir, size_t dir_size, const char *name)
{
    if (dir_size + strlen(name) + 2 > PATH_SIZE) return false;
    memcpy(out, dir, dir_size);
    if (dir_size) out[dir_size++] = '/';
    strcpy(out + dir_size, name);
    return true;
}

inl_status program_find(const char *name, char out[PATH_SIZE], inl_error *e)
{
    if (strlen(name) >= PATH_SIZE) return inl_fail(e, INL_ERR_NOT_FOUND, "the name is too long");
    if (strchr(name, '/') || !*name) {
        strcpy(out, name);
        return INL_OK;
    }
    const char *path = getenv("PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    int why = ENOENT;
    for (const char *dir = path;; dir++) {
        size_t n = strcspn(dir, ":");
        if (join(out, dir, n, name) && is_candidate(out, &why)) return INL_OK;
        dir += n;
        if (!*dir) break;
    }
    if (why == EACCES) return inl_fail(e, INL_ERR_ACCESS, "%s: found, but not executable", name);
    return inl_fail(e, INL_ERR_NOT_FOUND, "%s: not found", name);
}

/* What takes privileges from a traced program: set-id bits that would change something, and file
 * capabilities. */
static bool gains_privileges(int fd, const struct stat *st)
{
    if (geteuid() == 0) return false;
    if ((st->st_mode & S_ISUID) && st->st_uid != geteuid()) return true;
    if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getegid()) return true;
    return fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static program_kind check_elf(const char *path, const uint8_t *head, size_t size, char *interp, inl_error *e)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)head;
    if (size < EI_NIDENT + 4) goto malformed;
    if (h->e_ident[EI_CLASS] == ELFCLASS32) {
        inl_fail(e, INL_ERR_UNSUPPORTED, "%s: is a 32-bit program", path);
        return PROGRAM_FOREIGN;
    }
    if (size < sizeof *h || h->e_ident[EI_CLASS] != ELFCLASS64) goto malformed;
    if (h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != __ehdr_start.e_machine) {
        inl_fail(e, INL_ERR_UNSUPPORTED, "%s: is for another architecture (ELF machine %u)", path, h->e_machine);
        return PROGRAM_FOREIGN;
    }
    if (h->e_type != ET_EXEC && h->e_type != ET_DYN) {
        inl_fail(e, INL_ERR_FORMAT, "%s: is an ELF file, but not a program", path);
        return PROGRAM_REFUSED;
    }
    if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff + (uint64_t)h->e_phnum * sizeof(Elf64_Phdr) > size ||
        h->e_phoff > size)
        return PROGRAM_OK; /* headers further away: the kernel's to judge */
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(head + h->e_phoff);
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (ph[i].p_type != PT_INTERP || ph[i].p_filesz < 2) continue;
        if (ph[i].p_offset > size || ph[i].p_filesz > size - ph[i].p_offset) continue;
        memcpy(interp, head + ph[i].p_offset, ph[i].p_filesz);
        interp[ph[i].p_filesz] = '\0';
    }
    return PROGRAM_OK;
malformed:
    inl_fail(e, INL_ERR_FORMAT, "%s: is a malformed ELF file", path);
    return PROGRAM_REFUSED;
}

/* The first word behind "#!", as the kernel has it: a carriage return is a part of it. */
static bool script_interpreter(const uint8_t *head, size_t size, char *out)
{
    size_t i = 2, n = 0;
    while (i < size && (head[i] == ' ' || head[i] == '\t')) i++;
    while (i < size && head[i] && !strchr(" \t\n", head[i])) out[n++] = (char)head[i++];
    out[n] = '\0';
    return n > 0;
}

static bool may(const char *path, int how) { return faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0; }

inl_status program_hidden(const char *path, inl_error *e)
{
    if (may(path, R_OK) || !may(path, X_OK)) return INL_OK;
    return inl_fail(e, INL_ERR_ACCESS, "%s: may be executed but not read", path);
}

static program_kind refuse_open(const char *path, inl_error *e)
{
    int why = errno;
    if (why == EACCES && program_hidden(path, e) != INL_OK) return PROGRAM_FOREIGN;
    if (why == ENOENT) inl_fail(e, INL_ERR_NOT_FOUND, "%s: not found", path);
    else inl_fail(e, INL_ERR_ACCESS, "%s: %s", path, strerror(why));
    return PROGRAM_REFUSED;
}

typedef struct chain { /* from a script to its interpreter, to that one's */
    _Alignas(16) uint8_t head[HEAD];
    char now[HEAD], next[HEAD + 1];
    bool is_script;
} chain;

/* The file `now`; when it is a script, or needs an interpreter, `next` is set to that file's name. */
static program_kind check_one(chain *c, inl_error *e)
{
    const char *path = c->now;
    char *next = c->next;
    bool *is_script = &c->is_script;
    uint8_t *head = c->head;
    *next = '\0';
    *is_script = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return refuse_open(path, e);
    struct stat st;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, head, HEAD, 0) : -1;
    bool gains = gains_privileges(fd, &st);
    close(fd);
    if (S_ISDIR(st.st_mode)) {
        inl_fail(e, INL_ERR_ACCESS, "%s: is a directory", path);
        return PROGRAM_REFUSED;
    }
    if (n < 0 || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0) {
        inl_fail(e, INL_ERR_ACCESS, "%s: not executable", path);
        return PROGRAM_REFUSED;
    }
    if (gains) {
        inl_fail(e, INL_ERR_ACCESS, "%s: would gain privileges, which a tool must not share", path);
        return PROGRAM_FOREIGN;
    }
    if (n >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0) return check_elf(path, head, (size_t)n, next, e);
    *is_script = n > 2 && head[0] == '#' && head[1] == '!';
    if (*is_script && script_interpreter(head, (size_t)n, next)) return PROGRAM_OK;
    inl_fail(e, INL_ERR_FORMAT, "%s: neither an ELF program nor a script with a #! line", path);
    return PROGRAM_REFUSED;
}

static program_kind check_chain(chain *c, const char *path, inl_error *e)
{
    c->is_script = true;
    strncpy(c->now, path, sizeof c->now - 1);
    for (int depth = 0; c->is_script; depth++) {
        if (depth > MAX_SCRIPTS) {
            inl_fail(e, INL_ERR_UNSUPPORTED, "%s: scripts that start scripts go too deep", path);
            return PROGRAM_REFUSED;
        }
        inl_error inner = {0};
        program_kind k = check_one(c, &inner);
        if (k != PROGRAM_OK) {
            if (depth == 0) inl_fail(e, inner.code, "%s", inner.text);
            else if (c->now[0] && c->now[strlen(c->now) - 1] == '\r')
                inl_fail(e, inner.code, "%s: its #! line ends with a carriage return: convert it (dos2unix)", path);
            else inl_fail(e, inner.code, "%s: its interpreter %s", path, inner.text);
            return k;
        }
        memcpy(c->now, c->next, sizeof c->now);
    }
    if (c->now[0] && access(c->now, F_OK) != 0) {
        inl_fail(e, INL_ERR_NOT_FOUND, "%s: its interpreter %s does not exist", path, c->now);
        return PROGRAM_REFUSED;
    }
    return PROGRAM_OK;
}

program_kind program_check(const char *path, inl_error *e)
{
    chain *c = calloc(1, sizeof *c);
    if (!c) {
        inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", path);
        return PROGRAM_REFUSED;
    }
    program_kind kind = check_chain(c, path, e);
    free(c);
    return kind;
}
