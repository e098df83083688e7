/* Modules: the source files, or compile units, that an image was made of, between image and procedure.
 *
 *     inlay_module *m = inlay_image_module_named(image, "listpack.c");
 *     for (inlay_proc *p = inlay_module_proc_first(m); p; p = inlay_module_proc_next(m, p)) ...
 *
 * Debug information tells of them, the file's own or that of its separate debug file. What none tells of belongs to one
 * more, the last, whose name is the image's; an image without debug information has that one alone. A procedure is in
 * the module that its first instruction was compiled from. Handles live as long as the image. */
#ifndef INLAY_MODULE_H
#define INLAY_MODULE_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

inlay_module *inlay_image_module_first(inlay_image *); /* in the order of debug information */
inlay_module *inlay_module_next(const inlay_module *);
/* The first whose name is this, or ends with these components ("src/list.c", "list.c"), or that the pattern (*, ?, [])
 * matches, as a whole or from a component on. NULL: none. */
inlay_module *inlay_image_module_named(inlay_image *, const char *name);
inlay_module *inlay_proc_module(const inlay_proc *);

const char *inlay_module_name(const inlay_module *);   /* as it was given to the compiler */
const char *inlay_module_folder(const inlay_module *); /* in which the compiler ran; "" where it is not told */
inlay_image *inlay_module_image(const inlay_module *);
bool inlay_module_is_rest(const inlay_module *); /* of which no debug information tells */

inlay_proc *inlay_module_proc_first(const inlay_module *); /* in order of address */
inlay_proc *inlay_module_proc_next(const inlay_module *, const inlay_proc *);

/* Calls `each` for the image's procedures that match: a name, a pattern (*, ?, []) for a whole one, or, between
 * slashes, a regular expression (POSIX's extended ones) for a part of it: "/^(str|mem)chr/". Names are all symbols that
 * a procedure has, as they are, and demangled, with its parameters or without, with a template's result and tags
 * ("[abi:cxx11]") or without: "std::*::push_back", "area<int>(int)", "/Scanner::next/".
 * Answers how many; -1: the expression is wrong, and a message says how. */
int inlay_image_procs_matching(inlay_image *, const char *pattern, void (*each)(inlay_proc *, void *arg), void *arg);
/* Is this one of them? False, and that message, where the expression is wrong. */
bool inlay_proc_matches(const inlay_proc *, const char *pattern);
/* For a name that no procedure has: those that are spelled nearly so, three at most, the nearest first, as text for a
 * message: "'malloc', 'calloc'". "": there is none. Answers `out`. */
const char *inlay_process_procs_near(inlay_process *, const char *name, char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
