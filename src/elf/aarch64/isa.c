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

/* --- the frame of a signal (run/aarch64/sigframe.h), from the stack pointer on, as DWARF has it --- */

enum {
    AT_REGISTERS = 312, /* x0 to x30, the stack pointer, the program counter */
    AT_VECTORS = 608,   /* the first record is theirs */
    FRAME_PC = 96,      /* a column that is no register's: x30 has one of its own */
    DWARF_D8 = 72,
    CFA_EXPRESSION = 0x10,
    CFA_DEF_EXPRESSION = 0x0f,
    OP_BREG_SP = 0x8f,
    OP_DEREF = 0x06,
    PCREL_SDATA4 = 0x1b,
};

static void put_place(inl_bytes *b, int64_t offset, bool read)
{
    inl_bytes e = {0};
    inl_bytes_number(&e, OP_BREG_SP, 1);
    inl_bytes_sleb(&e, offset);
    if (read) inl_bytes_number(&e, OP_DEREF, 1);
    inl_bytes_uleb(b, e.size);
    inl_bytes_put(b, e.data, e.size);
    b->failed |= e.failed;
    inl_bytes_free(&e);
}

static void put_saved(inl_bytes *b, unsigned column, int64_t offset)
{
    inl_bytes_number(b, CFA_EXPRESSION, 1);
    inl_bytes_uleb(b, column);
    put_place(b, offset, false);
}

static void put_signal_rows(inl_bytes *b)
{
    inl_bytes_number(b, CFA_DEF_EXPRESSION, 1);
    put_place(b, AT_REGISTERS + 8 * A64_SP, true);
    for (unsigned r = 0; r < A64_SP; r++) put_saved(b, r, AT_REGISTERS + 8 * (int64_t)r);
    put_saved(b, FRAME_PC, AT_REGISTERS + 8 * (A64_SP + 1));
    for (unsigned d = 8; d < 16; d++) put_saved(b, DWARF_D8 + d - 8, AT_VECTORS + 16 * (int64_t)d);
}

static void end_record(inl_bytes *b, size_t start)
{
    inl_bytes_align(b, 8);
    uint32_t size = (uint32_t)(b->size - start - 4);
    inl_bytes_set(b, start, &size, sizeof size);
}

static void put_return(inl_bytes *b, uint64_t addr, uint64_t size)
{
    static const uint8_t head[] = {1, 'z', 'R', 'S', 0, 1, 0x78, FRAME_PC, 1, PCREL_SDATA4};
    size_t common = inl_bytes_reserve(b, 4 + 4);
    inl_bytes_put(b, head, sizeof head);
    put_signal_rows(b);
    end_record(b, common);
    size_t entry = inl_bytes_reserve(b, 4);
    inl_bytes_number(b, b->size - common, 4);
    inl_bytes_relative(b, addr);
    inl_bytes_number(b, size, 4);
    inl_bytes_uleb(b, 0);
    end_record(b, entry);
}

const elf_isa elf_isa_here = {
    .machine = EM_AARCH64,
    .relative_type = R_AARCH64_RELATIVE,
    .page = LARGEST_PAGE,
    .marks_property = 0xc0000000, /* GNU_PROPERTY_AARCH64_FEATURE_1_AND; bit 0: BTI */
    .is_mark = is_mark,
    .is_stub_row = is_stub_row,
    .put_stub_row = put_stub_row,
    .put_return = put_return,
};
