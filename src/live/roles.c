/* Which of a process's images is its program, which its dynamic linker, and by what that linker tells debuggers of
 * libraries.
 *
 *     PROGRAM                  AT_BASE names its linker; the program's dynamic section leads to the linker's word
 *     LINKER PROGRAM           what was executed is the linker: its own list says which image is the program
 *     a static program         has a linker's word of its own where it may open libraries (dlopen), known by its name
 *
 * The kernel has told the process of what was executed. Whoever is to find the program is told of that instead
 * (live_roles_auxv). */
#include "live/live.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t live_auxiliary(const live_process *p, uint64_t type)
{
    inl_error ignored;
    size_t size;
    Elf64_auxv_t *v = live_auxv(p, &size, &ignored);
    uint64_t value = 0;
    for (size_t i = 0; v && (i + 1) * sizeof *v <= size && v[i].a_type; i++)
        if (v[i].a_type == type) value = v[i].a_un.a_val;
    free(v);
    return value;
}

static bool read_memory(const live_process *p, uint64_t at, void *to, size_t size)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", p->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && pread(fd, to, size, (off_t)at) == (ssize_t)size;
    if (fd >= 0) close(fd);
    return good;
}

/* What was executed has no linker: is it one? */
static bool is_linker(const live_process *p, const module *executed)
{
    return !p->linker && !image_is_program(executed->image);
}

/* glibc's variable itself, or musl's, which leads to it. */
static uint64_t word_in(const live_process *p, const module *m)
{
    uint64_t at, size;
    if (image_symbol(m->image, "_r_debug", &at, &size)) return at + m->bias;
    bool leads = image_symbol(m->image, "_dl_debug_addr", &at, &size) && read_memory(p, at + m->bias, &at, sizeof at);
    return leads ? at : 0;
}

static void find_word(live_process *p, const module *m)
{
    uint64_t at, size;
    p->word = word_in(p, m);
    p->tells = p->word && image_symbol(m->image, "_dl_debug_state", &at, &size) ? at + m->bias : 0;
}

/* The dynamic section of the first in the linker's list; 0: it has not come so far. */
static uint64_t first_listed(const live_process *p, uint64_t word)
{
    struct r_debug debug;
    struct link_map first;
    bool known = word && read_memory(p, word, &debug, sizeof debug) && debug.r_map &&
                 read_memory(p, (uint64_t)(uintptr_t)debug.r_map, &first, sizeof first);
    return known ? (uint64_t)(uintptr_t)first.l_ld : 0;
}

bool live_tells_program(const live_process *p, const module *linker)
{
    Elf64_Dyn d = {.d_tag = DT_DEBUG};
    uint64_t at = first_listed(p, word_in(p, linker));
    if (!at) return true;
    do {
        if (!read_memory(p, at, &d, sizeof d)) return true;
        at += sizeof d;
    } while (d.d_tag != DT_NULL && d.d_tag != DT_DEBUG);
    return d.d_tag == DT_NULL || d.d_un.d_ptr;
}

/* *m is what was executed, and becomes the program. */
static void pass_linker(live_process *p, const module_set *set, module **m)
{
    uint64_t dynamic = first_listed(p, p->word);
    module *program = dynamic ? module_at(set, dynamic) : NULL;
    p->linker = (*m)->low;
    if (!program || program == *m) return;
    (*m)->is_main = false;
    program->is_main = true;
    p->by_linker = true;
    *m = program;
}

static void describe(live_process *p, const module *program)
{
    Elf64_Ehdr h;
    uint64_t at = image_phdr_addr(program->image);
    p->bias = program->bias;
    if (!p->by_linker || !at || !read_memory(p, program->low, &h, sizeof h)) return;
    const live_aux_change all[] = {{AT_PHDR, at + program->bias},
                                   {AT_PHNUM, h.e_phnum},
                                   {AT_ENTRY, image_entry(program->image) + program->bias},
                                   {AT_BASE, p->linker}};
    memcpy(p->changes, all, sizeof all);
    p->change_count = sizeof all / sizeof *all;
}

/* The biases of what is in the linker's first list. */
static void note_list(live_process *p, uint64_t word)
{
    enum { MOST = 4096 };
    struct r_debug debug;
    struct link_map m;
    p->listed.count = 0;
    if (!word || !read_memory(p, word, &debug, sizeof debug)) return;
    uint64_t at = (uint64_t)(uintptr_t)debug.r_map;
    for (unsigned k = 0; at && k < MOST && read_memory(p, at, &m, sizeof m); k++) {
        if (!inl_vec_push(&p->listed, m.l_addr)) return;
        at = (uint64_t)(uintptr_t)m.l_next;
    }
}

bool live_is_apart(const live_process *p, const module *m)
{
    if (m->is_main || !p->listed.count) return false;
    if (!p->linker) return true; /* a static program's plug-in */
    for (size_t k = 0; k < p->listed.count; k++)
        if (p->listed.items[k] == m->bias) return false;
    return true;
}

void live_roles_find(live_process *p, const module_set *set, module *executed)
{
    module *program = executed;
    p->linker = live_auxiliary(p, AT_BASE);
    p->word = p->tells = p->change_count = 0;
    p->by_linker = false;
    if (!p->linker) find_word(p, executed);
    if (is_linker(p, executed)) pass_linker(p, set, &program);
    describe(p, program);
    const module *linker = p->linker ? module_at(set, p->linker) : NULL;
    note_list(p, p->word || !linker ? p->word : word_in(p, linker));
}
