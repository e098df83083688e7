/* ELF files for AArch64. Linkers describe import stubs by rows that hold at any place, if at all. */
#include "elf/isa.h"
#include "isa/aarch64/a64.h"

#include <elf.h>

enum { LARGEST_PAGE = 0x10000, INSN = 4 };

static bool is_mark(const uint8_t *bytes, size_t size)
{
    isa_insn in;
    return size >= INSN && isa_aarch64.decode(bytes, size, 0, &in) == ISA_OK && a64_is_landing(&in);
}

static bool is_stub_row(const image_row *row)
{
    (void)row;
    return false;
}

static void put_stub_row(inl_bytes *b, const image_row *row, uint64_t old) { (void)b, (void)row, (void)old; }

const elf_isa elf_isa_here = {
    .machine = EM_AARCH64,
    .relative_type = R_AARCH64_RELATIVE,
    .page = LARGEST_PAGE,
    .marks_property = 0xc0000000, /* GNU_PROPERTY_AARCH64_FEATURE_1_AND; bit 0: BTI */
    .is_mark = is_mark,
    .is_stub_row = is_stub_row,
    .put_stub_row = put_stub_row,
};
