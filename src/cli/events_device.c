/* Events of the kernel's devices, as its files in /sys/bus/event_source/devices tell them:
 *
 *     cpu/type              4
 *     cpu/format/event      config:0-7            where a term's bits go
 *     cpu/events/cycles     event=0x3c            an event by name: terms
 *     uncore/cpumask        0                     it counts for the machine, and never for a thread */
#include "cli/events.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct device {
    const char *folder;
    events_code *code;
    char *why;
    unsigned depth;
} device;

static bool read_file(char *out, size_t size, const char *folder, const char *in, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s%s", folder, in, name) >= (int)sizeof path) return false;
    FILE *f = fopen(path, "re");
    bool good = f && fgets(out, (int)size, f);
    if (f) fclose(f);
    if (good) out[strcspn(out, "\n")] = 0;
    return good;
}

static bool fail(const device *d, const char *what, const char *more)
{
    snprintf(d->why, 512, "%s%.400s", what, more);
    return false;
}

/* "config1:0-7,32-35": the value's bits from the lowest, range by range. */
static bool spread(const device *d, const char *format, uint64_t value, const char *term)
{
    unsigned which = 0;
    if (strncmp(format, "config", 6) != 0) return fail(d, "its device has a format that is not known, of ", term);
    format += 6;
    if (*format == '1' || *format == '2') which = (unsigned)(*format++ - '0');
    for (const char *at = format; *at == ':' || *at == ',';) {
        char *end;
        unsigned long low = strtoul(at + 1, &end, 10), high = low;
        if (*end == '-') high = strtoul(end + 1, &end, 10);
        if (high < low || high > 63 || end == at + 1)
            return fail(d, "its device has a format that is not known, of ", term);
        unsigned width = (unsigned)(high - low + 1);
        uint64_t mask = width < 64 ? ((uint64_t)1 << width) - 1 : ~(uint64_t)0;
        d->code->config[which] = (d->code->config[which] & ~(mask << low)) | (value & mask) << low;
        value = width < 64 ? value >> width : 0;
        at = end;
    }
    return value ? fail(d, "the value is too large, of ", term) : true;
}

static bool put_terms(device *d, const char *terms);

/* "event=0x3c", "edge", "config=0x1234", or the name of an event that stands for several. */
static bool put_term(device *d, const char *term)
{
    char name[128], text[512], *end;
    const char *equals = strchr(term, '=');
    size_t n = equals ? (size_t)(equals - term) : strlen(term);
    if (!n || n >= sizeof name || memchr(term, '/', n)) return fail(d, "no term: ", term);
    memcpy(name, term, n);
    name[n] = 0;
    uint64_t value = equals ? strtoull(equals + 1, &end, 0) : 1;
    if (equals && (end == equals + 1 || *end))
        return fail(d, strcmp(equals + 1, "?") ? "no number, in " : "its device wants to be told a value: ", term);
    if (equals && !strcmp(name, "config")) return d->code->config[0] = value, true;
    if (equals && !strcmp(name, "config1")) return d->code->config[1] = value, true;
    if (equals && !strcmp(name, "config2")) return d->code->config[2] = value, true;
    if (!equals && d->depth < 2 && read_file(text, sizeof text, d->folder, "events/", name)) return put_terms(d, text);
    if (read_file(text, sizeof text, d->folder, "format/", name)) return spread(d, text, value, term);
    return fail(d, "its device has no such term or event: ", term);
}

static bool put_terms(device *d, const char *terms)
{
    char copy[512], *rest = copy, *one;
    bool good = strlen(terms) < sizeof copy;
    if (!good) return fail(d, "too long: ", terms);
    strcpy(copy, terms);
    d->depth++;
    while (good && (one = strsep(&rest, ","))) good = put_term(d, one);
    d->depth--;
    return good;
}

/* A device's terms, in its folder. */
static bool put_event(const char *folder, const char *terms, events_code *out, char why[512])
{
    char text[64], path[PATH_MAX];
    device d = {folder, out, why, 0};
    if (snprintf(path, sizeof path, "%s/cpumask", folder) < (int)sizeof path && access(path, F_OK) == 0)
        return fail(&d, "its device counts for the whole machine, and not for a thread", "");
    if (!read_file(text, sizeof text, folder, "", "type")) return fail(&d, "there is no such device: ", folder);
    out->type = (uint32_t)strtoul(text, NULL, 10);
    return put_terms(&d, terms);
}

static bool take_modifiers(const char *at, events_code *out)
{
    if (strlen(at) >= sizeof out->modifiers || strspn(at, "ukh") != strlen(at)) return false;
    strcpy(out->modifiers, at);
    return true;
}

/* Some device's event by that name alone: a processor's before others. */
static bool find_named(const char *name, const char *devices, char folder[PATH_MAX])
{
    bool found = false;
    DIR *all = opendir(devices);
    for (struct dirent *e; all && (e = readdir(all));) {
        char path[PATH_MAX];
        if (e->d_name[0] == '.' || (found && strncmp(e->d_name, "cpu", 3) != 0)) continue;
        if (snprintf(path, sizeof path, "%s/%s/events/%s", devices, e->d_name, name) >= (int)sizeof path) continue;
        if (access(path, F_OK) != 0) continue;
        found = true;
        snprintf(folder, PATH_MAX, "%s/%s", devices, e->d_name);
    }
    if (all) closedir(all);
    return found;
}

int events_of_device(const char *word, const char *devices, events_code *out, char why[512])
{
    char copy[512], folder[PATH_MAX];
    *out = (events_code){0};
    if (strlen(word) >= sizeof copy) return 0;
    strcpy(copy, word);
    char *slash = strchr(copy, '/'), *end = slash ? strrchr(copy, '/') : strrchr(copy, ':');
    if (slash && (end == slash || slash == copy || copy[0] == '.')) return 0;
    if (end && !take_modifiers(end + 1, out)) return 0;
    if (end) *end = 0;
    if (!slash)
        return copy[0] != '.' && find_named(copy, devices, folder) ? (put_event(folder, copy, out, why) ? 1 : -1) : 0;
    *slash = 0;
    if (snprintf(folder, sizeof folder, "%s/%s", devices, copy) >= (int)sizeof folder) return 0;
    return put_event(folder, slash + 1, out, why) ? 1 : -1;
}
