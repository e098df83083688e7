/* x86-64: relocations and import stubs. */
#include "image/file.h"

/* [endbr64] [bnd] jmp *slot(%rip) */
static bool stub(const uint8_t *p, size_t have, uint64_t addr, uint64_t *slot)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = have >= 4 && memcmp(p, endbr64, 4) == 0 ? 4 : 0;
    int32_t displacement;
    if (at < have && p[at] == 0xf2) at++;
    if (have < at + 6 || p[at] != 0xff || p[at + 1] != 0x25) return false;
    memcpy(&displacement, p + at + 2, 4);
    *slot = addr + at + 6 + (uint64_t)(int64_t)displacement;
    return true;
}

/* mov $15,%rax ; syscall, by either of two encodings of the first. */
static bool restores(const uint8_t *p, size_t have)
{
    static const uint8_t longer[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
                         shorter[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
    return (have >= sizeof longer && memcmp(p, longer, sizeof longer) == 0) ||
           (have >= sizeof shorter && memcmp(p, shorter, sizeof shorter) == 0);
}

/* rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 ... */
static const uint8_t registers[] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

const image_processor image_processor_x86_64 = {
    .machine = EM_X86_64,
    .relative = R_X86_64_RELATIVE,
    .resolver = R_X86_64_IRELATIVE,
    .absolute = R_X86_64_64,
    .symbol = R_X86_64_GLOB_DAT,
    .slot = R_X86_64_JUMP_SLOT,
    .copied = R_X86_64_COPY,
    .tls_offset = R_X86_64_TPOFF64,
    .tls_module = R_X86_64_DTPMOD64,
    .tls_table = 8,
    .registers = registers,
    .register_count = sizeof registers,
    .vectors = 17,
    .vector_count = 16,
    .stub_step = 8,
    .stub_longest = 16,
    .stub = stub,
    .restores = restores,
};
