/* Images: the program, its interpreter, its libraries, the vdso. */
#ifndef INLAY_IMAGE_H
#define INLAY_IMAGE_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *inlay_image_path(const inlay_image *);
const char *inlay_image_name(const inlay_image *); /* last component */
uint64_t inlay_image_low(const inlay_image *);     /* mapped addresses */
uint64_t inlay_image_high(const inlay_image *);
uint64_t inlay_image_bias(const inlay_image *); /* address = link-time address + bias */
bool inlay_image_is_main(const inlay_image *);
unsigned inlay_image_id(const inlay_image *); /* counts from 1 */
/* Does the user's --image filter (every image without one) take it? */
bool inlay_image_wanted(const inlay_image *);
inlay_image *inlay_image_first(void);
inlay_image *inlay_image_next(const inlay_image *);
inlay_image *inlay_image_at(uint64_t address);     /* NULL: none */
inlay_proc *inlay_image_proc_first(inlay_image *); /* in order of address */
inlay_proc *inlay_image_proc_named(inlay_image *, const char *name);
/* Address of a data or function symbol, 0 when absent. */
uint64_t inlay_image_symbol(inlay_image *, const char *name);

#ifdef __cplusplus
}
#endif

#endif
