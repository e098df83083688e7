/* inlay cache: what is kept from run to run, translations (src/jit/kept_file.h) and analyses (src/cfg/kept.h), listed
 * or removed. */
#include "cli/cli.h"
#include "cfg/kept.h"
#include "jit/kept_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] = "usage: inlay cache --list | --clear\n"
                            "What --cache, or INLAY_CACHE, has kept for the next run, translations and analyses: "
                            "listed, or removed. It is in the\n"
                            "folder INLAY_CACHE, or inlay in XDG_CACHE_HOME or ~/.cache.\n";

typedef struct found {
    unsigned files, bad, analyses;
    unsigned long long bytes, translations;
} found;

/* -1: there is no folder (*missing), or it is not this user's own. */
static int open_folder(char path[PATH_MAX], bool *missing)
{
    char parent[PATH_MAX];
    *missing = false;
    if (!kept_folder_name(path, parent, PATH_MAX)) {
        cli_say("there is no folder for what is kept: neither INLAY_CACHE, XDG_CACHE_HOME nor HOME names one");
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *missing = fd < 0 && errno == ENOENT;
    if (fd >= 0 && kept_folder_is_private(fd)) return fd;
    if (fd >= 0) cli_say("%s: not used, it is not this user's own folder that nobody else may enter", path);
    else if (!*missing) cli_say("%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

/* The word or rest of a line that begins with `what` in the key. */
static void from_key(const char *key, const char *what, char *out, size_t size)
{
    const char *at = strstr(key, what);
    *out = 0;
    if (!at) return;
    at += strlen(what);
    size_t n = strcspn(at, "\n");
    if (n >= size) n = size - 1;
    memcpy(out, at, n);
    out[n] = 0;
}

/* The two kinds of files, as far as they begin alike. */
typedef union head {
    struct {
        char magic[8];
        uint64_t sum, size;
        uint32_t key_size;
    } any;
    kept_file_head translations;
    cfg_kept_head analysis;
} head;
_Static_assert(offsetof(kept_file_head, key_size) == offsetof(head, any.key_size), "the key's size");
_Static_assert(offsetof(cfg_kept_head, key_size) == offsetof(head, any.key_size), "the key's size");

static bool read_head(int fd, head *h, bool *analysis, char *key, size_t room)
{
    if (read(fd, h, sizeof h->any) != (ssize_t)sizeof h->any) return false;
    *analysis = memcmp(h->any.magic, CFG_KEPT_MAGIC, sizeof h->any.magic) == 0;
    if (!*analysis && memcmp(h->any.magic, KEPT_MAGIC, sizeof h->any.magic) != 0) return false;
    size_t size = *analysis ? sizeof h->analysis : sizeof h->translations, n = h->any.key_size;
    if (lseek(fd, 0, SEEK_SET) != 0 || read(fd, h, size) != (ssize_t)size || n >= room) return false;
    key[n] = 0;
    return read(fd, key, n) == (ssize_t)n;
}

static void list_file(int folder, const char *name, found *sum)
{
    head h;
    char key[8192], module[PATH_MAX], tool[64];
    struct stat st;
    bool analysis;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read_head(fd, &h, &analysis, key, sizeof key);
    close(fd);
    sum->files++;
    sum->bytes += good ? (unsigned long long)st.st_size : 0;
    if (!good) {
        sum->bad++;
        printf("%s  damaged, or not whole yet\n", name);
        return;
    }
    from_key(key, "module ", module, sizeof module);
    sum->analyses += analysis;
    if (analysis) {
        printf("%9u procedures    %8lld KB  analysis           %s\n", h.analysis.procs, (long long)st.st_size >> 10,
               module);
        return;
    }
    sum->translations += h.translations.entries;
    from_key(key, "tool build-id ", tool, sizeof tool);
    printf("%9u translations  %8lld KB  tool %.12s  %s\n", h.translations.entries, (long long)st.st_size >> 10, tool,
           module);
}

static int each(bool clears)
{
    char path[PATH_MAX];
    bool missing;
    found sum = {0};
    int folder = open_folder(path, &missing), failed = 0;
    if (folder < 0) {
        if (missing) printf("%s: nothing is kept\n", path);
        return missing ? EXIT_OK : EXIT_FAILED;
    }
    DIR *dir = fdopendir(folder);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (!kept_folder_has(d->d_name)) continue;
        if (!clears) {
            list_file(folder, d->d_name, &sum);
        } else if (unlinkat(folder, d->d_name, 0) == 0) {
            sum.files++;
        } else {
            cli_say("%s/%s: %s", path, d->d_name, strerror(errno));
            failed++;
        }
    }
    if (dir) closedir(dir);
    if (clears) printf("%s: %u files removed\n", path, sum.files);
    else
        printf("%s: %llu translations and %u analyses in %u files, %llu KB\n", path, sum.translations, sum.analyses,
               sum.files, sum.bytes >> 10);
    return failed ? EXIT_FAILED : EXIT_OK;
}

int cli_cache(int argc, char **argv)
{
    bool lists = argc == 2 && !strcmp(argv[1], "--list"), clears = argc == 2 && !strcmp(argv[1], "--clear");
    if (lists || clears) return each(clears);
    bool helps = argc == 2 && cli_asks_for_help(argv + 1);
    fputs(usage, helps ? stdout : stderr);
    return helps ? EXIT_OK : EXIT_USAGE;
}
