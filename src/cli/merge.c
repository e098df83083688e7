/* inlay merge: the reports of many processes (JSON), added up to one of the same form.
 *
 *     numbers    are added, but for those that name something (address, target, line, size, id, pid, thread ...)
 *     strings    of the report itself, where they differ (the program): all of them, divided by commas
 *     objects    member by member
 *     arrays     of objects: elements of the same name are added. The name is all strings in an element; where that is
 *                not enough to tell the elements of one report from each other, with its line and the address's place
 *                in its page, which every process has in common (images are mapped by the page). Elements that cannot
 *                be told apart even so stay apart. An address that differs is the first report's.
 *
 * "pid" goes; "processes" says how many reports there are.
 */
#include "base/hash.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

typedef struct merge {
    inl_arena arena;
    bool failed; /* no memory */
} merge;

static bool is_name(const char *key)
{
    static const char *const names[] = {"address", "target", "line", "size", "id",  "pid",
                                        "tid",     "thread", "pc",   "low",  "high"};
    for (size_t i = 0; key && i < sizeof names / sizeof *names; i++)
        if (!strcmp(key, names[i])) return true;
    return false;
}

/* --- elements of arrays --- */

static uint64_t hashed(uint64_t hash, const char *text) { return inl_hash(inl_hash_text(hash, text), "\xff", 1); }

/* What an element is called. */
static uint64_t name_of(const json *item, bool with_place)
{
    uint64_t hash = INL_HASH_BEGIN;
    for (const json *m = item->first; m; m = m->next) {
        if (m->kind == JSON_STRING) hash = hashed(hashed(hash, m->key ? m->key : ""), m->text);
        if (!with_place || m->kind != JSON_UINT || !m->key) continue;
        char text[32];
        bool is_place = !strcmp(m->key, "address") || !strcmp(m->key, "pc");
        if (!is_place && strcmp(m->key, "line")) continue;
        snprintf(text, sizeof text, "%llu", (unsigned long long)(is_place ? m->number % PAGE : m->number));
        hash = hashed(hashed(hash, m->key), text);
    }
    return hash | 1;
}

static bool all_objects(const json *array)
{
    for (const json *i = array->first; i; i = i->next)
        if (i->kind != JSON_OBJECT) return false;
    return array->first;
}

/* By name: the element, or 1 where several have it. */
static bool index_of(const json *array, bool with_place, inl_map *out)
{
    uint64_t known;
    for (json *i = array->first; i; i = i->next) {
        uint64_t name = name_of(i, with_place);
        if (!inl_map_put(out, name, inl_map_get(out, name, &known) ? 1 : (uint64_t)(uintptr_t)i)) return false;
    }
    return true;
}

static bool has_doubles(const inl_map *index)
{
    uint64_t value;
    for (size_t at = 0; inl_map_next(index, &at, NULL, &value);)
        if (value == 1) return true;
    return false;
}

static void add(merge *m, json *to, json *from, bool top);

static void add_indexed(merge *m, json *to, json *from, const inl_map *mine, const inl_map *theirs, bool with_place)
{
    for (json *next, *i = from->first; i; i = next) {
        uint64_t found, own, name = name_of(i, with_place);
        next = i->next;
        bool known = inl_map_get(mine, name, &found) && found != 1 && inl_map_get(theirs, name, &own) && own != 1;
        if (known) add(m, (json *)(uintptr_t)found, i, false);
        else json_append(to, i);
    }
}

/* By strings alone if they tell the elements of both apart, with their place otherwise. */
static void add_elements(merge *m, json *to, json *from)
{
    inl_map mine[2] = {{0}}, theirs[2] = {{0}};
    bool with_place = false;
    for (int k = 0; k < 2 && !m->failed; k++) m->failed = !index_of(to, k, &mine[k]) || !index_of(from, k, &theirs[k]);
    if (!m->failed) {
        with_place = has_doubles(&mine[0]) || has_doubles(&theirs[0]);
        add_indexed(m, to, from, &mine[with_place], &theirs[with_place], with_place);
    }
    for (int k = 0; k < 2; k++) {
        inl_map_free(&mine[k]);
        inl_map_free(&theirs[k]);
    }
}

/* --- values --- */

/* Two lists of words divided by commas become one, with no word twice. */
static const char *joined(merge *m, const char *a, const char *b)
{
    size_t n = strlen(b);
    for (const char *at = strstr(a, b); at; at = strstr(at + 1, b))
        if ((at == a || at[-1] == ' ') && (at[n] == 0 || at[n] == ',')) return a;
    char *both = inl_arena_alloc(&m->arena, strlen(a) + n + 3);
    if (!both) {
        m->failed = true;
        return a;
    }
    sprintf(both, "%s, %s", a, b);
    return both;
}

static void add_members(merge *m, json *to, json *from, bool top)
{
    for (json *next, *i = from->first; i; i = next) {
        json *mine = json_member(to, i->key);
        next = i->next;
        if (mine) add(m, mine, i, top);
        else json_append(to, i);
    }
}

static double number_of(const json *v) { return v->kind == JSON_REAL ? v->real : (double)v->number; }

static void add(merge *m, json *to, json *from, bool top)
{
    if (to->kind == JSON_NULL && from->kind != JSON_NULL) {
        json *next = to->next;
        const char *key = to->key;
        *to = *from;
        to->next = next;
        to->key = key;
        return;
    }
    if (is_name(to->key)) return;
    uint64_t sum;
    bool overflows = to->kind == JSON_UINT && from->kind == JSON_UINT &&
                     __builtin_add_overflow(to->number, from->number, &sum);
    if (to->kind == JSON_UINT && (from->kind == JSON_REAL || overflows)) {
        to->kind = JSON_REAL;
        to->real = (double)to->number;
    }
    if (to->kind == JSON_UINT && from->kind == JSON_UINT) to->number += from->number;
    else if (to->kind == JSON_REAL && (from->kind == JSON_REAL || from->kind == JSON_UINT))
        to->real = json_finite(to->real + number_of(from));
    else if (to->kind == JSON_BOOL && from->kind == JSON_BOOL) to->truth |= from->truth;
    else if (to->kind == JSON_STRING && from->kind == JSON_STRING && top) to->text = joined(m, to->text, from->text);
    else if (to->kind == JSON_OBJECT && from->kind == JSON_OBJECT) add_members(m, to, from, false);
    else if (to->kind == JSON_ARRAY && from->kind == JSON_ARRAY && all_objects(to) && all_objects(from))
        add_elements(m, to, from);
    else if (to->kind == JSON_ARRAY && from->kind == JSON_ARRAY)
        for (json *next, *i = from->first; i; i = next) {
            next = i->next;
            json_append(to, i);
        }
}

/* --- order --- */

/* The first number of an element that is a count. */
static uint64_t count_of(const json *item)
{
    for (const json *m = item->first; m; m = m->next)
        if (m->kind == JSON_UINT && !is_name(m->key)) return m->number;
    return 0;
}

static bool is_descending(const json *array)
{
    for (const json *i = array->first; i && i->next; i = i->next)
        if (count_of(i) < count_of(i->next)) return false;
    return all_objects(array);
}

static int by_count(const void *a, const void *b)
{
    const json *x = *(json *const *)a, *y = *(json *const *)b;
    if (count_of(x) != count_of(y)) return count_of(x) < count_of(y) ? 1 : -1;
    return x->seen < y->seen ? -1 : 1;
}

static void sort(merge *m, json *array)
{
    unsigned n = 0;
    for (json *i = array->first; i; i = i->next) i->seen = n++;
    json **items = inl_arena_alloc(&m->arena, (n + 1) * sizeof(json *));
    if (!items) {
        m->failed = true;
        return;
    }
    n = 0;
    for (json *i = array->first; i; i = i->next) items[n++] = i;
    qsort(items, n, sizeof *items, by_count);
    array->first = array->last = NULL;
    for (unsigned k = 0; k < n; k++) json_append(array, items[k]);
}

/* Lists that begin with the largest still do. `seen` of each array that does. */
static void note_order(json *report)
{
    for (json *i = report->first; i; i = i->next) i->seen = i->kind == JSON_ARRAY && is_descending(i);
}

static void restore_order(merge *m, json *report)
{
    for (json *i = report->first; i; i = i->next)
        if (i->kind == JSON_ARRAY && i->seen && all_objects(i)) sort(m, i);
}

/* --- files --- */

static char *read_file(merge *m, const char *path, size_t *size)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    *size = 0;
    if (!f) {
        cli_say("cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    for (;;) {
        if (*size == room) {
            char *more = realloc(text, room = room ? 2 * room : 1 << 16);
            if (!more) break;
            text = more;
        }
        size_t n = fread(text + *size, 1, room - *size, f);
        if (!n) break;
        *size += n;
    }
    bool failed = ferror(f) || !text;
    fclose(f);
    if (!failed) return text;
    m->failed = !text;
    if (text) cli_say("cannot read %s: %s", path, strerror(errno));
    free(text);
    return NULL;
}

static json *read_report(merge *m, const char *path)
{
    size_t size, at;
    char *text = read_file(m, path, &size);
    if (!text) return NULL;
    json *report = json_read(&m->arena, text, size, &at);
    if (!report || report->kind != JSON_OBJECT) {
        cli_say("%s is no JSON report (byte %zu); run the tool with --format=json", path, at);
        report = NULL;
    }
    free(text);
    return report;
}

static bool same_tool(const json *a, const json *b, const char *path)
{
    const json *x = json_member(a, "tool"), *y = json_member(b, "tool");
    if (x && y && x->kind == JSON_STRING && y->kind == JSON_STRING && strcmp(x->text, y->text)) {
        cli_say("%s is a report of %s, not of %s", path, y->text, x->text);
        return false;
    }
    return true;
}

/* How many processes a report is of: of one that has been merged, several. */
static uint64_t take_processes(json *report)
{
    json *kept = NULL, *merged = json_member(report, "processes");
    uint64_t count = merged && merged->kind == JSON_UINT ? merged->number : 1;
    for (json *next, *i = report->first; i; i = next) {
        next = i->next;
        if (i == merged || !strcmp(i->key, "pid")) continue;
        if (!kept) report->first = report->last = NULL;
        json_append(report, kept = i);
    }
    if (!kept) report->first = report->last = NULL;
    return count;
}

static json *merge_files(merge *m, char **paths, int count)
{
    json *sum = NULL, *processes = inl_arena_alloc(&m->arena, sizeof *processes);
    if (!processes) return NULL;
    *processes = (json){.kind = JSON_UINT, .key = "processes"};
    for (int i = 0; i < count; i++) {
        json *report = read_report(m, paths[i]);
        if (!report || (sum && !same_tool(sum, report, paths[i]))) return NULL;
        processes->number += take_processes(report);
        if (!sum) note_order(sum = report);
        else add_members(m, sum, report, true);
    }
    restore_order(m, sum);
    json_append(sum, processes);
    return m->failed ? NULL : sum;
}

static int write_sum(const json *sum, const char *path)
{
    FILE *f = path ? fopen(path, "w") : stdout;
    if (f) json_write(f, sum);
    if (f && !ferror(f) && (path ? fclose(f) : fflush(f)) == 0) return EXIT_OK;
    cli_say("cannot write %s: %s", path ? path : "the result", strerror(errno));
    return EXIT_FAILED;
}

static const char usage[] =
    "usage: inlay merge [-o OUT] FILE...\n"
    "Adds up reports that a tool has written with --format=json, one a process, to OUT or standard output.\n";

int cli_merge(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return 0;
    }
    merge m = {0};
    const char *out = NULL;
    int files = 0; /* in front of argv, in their order */
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (!options || argv[i][0] != '-' || !argv[i][1]) {
            argv[files++] = argv[i];
        } else if (!strcmp(argv[i], "--")) {
            options = false;
        } else if (strcmp(argv[i], "-o") || i + 1 >= argc) {
            cli_say("merge: option '%s' is not known, or lacks its value", argv[i]);
            return EXIT_USAGE;
        } else {
            out = argv[++i];
        }
    }
    if (!files) {
        cli_say("no report named (usage: inlay merge [-o OUT] FILE...)");
        return EXIT_USAGE;
    }
    json *sum = merge_files(&m, argv, files);
    int status = sum ? write_sum(sum, out) : EXIT_FAILED;
    if (m.failed) cli_say("out of memory");
    inl_arena_free(&m.arena);
    return status;
}
