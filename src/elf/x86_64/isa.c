/* ELF files for x86-64.
 *
 * The unwind row of a procedure linkage table. Linkers describe all stubs at once, by an expression that tells from
 * the low bits of the program counter whether the stub has pushed its number yet:
 *
 *     CFA = rsp + 8 + ((rip & 15) >= N ? 8 : 0)
 *
 * A moved stub's instructions stand elsewhere: there the row says what the expression says of the original place. */
#include "elf/isa.h"

#include <elf.h>
#include <string.h>

/* DW_CFA_def_cfa_expression, its length, and the expression up to N; then what follows N. */
static const uint8_t head[] = {0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a}, tail[] = {0x2a, 0x33, 0x24, 0x22};
enum { LIT0 = 0x30, SIZE = sizeof head + 1 + sizeof tail };

static bool is_stub_row(const image_row *row)
{
    return row->size == SIZE && !memcmp(row->bytes, head, sizeof head) &&
           !memcmp(row->bytes + sizeof head + 1, tail, sizeof tail) && (uint8_t)(row->bytes[sizeof head] - LIT0) < 16;
}

static void put_stub_row(inl_bytes *b, const image_row *row, uint64_t old)
{
    enum { DEF_CFA = 0x0c, RSP = 7 };
    bool pushed = (old & 15) >= (uint64_t)(row->bytes[sizeof head] - LIT0);
    const uint8_t def_cfa[] = {DEF_CFA, RSP, pushed ? 16 : 8};
    inl_bytes_put(b, def_cfa, sizeof def_cfa);
}

/* The frame is that of a call by the tool: moved/x86_64/call.c. */
static void end_record(inl_bytes *b, size_t start)
{
    inl_bytes_align(b, 8);
    uint32_t size = (uint32_t)(b->size - start - 4);
    inl_bytes_set(b, start, &size, sizeof size);
}

static void put_return(inl_bytes *b, uint64_t addr, uint64_t size)
{
    enum { DEF_CFA = 0x0c, OFFSET = 0x80, RBX = 3, RIP = 16, WORD = -8 & 0x7f };
    static const uint8_t head[] = {
        1, 'z',          'R', 0, 1, WORD, RIP, 1, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, DEF_CFA, RBX, 8, OFFSET | RIP,
        1, OFFSET | RBX, 2};
    size_t common = inl_bytes_reserve(b, 4 + 4);
    inl_bytes_put(b, head, sizeof head);
    end_record(b, common);
    size_t entry = inl_bytes_reserve(b, 4);
    inl_bytes_number(b, b->size - common, 4);
    inl_bytes_relative(b, addr);
    inl_bytes_number(b, size, 4);
    inl_bytes_uleb(b, 0);
    end_record(b, entry);
}

static bool is_mark(const uint8_t *bytes, size_t size)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    return size >= sizeof endbr64 && !memcmp(bytes, endbr64, sizeof endbr64);
}

const elf_isa elf_isa_here = {
    .machine = EM_X86_64,
    .linked = true,
    .relative_type = R_X86_64_RELATIVE,
    .page = 4096,
    .marks_property = 0xc0000002, /* GNU_PROPERTY_X86_FEATURE_1_AND; bit 0: IBT */
    .is_mark = is_mark,
    .is_stub_row = is_stub_row,
    .put_stub_row = put_stub_row,
    .put_return = put_return,
};
