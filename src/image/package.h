/* Split debug information that has been packed: one file beside the program, PROGRAM.dwp, in place of the .dwo files.
 */
#ifndef INL_IMAGE_PACKAGE_H
#define INL_IMAGE_PACKAGE_H

#include "image/file.h"

#include <elfutils/libdw.h>

typedef struct image_package image_package;

/* NULL: there is none. `of`: what libdw is about to open, which is made ready for image_package_unit. */
image_package *image_package_open(const image *, Elf *of);
void image_package_free(image_package *);
/* Has libdw take the unit's other half from the package; *out is that, if the package has it. */
void image_package_unit(image_package *, Dwarf_Die *skeleton, uint64_t id, Dwarf_Die *out);

#endif
