/* Images: the program, its interpreter, its libraries, the vdso.
 *
 * In a rewritten program there are those that were rewritten with it, by the addresses at which the tool was shown
 * them; and, as long as they are mapped, those that were not, by their real addresses: these can be named, and their
 * procedures, but nothing is inserted in them, and no callback is called. Which libraries are loaded then is known only
 * when the program runs: where one may be that matters, ask when it is needed (in an analysis routine, at the end). */
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
/* False: its code runs as it is, and is not shown. */
bool inlay_image_is_instrumented(const inlay_image *);
uint64_t inlay_image_entry(const inlay_image *); /* where it is started; 0: it is a library */
/* Does the user's --image filter (every image without one) take it? */
bool inlay_image_wanted(const inlay_image *);
bool inlay_image_chosen(const inlay_image *); /* ... by one of its patterns, that is: false without any */
inlay_image *inlay_image_first(void);
inlay_image *inlay_image_next(const inlay_image *);
inlay_image *inlay_image_at(uint64_t address);     /* NULL: none */
inlay_proc *inlay_image_proc_first(inlay_image *); /* in order of address */
/* By any of its symbols, as they are (mangled), or "sub_1234"; the first of several with one name. NULL: none. */
inlay_proc *inlay_image_proc_named(inlay_image *, const char *name);
/* Address of a data or function symbol, 0 when absent. */
uint64_t inlay_image_symbol(inlay_image *, const char *name);

/* Sections, as the file's headers have them; a file may have lost them. */
typedef struct inlay_section {
    const char *name;
    uint64_t address, size;               /* address 0: not mapped (symbols, debug information) */
    bool is_code, is_writable, has_bytes; /* has_bytes: in the file; false of .bss */
} inlay_section;
bool inlay_image_section(inlay_image *, unsigned k, inlay_section *out); /* k from 0; false: there are no more */
bool inlay_image_section_named(inlay_image *, const char *name, inlay_section *out);

/* All symbols that have an address, of code and data, in order of address: calls `each` for them, and answers how many
 * there are. Those of separate debug files too; a thread-local variable has none, and labels that are
 * local and of no type are left out. */
typedef struct inlay_symbol {
    const char *name; /* as it is (mangled); lives as long as the image */
    uint64_t address, size;
    bool is_code, is_global;
} inlay_symbol;
unsigned inlay_image_symbols(inlay_image *, void (*each)(const inlay_symbol *, void *arg), void *arg);

/* Where something of an image, by an address as the tool is shown it, lies in the process; and the opposite, for what
 * the program has in its registers and its memory. They differ in rewritten programs only, and there when the program
 * runs: in analysis routines and reports, not in callbacks that see code, which run in another process. */
uint64_t inlay_address_real(uint64_t address);
uint64_t inlay_address_shown(uint64_t real);

#ifdef __cplusplus
}
#endif

#endif
