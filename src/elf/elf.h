/* Target "file": a plan applied to an ELF file, which carries the tool. */
#ifndef INL_ELF_ELF_H
#define INL_ELF_ELF_H

#include "base/vec.h"
#include "move/move.h"

/* The file that a program comes from, as a target. What has been committed is what elf_write writes. */
typedef struct elf_target {
    move_target target; /* its `arg` is this struct, which stays where it is */
    image *image;
    INL_VEC(move_patch) patches; /* over the original */
} elf_target;
void elf_target_begin(elf_target *, image *);
void elf_target_end(elf_target *);

/* Link-time address behind the image's last segment where new segments can begin. */
uint64_t elf_new_base(const image *);
/* Why no file for this image can be written, whatever the plan; NULL: one can. */
const char *elf_refuses(image *);
/* Has the writer made it? */
bool elf_is_rewritten(const image *);

/* What a rewritten program carries (move/boot.h): boot code (position independent, executed) and data (read). The
 * boot code begins with a move_boot_links that the writer fills in. NULL in a library, or where
 * nothing needs the tool. */
typedef struct elf_carry {
    const uint8_t *boot;
    size_t boot_size;
    uint32_t init_at, entry_at;      /* offsets in boot: called as an initialiser; jumped to as entry point */
    uint32_t return_at, return_size; /* what code of the program's returns to instead of its own, with unwind records */
    const uint8_t *data;
    size_t data_size;
} elf_carry;

typedef struct elf_write_options {
    const elf_carry *carry;
    bool has_tool;        /* the program that it belongs to carries a tool, which needs the map */
    uint64_t set;         /* see move_boot_links */
    const char *run_path; /* --with-libs: DT_RPATH to set ("$ORIGIN"), or NULL */
    void (*progress)(void *arg, const char *stage, uint64_t done, uint64_t of);
    void (*notice)(void *arg, const char *what); /* of the written file, for the user; or NULL */
    void *arg;
} elf_write_options;
/* Writes `out` (a temporary name, then renamed; the input's mode, never the input itself). */
inl_status elf_write(elf_target *, const move_plan *, const elf_write_options *, const char *out, inl_error *);

/* Appends the entries of moved code at the link-time address that `to` has; where these are, and their .eh_frame_hdr
 * (0: there are none). */
struct inl_bytes;
typedef struct elf_unwind_place {
    uint64_t header, frames, frames_size;
} elf_unwind_place;
inl_status elf_unwind_table(const move_plan *, struct inl_bytes *to, elf_unwind_place *, inl_error *);
/* Likewise the entry of what procedures of the program's return to that the tool has called, in the boot code. */
inl_status elf_unwind_boot(const elf_carry *, uint64_t boot, struct inl_bytes *to, uint64_t *header, inl_error *);

/* --- what it carries (boot.c) --- */

typedef struct elf_pack_image {   /* one of the images that were rewritten together; main first */
    const char *path;             /* as it was when it was rewritten */
    const char *soname;           /* NULL for the program */
    uint64_t bias;                /* assumed bias */
    uint64_t link_low, link_high; /* its segments, link-time; high: with the moved code if known */
} elf_pack_image;

typedef struct elf_pack {
    const char *tool_path; /* the tool's file; /proc/self/exe for the one that runs */
    uint64_t tool_base;    /* where it is to lie */
    const void *heap;      /* content for MOVE_HEAP_BASE; NULL: none */
    size_t heap_size;      /* bytes used; stored in whole pages */
    /* argv of the carried tool's main: its name, its options and "--"; the program's own argv, as it is
     * at run time, is added behind. */
    int argc;
    const char *const *argv;
    const elf_pack_image *images;
    size_t image_count;
} elf_pack;

/* The boot code and data for elf_write. The tool's file must be a static PIE that contains the note
 * of run.c. `out->data` is one block; elf_carry_free gives it back. */
inl_status elf_carry_pack(const elf_pack *, elf_carry *out, inl_error *);
void elf_carry_free(elf_carry *);

#endif
