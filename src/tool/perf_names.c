#include "tool/perf_names.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Software events need no counter of the processor's: those outside of braces are one group. Clocks stand alone always:
 * the kernel brings one that is led by another event up to date only when the thread is switched. */
enum { SOFTWARE_GROUP = 0, CLOCK_GROUP = 1000 };

typedef struct known {
    const char *name;
    uint32_t type;
    uint64_t config;
} known;

static const known plain[] = {
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
};

/* L1-dcache-load-misses: a cache, and what it does. */
static const known caches[] = {
    {"L1-dcache", 0, PERF_COUNT_HW_CACHE_L1D}, {"L1-icache", 0, PERF_COUNT_HW_CACHE_L1I},
    {"LLC", 0, PERF_COUNT_HW_CACHE_LL},        {"dTLB", 0, PERF_COUNT_HW_CACHE_DTLB},
    {"iTLB", 0, PERF_COUNT_HW_CACHE_ITLB},     {"branch", 0, PERF_COUNT_HW_CACHE_BPU},
    {"node", 0, PERF_COUNT_HW_CACHE_NODE},
};
#define DOES(op, result) (PERF_COUNT_HW_CACHE_OP_##op << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)
static const known does[] = {
    {"-loads", 0, DOES(READ, ACCESS)},          {"-load-misses", 0, DOES(READ, MISS)},
    {"-stores", 0, DOES(WRITE, ACCESS)},        {"-store-misses", 0, DOES(WRITE, MISS)},
    {"-prefetches", 0, DOES(PREFETCH, ACCESS)}, {"-prefetch-misses", 0, DOES(PREFETCH, MISS)},
};

static bool is_word(const char *name, const char *at, size_t n) { return strlen(name) == n && !memcmp(name, at, n); }

static bool find_cache(const char *at, size_t n, perf_asked *out)
{
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        size_t first = strlen(caches[i].name);
        if (n < first || memcmp(caches[i].name, at, first) != 0) continue;
        for (size_t k = 0; k < sizeof does / sizeof *does; k++) {
            if (!is_word(does[k].name, at + first, n - first)) continue;
            out->type = PERF_TYPE_HW_CACHE;
            out->config = caches[i].config | does[k].config;
            return true;
        }
    }
    return false;
}

/* rc0: the processor's own number, hexadecimal. */
static bool find_raw(const char *at, size_t n, perf_asked *out)
{
    if (n < 2 || n > 17 || *at != 'r') return false;
    for (size_t i = 1; i < n; i++)
        if (!isxdigit((unsigned char)at[i])) return false;
    out->type = PERF_TYPE_RAW;
    out->config = strtoull(at + 1, NULL, 16);
    return true;
}

static bool find(const char *at, size_t n, perf_asked *out)
{
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (!is_word(plain[i].name, at, n)) continue;
        out->type = plain[i].type;
        out->config = plain[i].config;
        return true;
    }
    return find_cache(at, n, out) || find_raw(at, n, out);
}

bool perf_names_knows(const char *word, size_t length)
{
    perf_asked unused;
    return find(word, length, &unused);
}

/* TYPE/CONFIG[/CONFIG1[/CONFIG2]], as strtoull reads numbers. */
static bool read_encoding(const char *at, const char *end, perf_asked *out)
{
    uint64_t *const to[] = {&out->config, &out->config1, &out->config2};
    char *stop;
    if (!isdigit((unsigned char)*at)) return false;
    uint64_t type = strtoull(at, &stop, 0);
    unsigned k = 0;
    for (; k < 3 && stop < end && *stop == '/' && isdigit((unsigned char)stop[1]); k++)
        *to[k] = strtoull(stop + 1, &stop, 0);
    out->type = (uint32_t)type;
    return k && stop == end && type <= UINT32_MAX;
}

/* Where one is said, the others are not counted. */
static bool read_modifiers(const char *at, const char *end, perf_asked *out)
{
    if (at == end) return false;
    out->no_user = !memchr(at, 'u', (size_t)(end - at));
    out->no_kernel = !memchr(at, 'k', (size_t)(end - at));
    out->no_hypervisor = !memchr(at, 'h', (size_t)(end - at));
    for (; at < end; at++)
        if (!strchr("ukh", *at)) return false;
    return true;
}

static bool read_one(const char *at, const char *end, perf_asked *out)
{
    size_t n = (size_t)(end - at);
    const char *equals = memrchr(at, '=', n), *colon = NULL; /* "cpu/event=1/=4/1": a name may have some */
    if (!n || n >= sizeof out->name) return false;
    *out = (perf_asked){0};
    const char *from = equals ? equals : at;
    for (const char *c = from; c < end; c++)
        if (*c == ':') colon = c;
    if (colon && !read_modifiers(colon + 1, end, out)) return false;
    const char *stop = colon ? colon : end;
    memcpy(out->name, at, (size_t)((equals ? equals : end) - at));
    return equals ? equals > at && read_encoding(equals + 1, stop, out) : find(at, (size_t)(stop - at), out);
}

static unsigned fail(char *why, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, size, fmt, args);
    va_end(args);
    return 0;
}

static bool is_clock(const perf_asked *a)
{
    return a->type == PERF_TYPE_SOFTWARE &&
           (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static uint32_t group_of(const perf_asked *one, bool in_braces, uint32_t groups, unsigned number)
{
    if (is_clock(one)) return CLOCK_GROUP + number;
    return !in_braces && one->type == PERF_TYPE_SOFTWARE ? SOFTWARE_GROUP : groups;
}

unsigned perf_names_read(const char *list, perf_asked out[INLAY_PERF_MOST], char *why, size_t size)
{
    unsigned n = 0;
    uint32_t groups = 1;
    bool in_braces = false;
    const char *at = list;
    for (;;) {
        if (*at == '{' && !in_braces) {
            in_braces = true;
            groups++;
            at++;
        }
        const char *end = at + strcspn(at, ",{}");
        if (n == INLAY_PERF_MOST) return fail(why, size, "more than %d events", INLAY_PERF_MOST);
        if (!read_one(at, end, &out[n]))
            return fail(why, size,
                        "'%.*s' is no event that is known: names as perf list has them, rHEX, NAME=TYPE/CONFIG, "
                        "and :u, :k behind them",
                        (int)(end - at), at);
        if (!in_braces) groups++;
        out[n].group = group_of(&out[n], in_braces, groups, n);
        n++;
        if (*end == '}' && in_braces) {
            in_braces = false;
            end++;
        }
        if (!*end && !in_braces) return n;
        if (*end != ',') return fail(why, size, "'%s': braces hold events, with commas between them", list);
        at = end + 1;
    }
}
