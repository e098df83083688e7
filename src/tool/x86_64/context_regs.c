/* Registers of a context on x86-64. The vector state lies in XSAVE's standard form: a register is made of pieces that
 * lie in several components, and of each component a bit of the header says whether it is there, or as at the start.
 * Where there is no XSAVE the form is FXSAVE's, which has no header. */
#include "tool/context_regs.h"
#include "isa/x86_64/xstate.h"

#include <string.h>

enum { X87, SSE, AVX, BOUNDS, K = 5, ZMM_HIGH, ZMM_MORE, PIECES = 3, NO_PART = X86_XSAVE_PARTS };
enum { AT_CONTROL = 0, AT_STATUS = 2, AT_TAGS = 4, AT_MXCSR = 24, AT_X87 = 32, AT_XMM = 160, SLOT = 16, HIGH = 16 };
static const uint16_t no_control = 0x37f;

typedef struct piece {
    unsigned part;
    uint32_t at, bytes; /* in the state */
} piece;

uint64_t *tool_context_word(inlay_context *c, inlay_reg whole)
{
    if (whole < INLAY_REG_COUNT) return &c->gpr[whole];
    switch (whole) {
    case INLAY_RIP: return &c->pc;
    case INLAY_RFLAGS: return &c->flags;
    case INLAY_FS_BASE: return &c->fs_base;
    case INLAY_GS_BASE: return &c->gs_base;
    default: return NULL;
    }
}

static piece in_part(unsigned part, uint32_t offset, uint32_t bytes)
{
    return (piece){part, x86_xstate_here()->part[part].offset + offset, bytes};
}

static unsigned vector_pieces(unsigned n, unsigned bytes, piece out[PIECES])
{
    unsigned count = 0;
    if (n >= HIGH) {
        out[count++] = in_part(ZMM_MORE, 64 * (n - HIGH), bytes);
        return count;
    }
    out[count++] = (piece){SSE, AT_XMM + 16 * n, 16};
    if (bytes > 16) out[count++] = in_part(AVX, 16 * n, 16);
    if (bytes > 32) out[count++] = in_part(ZMM_HIGH, 32 * n, 32);
    return count;
}

/* The registers of MMX are those of the x87 stack, not counted from its top, as these lie here. */
static uint32_t mmx_at(const uint8_t *state, unsigned n)
{
    unsigned top = state[AT_STATUS + 1] >> 3 & 7;
    return AT_X87 + SLOT * ((n - top) & 7);
}

/* How many; 0: it is none of these. */
static unsigned pieces_of(const uint8_t *state, inlay_reg reg, piece out[PIECES])
{
    if (reg - INLAY_XMM0 < 32) return vector_pieces(reg - INLAY_XMM0, 16, out);
    if (reg - INLAY_YMM0 < 32) return vector_pieces(reg - INLAY_YMM0, 32, out);
    if (reg - INLAY_ZMM0 < 32) return vector_pieces(reg - INLAY_ZMM0, 64, out);
    if (reg - INLAY_K0 < 8) out[0] = in_part(K, 8 * (reg - INLAY_K0), 8);
    else if (reg - INLAY_BND0 < 4) out[0] = in_part(BOUNDS, 16 * (reg - INLAY_BND0), 16);
    else if (reg - INLAY_TMM0 < 8) out[0] = in_part(X86_PART_TILE_DATA, 1024 * (reg - INLAY_TMM0), 1024);
    else if (reg == INLAY_PKRU) out[0] = in_part(X86_PART_PKRU, 0, 4);
    else if (reg - INLAY_ST0 < 8) out[0] = (piece){X87, AT_X87 + SLOT * (reg - INLAY_ST0), 10};
    else if (reg - INLAY_MM0 < 8) out[0] = (piece){X87, mmx_at(state, reg - INLAY_MM0), 8};
    else if (reg == INLAY_X87_CONTROL) out[0] = (piece){X87, AT_CONTROL, 2};
    else if (reg == INLAY_X87_STATUS) out[0] = (piece){X87, AT_STATUS, 2};
    else if (reg == INLAY_X87_TAG) out[0] = (piece){X87, AT_TAGS, 2};
    else if (reg == INLAY_MXCSR) out[0] = (piece){NO_PART, AT_MXCSR, 4};
    else return 0;
    return 1;
}

static uint64_t *header(uint8_t *state) { return (uint64_t *)(state + X86_XSAVE_LEGACY); }

static bool can_be(unsigned part)
{
    const x86_xstate *x = x86_xstate_here();
    if (part == NO_PART || part <= SSE) return true;
    return x->xsave && x->features >> part & 1 && x->part[part].offset;
}

/* Is it in the state, or as at the start? */
static bool is_there(uint8_t *state, unsigned part)
{
    return part == NO_PART || !x86_xstate_here()->xsave || *header(state) >> part & 1;
}

/* Two bits a register: 3 where it is empty. The state has one, and does not tell zero from the rest. */
static uint16_t full_tags(uint8_t used)
{
    uint16_t tags = 0;
    for (unsigned i = 0; i < 8; i++) tags |= (uint16_t)((used >> i & 1 ? 0 : 3) << 2 * i);
    return tags;
}

static uint8_t short_tags(uint16_t tags)
{
    uint8_t used = 0;
    for (unsigned i = 0; i < 8; i++) used |= (uint8_t)(((tags >> 2 * i & 3) != 3) << i);
    return used;
}

static void get_piece(uint8_t *state, inlay_reg reg, const piece *p, uint8_t *out)
{
    uint16_t tags = full_tags(is_there(state, X87) ? state[AT_TAGS] : 0);
    if (reg == INLAY_X87_TAG) memcpy(out, &tags, sizeof tags);
    else if (is_there(state, p->part)) memcpy(out, state + p->at, p->bytes);
    else if (reg == INLAY_X87_CONTROL) memcpy(out, &no_control, sizeof no_control);
    else memset(out, 0, p->bytes);
}

bool tool_context_vector_get(const inlay_context *c, inlay_reg reg, void *out)
{
    piece p[PIECES];
    uint8_t *state = c->xsave, *to = out;
    unsigned n = state ? pieces_of(state, reg, p) : 0;
    for (unsigned i = 0; i < n; i++)
        if (!can_be(p[i].part)) return false;
    for (unsigned i = 0; i < n; to += p[i++].bytes) get_piece(state, reg, &p[i], to);
    return n > 0;
}

/* From now on it is in the state; until now it was as at the start. */
static void make_there(uint8_t *state, unsigned part)
{
    if (is_there(state, part)) return;
    if (part == X87) {
        memset(state, 0, AT_MXCSR);
        memset(state + AT_X87, 0, AT_XMM - AT_X87);
        memcpy(state + AT_CONTROL, &no_control, sizeof no_control);
    } else if (part == SSE) {
        memset(state + AT_XMM, 0, 16 * SLOT);
    } else {
        memset(state + x86_xstate_here()->part[part].offset, 0, x86_xstate_here()->part[part].size);
    }
    *header(state) |= 1ull << part;
}

bool tool_context_vector_set(inlay_context *c, inlay_reg reg, const void *value)
{
    piece p[PIECES];
    uint8_t *state = c->xsave;
    const uint8_t *from = value;
    uint16_t tags;
    unsigned n = state ? pieces_of(state, reg, p) : 0;
    for (unsigned i = 0; i < n; i++)
        if (!can_be(p[i].part) ||
            (p[i].part != NO_PART && p[i].part >= X86_PART_TILE_CONFIG && !is_there(state, p[i].part)))
            return false;
    for (unsigned i = 0; i < n; from += p[i++].bytes) {
        make_there(state, p[i].part);
        if (reg != INLAY_X87_TAG) memcpy(state + p[i].at, from, p[i].bytes);
    }
    memcpy(&tags, value, sizeof tags);
    if (reg == INLAY_X87_TAG) state[AT_TAGS] = short_tags(tags);
    return n > 0;
}
