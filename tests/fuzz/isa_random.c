/* Inlay's decoder against Zydis on random bytes, from a fixed seed, with every truncation of some.
 *
 *     unit_isa_random [MILLIONS [SEED]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa_zydis.h"

/* Bytes whose end is the end of readable memory, as far as a sanitizer is concerned. */
static void compare_truncated(const uint8_t *bytes, isa_tally *t)
{
    for (size_t n = 0; n < 15; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        if (!copy) abort();
        memcpy(copy, bytes, n);
        isa_zydis_compare(copy, n, 0x7fff12345678, t);
        free(copy);
    }
}

/* Long runs of prefixes, in buffers that end early: what is looked at before the length is known
 * must stay inside. */
static void compare_prefixed(uint64_t *state, isa_tally *t)
{
    static const uint8_t prefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0x64, 0x2e, 0x48, 0x67};
    uint64_t r = isa_random(state);
    size_t run = r % 16, size = 16 + (r >> 8) % 32;
    uint8_t bytes[32], *copy = malloc(size);
    if (!copy) abort();
    isa_random_bytes(state, true, bytes);
    for (size_t i = 0; i < size; i++) {
        copy[i] = i < run ? prefixes[r >> 16 & 7] : bytes[(i - run) & 31];
        r = r >> 3 | r << 61;
    }
    isa_zydis_compare(copy, size, 0x400000, t);
    free(copy);
}

int main(int argc, char **argv)
{
    double millions = argc > 1 ? atof(argv[1]) : 4;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x9e3779b97f4a7c15;
    uint64_t count = (uint64_t)(millions * 1e6);
    isa_tally t = {.limit = 60};
    isa_zydis_init();
    for (uint64_t i = 0; i < count; i++) {
        uint8_t bytes[32];
        isa_random_bytes(&state, i & 3, bytes);
        isa_zydis_compare(bytes, sizeof bytes, 0x555555554000 + i, &t);
        if (i % 64 == 0) compare_truncated(bytes, &t);
        if (i % 8 == 0) compare_prefixed(&state, &t);
    }
    printf("%" PRIu64 " instructions, %" PRIu64 " known, %" PRIu64 " unknown, %" PRIu64 " invalid, %" PRIu64
           " differences\n",
           t.compared, t.known, t.unknown, t.rejected, t.differences);
    return t.differences != 0;
}
