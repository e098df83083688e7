/* Instrumentation of relocatable object files (`inlay object`): entry and exit of procedures call the recorder that the
 * program is linked with (src/record, libinlay-trace.a).
 *
 *     file.c    an object file: sections, symbols, relocations; made anew with what is added
 *     link.c    the object laid out as if it had been linked, for the analysis
 *     named.c   code that tables of the program's own name by its address
 *     flags.c   procedures that flags are handed to, or by
 *     returns.c procedures that look at their return address
 *     room.c    which code is displaced, so that a jump has room at each entry and exit
 *     stubs.c   the stubs: displaced code, calls of the recorder, the jumps
 *     frames.c  unwind entries of stubs
 *     lines.c   line tables: rows that would lie inside a jump, those of stubs (rows.c)
 *     shown.c   units of debug information that say which lines stubs have
 *     archive.c archives of objects
 *     <isa>/    relocations and encodings
 *
 * Nothing moves but what makes room for jumps, so what the object says of its code (exception tables, variables,
 * tables of jumps) stays true. What is displaced goes, with its relocations, to a section of its own beside the
 * original one and in its group. Where no room can be had the procedure is left alone, with the reason. */
#ifndef INL_OBJECT_OBJECT_H
#define INL_OBJECT_OBJECT_H

#include "base/bytes.h"
#include "base/error.h"

typedef struct object_proc {
    const char *name, *why; /* NULL: it is instrumented; static text or the report's */
    uint64_t size;
    unsigned exits;
} object_proc;

typedef struct object_report {
    struct object_proc *procs; /* that were asked for */
    size_t count;
    char *strings; /* private */
} object_report;

typedef struct object_options {
    bool (*wanted)(void *arg, const char *name, uint64_t size);
    void *arg;
    uint64_t min_path;    /* only procedures whose shortest way from entry to exit has so many instructions */
    bool entries;         /* calls will be counted alone: exits are left alone */
    const char *settings; /* the recorder's, where INLAY_TRACE says nothing else (record/settings.h); NULL: none */
} object_options;

/* `bytes` is a whole ELF object, `path` its name for messages. Fills `out` with the new one, also where nothing in it
 * was asked for. The report is given back by object_report_free, after failures too. */
inl_status object_instrument(const void *bytes, size_t size, const char *path, const object_options *, inl_bytes *out,
                             object_report *, inl_error *);
void object_report_free(object_report *);

/* --- archive.c --- */

bool object_is_archive(const void *bytes, size_t size);
/* All members in order, those that are objects instrumented; the others, and what is not an ELF object, as they are.
 * `each` is told of every member that is an object. */
inl_status object_archive(const void *bytes, size_t size, const char *path, const object_options *,
                          void (*each)(void *arg, const char *member, const object_report *), void *arg, inl_bytes *out,
                          inl_error *);

#endif
