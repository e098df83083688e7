/* inlay wrap where the compiler links: it runs as it is told, with the recorder's library, and a linker of ours in
 * front of its own, where there are sources or a version script. That one instruments the objects that the compiler has
 * made of sources, and of these alone:
 *
 *     FOLDER/ld, FOLDER/ld.gold ...   inlay wrap --linker=FOLDER [OPTIONS] /usr/bin/ld "$@"
 *     FOLDER/...                      the compiler's temporary files (TMPDIR), objects among them
 *     FOLDER/versions                 what its version script has become (wrap_version.c)
 *     FOLDER/done                     the linker came by
 *
 * So whatever else the compiler writes (-MD, --coverage, -gsplit-dwarf, -save-temps) it writes where it always does.
 * With -save-temps objects are elsewhere: those that are younger than FOLDER then. */
#include "cli/wrap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- in the linker's place --- */

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Written since the folder was filled? Where files have times in seconds only, those of the same second may be. */
static bool is_younger(const char *path, const char *folder)
{
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(folder, &b) != 0) return false;
    return is_later(a.st_mtim, b.st_mtim) || (a.st_mtim.tv_nsec == 0 && a.st_mtim.tv_sec == b.st_mtim.tv_sec);
}

/* Times of files are those of the last tick of the clock: what the compiler makes is to be later than the folder. */
static void wait_for_tick(const char *folder)
{
    enum { most = 100 };
    const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec now;
    struct stat st;
    if (stat(folder, &st) != 0) return;
    for (int i = 0; i < most; i++) {
        if (clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && is_later(now, st.st_mtim)) return;
        nanosleep(&pause, NULL);
    }
}

int wrap_as_linker(const wrap_command *c, const char *folder, bool kept)
{
    cli_words words = {0};
    char done[PATH_MAX];
    size_t length = strlen(folder);
    bool good = cli_words_add(&words, c->argv[0]) && wrap_add_words(&words, c->argv + 1);
    int status = good && wrap_show_recorder(&words, folder) ? EXIT_OK : EXIT_FAILED;
    for (int i = 1; i < words.count && !status; i++) {
        const char *w = words.items[i];
        bool output = strcmp(words.items[i - 1], "-o") == 0;
        bool made = (strncmp(w, folder, length) == 0 && w[length] == '/') || (kept && is_younger(w, folder));
        if (w[0] != '-' && !output && made) status = wrap_instrument(c, w);
    }
    snprintf(done, sizeof done, "%s/done", folder);
    int fd = status ? -1 : open(done, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) close(fd);
    if (status || (c->log->to && fflush(c->log->to) != 0)) return EXIT_FAILED;
    execvp(words.items[0], (char *const *)words.items);
    cli_say("cannot start %s: %s", c->argv[0], strerror(errno));
    return EXIT_FAILED;
}

/* --- the linker that the compiler would take --- */

typedef struct named_linker {
    const char *word; /* that names it by its path, NULL: none */
    char program[64]; /* its name */
    char path[PATH_MAX];
} named_linker;

static void put_quoted(FILE *f, const char *word)
{
    fputc('\'', f);
    for (; *word; word++) *word == '\'' ? fputs("'\\''", f) : fputc(*word, f);
    fputs("' ", f);
}

/* Asks the compiler. */
static bool find_path(const wrap_command *c, named_linker *l)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return false;
    put_quoted(f, c->argv[c->first - 1]);
    for (int i = 0; i < c->words.count; i++) {
        if (strncmp(c->words.items[i], "-B", 2) != 0) continue;
        put_quoted(f, c->words.items[i]);
        if (!c->words.items[i][2] && c->words.items[i + 1]) put_quoted(f, c->words.items[i + 1]);
    }
    fprintf(f, "-print-prog-name=%s 2>/dev/null", l->program);
    bool good = fclose(f) == 0;
    FILE *from = good ? popen(text, "re") : NULL;
    bool any = from && fgets(l->path, sizeof l->path, from);
    if (from) pclose(from);
    free(text);
    l->path[strcspn(l->path, "\n")] = 0;
    if (!any || !l->path[0]) snprintf(l->path, sizeof l->path, "%s", l->program);
    return true;
}

static bool find_linker(const wrap_command *c, named_linker *l)
{
    static const char by_path[] = "--ld-path=", by_name[] = "-fuse-ld=";
    strcpy(l->program, "ld");
    for (int i = 0; i < c->words.count; i++) {
        const char *w = c->words.items[i];
        bool path = strncmp(w, by_path, sizeof by_path - 1) == 0, name = strncmp(w, by_name, sizeof by_name - 1) == 0;
        const char *value = strchr(w, '=') + 1;
        if (path || (name && value[0] == '/')) l->word = w;
        else if (name) snprintf(l->program, sizeof l->program, "ld.%.40s", value);
    }
    if (!l->word) return find_path(c, l);
    snprintf(l->path, sizeof l->path, "%s", strchr(l->word, '=') + 1);
    return true;
}

/* --- the folder --- */

/* Whether the compiler keeps its objects elsewhere. */
static bool keeps(const wrap_command *c)
{
    for (int i = 0; i < c->words.count; i++)
        if (strncmp(c->words.items[i], "-save-temps", 11) == 0 || strncmp(c->words.items[i], "--save-temps", 12) == 0)
            return true;
    return false;
}

static bool put_linker(const wrap_command *c, const named_linker *l, const char *folder)
{
    char self[PATH_MAX] = "", path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, l->program);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0777);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f || readlink("/proc/self/exe", self, sizeof self - 1) <= 0) {
        if (f) fclose(f);
        return false;
    }
    fputs("#!/bin/sh\nexec ", f);
    put_quoted(f, self);
    fprintf(f, "wrap --%slinker=", keeps(c) ? "kept-" : "");
    put_quoted(f, folder);
    for (int i = 0; i < c->own.count; i++) put_quoted(f, c->own.items[i]);
    put_quoted(f, l->path);
    fputs("\"$@\"\n", f);
    return fclose(f) == 0;
}

static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
    rmdir(folder);
}

/* --- linking --- */

static bool says(const wrap_command *c, const char *const *list)
{
    for (int i = 0; i < c->words.count; i++)
        for (const char *const *one = list; *one; one++)
            if (strcmp(c->words.items[i], *one) == 0) return true;
    return false;
}

static const char *joined(const char *a, const char *b, const char *more)
{
    char *text = NULL;
    return asprintf(&text, "%s%s%s", a, b, more) < 0 ? NULL : text;
}

static int run_compiler(const wrap_command *c, const named_linker *l, const char *folder)
{
    static const char *const relocates[] = {"-r", "-Wl,-r", "-Wl,-i", "-Wl,--relocatable", "--relocatable", NULL};
    static const char *const shared[] = {"-shared", "--shared", NULL};
    cli_words words = {0};
    cli_place place;
    bool good = cli_place_find(&place);
    for (int i = 0; good && i < c->first; i++) good = cli_words_add(&words, c->argv[i]);
    if (folder[0]) good = good && cli_words_add(&words, joined("-B", folder, "/"));
    for (char **w = c->argv + c->first; good && *w; w++) {
        bool named = folder[0] && l->word && strcmp(*w, l->word) == 0;
        const char *equals = named ? strndup(*w, (size_t)(strchr(*w, '=') + 1 - *w)) : "";
        good = cli_words_add(&words, named ? joined(equals, folder, "/ld") : *w);
    }
    if (says(c, shared)) good = good && cli_words_add(&words, "-Wl,-z,nodelete"); /* it holds threads' windows */
    if (!says(c, relocates))
        good = good && cli_words_add(&words, joined("-L", place.lib, "")) && cli_words_add(&words, "-linlay-trace");
    wait_for_tick(folder);
    return good ? cli_status(&words) : EXIT_FAILED;
}

/* Sources' objects must have come by the linker of ours. */
static int check(const wrap_command *c, const char *folder)
{
    char done[PATH_MAX + 16];
    snprintf(done, sizeof done, "%s/done", folder);
    if (!c->source_count || access(done, F_OK) == 0) return EXIT_OK;
    cli_say("%s: its linker is not found by -B, so what it compiles and links in one step is not instrumented: compile "
            "with -c first",
            c->argv[c->first - 1]);
    if (c->output) unlink(c->output);
    return EXIT_FAILED;
}

int wrap_link(const wrap_command *c)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX];
    named_linker l = {0};
    if (!c->source_count && !wrap_has_version_script(&c->words)) return run_compiler(c, &l, "");
    cli_end_later();
    snprintf(folder, sizeof folder, "%s/inlay-wrap.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder) || !find_linker(c, &l) || !put_linker(c, &l, folder) || setenv("TMPDIR", folder, 1) != 0) {
        cli_say("%s: cannot be written: %s", folder, strerror(errno));
        remove_folder(folder);
        return EXIT_FAILED;
    }
    int status = run_compiler(c, &l, folder);
    if (!status) status = check(c, folder);
    remove_folder(folder);
    return cli_end_now(status);
}
