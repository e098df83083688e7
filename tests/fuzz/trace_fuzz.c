/* Feeds damaged recordings to the reader: `trace_fuzz COUNT SEED`.
 *
 * Each input is a whole recording, made here, with some bytes or numbers changed, or cut short. What is read is then
 * shown in every form, in one of four views in turn. Built with the sanitizers; what must hold besides is that the
 * undamaged one is read as it was made. */
#include "damage.h"
#include "trace/out.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = INLAY_TRACE_PAGE, PROCS = 12, RECORDS = 200, PAGES = 8, SIZE = PAGES * PAGE };

static char folder[] = "/tmp/trace_fuzz.XXXXXX"; /* of uftrace's files */
static unsigned long opened, shown;              /* so that one sees that inputs get somewhere */

static inlay_trace_chunk *chunk(uint8_t *out, unsigned page, inlay_trace_kind kind, uint32_t bytes, uint32_t used)
{
    inlay_trace_chunk *c = (inlay_trace_chunk *)(out + page * PAGE);
    *c = (inlay_trace_chunk){.magic = INLAY_TRACE_MAGIC, .kind = kind, .bytes = bytes, .used = used};
    c->sequence = page;
    c->time = 1000000 + page * 100000;
    c->monotonic = 5000000 + page * 30000000;
    c->thread = page % 2;
    return c;
}

static uint32_t put_note(uint8_t *at, uint32_t kind, uint32_t number, uint64_t c, const char *text, const char *why)
{
    inlay_trace_note *n = (inlay_trace_note *)at;
    uint32_t first = (uint32_t)strlen(text) + 1, second = (uint32_t)strlen(why) + 1;
    *n = (inlay_trace_note){.kind = kind, .number = number, .more = 1, .a = 0x1000 * number, .b = 64, .c = c};
    n->bytes = (uint32_t)(sizeof *n + first + second + 7) & ~7u;
    memcpy(n->text, text, first);
    memcpy(n->text + first, why, second);
    return n->bytes;
}

static void put_notes(uint8_t *out, unsigned page)
{
    static const char *const names[PROCS] = {"main", "_Z5solvei", "f",    "g", "h", "write@plt",
                                             "left", "a;b",       "x\"y", "r", "s", "t"};
    uint8_t *at = (uint8_t *)(chunk(out, page, INLAY_TRACE_NOTES, PAGE, 0) + 1);
    at += put_note(at, INLAY_TRACE_IMAGE, 1, 0, "/bin/app", "");
    for (uint32_t i = 0; i < PROCS; i++)
        at += put_note(at, INLAY_TRACE_PROC, i + 1, i == 6 ? 3 : i == 5, names[i], i == 6 ? "why" : "");
    at += put_note(at, INLAY_TRACE_TYPES, 1, 0,
                   "1 {40:a@0:r3,5,4,u4;b@4:a3,E4[RED=0,BLUE=4294967295];<c>@16:{8:x@0:f8}}\n", "");
    at += put_note(at, INLAY_TRACE_TYPES, 2, 0, "0 b1\n2 &{32:t@0:a16,c1;w@16:i16}\n1 a2,a2,f4\n", "");
    at += put_note(at, INLAY_TRACE_THREAD_ENDS, 1, 0, "", "");
    at += put_note(at, INLAY_TRACE_EVENT, 0, 0, "page-faults", "");
    at += put_note(at, INLAY_TRACE_EVENT, 1, 0, "task-clock", "");
    put_note(at, INLAY_TRACE_END, 0, 0, "", "");
}

static void put_records(uint8_t *out, unsigned page)
{
    inlay_trace_chunk *c = chunk(out, page, INLAY_TRACE_EVENTS, PAGE, RECORDS * sizeof(inlay_trace_record));
    inlay_trace_record *r = (inlay_trace_record *)(c + 1);
    uint64_t time = c->time, sp = 0x7ffd00010000;
    uint32_t open[RECORDS], depth = 0;
    for (unsigned i = 0; i < RECORDS; i++) {
        if (fuzz_below(5) == 0) { /* an argument or a result */
            uint32_t tag = (uint32_t)fuzz_below(3) | (uint32_t) "duxpscefw"[fuzz_below(9)] << 8 | 8 << 16;
            tag |= (uint32_t)fuzz_below(8) << 24;
            r[i] = (inlay_trace_record){fuzz_next(), tag, (uint32_t)INLAY_TRACE_VALUE};
            continue;
        }
        bool enters = !depth || (depth < 20 && fuzz_below(2));
        uint32_t number = enters ? 1 + (uint32_t)fuzz_below(PROCS) : open[depth - 1];
        if (enters) sp -= 32;
        r[i] = (inlay_trace_record){(time += fuzz_below(300)) << 16 | sp >> 32, (uint32_t)sp, number << 1 | !enters};
        if (enters) open[depth++] = number;
        else depth--, sp += 32;
    }
}

/* Packed records, in a frame of zstd's with one block that is as it is. */
static void put_squeezed(uint8_t *out, unsigned page)
{
    enum { HEAD = 4 + 1 + 4, BLOCK = 3, BYTES = RECORDS * 4 };
    inlay_trace_chunk *c = chunk(out, page, INLAY_TRACE_ZSTD, PAGE, HEAD + BLOCK + BYTES);
    uint8_t *at = (uint8_t *)(c + 1);
    const uint32_t magic = 0xfd2fb528, size = BYTES, block = BYTES << 3 | 1;
    memcpy(at, &magic, 4);
    at[4] = 0xa0; /* one segment, its length in four bytes */
    memcpy(at + 5, &size, 4);
    memcpy(at + HEAD, &block, BLOCK);
    for (unsigned i = 0; i < RECORDS; i++) {
        uint32_t step = (uint32_t)(1 + fuzz_below(2 * PROCS)) << 21 | 32u << 15 | (uint32_t)fuzz_below(300);
        uint32_t counted = INLAY_TRACE_IS_MORE | (uint32_t)fuzz_below(3) << 24 | (uint32_t)fuzz_below(99);
        memcpy(at + HEAD + BLOCK + i * 4, fuzz_below(3) ? &step : &counted, 4);
    }
}

/* Built without libzstd it is no record. */
static unsigned squeezed_records(const uint8_t *whole)
{
    size_t size = 0;
    const inlay_trace_chunk *c = (const inlay_trace_chunk *)(whole + (PAGES - 1) * PAGE);
    void *p = trace_inflate(c + 1, c->used, &size);
    free(p);
    return p ? RECORDS : 0;
}

static void make(uint8_t *out)
{
    memset(out, 0, SIZE);
    inlay_trace_chunk *c = chunk(out, 0, INLAY_TRACE_SESSION, PAGE, sizeof(inlay_trace_session) + 4);
    inlay_trace_session *s = (inlay_trace_session *)(c + 1);
    *s = (inlay_trace_session){.version = INLAY_TRACE_VERSION, .clock = INLAY_TRACE_CYCLES, .frequency = 3000000000u};
    s->time = s->monotonic = 1;
    s->overhead = 20000;
    memcpy(s->program, "app", 4);
    put_notes(out, 1);
    for (unsigned page = 2; page < PAGES - 1; page++) put_records(out, page);
    put_squeezed(out, PAGES - 1);
}

/* Heads and notes are where sizes are. */
static size_t damage(uint8_t *out)
{
    static const uint64_t odd[] = {0,    1,    7,          8,          64,         4095,      4096,
                                   4032, 8192, 0x7fffffff, 0xffffffff, UINT64_MAX, 1ull << 48};
    for (uint64_t n = 1 + fuzz_below(6); n; n--) {
        size_t page = fuzz_below(PAGES) * PAGE, size = fuzz_below(3) ? 4 : 8;
        size_t at = fuzz_below(2) ? page + fuzz_below(28) * 4 : fuzz_below(SIZE / 4) * 4;
        uint64_t value = fuzz_below(2) ? odd[fuzz_below(sizeof odd / sizeof *odd)] : fuzz_next() >> fuzz_below(64);
        if (at + size <= SIZE) memcpy(out + at, &value, size);
    }
    return fuzz_below(4) ? SIZE : fuzz_below(SIZE);
}

static void show(const trace_file *f, FILE *to)
{
    inl_error e;
    unsigned k = opened % 4;
    trace_view v = {.json = k & 1, .threads = k & 2, .raw = k & 2, .top = k, .depth = k == 3 ? 2 : 0};
    if (k == 3) v.threshold = 100;
    shown += trace_put_report(to, f, &v, &e) == INL_OK;
    trace_put_tree(to, f, &v, &e);
    trace_put_graph(to, f, "*", &v, &e);
    trace_put_diff(to, f, f, &v, &e);
    trace_export_chrome(to, f, &v, &e);
    trace_export_folded(to, f, &v, &e);
    trace_export_callgrind(to, f, &v, &e);
    if (k & 1) trace_filter_add(&v.filter, k == 1 ? TRACE_LEADING : TRACE_OUTSIDE, "[fg]");
    trace_put_tree(to, f, &v, &e);
    trace_put_list(to, f, &v, &e);
    trace_export_perfetto(to, f, &v, &e);
    trace_export_pprof(to, f, &v, &e);
    trace_export_html(to, f, &v, &e);
    if (k == 3) trace_export_uftrace(folder, f, &v, &e);
}

static bool look(const uint8_t *bytes, size_t size, FILE *to, uint64_t *records)
{
    trace_file f;
    inl_error e = {0};
    fuzz_input.bytes = bytes;
    fuzz_input.size = size;
    if (trace_read(bytes, size, "input", &f, &e) != INL_OK) {
        if (!e.text[0]) fuzz_fail("refused without a word");
        return false;
    }
    opened++;
    for (size_t i = 0; records && i < f.sessions.items[0].threads.count; i++)
        *records += f.sessions.items[0].threads.items[i].records;
    show(&f, to);
    trace_close(&f);
    return true;
}

static void empty_folder(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    uint64_t records = 0;
    FILE *to = fopen("/dev/null", "w");
    uint8_t *whole = malloc(SIZE);
    fuzz_begin("trace_fuzz", argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    if (!to || !whole || !mkdtemp(folder)) return 2;
    make(whole);
    if (!look(whole, SIZE, to, &records) || records != (PAGES - 3) * RECORDS + squeezed_records(whole))
        fuzz_fail("the whole one is not read");
    for (unsigned long i = 0; i < count; i++) {
        make(whole);
        size_t size = damage(whole);
        uint8_t *exact = malloc(size + 1); /* so that reading behind it is noticed */
        if (!exact) return 2;
        memcpy(exact, whole, size);
        look(exact, size, to, NULL);
        free(exact);
    }
    printf("%lu inputs, %lu read, %lu reports\n", count, opened, shown);
    empty_folder();
    free(whole);
    fclose(to);
    return 0;
}
