/* /proc/self/maps and smaps as the program should see them: a file in memory with the kernel's lines,
 * less the ranges that are Inlay's. The kernel merges neighbours of one kind, so a line may be ours in
 * part. In smaps the counts of such a mapping are given for each part, as far as they fit into it.
 *
 * The text is that of the moment of opening. Names of the kernel's that belong to the parts that stay
 * are kept; protection is what the page table says, which for pages with translated code may lack
 * the write permission. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/maps_line.h"
#include "run/kernel.h"
#include "base/page.h"

enum { LINE = 4608 };

typedef struct line {
    inl_maps_line m;
    const char *counts; /* smaps: the lines of "Key:   number kB" below it, up to the next mapping */
} line;

/* Without sscanf, which asks for the length of all that follows the line. */
static bool put_count(run_proc_file *out, const char *at, size_t length, unsigned long most)
{
    enum { KEY = 63 };
    char text[LINE], *end;
    size_t key = strcspn(at, ":\n");
    unsigned long number = at[key] == ':' ? strtoul(at + key + 1, &end, 10) : 0;
    if (at[key] != ':' || key > KEY || end + 3 != at + length || memcmp(end, " kB", 3) != 0)
        return run_proc_put(out, at, length) && run_proc_put(out, "\n", 1);
    bool is_size = key == 4 && !memcmp(at, "Size", key);
    bool is_of_pages = key > 8 && !memcmp(at + key - 8, "PageSize", 8);
    if (is_size || (number > most && !is_of_pages)) number = most;
    int n = snprintf(text, sizeof text, "%.*s:%*lu kB\n", (int)key, at, (int)(23 - key), number);
    return run_proc_put(out, text, (size_t)n);
}

static bool put_counts(run_proc_file *out, const line *l, uint64_t size)
{
    if (!l->counts) return true;
    for (const char *at = l->counts; *at >= 'A' && *at <= 'Z';) {
        size_t length = strcspn(at, "\n");
        if (!put_count(out, at, length, size >> 10)) return false;
        at += length + (at[length] == '\n');
    }
    return true;
}

static bool put_piece(run_proc_file *out, const line *l, uint64_t low, uint64_t high)
{
    enum { NAME_COLUMN = 73 };
    char text[LINE];
    const char *name = run_is_break(low, high) ? "[heap]" : l->m.name;
    uint64_t offset = l->m.inode ? l->m.offset + (low - l->m.low) : l->m.offset;
    int n = snprintf(text, sizeof text, "%08lx-%08lx %s %08lx %s %lu ", (long)low, (long)high, l->m.perms, (long)offset,
                     l->m.device, (unsigned long)l->m.inode);
    if (*name)
        n += snprintf(text + n, sizeof text - (size_t)n, "%*s%s", n < NAME_COLUMN ? NAME_COLUMN - n : 0, "", name);
    if (n >= (int)sizeof text - 1) return false;
    text[n++] = '\n';
    return run_proc_put(out, text, (size_t)n) && put_counts(out, l, high - low);
}

static bool ours(uint64_t page) { return run_is_ours(page, page + INL_PAGE); }

/* The ends of a run of equal pages are looked for page by page: lines that are ours in part are few. */
/* Loaded without ptrace, the program has its stack below the tool's first one, in one mapping: a C library works
 * the limit of its stack out from the mapping's end. */
static bool is_shared_stack(const line *l) { return run_here.start.brk_emulated && !strncmp(l->m.name, "[stack]", 7); }

static bool put_line(run_proc_file *out, const line *l)
{
    if (is_shared_stack(l)) return put_piece(out, l, l->m.low, l->m.high);
    if (!run_is_ours(l->m.low, l->m.high)) return put_piece(out, l, l->m.low, l->m.high);
    for (uint64_t at = l->m.low; at < l->m.high;) {
        uint64_t from = at;
        bool mine = ours(at);
        while (at < l->m.high && ours(at) == mine) at += INL_PAGE;
        if (!mine && !put_piece(out, l, from, at)) return false;
    }
    return true;
}

static bool put_lines(run_proc_file *out, char *text, bool with_counts)
{
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        if (with_counts && *at >= 'A' && *at <= 'Z') continue; /* they went out with their mapping */
        *end = 0;
        line l = {.counts = with_counts ? end + 1 : NULL};
        if (!inl_maps_line_read(at, &l.m)) return false;
        if (!put_line(out, &l)) return false;
    }
    return true;
}

bool run_maps_put(run_proc_file *out, char *text) { return put_lines(out, text, false); }
bool run_smaps_put(run_proc_file *out, char *text) { return put_lines(out, text, true); }
