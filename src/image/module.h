/* The modules of an address space: which image is mapped where.
 *
 * The engines feed it with what the program maps and unmaps; everything else asks it which image an
 * application address belongs to. Readers and writers are serialised by the caller's lock.
 */
#ifndef INL_IMAGE_MODULE_H
#define INL_IMAGE_MODULE_H

#include "image/image.h"

typedef struct module {
    image *image;
    uint64_t bias;      /* application address = link-time address + bias */
    uint64_t low, high; /* first and past-the-last mapped address of its segments */
    uint32_t id;        /* counts from 1, never reused */
    bool is_main, is_interp, is_vdso;
    void *user; /* the tool part's handle */
    struct module *next;
} module;

typedef struct module_set module_set;

module_set *module_set_new(void);
void module_set_free(module_set *);

/* Reads /proc/self/maps and adds what is mapped there already (program, interpreter, vdso);
 * `skip` (may be NULL) says of a range that it is not the application's. */
inl_status module_set_scan(module_set *, bool (*skip)(uint64_t low, uint64_t high, void *arg), void *arg, inl_error *e);
/* The program mapped [addr, addr+size) of file `path` at file offset `offset` with `prot`. When
 * this makes an executable segment of an ELF image appear, the module is created (once per image
 * mapping) and returned; NULL otherwise. Bias is derived from the program headers. */
module *module_set_mapped(module_set *, const char *path, uint64_t addr, uint64_t size, uint64_t offset, int prot);
/* An image that is not mapped, as if it were with that bias; the set takes it over, also on failure
 * (NULL). It goes only with the set. */
module *module_set_add(module_set *, image *, uint64_t bias, bool is_main);
/* [addr, addr+size) is gone; calls `gone` for each module that has lost its executable segments,
 * then frees it. */
void module_set_unmapped(module_set *, uint64_t addr, uint64_t size, void (*gone)(module *, void *), void *arg);
module *module_at(const module_set *, uint64_t addr); /* or NULL */
module *module_first(const module_set *);             /* in order of appearance; then ->next */

#endif
