/* Procedures: a range of code with a name, from symbols, or from unwind tables where stripped. */
#ifndef INLAY_PROC_H
#define INLAY_PROC_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *inlay_proc_name(const inlay_proc *); /* "sub_1234" (link-time address) without a symbol */
/* The name as people write it: names of C++, Rust, D and Fortran's modules demangled; others as they are.
 * The string lives as long as the image. */
const char *inlay_proc_display_name(const inlay_proc *);
/* The same of a name that the tool has kept: written to `out`, which is returned, cut where it does not
 * fit; `name` itself when there is nothing to demangle. */
const char *inlay_demangle(const char *name, char *out, size_t size);
uint64_t inlay_proc_address(const inlay_proc *); /* mapped */
uint64_t inlay_proc_size(const inlay_proc *);
/* Does it choose, as the program starts, which of several procedures its name stands for (IFUNC)? Those have names of
 * their own; a call by this name goes to one of them, and not here. */
bool inlay_proc_is_resolver(const inlay_proc *);
inlay_image *inlay_proc_image(const inlay_proc *);
bool inlay_proc_wanted(const inlay_proc *); /* by --image and --proc */
/* A source position; false when unknown. The strings live as long as the image. */
bool inlay_proc_line(const inlay_proc *, const char **file, unsigned *line);
inlay_proc *inlay_proc_next(const inlay_proc *); /* within the image; NULL at the end */
inlay_proc *inlay_proc_at(uint64_t address);     /* NULL: none covers it */
/* A zeroed record kept for the procedure (one size a tool). */
void *inlay_proc_record(inlay_proc *, size_t size);
/* A stable number, counting from 0 over all procedures ever seen. */
unsigned inlay_proc_id(const inlay_proc *);
/* Source line of any address. */
bool inlay_line_at(uint64_t address, const char **file, unsigned *line);
/* And the opposite: where the code of a line begins, once in each procedure that has some of it, in order of address.
 * `file` may be the last components of the path. Answers how many there are; at most `room` are stored. 0: none, and
 * *nearest is the next line that has code, or 0. */
unsigned inlay_line_addresses(inlay_image *, const char *file, unsigned line, uint64_t *out, unsigned room,
                              unsigned *nearest);

#ifdef __cplusplus
}
#endif

#endif
