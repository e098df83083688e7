/* Reading the images of a process: every range is held against the image's segments first. A program may run for
 * ever with tables that are damaged, or none, as long as nothing of its own looks at them. */
#include "moved/private.h"

#include <elf.h>
#include <string.h>

uint64_t moved_mapped_from(const moved_image *i, uint64_t at)
{
    const Elf64_Phdr *ph = __atomic_load_n(&i->phdr, __ATOMIC_ACQUIRE); /* it may be about to go */
    for (unsigned k = 0; ph && k < i->phnum; k++) {
        uint64_t offset = at - i->bias - ph[k].p_vaddr;
        if (ph[k].p_type == PT_LOAD && ph[k].p_flags & PF_R && offset < ph[k].p_memsz) return ph[k].p_memsz - offset;
    }
    return 0;
}

bool moved_is_mapped(const moved_image *i, uint64_t at, uint64_t size) { return size <= moved_mapped_from(i, at); }

const char *moved_mapped_string(const moved_image *i, uint64_t at)
{
    uint64_t size = moved_mapped_from(i, at);
    return size && memchr((const char *)at, 0, size) ? (const char *)at : NULL;
}

bool moved_dynamic_value(const moved_image *i, int64_t tag, uint64_t *value)
{
    const Elf64_Phdr *ph = i->phdr;
    for (unsigned k = 0; k < i->phnum; k++) {
        uint64_t at = i->bias + ph[k].p_vaddr;
        if (ph[k].p_type != PT_DYNAMIC) continue;
        for (uint64_t left = moved_mapped_from(i, at); left >= sizeof(Elf64_Dyn); left -= sizeof(Elf64_Dyn)) {
            const Elf64_Dyn *d = (const void *)at;
            if (d->d_tag == DT_NULL) break;
            *value = d->d_un.d_val;
            if (d->d_tag == tag) return true;
            at += sizeof *d;
        }
    }
    return false;
}

/* glibc's dynamic linker adds the bias to most addresses that a dynamic section holds, others do not. */
uint64_t moved_dynamic_address(const moved_image *i, int64_t tag)
{
    uint64_t value;
    if (!moved_dynamic_value(i, tag, &value)) return 0;
    return value < i->low ? value + i->bias : value;
}
