/* Who in a process must know of code that has moved: what its unwinders and its dynamic linker are asked by
 * (moved/finders.c). For whoever puts a tool into a process. The images are those of run_here.modules. */
#ifndef INL_TOOL_FINDERS_H
#define INL_TOOL_FINDERS_H

#include "tool/rewriter.h"

/* Must the list of images tell of moved code? Asked first: it looks, too, for those whose names are gone. */
bool finders_go_by_list(void);
/* The image whose unwinder's procedures are all found by their names, or NULL. What tells walks over the stack old
 * places (moved/walks.c) is put there by whoever sets tool_now->walker: not by mutators, to whom these procedures
 * belong. */
const image *finders_walker(void);
/* unnamed.c: what the unwinder of a static program asks; 0: not known. */
finders_unnamed finders_find_unnamed(image *);
/* Where they are in the image; is one at a link-time address? Moved code is to call it by its old entry. */
void finders_note(rewriter_image *, bool by_list);
bool finders_is_one(const rewriter_image *, uint64_t at);
bool finders_are_in(const live_process *, const module *, bool by_list);
/* For an image that is not instrumented: those that are noted move as they are. The target is set. */
inl_status finders_plan(rewriter_image *, inl_error *);
/* finders_note for an image that is opened when the tool is there already (later.c), and what is hooked of it: those
 * that walk, where no other image's are. False, 0: none. */
bool finders_note_opened(rewriter_image *);
size_t finders_hooks_opened(const rewriter_image *, live_hook out[LIVE_HOOKS]);
/* What live_put_in is given: to be freed with free, hooks and all. Refused, where exceptions would not find their way.
 */
inl_status finders_list(const rewriter_image *, size_t count, bool by_list, live_image **out, inl_error *);

#endif
