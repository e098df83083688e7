/* Damaged object files, instrumented: `object_fuzz COUNT SEED FILE...`. What comes out is read and instrumented once
 * more. A failing input is left in object_fuzz.bad. */
#include "damage.h"
#include "object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long good, procedures, again;

static bool wanted(void *arg, const char *name, uint64_t size)
{
    (void)arg;
    return strlen(name) + size > 0;
}

static bool instrument(const void *bytes, size_t size, inl_bytes *out)
{
    const object_options options = {.wanted = wanted};
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
        size_t size = fuzz_damage(&files[fuzz_below(count)], bytes);
        if (instrument(bytes, size, &out)) {
            good++;
            again += instrument(out.data, out.size, &more);
        }
        inl_bytes_free(&out);
        inl_bytes_free(&more);
    }
    for (size_t i = 0; i < count; i++) free(files[i].bytes);
    printf("%lu inputs, %lu instrumented, %lu procedures, %lu instrumented again\n", runs, good, procedures, again);
    return 0;
}
