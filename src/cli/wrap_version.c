/* Version scripts of libraries that `inlay wrap` links: what a script does not name it mostly hides (`local: *`), and
 * the recorder with it. Such a library would have a recorder of its own, and a file of its own. In a copy of the script
 * the recorder's names are seen:
 *
 *     { global: parse; local: *; };                   { global: __inlay_trace_*; parse; local: *; };
 *     LIB_1 { global: parse; local: *; };             the same, and behind it INLAY_TRACE { global: __inlay_trace_*; };
 *
 * An anonymous node must be the only one. Where there are named ones, the recorder's names have a node of their own,
 * the same in all libraries, so that these find each other's. A pattern gives way to no `*`, and no linker asks that it
 * matches: of a library that takes the recorder from another one nothing does. */
#include "cli/wrap.h"
#include "record/tells.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char option[] = "-version-script";

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "re");
    if (f && getdelim(&text, &size, 0, f) < 0) {
        free(text);
        text = NULL;
    }
    if (f) fclose(f);
    return text;
}

/* Blanks and comments, C's and those from # to the line's end. */
static const char *skip_blanks(const char *s)
{
    for (;;) {
        const char *end = NULL;
        if (isspace((unsigned char)*s)) end = s + 1;
        else if (*s == '#') end = s + strcspn(s, "\n");
        else if (strncmp(s, "/*", 2) == 0 && (end = strstr(s + 2, "*/"))) end += 2;
        if (!end) return s;
        s = end;
    }
}

/* Behind `word :`; NULL: something else stands there. */
static const char *skip_label(const char *s, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(s, word, n) != 0) return NULL;
    s = skip_blanks(s + n);
    return *s == ':' ? s + 1 : NULL;
}

/* Are all nodes closed, and is each list and each node ended? What is not is the linker's to tell, of the script
 * itself. */
static bool is_ended(const char *s)
{
    char last = ';';
    int depth = 0;
    for (s = skip_blanks(s); *s; s = skip_blanks(s)) {
        bool cut = depth == 1 && !strchr(";:{", last);
        if (*s == '}' && (depth-- == 0 || cut)) return false;
        depth += *s == '{';
        last = *s++;
        if (last == '"') s += strcspn(s, "\"") + (strchr(s, '"') != NULL);
    }
    return depth == 0 && last == ';';
}

/* Into the only node: a node has one list of what is seen, in front of that of what is not, and its label may be
 * missing. */
static void put_in_node(FILE *f, const char *text, const char *brace)
{
    const char *first = skip_blanks(brace + 1), *list = skip_label(first, "global");
    const char *label = skip_label(first, "local") ? "global: " : "";
    if (!list) list = first;
    fprintf(f, "%.*s %s" RECORD_NAMES "; %s", (int)(list - text), text, label, list);
}

static bool copy_script(const char *from, const char *to)
{
    char *text = read_text(from);
    FILE *f = text && is_ended(text) ? fopen(to, "we") : NULL;
    if (f) {
        const char *first = skip_blanks(text);
        if (*first == '{') put_in_node(f, text, first);
        else fprintf(f, "%s\nINLAY_TRACE { global: " RECORD_NAMES "; };\n", text);
    }
    free(text);
    return f && fclose(f) == 0;
}

/* Its script, as a linker is given it: -version-script, with one dash or two, in one word or in two. NULL: it is none.
 */
static const char *script_of(const char *word, const char *next, bool *apart)
{
    word += strncmp(word, "--", 2) == 0;
    size_t n = sizeof option - 1;
    if (strncmp(word, option, n) != 0 || (word[n] && word[n] != '=')) return NULL;
    *apart = !word[n];
    return *apart ? next : word + n + 1;
}

bool wrap_has_version_script(const cli_words *words)
{
    for (int i = 0; i < words->count; i++)
        if (strstr(words->items[i], option)) return true;
    return false;
}

bool wrap_show_recorder(cli_words *words, const char *folder)
{
    for (int i = 0; i < words->count; i++) {
        bool apart;
        char *copy = NULL;
        const char *script = script_of(words->items[i], words->items[i + 1], &apart);
        if (!script) continue;
        if (asprintf(&copy, "%s%s/versions", apart ? "" : "--version-script=", folder) < 0) return false;
        if (copy_script(script, strchr(copy, '/'))) words->items[i + apart] = copy;
        return true; /* one that cannot be read, or is wrong, is the linker's to tell */
    }
    return true;
}
