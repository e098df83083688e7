/* uftrace's data directory, as `uftrace record` leaves it: `info`, `task.txt`, a map and symbols of each image, and a
 * file of records for each thread, 16 bytes each:
 *
 *     time, CLOCK_MONOTONIC in ns                        8 bytes
 *     address << 16 | depth << 6 | 5 << 3 | values follow << 2 | is an exit   8
 *
 * uftrace takes the other files apart by words and lines, and knows an image by its path in each of them: in names of
 * files '_' stands for what would divide them. */
#include "trace/uftrace_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAGIC = 5, VALUES_FOLLOW = 1 << 2, DEEPEST = 1023, VERSION = 4, HEAD = 40, LITTLE = 1, CLASS_64 = 2 };
enum {
    HAS_SESSIONS = 1 << 1,
    HAS_ARGUMENTS = 1 << 3,
    HAS_RESULTS = 1 << 4,
    RELATIVE_SYMBOLS = 1 << 5,
    HAS_DEPTH = 1 << 6
}; /* feat_mask */
enum {
    EXE_NAME = 1 << 0,
    EXIT_STATUS = 1 << 2,
    COMMAND = 1 << 3,
    TASKS = 1 << 7,
    ARGUMENT_LISTS = 1 << 10,
    PATTERN_TYPE = 1 << 12
}; /* info_mask */

typedef struct folder {
    const char *path;
    const trace_session *s;
    FILE *records;
    const trace_calls *calls; /* the thread's that is being told */
    uftrace_values values;
    bool too_deep;
} folder;

static FILE *open_in(const folder *d, const char *name, inl_error *e)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", d->path, name);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "we") : NULL;
    if (!f) inl_fail(e, INL_ERR_ACCESS, "cannot write %s/%s: %s", d->path, name, strerror(errno));
    return f;
}

typedef struct word {
    char text[4096];
} word;

/* The name of a file as one word. */
static word word_of(const char *name)
{
    word w;
    snprintf(w.text, sizeof w.text, "%s", name);
    for (char *c = w.text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '"') *c = '_';
    return w;
}

static inl_status close_good(FILE *f, const folder *d, inl_error *e)
{
    int bad = trace_out_error(f);
    if (fclose(f) != 0 && !bad) bad = errno;
    return bad ? inl_fail(e, INL_ERR_SYSTEM, "cannot write to %s: %s", d->path, strerror(bad)) : INL_OK;
}

/* --- info --- */

static void put_info_head(FILE *f, bool arguments, bool results)
{
    struct {
        char magic[8];
        uint32_t version;
        uint16_t size;
        uint8_t endian, class;
        uint64_t features, infos;
        uint16_t deepest, spare[3];
    } head = {.magic = "Ftrace!", .version = VERSION, .size = HEAD, .endian = LITTLE, .class = CLASS_64};
    _Static_assert(sizeof head == HEAD, "the format on disk");
    head.features = HAS_SESSIONS | RELATIVE_SYMBOLS | HAS_DEPTH;
    head.infos = EXE_NAME | EXIT_STATUS | COMMAND | TASKS;
    if (arguments) head.features |= HAS_ARGUMENTS;
    if (results) head.features |= HAS_RESULTS;
    if (arguments || results) head.infos |= ARGUMENT_LISTS | PATTERN_TYPE;
    head.deepest = DEEPEST + 1;
    fwrite(&head, sizeof head, 1, f);
}

static inl_status put_info(const folder *d, inl_error *e)
{
    FILE *f = open_in(d, "info", e);
    if (!f) return INL_ERR_ACCESS;
    bool arguments = uftrace_values_any(&d->values, false), results = uftrace_values_any(&d->values, true);
    put_info_head(f, arguments, results);
    const word program = word_of(d->s->program);
    fprintf(f, "exename:%s\nexit_status:%d\ncmdline:%s\n", program.text, d->s->status, program.text);
    fprintf(f, "taskinfo:lines=2\ntaskinfo:nr_tid=%zu\ntaskinfo:tids=", d->s->threads.count);
    for (size_t i = 0; i < d->s->threads.count; i++) fprintf(f, "%s%u", i ? "," : "", d->s->threads.items[i].tid);
    fputc('\n', f);
    if (arguments || results) uftrace_values_put(f, &d->values);
    return close_good(f, d, e);
}

static void put_moment(FILE *f, const char *what, uint64_t ns)
{
    fprintf(f, "%s timestamp=%" PRIu64 ".%09" PRIu64, what, ns / 1000000000, ns % 1000000000);
}

static inl_status put_tasks(const folder *d, inl_error *e)
{
    FILE *f = open_in(d, "task.txt", e);
    if (!f) return INL_ERR_ACCESS;
    put_moment(f, "SESS", d->s->monotonic);
    fprintf(f, " pid=%d sid=%016x exename=\"%s\"\n", d->s->pid, 1, word_of(d->s->program).text);
    for (size_t i = 0; i < d->s->threads.count; i++) {
        put_moment(f, "TASK", d->s->monotonic);
        fprintf(f, " tid=%u pid=%d\n", d->s->threads.items[i].tid, d->s->pid);
    }
    return close_good(f, d, e);
}

/* --- images and their symbols --- */

static int by_address(const void *a, const void *b)
{
    const trace_proc *x = *(trace_proc *const *)a, *y = *(trace_proc *const *)b;
    if (x->image != y->image) return (uintptr_t)x->image < (uintptr_t)y->image ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Mangled, as uftrace wants it; where a list of values names it, as that does. */
static const char *name_of(const folder *d, const trace_proc *p)
{
    return uftrace_values_has(&d->values, trace_name(p)) ? trace_name(p) : p->name;
}

static inl_status put_symbols(const folder *d, const trace_proc **procs, size_t count, inl_error *e)
{
    const trace_image *image = procs[0]->image;
    char name[4096 + 8];
    if (strchr(image->name, '/'))
        return inl_fail(e, INL_ERR_FORMAT, "an image's path is '%s', which is no file's", image->path);
    snprintf(name, sizeof name, "%s.sym", word_of(image->name).text);
    FILE *f = open_in(d, name, e);
    if (!f) return INL_ERR_ACCESS;
    fprintf(f, "# symbols: %zu\n# path name: %s\n# build-id:\n", count + 1, word_of(image->path).text);
    for (size_t i = 0; i < count; i++)
        fprintf(f, "%016" PRIx64 " T %s\n", procs[i]->address - image->low, name_of(d, procs[i]));
    uint64_t end = procs[count - 1]->address + procs[count - 1]->size - image->low;
    fprintf(f, "%016" PRIx64 " ? __sym_end\n", end);
    return close_good(f, d, e);
}

static bool name_is_taken(const trace_proc **procs, size_t before, const trace_image *image)
{
    const word name = word_of(image->name);
    for (size_t i = 0; i < before; i++) {
        const trace_image *other = procs[i]->image;
        bool is_first = !i || procs[i - 1]->image != other;
        if (is_first && other != image && !strcmp(word_of(other->name).text, name.text)) return true;
    }
    return false;
}

static inl_status put_images(const folder *d, const trace_proc **procs, size_t count, FILE *map, inl_error *e)
{
    inl_status st = INL_OK;
    for (size_t i = 0, n; i < count && st == INL_OK; i += n) {
        const trace_image *image = procs[i]->image;
        for (n = 1; i + n < count && procs[i + n]->image == image; n++) {}
        if (name_is_taken(procs, i, image))
            return inl_fail(e, INL_ERR_UNSUPPORTED, "two images are called %s: uftrace's directory has room for one",
                            image->name);
        fprintf(map, "%012" PRIx64 "-%012" PRIx64 " r-xp 00000000 00:00 0                          %s\n", image->low,
                image->high, word_of(image->path).text);
        st = put_symbols(d, procs + i, n, e);
    }
    fprintf(map, "%s", "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]\n");
    return st;
}

static inl_status put_map(const folder *d, inl_error *e)
{
    size_t n = 0;
    const trace_proc **procs = calloc(d->s->procs.count + 1, sizeof *procs);
    if (!procs) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < d->s->procs.count; i++)
        if (d->s->procs.items[i].image) procs[n++] = &d->s->procs.items[i];
    if (n) qsort(procs, n, sizeof *procs, by_address);
    FILE *map = open_in(d, "sid-0000000000000001.map", e);
    inl_status st = map ? put_images(d, procs, n, map, e) : INL_ERR_ACCESS;
    free(procs);
    if (!map) return st;
    if (st != INL_OK) fclose(map);
    return st == INL_OK ? close_good(map, d, e) : st;
}

/* --- records --- */

static void put_record(folder *d, const trace_call *c, bool is_exit)
{
    uint64_t address = d->s->procs.items[c->proc - 1].address;
    uint64_t time = d->s->monotonic + (is_exit ? c->end : c->start);
    uint64_t what = address << 16 | (uint64_t)(c->depth & DEEPEST) << 6 | MAGIC << 3 | is_exit;
    uint8_t values[UFTRACE_BYTES_MOST];
    size_t follow = uftrace_values_of(&d->values, d->calls, c, is_exit, values);
    if (follow) what |= VALUES_FOLLOW;
    if (c->depth > DEEPEST) d->too_deep = true;
    fwrite(&time, sizeof time, 1, d->records);
    fwrite(&what, sizeof what, 1, d->records);
    fwrite(values, 1, follow, d->records);
}

static void begins(const trace_call *c, void *arg) { put_record(arg, c, false); }
static void ends(const trace_call *c, void *arg) { put_record(arg, c, true); }

static inl_status put_thread(folder *d, const trace_thread *t, const trace_view *v, inl_error *e)
{
    char name[32];
    trace_calls calls = {0};
    const trace_call_teller teller = {begins, ends, d};
    d->calls = &calls;
    snprintf(name, sizeof name, "%u.dat", t->tid);
    inl_status st = trace_calls_of(&calls, d->s, t, v, e);
    if (st == INL_OK && !(d->records = open_in(d, name, e))) st = INL_ERR_ACCESS;
    if (st == INL_OK) {
        st = trace_calls_tell(&calls, &teller, e);
        inl_status closed = close_good(d->records, d, st == INL_OK ? e : NULL);
        if (st == INL_OK) st = closed;
    }
    trace_calls_free(&calls);
    if (st == INL_OK && d->too_deep)
        st = inl_fail(e, INL_ERR_UNSUPPORTED,
                      "calls are nested deeper than %d, and uftrace's records end there: --depth=%d leaves those out",
                      DEEPEST, DEEPEST);
    return st;
}

inl_status trace_export_uftrace(const char *path, const trace_file *file, const trace_view *v, inl_error *e)
{
    folder d = {.path = path, .s = &file->sessions.items[0]};
    d.values.s = d.s;
    inl_status st = trace_refuse_counts(d.s, e);
    if (st == INL_OK) st = trace_refuse_many(file, "uftrace's directory", e);
    if (st == INL_OK && mkdir(path, 0777) != 0 && errno != EEXIST)
        st = inl_fail(e, INL_ERR_ACCESS, "cannot make the directory %s: %s", path, strerror(errno));
    for (size_t i = 0; i < d.s->threads.count && st == INL_OK; i++) st = put_thread(&d, &d.s->threads.items[i], v, e);
    if (st == INL_OK && d.values.failed) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (st == INL_OK) st = put_info(&d, e); /* which tells of values that have been met */
    if (st == INL_OK) st = put_tasks(&d, e);
    if (st == INL_OK) st = put_map(&d, e);
    uftrace_values_free(&d.values);
    return st;
}
