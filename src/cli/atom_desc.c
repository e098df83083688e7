/* Descriptions of ATOM's tools, and the options of Tru64's atom that they may hold.
 *
 *     # a comment
 *     INST_FILE     cache.inst.c
 *     ANAL_FILE     cache.anal.c tables.anal.c       more than one, or object files
 *     ANAL_LDFLAGS  -lm                              INST_LDFLAGS, INST_CFLAGS, ANAL_CFLAGS
 *     ATOM_REQ      -pthread -toolargs="64 2"        options; ATOM_DEF likewise
 *
 * A name and its values may have `=` between them; a line that ends in a backslash goes on in the next. */
#include "cli/atom.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- words: separated by blanks, but for those within double quotes --- */

/* The next word, NULL at the end; what it stood in is changed. */
static char *next_word(char **at)
{
    char *from = *at + strspn(*at, " \t\r\n"), *to = from;
    bool quoted = false;
    if (!*from) return NULL;
    char *p = from;
    for (; *p && (quoted || !isspace((unsigned char)*p)); p++) {
        if (*p == '"') quoted = !quoted;
        else *to++ = *p;
    }
    *at = *p ? p + 1 : p;
    *to = 0;
    return from;
}

static bool add_words(cli_words *to, const char *text)
{
    char *copy = strdup(text), *at = copy, *word;
    while (copy && (word = next_word(&at)))
        if (!cli_words_add(to, word)) return false;
    return copy != NULL;
}

/* --- options --- */

/* What these ask for is so in any case: threads and forks are seen to, the analysis side has a heap of its own, calls
 * of the whole program may be added anywhere. */
static bool is_granted(const char *word)
{
    static const char *const words[] = {"-pthread", "-fork", "-Xthreads", "-Xprogcall", "-A1",
                                        "-w0",      "-w1",   "-w2",       "-w3",        NULL};
    const char *const *w = words;
    while (*w && strcmp(*w, word)) w++;
    return *w != NULL;
}

int atom_take_flag(const char *from, const char *const *words, atom_tool_files *t)
{
    const char *word = words[0];
    if (is_granted(word)) return 1;
    if (!strncmp(word, "-toolargs=", 10)) return add_words(&t->args, word + 10) ? 1 : -1;
    if (!strcmp(word, "-heapbase")) {
        if (words[1]) return 2;
        cli_say("%s: -heapbase lacks its value", from);
        return -1;
    }
    if (strcmp(word, "-all")) return 0;
    t->wants_libs = from;
    return 1;
}

static bool take_flags(const char *path, const char *name, const cli_words *w, atom_tool_files *t)
{
    for (int i = 0; i < w->count;) {
        int width = atom_take_flag(path, w->items + i, t);
        if (!width) cli_say("%s: %s: '%s' is not known", path, name, w->items[i]);
        if (width <= 0) return false;
        i += width;
    }
    return true;
}

/* --- descriptions --- */

static char *beside(const char *description, const char *name)
{
    const char *slash = strrchr(description, '/');
    size_t n = slash && name[0] != '/' ? (size_t)(slash + 1 - description) : 0;
    char *path = malloc(n + strlen(name) + 1);
    if (!path) return NULL;
    memcpy(path, description, n);
    strcpy(path + n, name);
    return path;
}

static bool add_files(const char *path, const cli_words *w, cli_words *to)
{
    for (int i = 0; i < w->count; i++)
        if (!cli_words_add(to, beside(path, w->items[i]))) return false;
    return true;
}

static bool add_all(const cli_words *w, cli_words *to)
{
    for (int i = 0; i < w->count; i++)
        if (!cli_words_add(to, w->items[i])) return false;
    return true;
}

static bool take_line(const char *path, char *line, atom_tool_files *t)
{
    char *at = line + strspn(line, " \t"), *name = at;
    cli_words values = {0};
    if (*at == '#' || !*at) return true;
    at += strcspn(at, " \t=:");
    if (*at) *at++ = 0;
    at += strspn(at, " \t=:");
    if (!add_words(&values, at)) return false;
    if (!strcmp(name, "INST_FILE")) return add_files(path, &values, &t->inst);
    if (!strcmp(name, "ANAL_FILE")) return add_files(path, &values, &t->anal);
    if (!strcmp(name, "INST_CFLAGS") || !strcmp(name, "ANAL_CFLAGS")) return add_all(&values, &t->compile);
    if (!strcmp(name, "INST_LDFLAGS") || !strcmp(name, "ANAL_LDFLAGS")) return add_all(&values, &t->link);
    if (!strcmp(name, "ATOM_REQ") || !strcmp(name, "ATOM_DEF")) return take_flags(path, name, &values, t);
    return true; /* titles and the like */
}

/* The next line, with those that it goes on in; false: there is none. */
static bool next_line(FILE *f, char *line, size_t size)
{
    size_t n = 0;
    while (n + 1 < size && fgets(line + n, (int)(size - n), f)) {
        n += strcspn(line + n, "\n");
        line[n] = 0;
        if (!n || line[n - 1] != '\\') return true;
        line[n - 1] = ' ';
    }
    return n > 0;
}

bool atom_read_description(const char *path, atom_tool_files *t)
{
    char line[4096];
    bool good = true;
    FILE *f = fopen(path, "r");
    if (!f) {
        cli_say("%s: %s", path, strerror(errno));
        return false;
    }
    while (good && next_line(f, line, sizeof line)) good = take_line(path, line, t);
    fclose(f);
    if (good && (!t->inst.count || !t->anal.count)) {
        cli_say("%s: INST_FILE and ANAL_FILE are needed", path);
        return false;
    }
    return good;
}

char *atom_find_description(const char *name, const char *environment)
{
    const char *folders = getenv("ATOMTOOLPATH");
    char path[PATH_MAX];
    for (const char *p = folders ? folders : ""; p;) {
        size_t n = strcspn(p, ":");
        snprintf(path, sizeof path, "%.*s%s%s%s%s.desc", (int)n, p, n ? "/" : "", name, environment ? "." : "",
                 environment ? environment : "");
        if (access(path, R_OK) == 0) return strdup(path);
        p = p[n] ? p + n + 1 : NULL;
    }
    snprintf(path, sizeof path, "%s%s%s.desc", name, environment ? "." : "", environment ? environment : "");
    if (access(path, R_OK) == 0) return strdup(path);
    cli_say("there is no %s here or in the folders of ATOMTOOLPATH", path);
    return NULL;
}
