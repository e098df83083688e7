/* --debug-info: what debuggers and profilers are told of translated code. All under the engine's lock. */
#ifndef INL_TOOL_DEBUG_INFO_H
#define INL_TOOL_DEBUG_INFO_H

#include "image/debug_out.h"
#include "image/frames.h"
#include "jit/jit.h"

/* A stretch of a translation that one original unwind entry describes. */
typedef struct debug_frame {
    uint64_t addr, size;
    size_t cie;       /* in debug_frames.cies */
    size_t at, bytes; /* its instructions, in debug_frames.programs */
} debug_frame;
typedef struct debug_cie {
    int64_t data_align;
    uint64_t return_reg;
    bool signal;
    size_t at, bytes;
} debug_cie;

/* --- debug_frames.c --- */
typedef struct debug_frames {
    inl_map tables; /* of images: image_frames, by the image's address */
    inl_map cie_of; /* of common entries that have been copied: index + 1, by where the original's program is */
    INL_VEC(debug_cie) cies;
    INL_VEC(debug_frame) frames;
    inl_bytes programs;
} debug_frames;
void debug_frames_add(debug_frames *, const weave_run *, const weave_output *, uint64_t start);
/* Appends the table (.debug_frame) of frames [from, to). */
void debug_frames_put(const debug_frames *, size_t from, size_t to, inl_bytes *out);
void debug_frames_image_gone(debug_frames *, const image *);
void debug_frames_clear(debug_frames *); /* nothing is translated any more; what is known of images stays */
void debug_frames_free(debug_frames *);

/* --- debug_files.c --- */
/* Files of this process in a folder: perf-PID.map, one line for each piece of code; inlay-PID.gdb, commands for gdb. */
typedef struct debug_files {
    int map; /* -1: none */
} debug_files;
void debug_files_open(debug_files *, const char *folder, bool goes_on);
void debug_files_add(const debug_files *, const debug_code *, size_t count);

/* --- debug_info.c --- */
typedef struct debug_info debug_info;
bool debug_info_begin(void); /* --debug-info was given */
void debug_info_made(void *, const jit_fragment *, const weave_run *, const weave_output *); /* jit_options.made */
void debug_info_flushed(void *);                                                             /* jit_options.flushed */
void debug_info_image_gone(const image *);
void debug_info_forked(void); /* in the child */

/* --- <isa>/debugger.c --- */
/* Python for gdb: who stands in the runtime's border came from the program's code, with the registers that are kept. */
void debug_border_script(inl_bytes *out);

#endif
