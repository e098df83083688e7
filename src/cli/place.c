/* Finding things: where the tools and the library are, and whether a file is a tool.
 *
 * A tool is told by an ELF note that libinlay.a puts into every program linked with it (owner
 * "Inlay"). Asking the note first matters: the command is about to execute the file, and executing a
 * program that is no tool would run it natively, un-instrumented, with arguments not meant for it. */
#include "cli/cli.h"
#include "tool/note.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Paths that do not fit are cut and then simply not found. */
static void join(char out[PATH_MAX], const char *a, const char *b)
{
    if (snprintf(out, PATH_MAX, "%s%s", a, b) >= PATH_MAX) out[0] = 0;
}

bool cli_place_find(cli_place *p)
{
    char dir[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n <= 0) {
        cli_say("cannot find my own file through /proc/self/exe: %s", strerror(errno));
        return false;
    }
    dir[n] = 0;
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;

    char library[PATH_MAX];
    join(library, dir, "/libinlay.a");
    if (access(library, F_OK) == 0) {
        join(p->tools, dir, "/tools");
        join(p->lib, dir, "");
        join(p->include, INLAY_SOURCE_INCLUDE, "");
        return true;
    }
    join(p->tools, dir, "/../lib/inlay/tools");
    join(p->lib, dir, "/../lib");
    join(p->include, dir, "/../include");
    return true;
}

/* --- is it a tool? --- */

typedef struct elf_look {
    bool marked, has_interpreter, is_cut; /* is_cut: its end is missing */
    uint32_t version;                     /* of the mark */
} elf_look;

/* Looks through one PT_NOTE segment. */
static void look_at_notes(const unsigned char *at, const unsigned char *end, elf_look *out)
{
    while ((size_t)(end - at) >= sizeof(Elf64_Nhdr)) {
        const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
        size_t name = ((size_t)n->n_namesz + 3) & ~(size_t)3;
        size_t desc = ((size_t)n->n_descsz + 3) & ~(size_t)3;
        at += sizeof *n;
        if (name > (size_t)(end - at) || desc > (size_t)(end - at) - name) return;
        if (n->n_type == 1 && n->n_descsz == sizeof out->version && /* a rewritten program has others */
            n->n_namesz == sizeof "Inlay" && memcmp(at, "Inlay", sizeof "Inlay") == 0) {
            out->marked = true;
            memcpy(&out->version, at + name, sizeof out->version);
        }
        at += name + desc;
    }
}

/* False: the program headers make no sense. */
static bool look_at_segments(const unsigned char *file, size_t size, elf_look *out)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)file;
    if (e->e_phentsize != sizeof(Elf64_Phdr)) return false;
    if (e->e_phoff > size || (uint64_t)e->e_phnum * sizeof(Elf64_Phdr) > size - e->e_phoff) return false;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        Elf64_Phdr ph;
        memcpy(&ph, file + e->e_phoff + i * sizeof ph, sizeof ph);
        out->has_interpreter |= ph.p_type == PT_INTERP;
        out->is_cut |= ph.p_type == PT_LOAD && (ph.p_offset > size || ph.p_filesz > size - ph.p_offset);
        if (ph.p_type != PT_NOTE || ph.p_offset % 4) continue;
        if (ph.p_offset > size || ph.p_filesz > size - ph.p_offset) continue;
        const unsigned char *notes = file + ph.p_offset;
        look_at_notes(notes, notes + ph.p_filesz, out);
    }
    return true;
}

/* The command itself is for the processor that tools must be for. */
static uint16_t own_machine(void)
{
    extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
    return __ehdr_start.e_machine;
}

static const char *wrong_with_file(const unsigned char *file, size_t size)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)file;
    elf_look look = {0};
    if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0) return "is not an Inlay tool, nor any ELF file";
    if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != own_machine())
        return "is a program for another processor than this " INLAY_ISA;
    if (!look_at_segments(file, size, &look)) return "is not an Inlay tool, and a malformed ELF file";
    if (!look.marked) return "is not an Inlay tool (one is linked with libinlay.a, as inlay cc does)";
    if (look.is_cut) return "is cut short: its end is missing; build or copy it anew";
    if (look.version != TOOL_NOTE_VERSION) return "was built with another version of Inlay; build it anew";
    if (look.has_interpreter)
        return "is linked dynamically; a tool must be static: link it with -static-pie, as inlay cc does";
    if (e->e_type != ET_DYN)
        return "is static, but cannot lie anywhere: compile it with -fPIE and link it with -static-pie, as inlay cc "
               "does";
    return NULL;
}

/* NULL: it is a tool that can be used. */
static const char *wrong_with(const char *path)
{
    const char *wrong = "cannot be read";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return wrong;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        void *file = st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        if (st.st_size == 0) wrong = "is not an Inlay tool: it is empty";
        if (file != MAP_FAILED) {
            wrong = wrong_with_file(file, (size_t)st.st_size);
            munmap(file, (size_t)st.st_size);
        }
    }
    close(fd);
    return wrong;
}

bool cli_is_tool(const char *path) { return !wrong_with(path); }

static bool is_source(const char *path)
{
    const char *dot = strrchr(path, '.');
    return access(path, F_OK) == 0 && ((dot && !strcmp(dot, ".c")) || cli_is_cxx(path));
}

bool cli_tool_find(const cli_place *p, const char *name, char path[PATH_MAX])
{
    if (strchr(name, '/')) join(path, name, "");
    else snprintf(path, PATH_MAX, "%.*s/%.*s", PATH_MAX - 260, p->tools, 255, name);

    if (!path[0] || access(path, F_OK) != 0) {
        if (strchr(name, '/')) cli_say("tool %s: %s", name, strerror(errno));
        else if (is_source(name)) cli_say("%s is a tool's source: build it first (inlay cc %s -o TOOL)", name, name);
        else if (access(name, F_OK) == 0)
            cli_say("no tool named '%s' in %s (for a file write ./%s)", name, p->tools, name);
        else cli_say("no tool named '%s' in %s (see: inlay tools)", name, p->tools);
        return false;
    }
    if (is_source(path)) {
        cli_say("%s is a tool's source: build it first (inlay cc %s -o TOOL)", path, path);
        return false;
    }
    if (is_folder(path) || access(path, X_OK) != 0) {
        cli_say("tool %s: not an executable file", path);
        return false;
    }
    const char *wrong = wrong_with(path);
    if (wrong) cli_say("%s %s", path, wrong);
    return !wrong;
}
