/* Which libraries a program loads: what DT_NEEDED names, and what those need in turn, breadth first.
 *
 * A name without a slash is looked for as ld.so(8) does: DT_RPATH of the object and of those that led to
 * it (unless it has a DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH, the cache /etc/ld.so.cache, the default
 * folders. $ORIGIN and $LIB are understood. What ld.so would pick by the processor (glibc-hwcaps) is
 * looked for too, the newest level that this machine has first.
 *
 * More libraries can be named, which the program opens later: by path, or by a name that the cache has. */
#include "tool/rewriter.h"
#include "image/file.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct object {
    image *im; /* NULL: only its name is known (the interpreter) */
    char *path, *name;
    const char *rpath, *runpath, *soname;
    size_t parent;
    bool borrowed; /* `im` is the caller's */
    bool later;    /* it, or what needs it, is opened later */
} object;

typedef struct search {
    INL_VEC(object) objects;
    const uint8_t *cache; /* /etc/ld.so.cache, mapped */
    size_t cache_size;
    uint16_t machine;
} search;

/* --- what an object says --- */

typedef struct needed {
    INL_VEC(const char *) names;
} needed;

static const char *string_at(const image *im, uint64_t table, uint64_t size, uint64_t offset)
{
    const uint8_t *bytes;
    if (offset >= size) return NULL;
    size_t n = image_bytes(im, table + offset, &bytes);
    if (n > size - offset) n = size - offset;
    return n && memchr(bytes, 0, n) ? (const char *)bytes : NULL;
}

static void read_dynamic(object *o, needed *out)
{
    const image_dynamic *info = image_dynamic_info(o->im);
    const uint8_t *bytes;
    size_t n = image_bytes(o->im, o->im->dynamic_header.p_vaddr, &bytes);
    if (n > o->im->dynamic_header.p_memsz) n = o->im->dynamic_header.p_memsz;
    if (!info->present) return;
    for (size_t at = 0; n - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        memcpy(&d, bytes + at, sizeof d);
        if (d.d_tag == DT_NULL) break;
        if (d.d_tag != DT_NEEDED && d.d_tag != DT_RPATH && d.d_tag != DT_RUNPATH && d.d_tag != DT_SONAME) continue;
        const char *text = string_at(o->im, info->strtab, info->strtab_size, d.d_un.d_val);
        if (!text || !*text) continue;
        if (d.d_tag == DT_NEEDED && out) inl_vec_push(&out->names, text);
        if (d.d_tag == DT_RPATH) o->rpath = text;
        if (d.d_tag == DT_RUNPATH) o->runpath = text;
        if (d.d_tag == DT_SONAME) o->soname = text;
    }
}

/* --- where a name is found --- */

static bool is_usable(const search *s, const char *path)
{
    Elf64_Ehdr h;
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    if (!f) return false;
    bool good = fread(&h, sizeof h, 1, f) == 1 && !memcmp(h.e_ident, ELFMAG, SELFMAG) &&
                h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_machine == s->machine && h.e_type == ET_DYN;
    fclose(f);
    return good;
}

/* Replaces $ORIGIN, ${ORIGIN} and $LIB in one folder of a path list. False: too long, or another
 * variable. */
static bool expand(const char *from, size_t n, const char *origin, char out[PATH_MAX])
{
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        const char *value = NULL;
        size_t skip = 1;
        if (from[i] == '$') {
            bool brace = i + 1 < n && from[i + 1] == '{';
            const char *word = from + i + 1 + brace;
            size_t left = n - (i + 1 + brace);
            if (left >= 6 && !memcmp(word, "ORIGIN", 6)) value = origin, skip = 7 + 2 * brace;
            else if (left >= 3 && !memcmp(word, "LIB", 3)) value = "lib64", skip = 4 + 2 * brace;
            else return false;
        }
        size_t size = value ? strlen(value) : 1;
        if (at + size >= PATH_MAX) return false;
        memcpy(out + at, value ? value : from + i, size);
        at += size;
        i += skip;
    }
    out[at] = '\0';
    return true;
}

/* What is written may run on another processor: a library for all of them comes first, then the one that asks
 * for least. */
static bool in_folder(const search *s, const char *folder, const char *name, char out[PATH_MAX])
{
    if (snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && is_usable(s, out)) return true;
    const char *levels[REWRITER_LEVELS];
    rewriter_hwcaps(levels);
    for (const char *const *level = levels; *level; level++)
        if (snprintf(out, PATH_MAX, "%s%s/%s", folder, *level, name) < PATH_MAX && is_usable(s, out)) return true;
    return false;
}

static bool in_list(const search *s, const char *list, const char *ends, const object *of, const char *name,
                    char out[PATH_MAX])
{
    char origin[PATH_MAX], folder[PATH_MAX];
    snprintf(origin, sizeof origin, "%s", of ? of->path : "");
    char *slash = strrchr(origin, '/');
    if (slash) *slash = '\0';
    for (; list && *list; list += strspn(list, ends)) {
        size_t n = strcspn(list, ends);
        if (n && expand(list, n, origin, folder) && in_folder(s, folder, name, out)) return true;
        list += n;
    }
    return false;
}

/* glibc-ld.so.cache1.1: a header, entries of 24 bytes, strings. Several entries of one name are in order
 * of preference, for this machine's level as far as `hwcap` is 0 (others are found by folder). */
typedef struct cache_header {
    char magic[20];
    uint32_t count, strings_size, unused[5];
} cache_header;
typedef struct cache_entry {
    int32_t flags;
    uint32_t key, value, os_version;
    uint64_t hwcap;
} cache_entry;

static const char *cache_string(const search *s, uint32_t offset)
{
    if (offset >= s->cache_size) return NULL;
    const char *text = (const char *)s->cache + offset;
    return memchr(text, 0, s->cache_size - offset) ? text : NULL;
}

static bool open_cache(const search *s, cache_header *h)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    if (s->cache_size < sizeof *h) return false;
    memcpy(h, s->cache, sizeof *h);
    return !memcmp(h->magic, magic, sizeof h->magic) && h->count <= (s->cache_size - sizeof *h) / sizeof(cache_entry);
}

static bool in_cache(const search *s, const char *name, char out[PATH_MAX])
{
    cache_header h;
    if (!open_cache(s, &h)) return false;
    for (uint32_t i = 0; i < h.count; i++) {
        cache_entry c;
        memcpy(&c, s->cache + sizeof h + i * sizeof c, sizeof c);
        const char *key = c.hwcap ? NULL : cache_string(s, c.key);
        const char *value = key && !strcmp(key, name) ? cache_string(s, c.value) : NULL;
        if (value && strlen(value) < PATH_MAX && is_usable(s, value)) {
            strcpy(out, value);
            return true;
        }
    }
    return false;
}

static bool find(const search *s, size_t who, const char *name, char out[PATH_MAX])
{
    const object *o = &s->objects.items[who];
    if (strchr(name, '/')) {
        char origin[PATH_MAX];
        snprintf(origin, sizeof origin, "%s", o->path);
        char *slash = strrchr(origin, '/');
        if (slash) *slash = '\0';
        return expand(name, strlen(name), origin, out) && is_usable(s, out);
    }
    if (!o->runpath) {
        for (size_t i = who;; i = s->objects.items[i].parent) {
            const object *up = &s->objects.items[i];
            if (!up->runpath && in_list(s, up->rpath, ":", up, name, out)) return true;
            if (i == 0) break;
        }
    }
    if (in_list(s, getenv("LD_LIBRARY_PATH"), ":;", NULL, name, out)) return true;
    if (in_list(s, o->runpath, ":", o, name, out)) return true;
    if (in_cache(s, name, out)) return true;
    return in_list(s, rewriter_folders, ":", NULL, name, out);
}

/* --- the closure --- */

/* musl's dynamic linker is its C library, which programs need by the name of the file. */
static bool is_interpreter(const object *o, const char *name)
{
    const char *slash = strrchr(o->path, '/');
    return !o->im && !strcmp(slash ? slash + 1 : o->path, name);
}

static bool has_name(const object *o, const char *name)
{
    return !strcmp(o->name, name) || (o->soname && !strcmp(o->soname, name)) || is_interpreter(o, name);
}

static bool is_known(const search *s, const char *name, const char *path)
{
    for (size_t i = 0; i < s->objects.count; i++) {
        const object *o = &s->objects.items[i];
        if (path ? !strcmp(o->path, path) : has_name(o, name)) return true;
    }
    return false;
}

/* The name that it gets beside the others. */
static char *free_name(const search *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path);
    for (unsigned n = 2; name && is_known(s, name, NULL); n++) {
        free(name);
        if (asprintf(&name, "%u-%s", n, slash ? slash + 1 : path) < 0) name = NULL;
    }
    return name;
}

/* One that is opened by a name of the dynamic linker's has `key`, and must be found by the name that it has itself. */
static inl_status add_object(search *s, object o, const char *key, inl_error *e)
{
    inl_status st = image_open(o.path, &o.im, e);
    if (st != INL_OK) return st;
    read_dynamic(&o, NULL);
    if (!o.name) o.name = free_name(s, o.soname ? o.soname : key ? key : o.path);
    if (!o.path || !o.name || !inl_vec_push(&s->objects, o)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return INL_OK;
}

static inl_status add(search *s, size_t who, const char *name, inl_error *e)
{
    char found[PATH_MAX], real[PATH_MAX];
    bool later = s->objects.items[who].later;
    if (is_known(s, name, NULL)) return INL_OK;
    if (!find(s, who, name, found)) {
        if (later) return INL_OK; /* whoever opens the one sees to the other */
        return inl_fail(e, INL_ERR_NOT_FOUND, "the library %s, which %s needs, is not found", name,
                        s->objects.items[who].path);
    }
    if (!realpath(found, real)) return inl_fail(e, INL_ERR_ACCESS, "%s: %s", found, strerror(errno));
    if (is_known(s, name, real)) return INL_OK;
    const char *base = strrchr(name, '/');
    return add_object(
        s, (object){.path = strdup(real), .name = strdup(base ? base + 1 : name), .parent = who, .later = later}, NULL,
        e);
}

/* --- libraries that are opened later --- */

static inl_status add_file(search *s, const char *path, const char *key, inl_error *e)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) return inl_fail(e, INL_ERR_ACCESS, "%s: %s", path, strerror(errno));
    if (!is_usable(s, real)) return inl_fail(e, INL_ERR_FORMAT, "%s, named by --lib, is no library", path);
    if (is_known(s, "", real)) return INL_OK;
    object o = {.path = strdup(real), .name = key ? NULL : free_name(s, real), .later = true};
    return add_object(s, o, key, e);
}

static inl_status add_files(search *s, const char *pattern, bool *any, inl_error *e)
{
    glob_t found;
    inl_status st = INL_OK;
    if (glob(pattern, 0, NULL, &found)) return INL_OK;
    for (size_t i = 0; i < found.gl_pathc && st == INL_OK; i++, *any = true)
        st = add_file(s, found.gl_pathv[i], NULL, e);
    globfree(&found);
    return st;
}

/* Names that the dynamic linker knows. */
static inl_status add_cached(search *s, const char *pattern, bool *any, inl_error *e)
{
    cache_header h;
    char path[PATH_MAX];
    inl_status st = INL_OK;
    if (!open_cache(s, &h)) return INL_OK;
    for (uint32_t i = 0; i < h.count && st == INL_OK; i++) {
        cache_entry c;
        memcpy(&c, s->cache + sizeof h + i * sizeof c, sizeof c);
        const char *name = cache_string(s, c.key);
        if (!name || fnmatch(pattern, name, 0) || !in_cache(s, name, path)) continue;
        *any = true;
        st = add_file(s, path, name, e);
    }
    return st;
}

static inl_status add_more(search *s, const char *pattern, inl_error *e)
{
    bool any = false;
    inl_status st = add_files(s, pattern, &any, e);
    if (st == INL_OK && !any && !strchr(pattern, '/')) st = add_cached(s, pattern, &any, e);
    if (st == INL_OK && !any)
        return inl_fail(e, INL_ERR_NOT_FOUND, "--lib %s: there is no such file, nor a library of that name", pattern);
    return st;
}

/* From object number `from` on. */
static inl_status walk(search *s, size_t from, inl_error *e)
{
    inl_status st = INL_OK;
    for (size_t i = from; i < s->objects.count && st == INL_OK; i++) {
        needed n = {0};
        if (!s->objects.items[i].im) continue;
        read_dynamic(&s->objects.items[i], &n);
        for (size_t k = 0; k < n.names.count && st == INL_OK; k++) st = add(s, i, n.names.items[k], e);
        inl_vec_free(&n.names);
    }
    return st;
}

inl_status rewriter_libraries(image *program, const tool_globs *more, rewriter_library **out, size_t *count,
                              inl_error *e)
{
    search s = {.machine = image_machine(program)};
    s.cache = image_map_file("/etc/ld.so.cache", &s.cache_size);
    if (!s.cache) s.cache_size = 0;
    char *interp = image_interp(program) ? realpath(image_interp(program), NULL) : NULL;
    object main = {.im = program, .path = (char *)image_path(program), .name = "", .borrowed = true};
    read_dynamic(&main, NULL);
    inl_vec_push(&s.objects, main);
    if (interp) { /* known by its path: never opened, never listed */
        const char *slash = strrchr(image_interp(program), '/');
        object o = {.path = interp, .name = strdup(slash ? slash + 1 : interp), .borrowed = true};
        inl_vec_push(&s.objects, o);
    }
    inl_status st = walk(&s, 0, e);
    size_t at_start = s.objects.count;
    for (unsigned i = 0; i < more->count && st == INL_OK; i++) st = add_more(&s, more->items[i].pattern, e);
    if (st == INL_OK) st = walk(&s, at_start, e);
    *count = 0;
    *out = calloc(s.objects.count + 1, sizeof **out);
    if (!*out && st == INL_OK) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < s.objects.count; i++) {
        object *o = &s.objects.items[i];
        if (o->borrowed) continue;
        if (*out) (*out)[(*count)++] = (rewriter_library){o->path, o->name};
        image_close(o->im);
    }
    if (s.cache) munmap((void *)s.cache, s.cache_size);
    inl_vec_free(&s.objects);
    return st;
}
