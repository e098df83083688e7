/* inlay wrap: what a compiler's command line asks for. */
#include "cli/wrap.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

/* Options whose value is the next word. */
static bool takes_value(const char *word)
{
    static const char *const list[] = {"-I",
                                       "-L",
                                       "-D",
                                       "-U",
                                       "-l",
                                       "-x",
                                       "-T",
                                       "-u",
                                       "-z",
                                       "-e",
                                       "-h",
                                       "-A",
                                       "-G",
                                       "-B",
                                       "-F",
                                       "-include",
                                       "-imacros",
                                       "-isystem",
                                       "-iquote",
                                       "-idirafter",
                                       "-iprefix",
                                       "-iwithprefix",
                                       "-iwithprefixbefore",
                                       "-isysroot",
                                       "-MF",
                                       "-MT",
                                       "-MQ",
                                       "-Xlinker",
                                       "-Xassembler",
                                       "-Xpreprocessor",
                                       "-Xclang",
                                       "-mllvm",
                                       "--param",
                                       "-target",
                                       "--sysroot",
                                       "-arch",
                                       "-aux-info",
                                       "-dumpbase",
                                       "-dumpdir",
                                       "-dumpbase-ext",
                                       "-wrapper",
                                       "-framework",
                                       "-specs",
                                       "--entry",
                                       NULL};
    return is_one_of(word, list);
}

static bool only_passes(const char *word)
{
    static const char *const list[] = {"-E",        "-S",           "-M",           "-MM",          "-fsyntax-only",
                                       "--version", "-dumpversion", "-dumpmachine", "-dumpspecs",   "-dumpfullversion",
                                       "--help",    "-###",         "-emit-ast",    "--precompile", NULL};
    return is_one_of(word, list) || strncmp(word, "-print-", 7) == 0 || strncmp(word, "--print-", 8) == 0 ||
           strncmp(word, "--help=", 7) == 0;
}

static bool ends_in(const char *word, const char *const *list)
{
    const char *slash = strrchr(word, '/'), *dot = strrchr(slash ? slash : word, '.');
    return dot && is_one_of(dot, list);
}

static bool is_source(const char *word)
{
    static const char *const ends[] = {".c",   ".cc",  ".cp",  ".cxx", ".cpp", ".c++", ".C",   ".i",   ".ii",
                                       ".s",   ".S",   ".sx",  ".m",   ".mm",  ".f",   ".for", ".f90", ".F",
                                       ".F90", ".f95", ".f03", ".f08", ".d",   ".adb", ".ads", ".go",  NULL};
    return ends_in(word, ends);
}

/* What compilers make a precompiled header of, and do not link, whether or not -c is said. `language`: by -x; NULL: by
 * the name. */
static bool is_header(const char *word, const char *language)
{
    static const char *const ends[] = {".h", ".hh", ".H", ".hp", ".hpp", ".HPP", ".hxx", ".h++", ".tcc", NULL};
    const char *dash = language ? strrchr(language, '-') : NULL;
    return language ? dash && strcmp(dash, "-header") == 0 : ends_in(word, ends);
}

/* NULL: by its name. */
static const char *language_of(const char *value) { return value && strcmp(value, "none") == 0 ? NULL : value; }

/* --- files of words --- */

/* A word as compilers read it: blanks end it but within quotes; \\ in front of anything takes it as it is. The word is
 * put where it stood; NULL: no more. */
static char *next_word(char **at)
{
    char *from = *at, quote = 0;
    while (isspace((unsigned char)*from)) from++;
    if (!*from) return NULL;
    char *word = from, *to = from;
    for (; *from && (quote || !isspace((unsigned char)*from)); from++) {
        if (*from == '\\' && from[1]) *to++ = *++from;
        else if (quote ? *from == quote : *from == '"' || *from == '\'') quote = quote ? 0 : *from;
        else *to++ = *from;
    }
    *at = from + (*from != 0);
    *to = 0;
    return word;
}

/* All of it, never given back; NULL: it cannot be read, and the word is an ordinary one. */
static char *text_of(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "re");
    if (f && getdelim(&text, &room, 0, f) < 0 && !text) text = calloc(1, 1);
    if (f) fclose(f);
    return text;
}

static bool add_words(cli_words *w, char *word, unsigned depth)
{
    char *text = word[0] == '@' && depth < 20 ? text_of(word + 1) : NULL;
    bool good = true;
    if (!text) return cli_words_add(w, word);
    for (char *one; good && (one = next_word(&text));) good = add_words(w, one, depth + 1);
    return good;
}

bool wrap_add_words(cli_words *w, char *const *argv)
{
    bool good = true;
    for (; *argv && good; argv++) good = add_words(w, *argv, 0);
    return good;
}

/* --- the command --- */

/* ccache gcc ...: the compiler is the second word. */
static int first_argument(char *const *argv)
{
    static const char *const list[] = {"ccache", "sccache", "distcc", "icecc", NULL};
    const char *slash = strrchr(argv[0], '/');
    bool another = is_one_of(slash ? slash + 1 : argv[0], list) && argv[1] && argv[1][0] != '-';
    return another ? 2 : 1;
}

static const char *output_at(const cli_words *words, int *i)
{
    const char *w = words->items[*i];
    if (strncmp(w, "-o", 2) == 0 && strncmp(w, "-objc", 5) != 0) return w[2] ? w + 2 : words->items[++*i];
    if (strncmp(w, "--output=", 9) == 0) return w + 9;
    return strcmp(w, "--output") == 0 ? words->items[++*i] : NULL;
}

bool wrap_read(wrap_command *c)
{
    c->first = first_argument(c->argv);
    if (!wrap_add_words(&c->words, c->argv + c->first)) return false;
    c->sources = calloc((size_t)c->words.count + 1, sizeof *c->sources);
    if (!c->sources) {
        cli_say("out of memory");
        return false;
    }
    bool compiles = false, passes = c->words.count == 0, has_input = false;
    const char *language = NULL;
    for (int i = 0; i < c->words.count; i++) {
        const char *w = c->words.items[i];
        const char *output = output_at(&c->words, &i);
        if (output) {
            c->output = output;
        } else if (strcmp(w, "-c") == 0 || strcmp(w, "--compile") == 0) {
            compiles = true;
        } else if (only_passes(w)) {
            passes = true;
        } else if (takes_value(w)) {
            has_input |= strcmp(w, "-l") == 0;
            i++;
            if (strcmp(w, "-x") == 0) language = language_of(c->words.items[i]);
        } else if (strncmp(w, "-x", 2) == 0) {
            language = language_of(w + 2);
        } else if ((w[0] != '-' || strcmp(w, "-") == 0) && !is_header(w, language)) {
            has_input = true;
            if (language || is_source(w)) c->sources[c->source_count++] = i;
        }
    }
    c->kind = passes || !has_input ? PASSES : compiles ? COMPILES : LINKS;
    return true;
}
