/* Loads and stores. The rows of one form stand in the same order for all sizes, general and vector. */
#include "isa/aarch64/fields.h"

enum access { STORE, LOAD, LOAD_SX };

/* size:opc of the instruction, in the bits where it stands; vectors: bit 26. */
static uint32_t kind(isa_code *c, unsigned w, enum access access, bool vector)
{
    unsigned log = w == 16 ? 0 : (unsigned)__builtin_ctz(w | 32), opc = access;
    if ((w & (w - 1)) || w == 0 || w > (vector ? 16u : 8u) || (access == LOAD_SX && w == 8)) c->unreachable = true;
    if (vector && w == 16) opc |= 2;
    return (uint32_t)log << 30 | opc << 22 | (vector ? 1u << 26 : 0);
}

/* The forms of str b: the other sizes and loads differ from them in what kind() says. */
static void access_memory(isa_code *c, uint32_t kind_bits, unsigned w, uint32_t reg, a64_addr m)
{
    uint32_t common = kind_bits | a64_sp(c, m.base) << 5 | reg, s9 = ((uint32_t)m.disp & 0x1ff) << 12;
    if (!a64_reaches(w, m)) c->unreachable = true;
    if (m.index != ISA_NO_REG) a64_emit(c, A64_STRB_REG, common | a64_zr(c, m.index) << 16 | 3 << 13 | m.scaled << 12);
    else if (m.pre) a64_emit(c, A64_STRB_PRE, common | s9);
    else if (m.post) a64_emit(c, A64_STRB_POST, common | s9);
    else if (m.disp >= 0 && m.disp % (int32_t)w == 0) a64_emit(c, A64_STRB_OFF, common | (uint32_t)m.disp / w << 10);
    else a64_emit(c, A64_STURB, common | s9);
}

bool a64_reaches(unsigned w, a64_addr m)
{
    if (m.index != ISA_NO_REG) return m.disp == 0 && !m.pre && !m.post;
    if (!m.pre && !m.post && m.disp >= 0 && m.disp % (int32_t)w == 0 && m.disp / (int32_t)w < 4096) return true;
    return a64_fits(m.disp, 9);
}

void a64_load(isa_code *c, unsigned w, unsigned dst, a64_addr m)
{
    access_memory(c, kind(c, w, LOAD, false), w, a64_zr(c, dst), m);
}

void a64_load_sx(isa_code *c, unsigned w, unsigned dst, a64_addr m)
{
    if (w == 8) a64_load(c, w, dst, m);
    else access_memory(c, kind(c, w, LOAD_SX, false), w, a64_zr(c, dst), m);
}

void a64_store(isa_code *c, unsigned w, a64_addr m, unsigned src)
{
    access_memory(c, kind(c, w, STORE, false), w, a64_zr(c, src), m);
}

void a64_load_vec(isa_code *c, unsigned w, unsigned vec, a64_addr m)
{
    access_memory(c, kind(c, w, LOAD, true), w, vec & 31, m);
}

void a64_store_vec(isa_code *c, unsigned w, a64_addr m, unsigned vec)
{
    access_memory(c, kind(c, w, STORE, true), w, vec & 31, m);
}

/* --- pairs --- */

/* `rows`: of the plain offset, pre- and post-indexed. */
static void access_pair(isa_code *c, const uint16_t rows[3], unsigned w, uint32_t bits, a64_addr m)
{
    int32_t units = m.disp / (int32_t)w;
    if (m.disp % (int32_t)w || !a64_fits(units, 7) || m.index != ISA_NO_REG) c->unreachable = true;
    unsigned row = rows[m.pre ? 1 : m.post ? 2 : 0];
    a64_emit(c, row, bits | ((uint32_t)units & 0x7f) << 15 | a64_sp(c, m.base) << 5);
}

void a64_load_pair(isa_code *c, unsigned w, unsigned a, unsigned b, a64_addr m)
{
    static const uint16_t rows[] = {A64_LDP_OFF, A64_LDP_PRE, A64_LDP_POST};
    access_pair(c, rows, w, a64_sf(c, w) | a64_zr(c, b) << 10 | a64_zr(c, a), m);
}

void a64_store_pair(isa_code *c, unsigned w, a64_addr m, unsigned a, unsigned b)
{
    static const uint16_t rows[] = {A64_STP_OFF, A64_STP_PRE, A64_STP_POST};
    access_pair(c, rows, w, a64_sf(c, w) | a64_zr(c, b) << 10 | a64_zr(c, a), m);
}

void a64_load_vec_pair(isa_code *c, unsigned a, unsigned b, a64_addr m)
{
    static const uint16_t rows[] = {A64_LDP_OFFQ, A64_LDP_PREQ, A64_LDP_POSTQ};
    access_pair(c, rows, 16, (b & 31) << 10 | (a & 31), m);
}

void a64_store_vec_pair(isa_code *c, a64_addr m, unsigned a, unsigned b)
{
    static const uint16_t rows[] = {A64_STP_OFFQ, A64_STP_PREQ, A64_STP_POSTQ};
    access_pair(c, rows, 16, (b & 31) << 10 | (a & 31), m);
}

/* --- atomic --- */

enum { UNUSED_FIELDS = 31 << 16 | 31 << 10 }; /* should be one */

void a64_load_exclusive(isa_code *c, unsigned w, unsigned dst, unsigned base)
{
    a64_emit(c, A64_LDAXRB, kind(c, w, STORE, false) | UNUSED_FIELDS | a64_sp(c, base) << 5 | a64_zr(c, dst));
}

void a64_store_exclusive(isa_code *c, unsigned w, unsigned status, unsigned base, unsigned src)
{
    bool same = status == base || status == src; /* not predictable */
    if (same) c->unreachable = true;
    a64_emit(c, A64_STLXRB,
             kind(c, w, STORE, false) | a64_zr(c, status) << 16 | 31 << 10 | a64_sp(c, base) << 5 | a64_zr(c, src));
}

void a64_atomic_add(isa_code *c, unsigned w, unsigned old, unsigned base, unsigned value)
{
    a64_emit(c, A64_LDADDALB,
             kind(c, w, STORE, false) | a64_zr(c, value) << 16 | a64_sp(c, base) << 5 | a64_zr(c, old));
}
