/* How a rewritten program starts the tool that it carries: what whoever writes the program, the boot code and the tool
 * at run time know of each other. Nothing but layouts and addresses.
 *
 * The program holds the boot code, which begins with a move_boot_links and is a flat position-independent blob, and the
 * data that it reads:
 *
 *     move_carry_head | argv, image list, strings | heap content | the tool's ELF file
 *
 * each part at a multiple of 4096 from the start. Where the data is at a multiple of 4096 in
 * the file as well as in memory, tool and heap are mapped from the file and shared between processes;
 * otherwise they are copied. The boot code fills the tool's move_handoff, runs the tool from its _start
 * on a stack of its own, and gets control back when the tool has set everything up.
 */
#ifndef INL_MOVE_BOOT_H
#define INL_MOVE_BOOT_H

#include <stdint.h>

/* Where the carried tool lies in every rewritten program's process, and in the instrumentor: so low that its
 * variables' addresses are 32-bit displacements, and above all that fixed programs and their heaps use. In a process
 * that has something of its own there it lies higher, and so does the instrumentor; mutators always do.
 *
 * The rest lies below where the kernel puts position-independent programs. Run times of sanitizers take most of the
 * address space for shadows and allocators and end a program that has anything mapped there: AddressSanitizer up to
 * 0x10007fff8000 and from 0x600000000000 on, MemorySanitizer all but 0x510000000000 to 0x600000000000 and what is above
 * 0x700000000000, ThreadSanitizer all but 0x550000000000 to 0x568000000000 and what is above 0x7e8000000000. */
#define MOVE_TOOL_BASE   0x70000000ull
#define MOVE_TOOL_HIGH   0x551c00000000ull
#define MOVE_HEAP_BASE   0x551000000000ull /* the carried heap */
/* The boot code that a process is given which runs ends it with a call of exit_group that has this for its second
 * argument, and addresses of two texts, which say why, behind it. */
#define MOVE_BOOT_FAILED 0x6c6961666e69ull
#define MOVE_LIVE_BASE   0x550100000000ull /* what a process that ran already was given (live.h) */
#define MOVE_REGION_LOW  0x552000000000ull /* the tool's later mappings */
#define MOVE_REGION_HIGH 0x555000000000ull

typedef struct move_boot_links {
    uint64_t self; /* link-time addresses: of this struct */
    uint64_t data, data_size;
    uint64_t entry;           /* the program's original entry point */
    uint64_t text, text_size; /* the moved code */
    uint64_t map;             /* see move_carried_map */
    uint64_t bias, low;       /* what was assumed; the image's lowest link-time address */
    uint64_t set;             /* of all images that were rewritten together the same: the carried data's id */
    uint64_t dynamic;         /* 1: called as an initialiser (argc, argv, envp); 0: as the entry point */
} move_boot_links;
#define MOVE_CARRY_MAGIC 0x31797272616c6e69ull
typedef struct move_carry_image {
    uint64_t path, soname; /* offsets of strings, 0: none */
    uint64_t bias, link_low, link_high;
} move_carry_image;
typedef struct move_carry_head { /* offsets are from the start of the data */
    uint64_t magic, size;
    uint64_t id; /* of this very content */
    uint64_t tool, tool_size;
    uint64_t tool_base; /* where it is to lie */
    uint64_t heap, heap_size;
    uint64_t argv, argc;          /* offsets of strings */
    uint64_t images, image_count; /* move_carry_image */
    uint64_t handoff, region;     /* link-time addresses in the tool: move_handoff, inl_region */
    uint64_t live;                /* the address of a move_live (live.h); 0: the program was written, and starts now */
} move_carry_head;

/* What the boot code tells the tool; a variable of the tool's own image (run.c). */
typedef struct move_handoff {
    uint64_t carried;             /* nonzero: this copy was started by the boot code */
    const move_boot_links *links; /* in memory */
    const move_carry_head *data;
    uint64_t bias;                  /* the program's real bias: address of links - links->self */
    uint64_t tool_high;             /* end of its image */
    uint64_t stack_low, stack_high; /* its first stack */
    int64_t argc;                   /* the program's, in its own memory */
    char **argv, **envp;
    const void *auxv;
    uint64_t sp, pc; /* where to go on: the boot code's stack and address */
    uint64_t tls_base;
    uint64_t clear_tid;           /* what the program's C library told the kernel of the thread, */
    uint64_t robust, robust_size; /* 0: not known */
    uint64_t sigmask;
    uint64_t return_to; /* what code of the program's returns to in the boot code: see its start.S */
} move_handoff;

/* An ELF note in every tool, owner "Inlay", type 3: where handoff and region are, each as a
 * distance from the word itself. */
enum { MOVE_NOTE_TOOL = 3 };

#endif
