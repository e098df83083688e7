/* A file of translations that outlived their process: one for each module and each way of translating it.
 *
 *     header   magic, sizes, a checksum of header and key
 *     key      text: everything that a translation depends on but the code itself; compared whole
 *     slots    a hash table: by an entry's address in the module, where the entry is
 *     entries  each with its own checksum: a translation that can be put anywhere
 *
 * A file is written under a name of its own and then renamed, so whoever maps one sees all of it, and it never changes.
 * Nothing in it is believed all the same: an entry is copied out first (which survives a file that somebody has cut
 * short), and is no entry unless its checksum, its address and its sizes are right. So a damaged file costs time.
 *
 * An entry is as the compiler lays its parts out: only the very same tool file reads it, since the key names that.
 */
#ifndef INL_JIT_KEPT_FILE_H
#define INL_JIT_KEPT_FILE_H

#include "run/kept_folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEPT_LIMIT = 128 << 20, /* bytes of a file */
    KEPT_ENTRY = 32 << 10,  /* bytes of an entry */
};

#define KEPT_MAGIC "inlaykt2"
typedef struct kept_file_head { /* the key is behind it */
    char magic[8];
    uint64_t sum; /* of the rest of this and the key */
    uint64_t size;
    uint32_t key_size, slots, entries, unused;
} kept_file_head;

typedef struct kept_exit {
    uint64_t target;
    uint64_t rel32_at;
} kept_exit;
typedef struct kept_const {
    uint64_t value;
    uint64_t disp_at;
} kept_const;
typedef struct kept_fixup {
    uint64_t target;
    uint32_t at, kind;
} kept_fixup;
/* An address that an instruction makes, where a descriptor could be (sections.c). */
typedef struct kept_named {
    uint64_t address;
    uint64_t moves; /* with the module; else it is a number in the code */
} kept_named;
typedef struct kept_extent {
    uint64_t low, high;
} kept_extent;

/* Addresses of the program are less the module's bias; places in the code count from the body's first byte. */
typedef struct kept_head {
    uint64_t sum; /* of all behind it */
    uint64_t app;
    uint64_t back; /* where the call at its end comes back to, or 0 */
    uint64_t bias; /* where the module was, of one that can be used there only (`fixed`) */
    uint32_t size; /* of the entry, a multiple of 8 */
    uint32_t code_size, map_size, source_size, cold_at, insn_count;
    uint16_t exits, consts, fixups, extents, blocks, faults, counts, weights, named;
    uint8_t phase; /* of the body's address modulo 8 */
    uint8_t continues, fixed, cut, runs_on;
    uint8_t unused;
} kept_head;
_Static_assert(sizeof(kept_head) % 8 == 0, "what follows is aligned");

/* An entry, taken apart; pointers into it. */
typedef struct kept_entry {
    const kept_head *head;
    kept_exit *exits;
    kept_const *consts;
    kept_fixup *fixups;
    kept_extent *extents;
    uint64_t *blocks; /* where they begin */
    kept_named *named;
    struct weave_fault *faults;
    struct weave_count *counts; /* `weights`: 1 where it has some, which are the next ones of */
    int64_t *weights;
    const uint8_t *source, *map, *code; /* source: the program's bytes that it was made from, by extent */
} kept_entry;

/* Bytes of an entry with these sizes; where each part is in `memory`, whose head is filled in. */
size_t kept_entry_lay(void *memory, kept_entry *out);
void kept_entry_seal(void *memory); /* its checksum */

/* A file that is mapped for reading; all zero: none. */
typedef struct kept_map {
    uint64_t at, table;
    size_t size;
    uint32_t slots, entries;
} kept_map;

/* False: there is none that is this user's own and whole as far as that can be seen at once. */
bool kept_open(kept_map *, int folder, const char *key);
void kept_close(kept_map *);
/* It will be asked for soon; `soon` false: at once. */
void kept_expect(const kept_map *, uint64_t app, bool continues, bool soon);
/* Copies the entry to `memory` (KEPT_ENTRY bytes, aligned to 8). */
bool kept_find(const kept_map *, uint64_t app, bool continues, void *memory, kept_entry *out);

/* Writes a file with what is in `old` and the sealed entries at `fresh`. `user`: nobody else's folder is written to. */
bool kept_write(const kept_map *old, const uint8_t *fresh, size_t fresh_size, int folder, const char *key, long user);

#endif
