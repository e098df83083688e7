/* What the fuzzers of ELF files share: seed files, reproducible chance, damage, and the input that failed.
 *
 * A fuzzer keeps fuzz_input up to date, so that what a sanitizer, a signal or fuzz_fail ends on is left in
 * `<name>.bad` of the working folder. */
#ifndef INL_FUZZ_DAMAGE_H
#define INL_FUZZ_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_FILE_SIZE = 4 << 20, FUZZ_REGIONS = 64 };

typedef enum fuzz_kind { FUZZ_BYTES, FUZZ_FRAMES, FUZZ_RELOCS, FUZZ_DYNAMIC, FUZZ_NOTES, FUZZ_EXCEPT } fuzz_kind;
typedef struct fuzz_region {
    uint64_t offset, size;
    fuzz_kind kind; /* FUZZ_BYTES: damaged anywhere; else at the fields of its records */
} fuzz_region;

typedef struct fuzz_file {
    uint8_t *bytes;
    size_t size;
    fuzz_region regions[FUZZ_REGIONS]; /* headers first, then sections */
    size_t region_count;
} fuzz_file;

extern struct fuzz_input {
    const char *fuzzer; /* its name */
    const uint8_t *bytes;
    size_t size;
} fuzz_input;

/* The seed, the handlers. */
void fuzz_begin(const char *fuzzer, uint64_t seed);
/* Ends the program when the file is no use. `code`: .text is damaged as well. */
void fuzz_load(fuzz_file *f, const char *path, bool code);
uint64_t fuzz_next(void);
uint64_t fuzz_below(uint64_t n);
/* A damaged copy in `out` (FUZZ_FILE_SIZE bytes), sometimes cut short; its size. */
size_t fuzz_damage(const fuzz_file *f, uint8_t *out);
void fuzz_fail(const char *why) __attribute__((noreturn));

#endif
