#include "base/maps_line.h"

#include <sys/mman.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* A number and the character behind it. */
static bool take_number(char **at, int base, char stop, uint64_t *out)
{
    char *p = *at;
    uint64_t v = 0;
    for (; digit_of(*p) < base; p++) v = v * (uint64_t)base + (uint64_t)digit_of(*p);
    if (p == *at || (stop && *p != stop)) return false;
    *at = p + (stop != 0);
    *out = v;
    return true;
}

/* A word and the space behind it. */
static bool take_word(char **at, char *out, unsigned size)
{
    unsigned n = 0;
    for (; **at && **at != ' '; ++*at) {
        if (n + 1 == size) return false;
        out[n++] = **at;
    }
    out[n] = 0;
    return n && *(*at)++ == ' ';
}

bool inl_maps_line_read(char *line, inl_maps_line *l)
{
    *l = (inl_maps_line){0};
    if (!take_number(&line, 16, '-', &l->low) || !take_number(&line, 16, ' ', &l->high)) return false;
    if (!take_word(&line, l->perms, sizeof l->perms) || !take_number(&line, 16, ' ', &l->offset)) return false;
    if (!take_word(&line, l->device, sizeof l->device) || !take_number(&line, 10, 0, &l->inode)) return false;
    if (!l->perms[0] || !l->perms[1] || !l->perms[2] || !l->perms[3]) return false;
    l->prot = (l->perms[0] == 'r' ? PROT_READ : 0) | (l->perms[1] == 'w' ? PROT_WRITE : 0) |
              (l->perms[2] == 'x' ? PROT_EXEC : 0);
    l->shared = l->perms[3] == 's';
    while (*line == ' ') line++;
    l->name = line;
    return true;
}

void inl_maps_name_unescape(char *name)
{
    char *out = name;
    for (; *name; name++, out++) {
        bool newline = name[0] == '\\' && name[1] == '0' && name[2] == '1' && name[3] == '2';
        *out = newline ? '\n' : *name;
        if (newline) name += 3;
    }
    *out = 0;
}
