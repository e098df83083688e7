/* The elements of a masked memory operand (gather, scatter, vmaskmov, maskmovdqu, AVX-512 under an
 * opmask), from the vector state before the instruction. What lies behind the mask is not touched, so
 * it is no access; an operand whose masked-out elements could fault all the same is none of these. */
#include "elements.h"

#include <cpuid.h>
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum { X_YMM = 2, X_OPMASK = 5, X_ZMM = 6, X_HIGH = 7 };

typedef struct vectors {
    uint8_t area[16384];
    size_t size;
} vectors;

static const uint8_t *component(const vectors *v, unsigned i, unsigned offset, unsigned bytes)
{
    static const uint8_t zeros[64];
    unsigned a, at, c, d;
    uint64_t present;
    __cpuid_count(0xd, i, a, at, c, d);
    memcpy(&present, v->area + 512, 8);
    if (!a || !(present >> i & 1) || at + offset + bytes > v->size) return zeros;
    return v->area + at + offset;
}

static void read_vector(const vectors *v, unsigned number, uint8_t out[64])
{
    if (number >= 16) {
        memcpy(out, component(v, X_HIGH, 64 * (number - 16), 64), 64);
        return;
    }
    memcpy(out, v->area + 160 + 16 * number, 16);
    memcpy(out + 16, component(v, X_YMM, 16 * number, 16), 16);
    memcpy(out + 32, component(v, X_ZMM, 32 * number, 32), 32);
}

static void read_register(const vectors *v, ZydisRegister reg, uint8_t out[64])
{
    unsigned number = (unsigned)ZydisRegisterGetId(reg), top = v->area[3] >> 3 & 7;
    memset(out, 0, 64);
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_MMX: memcpy(out, v->area + 32 + 16 * ((number - top) & 7), 8); break;
    case ZYDIS_REGCLASS_MASK: memcpy(out, component(v, X_OPMASK, 8 * number, 8), 8); break;
    default: read_vector(v, number, out);
    }
}

static bool suppresses_faults(const ZydisDecodedInstruction *in)
{
    const char *name = ZydisMnemonicGetString(in->mnemonic);
    if (strncmp(name, "v4f", 3) == 0 || strncmp(name, "vp4dp", 5) == 0) return false;
    switch (in->meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_E1NF:
    case ZYDIS_EXCEPTION_CLASS_E2NF:
    case ZYDIS_EXCEPTION_CLASS_E3NF:
    case ZYDIS_EXCEPTION_CLASS_E4NF:
    case ZYDIS_EXCEPTION_CLASS_E5NF:
    case ZYDIS_EXCEPTION_CLASS_E6NF:
    case ZYDIS_EXCEPTION_CLASS_E9NF:
    case ZYDIS_EXCEPTION_CLASS_E10NF:
    case ZYDIS_EXCEPTION_CLASS_E11NF: return false;
    default: return true;
    }
}

const ZydisDecodedOperand *step_mask(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
                                     const ZydisDecodedOperand *mem)
{
    if (in->mnemonic == ZYDIS_MNEMONIC_MASKMOVQ || in->mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU ||
        in->mnemonic == ZYDIS_MNEMONIC_VMASKMOVDQU)
        return &ops[1];
    bool store = mem->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    bool named = strstr(ZydisMnemonicGetString(in->mnemonic), "maskmov") != NULL;
    bool vsib = mem->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    for (unsigned i = 0; i < in->operand_count; i++) {
        if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        if (ops[i].encoding == ZYDIS_OPERAND_ENCODING_MASK)
            return ops[i].reg.value != ZYDIS_REGISTER_K0 && (store || suppresses_faults(in)) ? &ops[i] : NULL;
        if (ops[i].encoding == ZYDIS_OPERAND_ENCODING_NDSNDD && (named || vsib)) return &ops[i];
    }
    return NULL;
}

/* Lanes of the mask: of a broadcast more than elements in memory. */
static unsigned lane_count(const ZydisDecodedInstruction *in, unsigned elements)
{
    static const uint8_t to[] = {0, 2, 4, 8, 16, 32, 64, 4, 8, 16, 8, 16, 16};
    return in->avx.broadcast.mode ? to[in->avx.broadcast.mode] : elements;
}

/* Bit e of the answer: element e is accessed. */
static uint64_t active_elements(const ZydisDecodedInstruction *in, const uint8_t mask[64], bool bits, unsigned elements,
                                unsigned size)
{
    const char *name = ZydisMnemonicGetString(in->mnemonic);
    bool packed = bits && (strstr(name, "expand") || strstr(name, "compress"));
    unsigned lanes = lane_count(in, elements), set = 0;
    uint64_t active = 0;
    for (unsigned i = 0; i < lanes; i++) {
        bool on = bits ? mask[i / 8] >> i % 8 & 1 : mask[i * size + size - 1] >> 7;
        if (on) active |= 1ull << (packed ? set++ : i % elements);
    }
    return active;
}

static uint64_t index_value(const uint8_t index[64], unsigned i, bool wide)
{
    int32_t narrow;
    uint64_t value;
    memcpy(&value, index + (wide ? 8 * i : 0), 8);
    memcpy(&narrow, index + (wide ? 0 : 4 * i), 4);
    return wide ? value : (uint64_t)(int64_t)narrow;
}

int step_elements(pid_t pid, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *mask,
                  const ZydisDecodedOperand *mem, const step_place *at, bool write, step_access *out)
{
    static vectors v;
    struct iovec area = {v.area, sizeof v.area};
    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &area) != 0) return 0;
    v.size = area.iov_len;
    uint8_t bits[64], index[64] = {0};
    bool vsib = mem->mem.type == ZYDIS_MEMOP_TYPE_VSIB, wide = in->opcode & 1;
    unsigned size = mem->element_size / 8, elements = mem->element_count;
    /* these move bytes, whatever Zydis takes for their elements */
    if (in->mnemonic == ZYDIS_MNEMONIC_MASKMOVQ || in->mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU)
        size = 1, elements = mem->size / 8;
    if (vsib) {
        unsigned larger = wide && size < 8 ? 8 : !wide && size < 4 ? 4 : size;
        elements = in->avx.vector_length / 8 / larger;
        read_register(&v, mem->mem.index, index);
    }
    read_register(&v, mask->reg.value, bits);
    bool opmask = ZydisRegisterGetClass(mask->reg.value) == ZYDIS_REGCLASS_MASK;
    uint64_t active = active_elements(in, bits, opmask, elements, size);
    int n = 0;
    for (unsigned e = 0; e < elements; e++) {
        if (!(active >> e & 1)) continue;
        uint64_t a = at->offset + (vsib ? index_value(index, e, wide) * mem->mem.scale : 0);
        if (in->address_width == 32) a = (uint32_t)a;
        a += at->segment_base + (vsib ? 0 : (uint64_t)e * size);
        out[n++] = (step_access){a, size, 1, write};
    }
    return n;
}
