/* The processors whose files are understood beyond what is common to all. */
#include "image/file.h"

const image_processor *image_processor_of(const image *im)
{
    static const image_processor *const known[] = {&image_processor_x86_64, &image_processor_aarch64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->machine == im->view.header.e_machine) return known[i];
    return NULL;
}

image_reloc_kind image_kind_of(const image_processor *m, uint32_t type)
{
    if (type == m->relative) return IMAGE_RELOC_RELATIVE;
    if (type == m->resolver) return IMAGE_RELOC_RESOLVER;
    if (type == m->absolute) return IMAGE_RELOC_ABSOLUTE;
    if (type == m->symbol) return IMAGE_RELOC_SYMBOL;
    return type == m->slot ? IMAGE_RELOC_SLOT : IMAGE_RELOC_OTHER;
}
