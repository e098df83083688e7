/* Damaged object files, instrumented: `object_fuzz COUNT SEED FILE...`, with options of all kinds; and texts of
 * settings, likewise. What comes out is read and instrumented once more. A failing input is left in object_fuzz.bad. */
#include "damage.h"
#include "object/object.h"
#include "record/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long good, procedures, again, chosen, texts;

/* --- settings --- */

/* A text of words, some of which are wrong. */
static const char *some_text(char *out, size_t room)
{
    static const char *const words[] = {"counts",
                                        "clock=none",
                                        "clock=cycles",
                                        "clock=monotonic",
                                        "every=10",
                                        "every=0",
                                        "thin=1000",
                                        "thin=-1",
                                        "last=8",
                                        "event=a:u",
                                        "event={a,{b,c}",
                                        "event=page-faults",
                                        "depth=3",
                                        "threshold=1.5ms",
                                        "off",
                                        "file=/tmp/x",
                                        "file=",
                                        "every",
                                        "every=99999999999",
                                        "threshold=1e300s",
                                        "{",
                                        "}",
                                        "=",
                                        ""};
    size_t n = 0, count = fuzz_below(9);
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const char *word = words[fuzz_below(sizeof words / sizeof *words)];
        if (n + strlen(word) + 2 < room) n += (size_t)sprintf(out + n, "%s%s", i ? "," : "", word);
    }
    if (n && fuzz_below(3) == 0) out[fuzz_below(n)] = (char)(1 + fuzz_below(255));
    return out;
}

/* Read twice in a row, as a program's and INLAY_TRACE's are: what is told belongs together. */
static void read_texts(void)
{
    static record_settings s;
    char text[256], why[64];
    s = (record_settings){.clock = RECORD_CYCLES};
    for (int i = 0; i < 2; i++) {
        why[0] = 0;
        if (!record_settings_read(&s, some_text(text, sizeof text), why, sizeof why)) {
            if (!why[0] || !memchr(why, 0, sizeof why)) fuzz_fail("no reason");
            return;
        }
        bool fewer = s.every || s.thin || s.last || s.events[0];
        if (s.clock == RECORD_COUNTS && fewer) fuzz_fail("counts, and what needs a clock");
        if (s.every && s.thin) fuzz_fail("two ways to record fewer");
        if (s.clock > RECORD_MONOTONIC) fuzz_fail("no clock");
        texts++;
    }
}

/* --- objects --- */

typedef struct choice {
    uint64_t salt, least;
} choice;

static bool wanted(void *arg, const char *name, uint64_t size)
{
    const choice *c = arg;
    bool is_in = size >= c->least && (strlen(name) * 31 + size + c->salt) % 4 != c->salt;
    chosen += is_in;
    return is_in;
}

static bool instrument(const void *bytes, size_t size, inl_bytes *out)
{
    char text[256];
    choice c = {.salt = fuzz_below(8), .least = fuzz_below(2) ? 0 : fuzz_below(200)}; /* of 8 half take all */
    object_options options = {.wanted = wanted, .arg = &c, .entries = fuzz_below(4) == 0};
    if (fuzz_below(2)) options.min_path = fuzz_below(60);
    if (fuzz_below(2)) options.settings = some_text(text, sizeof text);
    object_report report;
    inl_error e = {0};
    inl_status st = object_instrument(bytes, size, "object", &options, out, &report, &e);
    if (st && (!e.text[0] || strchr(e.text, '\n'))) fuzz_fail("no message, or more than a line");
    for (size_t i = 0; i < report.count; i++) {
        procedures += !report.procs[i].why;
        if (!strlen(report.procs[i].name)) fuzz_fail("a procedure without a name");
    }
    object_report_free(&report);
    return st == INL_OK;
}

int main(int argc, char **argv)
{
    fuzz_file files[8];
    size_t count = 0;
    static uint8_t bytes[FUZZ_FILE_SIZE];
    if (argc < 4) return 2;
    unsigned long runs = strtoul(argv[1], NULL, 10);
    fuzz_begin("object_fuzz", strtoull(argv[2], NULL, 10));
    for (int i = 3; i < argc && count < 8; i++) fuzz_load(&files[count++], argv[i], true);
    for (unsigned long i = 0; i < runs; i++) {
        inl_bytes out = {0}, more = {0};
        alarm(20); /* one input takes milliseconds */
        read_texts();
        size_t size = fuzz_damage(&files[fuzz_below(count)], bytes);
        if (instrument(bytes, size, &out)) {
            good++;
            again += instrument(out.data, out.size, &more);
        }
        inl_bytes_free(&out);
        inl_bytes_free(&more);
    }
    for (size_t i = 0; i < count; i++) free(files[i].bytes);
    printf("%lu inputs, %lu instrumented, %lu procedures of %lu that were asked for, %lu instrumented again, %lu texts "
           "read\n",
           runs, good, procedures, chosen, again, texts);
    return 0;
}
