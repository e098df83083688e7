/* A file of translations that outlived their process: one for each module and each way of translating it.
 *
 *     header   magic, sizes, a checksum of header and key
 *     key      text: everything that a translation depends on but the code itself; compared whole
 *     groups   each with a checksum: entries that were made one behind the other, and so are wanted together; an entry
 *              is a translation that can be put anywhere, and says which others of its group its exits lead to
 *     slots    a hash table: by an entry's address in the module, where its group is
 *
 * A file is written under a name of its own and then renamed, so whoever maps one sees all of it, and it never changes.
 * Nothing in it is believed all the same: a group is copied out first (which survives a file that somebody has cut
 * short), and is none unless its checksum and its entries' addresses and sizes are right. So a damaged file costs time.
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
    KEPT_TOGETHER = 32,     /* entries of a group */
    KEPT_GROUP = 64 << 10,  /* bytes of it */
    KEPT_AHEAD = 1 << 20,   /* bytes of a file that are asked for at once */
};

#define KEPT_MAGIC "inlaykt3"
typedef struct kept_file_head { /* the key is behind it */
    char magic[8];
    uint64_t sum; /* of the rest of this and the key */
    uint64_t size;
    uint32_t key_size, slots, entries, unused;
    uint64_t slots_at;
} kept_file_head;

typedef struct kept_group { /* its entries are behind it */
    uint64_t sum;           /* of all behind this */
    uint32_t size, count;
    uint32_t at[KEPT_TOGETHER]; /* where they are, from the group's begin, in 8 bytes */
} kept_group;
_Static_assert(sizeof(kept_group) % 8 == 0, "what follows is aligned");

typedef struct kept_exit {
    uint64_t target;
    uint32_t rel32_at;
    uint32_t to; /* which entry of the group is there, and 1; 0: none */
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
    uint64_t app;
    uint64_t pair_back; /* what the code of a paired call there (pair_at, pair_size) is about */
    uint64_t bias;      /* where the module was, of one that can be used there only (`fixed`) */
    uint32_t size;      /* of the entry, a multiple of 8 */
    uint32_t pair_at, pair_size;
    uint32_t code_size, map_size, source_size, cold_at, insn_count;
    uint16_t exits, consts, fixups, extents, looks, blocks, faults, counts, weights, named;
    uint8_t phase; /* of the body's address modulo 8 */
    uint8_t continues, fixed, cut;
    uint8_t entered;  /* by indirect branches too */
    uint8_t relies;   /* what is dead where its exits lead is not there, */
    uint8_t hides;    /* nor over instructions that may fault */
    uint8_t pairable; /* it ends with a call or a return: made with pairs, */
    uint8_t paired;   /* or without */
    uint8_t unused[3];
} kept_head;
_Static_assert(sizeof(kept_head) % 8 == 0, "what follows is aligned");

/* An entry, taken apart; pointers into it. */
typedef struct kept_entry {
    const kept_head *head;
    kept_exit *exits;
    kept_const *consts;
    kept_fixup *fixups;
    kept_extent *extents; /* its own, and behind them those that were looked at */
    uint64_t *blocks;     /* where they begin */
    kept_named *named;
    struct weave_fault *faults;
    struct weave_count *counts; /* `weights`: 1 where it has some, which are the next ones of */
    int64_t *weights;
    const uint8_t *source, *map, *code; /* source: the program's bytes that it was made from, by extent */
} kept_entry;

/* Bytes of an entry with these sizes; where each part is in `memory`, whose head is filled in. */
size_t kept_entry_lay(void *memory, kept_entry *out);

/* A file that is mapped for reading; all zero: none. */
typedef struct kept_map {
    uint64_t at, first, table; /* first: group */
    size_t size;
    uint32_t slots, entries;
    uint64_t ready[KEPT_LIMIT / KEPT_AHEAD / 64]; /* a bit for each such piece: it has been asked for */
} kept_map;

/* False: there is none that is this user's own and whole as far as that can be seen at once. */
bool kept_open(kept_map *, int folder, const char *key);
void kept_close(kept_map *);
/* Copies a group with an entry of that address to `memory` (KEPT_GROUP bytes, aligned to 8). There may be several, of
 * code that has been another once: `tried`, 0 at first, counts how many have been looked at. */
bool kept_find(kept_map *, uint64_t app, bool continues, void *memory, uint32_t *tried, unsigned *index);
/* Takes an entry of a group in memory apart; false: it is none. */
bool kept_group_entry(const kept_group *, unsigned index, kept_entry *out);

/* Writes a file with what is in `old` and the entries at `fresh`. `user`: nobody else's folder is written to. */
bool kept_write(const kept_map *old, const uint8_t *fresh, size_t fresh_size, int folder, const char *key, long user);

#endif
