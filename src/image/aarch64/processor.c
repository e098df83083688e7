/* AArch64: relocations and import stubs. */
#include "image/file.h"

/* [bti c] adrp x16, page; ldr x17, [x16, offset] */
static bool stub(const uint8_t *p, size_t have, uint64_t addr, uint64_t *slot)
{
    uint32_t page, load;
    if (have >= 4 && memcmp(p, "\x5f\x24\x03\xd5", 4) == 0) p += 4, have -= 4, addr += 4;
    if (have < 8) return false;
    memcpy(&page, p, 4);
    memcpy(&load, p + 4, 4);
    if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211) return false;
    uint64_t pages = (page >> 29 & 3) | (uint64_t)(page >> 5 & 0x7ffff) << 2;
    if (pages >> 20) pages |= ~0ull << 20; /* 21 bits, signed */
    *slot = (addr & ~4095ull) + (pages << 12) + (load >> 10 & 0xfff) * 8;
    return true;
}

static const uint8_t registers[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

const image_processor image_processor_aarch64 = {
    .machine = EM_AARCH64,
    .relative = R_AARCH64_RELATIVE,
    .resolver = R_AARCH64_IRELATIVE,
    .absolute = R_AARCH64_ABS64,
    .symbol = R_AARCH64_GLOB_DAT,
    .slot = R_AARCH64_JUMP_SLOT,
    .copied = R_AARCH64_COPY,
    .tls_offset = R_AARCH64_TLS_TPREL,
    .tls_module = R_AARCH64_TLS_DTPMOD,
    .tls_table = 0,
    .tls_above = 16,
    .registers = registers,
    .register_count = sizeof registers,
    .vectors = 64,
    .vector_count = 32,
    .stub_step = 4,
    .stub_longest = 24,
    .stub = stub,
};
