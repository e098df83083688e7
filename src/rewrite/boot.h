/* What a rewritten program carries, and how the tool inside gets started.
 *
 * The packer (boot.c) makes a rewrite_carry: the boot code, which is a flat position-independent blob
 * (boot/), and the data that it reads:
 *
 *     rewrite_carry_head | argv, image list, strings | heap content | the tool's ELF file
 *
 * each part at a multiple of 4096 from the start. Where the writer puts the data at a multiple of 4096 in
 * the file as well as in memory, tool and heap are mapped from the file and shared between processes;
 * otherwise they are copied. The boot code fills the tool's rewrite_handoff, runs the tool from its _start
 * on a stack of its own, and gets control back when the tool has set everything up (rewrite_run_begin).
 */
#ifndef INL_REWRITE_BOOT_H
#define INL_REWRITE_BOOT_H

#include "base/error.h"
#include "rewrite/rewrite.h"

typedef struct rewrite_pack_image { /* one of the images that were rewritten together; main first */
    const char *path;               /* as it was when it was rewritten */
    const char *soname;             /* NULL for the program */
    uint64_t bias;                  /* assumed bias */
    uint64_t link_low, link_high;   /* its segments, link-time; high: with the moved code if known */
} rewrite_pack_image;

typedef struct rewrite_pack {
    const char *tool_path; /* the tool's file; /proc/self/exe for the one that runs */
    const void *heap;      /* content for REWRITE_HEAP_BASE; NULL: none */
    size_t heap_size;      /* bytes used; stored in whole pages */
    /* argv of the carried tool's main: its name, its options and "--"; the program's own argv, as it is
     * at run time, is added behind. */
    int argc;
    const char *const *argv;
    const rewrite_pack_image *images;
    size_t image_count;
} rewrite_pack;

/* The boot code and data for rewrite_write. The tool's file must be a static PIE that contains the note
 * of run.c. `out->data` is one block; rewrite_carry_free gives it back. */
inl_status rewrite_carry_pack(const rewrite_pack *, rewrite_carry *out, inl_error *);
void rewrite_carry_free(rewrite_carry *);

/* --- the layout of the data: the packer's and the boot code's affair --- */

#define REWRITE_CARRY_MAGIC 0x31797272616c6e69ull
typedef struct rewrite_carry_image {
    uint64_t path, soname; /* offsets of strings, 0: none */
    uint64_t bias, link_low, link_high;
} rewrite_carry_image;
typedef struct rewrite_carry_head { /* offsets are from the start of the data */
    uint64_t magic, size;
    uint64_t id; /* of this very content */
    uint64_t tool, tool_size;
    uint64_t heap, heap_size;
    uint64_t argv, argc;          /* offsets of strings */
    uint64_t images, image_count; /* rewrite_carry_image */
    uint64_t handoff, region;     /* link-time addresses in the tool: rewrite_handoff, inl_region */
} rewrite_carry_head;

/* What the boot code tells the tool; a variable of the tool's own image (run.c). */
typedef struct rewrite_handoff {
    uint64_t carried;                /* nonzero: this copy was started by the boot code */
    const rewrite_boot_links *links; /* in memory */
    const rewrite_carry_head *data;
    uint64_t bias;                  /* the program's real bias: address of links - links->self */
    uint64_t tool_high;             /* end of its image, which begins at REWRITE_TOOL_BASE */
    uint64_t stack_low, stack_high; /* its first stack */
    int64_t argc;                   /* the program's, in its own memory */
    char **argv, **envp;
    const void *auxv;
    uint64_t sp, pc; /* where to go on: the boot code's stack and address */
    uint64_t fs_base;
    uint64_t clear_tid;           /* what the program's C library told the kernel of the thread, */
    uint64_t robust, robust_size; /* 0: not known */
    uint64_t sigmask;
} rewrite_handoff;
extern rewrite_handoff rewrite_handoff_data;

/* An ELF note in every tool, owner "Inlay", type 3: where handoff and region are, each as a
 * distance from the word itself. */
enum { REWRITE_NOTE_TOOL = 3 };

#endif
