/* Translations kept from run to run: kept.c, and kept_file.c for the files. */
#ifndef INL_JIT_KEPT_H
#define INL_JIT_KEPT_H

#include "base/vec.h"
#include "image/module.h"
#include "jit/kept_file.h"

typedef struct kept_module {
    const module *m; /* while it is mapped */
    char *key;       /* NULL: nothing of it is kept */
    kept_map map;
    INL_VEC(uint8_t) fresh; /* entries that the file lacks */
    uint32_t fresh_count;
    uint8_t *told;     /* a bit for each byte of the module: a block that begins there has been told of */
    uint8_t *recorded; /* a translation that begins there has been */
    size_t bits_size;
} kept_module;

typedef struct jit_kept {
    bool on;      /* the folder is used at all */
    bool records; /* not in a forked child */
    long user;    /* whose folder it is */
    char processor[256];
    size_t in_memory; /* bytes of fresh entries */
    INL_VEC(kept_module) modules;
    uint64_t room[KEPT_GROUP / 8];     /* the group that is looked at, or the entry that is made */
    kept_entry entries[KEPT_TOGETHER]; /* of that group */
} jit_kept;

#endif
