/* Who names entries of procedures: relocations, and lea disp(%rip),%reg. */
#include "move/x86_64/machine.h"

#include <elf.h>
#include <string.h>

enum { LEA = 0x8d, LEA_SIZE = 6 /* from the opcode on */ };

move_reloc move_x86_reloc(uint32_t type)
{
    switch (type) {
    case R_X86_64_GLOB_DAT:
    case R_X86_64_JUMP_SLOT: return MOVE_RELOC_SYMBOL;
    case R_X86_64_64: return MOVE_RELOC_WORD;
    case R_X86_64_RELATIVE:
    case R_X86_64_IRELATIVE: return MOVE_RELOC_ADDRESS;
    case R_X86_64_NONE:
    case R_X86_64_COPY:
    case R_X86_64_DTPMOD64:
    case R_X86_64_DTPOFF64:
    case R_X86_64_TPOFF64:
    case R_X86_64_TLSDESC: return MOVE_RELOC_NOTHING;
    default: return MOVE_RELOC_UNKNOWN;
    }
}

size_t move_x86_find_name(const uint8_t *bytes, size_t size, size_t i, uint64_t addr, uint64_t *named)
{
    for (; i + LEA_SIZE <= size; i++) {
        if (bytes[i] != LEA || (bytes[i + 1] & 0xc7) != 5) continue; /* ModRM: relative to rip */
        int32_t disp;
        memcpy(&disp, bytes + i + 2, sizeof disp);
        *named = addr + i + LEA_SIZE + (uint64_t)(int64_t)disp;
        return i;
    }
    return size;
}

/* One byte in front of the opcode: a REX prefix. */
bool move_x86_is_name(const isa_insn *in, uint64_t at)
{
    if (in->raw[in->opcode_at] != LEA || !(in->bits & ISA_BIT_PCREL_MEM) || in->opcode_at != 1) return false;
    return !at || in->addr + in->opcode_at == at;
}

void move_x86_aim(uint8_t *bytes, const isa_insn *in, uint64_t target)
{
    int32_t disp = (int32_t)(target - (in->addr + in->len));
    memcpy(bytes + in->disp_at, &disp, sizeof disp);
}

size_t move_x86_mark_size(const uint8_t *bytes, size_t size)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    return size > sizeof endbr64 && !memcmp(bytes, endbr64, sizeof endbr64) ? sizeof endbr64 : 0;
}
