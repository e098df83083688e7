/* What the writer of ELF files must know of an instruction set: one const table. */
#ifndef INL_ELF_ISA_H
#define INL_ELF_ISA_H

#include "base/bytes.h"
#include "image/frames.h"

typedef struct elf_isa {
    uint16_t machine;       /* EM_* */
    bool linked;            /* also what a dynamic linker loads can be written, not static programs alone */
    uint32_t relative_type; /* of a relocation that adds the load bias */
    uint32_t page;          /* the largest that a kernel for it may have: segments begin on pages of their own */
    /* A property of a file (GNU_PROPERTY_*) of which bit 0 says that all targets of indirect branches begin with a
     * mark; is this one? */
    uint32_t marks_property;
    bool (*is_mark)(const uint8_t *bytes, size_t size);
    /* A row that tells by the program counter where in an import stub control is, which holds for the original place
     * only; what it says there. */
    bool (*is_stub_row)(const image_row *);
    void (*put_stub_row)(inl_bytes *, const image_row *, uint64_t old);
    /* Unwind records, a common one and an entry, of the boot code that code of the program's returns to. */
    void (*put_return)(inl_bytes *, uint64_t addr, uint64_t size);
} elf_isa;

/* The table of this build's own architecture, in <isa>/isa.c. */
extern const elf_isa elf_isa_here;

#endif
