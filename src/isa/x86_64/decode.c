/* Bytes to isa_insn: length, identity, flow, the register numbers of all fields.
 *
 * This is the JIT's hot path, and code is unpredictable input: what costs time is not the work but
 * mispredicted branches. So the common shape (at most one of 66, F2, F3, then a REX, then perhaps
 * 0F) is recognised by arithmetic, and decode_form() takes ModRM byte, SIB, displacement, immediate
 * and target in straight line, with sizes from tables and masks where something is absent. When
 * anything is out of the ordinary, decoding starts again in decode_any(): a plain prefix loop,
 * then the same decode_form(), then the checks that only unusual forms need.
 *
 * Memory: the bytes are read in place when 32 of them may be read, which no field of an instruction
 * of at most 15 bytes can pass; shorter input is copied to a zero-padded buffer. Whether the
 * instruction fits into what there is is asked once, at the end.
 *
 * What the tables do not know still gets a length where the encoding space fixes one: the 0F38 and
 * 0F3A maps, VEX, XOP, EVEX (APX's promoted forms among them) all have a ModRM byte and an
 * immediate whose size is a property of map and opcode. None of these spaces holds a branch, so
 * such an instruction may be copied. REX2 is decoded like REX, with five-bit registers.
 */
#include <string.h>
#include "isa/x86_64/tables.h"

enum byte_class { B_OPCODE, B_REX, B_66, B_67, B_F3, B_F2, B_LOCK, B_SEGMENT, B_FS, B_GS, B_0F,
                  B_VEX2, B_VEX3, B_EVEX, B_XOP, B_REX2 };

static const uint8_t byte_classes[256] = {
    [0x40] = B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX,
    B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX,
    [0x0f] = B_0F, [0x26] = B_SEGMENT, [0x2e] = B_SEGMENT, [0x36] = B_SEGMENT, [0x3e] = B_SEGMENT,
    [0x64] = B_FS, [0x65] = B_GS, [0x66] = B_66, [0x67] = B_67, [0x62] = B_EVEX, [0x8f] = B_XOP,
    [0xc4] = B_VEX3, [0xc5] = B_VEX2, [0xd5] = B_REX2, [0xf0] = B_LOCK, [0xf2] = B_F2, [0xf3] = B_F3,
};

/* What a byte means as the only legacy prefix, and which bytes in the opcode's place, without or
 * with 0F before them, are no opcodes of the first two maps. */
static const uint8_t lone_prefix[256] = {[0x66] = X86_CTX_66, [0xf3] = X86_CTX_F3, [0xf2] = X86_CTX_F2};
static const uint8_t no_opcode[2][256] = {
    {[0x26] = 1, [0x2e] = 1, [0x36] = 1, [0x3e] = 1, [0x40] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
     [0x62] = 1, [0x64] = 1, 1, 1, 1, [0x8f] = 1, [0xc4] = 1, 1, [0xd5] = 1, [0xf0] = 1, [0xf2] = 1, 1},
    {[0x0f] = 1, [0x38] = 1, [0x3a] = 1}};

/* What is known before the opcode. */
typedef struct state {
    const uint8_t *p;  /* at least 32 readable bytes */
    size_t avail;      /* that many of them are the caller's */
    uint64_t addr;
    unsigned at;       /* next byte */
    unsigned context;  /* X86_CTX_* or the vector context */
    unsigned map;
    unsigned r, x, b;  /* what the prefixes add to the ModRM and SIB fields */
    unsigned x_rm;     /* EVEX: X adds to rm when it is a register */
    unsigned v_index;  /* EVEX: V' adds to a vector index */
    unsigned v, vector, prefix, segment; /* isa_insn.x */
    bool invalid;      /* prefixes that fault whatever follows */
} state;

/* All ones if `yes`. Written out because compilers turn conditional expressions into branches. */
static inline unsigned mask_if(unsigned yes) { return 0u - (yes != 0); }

/* Memory forms of a ModRM byte: displacement bytes, and ... */
enum { M_SIB = 8, M_RIP = 16, M_MEM = 32, M_NO_BASE = 64 /* SIB base 5 means none */ };
#define ROW(f, sib, five) f, f, f, f, sib, five, f, f
#define ROWS8(f, sib, five) ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five), \
                            ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five)
static const uint8_t modrm_forms[256] = {
    ROWS8(M_MEM, M_MEM | M_SIB | M_NO_BASE, M_MEM | M_RIP | 4),
    ROWS8(M_MEM | 1, M_MEM | M_SIB | 1, M_MEM | 1),
    ROWS8(M_MEM | 4, M_MEM | M_SIB | 4, M_MEM | 4),
};

/* Sign-extended value of `size` bytes (1, 2, 4 or 8); 0 for size 0. */
static inline int64_t load_signed(const uint8_t *p, unsigned size)
{
    uint64_t v;
    memcpy(&v, p, 8);
    unsigned shift = (64 - 8 * size) & 63;
    return ((int64_t)(v << shift) >> shift) & -(int64_t)(size != 0);
}

/* Immediate bytes of an opcode that the tables lack. */
static unsigned unknown_imm(const state *s, unsigned opcode, unsigned modrm)
{
    unsigned wide = (s->context & 3) == 1 ? 2 : 4; /* pp = 66 */
    switch (s->map) {
    case X86_MAP_LEGACY + 3: case X86_MAP_VEX + 3: case X86_MAP_EVEX + 3: case X86_MAP_XOP: return 1;
    case X86_MAP_XOP + 2: return 4;
    case X86_MAP_LEGACY + 1: case X86_MAP_VEX + 1: case X86_MAP_EVEX + 1:
        return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6) ||
               (s->map == X86_MAP_LEGACY + 1 && (opcode == 0xa4 || opcode == 0xac || opcode == 0xba));
    case X86_MAP_EVEX + 4: /* APX: the one-byte opcodes and some of 0F */
        if (opcode == 0x69 || opcode == 0x81) return wide;
        if ((opcode & 0xfe) == 0xf6 && !(modrm & 0x30)) return opcode == 0xf6 ? 1 : wide; /* test */
        return opcode == 0x24 || opcode == 0x2c || opcode == 0x6b || opcode == 0x80 || opcode == 0x83 ||
               opcode == 0xc0 || opcode == 0xc1;
    case X86_MAP_EVEX + 7: return opcode == 0xf8 ? 4 : 0; /* urdmsr, uwrmsr */
    default: return 0;
    }
}

static bool fields_allowed(const isa_insn *in, const x86_row *row)
{
    const x86_check *c = &x86_checks[row->check];
    unsigned reg = in->x[X86_X_REG], rm = in->x[X86_X_RM], v = in->x[X86_X_V], i = in->x[X86_X_INDEX];
    if (!(c->reg >> reg & 1) || !(c->vvvv >> v & 1)) return false;
    if (!(in->x[X86_X_PREFIX] & X86_PREFIX_MEM) && !(c->rm >> rm & 1)) return false;
    if (!c->differ) return true;
    return !((c->differ & X86_SAME_REG_RM && reg == rm) || (c->differ & X86_SAME_REG_V && reg == v) ||
             (c->differ & X86_SAME_RM_V && rm == v) || (c->differ & X86_SAME_REG_INDEX && reg == i) ||
             (c->differ & X86_SAME_INDEX_V && i == v));
}

/* Bytes past the end are no part of the instruction. */
static inline void keep_bytes(isa_insn *in, const uint8_t *p)
{
    static const uint8_t ones[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t raw[2], mask[2];
    memcpy(raw, p, 16);
    memcpy(mask, ones + 16 - in->len, 16);
    raw[0] &= mask[0];
    raw[1] &= mask[1];
    memcpy(in->raw, raw, 16);
}

/* The length, if it can be known, of what cannot be decoded; row is INVALID or UNKNOWN. The fields
 * of the operand are in `in` already. */
static __attribute__((noinline)) isa_result undecoded(isa_insn *in, const state *s, unsigned at, unsigned row)
{
    if (row == X86_ROW_UNKNOWN) {
        unsigned imm = unknown_imm(s, s->p[in->opcode_at], s->p[in->modrm_at]);
        in->imm_len = imm;
        in->imm_at = imm ? at : 0;
        at += imm;
    }
    in->len = 0;
    if (at > s->avail) return ISA_TRUNCATED;
    if (at > ISA_MAX_INSN) { at = ISA_MAX_INSN; row = X86_ROW_INVALID; }
    in->row = row;
    in->op = x86_rows[row].op;
    in->len = at;
    keep_bytes(in, s->p);
    if (row == X86_ROW_INVALID) {
        in->flow = ISA_FLOW_TRAP;
        in->bits = 0;
        in->target = 0;
        return ISA_INVALID;
    }
    in->flow = ISA_FLOW_NEXT;
    in->target = 0;
    in->bits |= x86_rows[row].bits;
    if (in->bits & ISA_BIT_PCREL_MEM) in->target = s->addr + at + load_signed(s->p + in->disp_at, 4);
    return ISA_UNKNOWN;
}

/* Prefixes alone, or an opcode byte that no table has. */
static isa_result malformed(isa_insn *in, const state *s, unsigned at)
{
    memset(in, 0, sizeof *in);
    in->addr = s->addr;
    in->opcode_at = s->at;
    return undecoded(in, s, at, X86_ROW_INVALID);
}

/* ModRM byte, SIB and displacement; returns the offset behind them. Without a ModRM byte (`has` is
 * 0, not 1) the opcode's low bits take the place of rm. */
static inline __attribute__((always_inline)) unsigned
decode_operand(isa_insn *in, const state *s, unsigned at, unsigned has, unsigned opcode, unsigned modrm,
               unsigned moffs)
{
    unsigned present = 0u - has, form = modrm_forms[modrm] & present;
    unsigned rm = (opcode ^ ((opcode ^ modrm) & present)) & 7;
    unsigned sib = s->p[at + 1], has_sib = form >> 3 & 1, with_sib = 0u - has_sib, low = sib & 7;
    unsigned no_base = form >> 6 & (low == 5), disp = (form & 7) + 4 * no_base + moffs;
    unsigned base = (rm ^ ((rm ^ low) & with_sib)) | s->b, index = (sib >> 3 & 7) | s->x;
    unsigned based = form >> 5 & 1 & ~(no_base | form >> 4), indexed = has_sib & (index != 4);
    in->modrm_at = at & present;
    at += has + has_sib;
    in->disp_at = at & mask_if(disp);
    in->disp_len = disp;
    in->bits = form >> 4 & ISA_BIT_PCREL_MEM;
    in->x[X86_X_PREFIX] = s->prefix | (form >> 2 & X86_PREFIX_MEM);
    in->x[X86_X_SEGMENT] = s->segment;
    in->x[X86_X_REG] = ((modrm >> 3 & 7) | s->r) & present;
    in->x[X86_X_RM] = rm | s->b | s->x_rm;
    in->x[X86_X_V] = s->v;
    in->x[X86_X_BASE] = base | (X86_NONE & (based - 1));
    in->x[X86_X_INDEX] = index | (X86_NONE & (indexed - 1));
    in->x[X86_X_SCALE] = sib >> 6 & with_sib;
    in->x[X86_X_VECTOR] = s->vector;
    return at + disp;
}
_Static_assert(ISA_BIT_PCREL_MEM == M_RIP >> 4 && X86_PREFIX_MEM == M_MEM >> 2, "bits move by shifts");

/* The address of a branch or a PC-relative operand. */
static inline uint64_t target_of(const isa_insn *in, const state *s, const x86_row *row)
{
    unsigned pcrel = mask_if(in->bits & ISA_BIT_PCREL_MEM), relative = mask_if(row->form & X86_FORM_RELATIVE);
    unsigned size = (4 & pcrel) | (row->imm & relative & ~pcrel);
    unsigned at = (in->disp_at & pcrel) | (in->imm_at & ~pcrel);
    uint64_t target = s->addr + in->len + (uint64_t)load_signed(s->p + at, size);
    if (s->prefix & X86_PREFIX_A32 && pcrel) target = (uint32_t)target; /* never so on the fast path */
    return target & (0 - (uint64_t)(size != 0));
}

/* Forms with more to look at: number is the row's, `at` the offset behind the instruction. */
static __attribute__((noinline)) isa_result decode_rest(isa_insn *in, const state *s, unsigned number,
                                                        unsigned at)
{
    const x86_row *row = &x86_rows[number];
    if (s->invalid) number = X86_ROW_INVALID;
    if (number <= X86_ROW_UNKNOWN) return undecoded(in, s, at, number);
    if (at > ISA_MAX_INSN || at > s->avail) return undecoded(in, s, at, X86_ROW_INVALID);
    if (row->form & X86_FORM_VSIB) { /* the index may be number 4, and has a fifth bit */
        if (in->x[X86_X_INDEX] == X86_NONE) in->x[X86_X_INDEX] = 4;
        in->x[X86_X_INDEX] |= s->v_index;
        in->x[X86_X_V] &= 15;
    }
    if (row->form & X86_FORM_INT && s->p[in->imm_at] == 0x80) in->flow = ISA_FLOW_SYSCALL;
    if (row->check && !fields_allowed(in, row)) return undecoded(in, s, at, X86_ROW_INVALID);
    return ISA_OK;
}

static isa_result decode_any(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out);

/* From the opcode on: `s` holds map, context and extensions. `fast`: there are bytes enough, and
 * the state is not to be handed on. */
static inline __attribute__((always_inline)) isa_result decode_form(isa_insn *in, const state *s, bool fast)
{
    unsigned at = s->at, opcode = s->p[at++];
    const x86_opcode *o = &x86_opcodes[s->map][opcode];
    unsigned shape = o->context, modrm = s->p[at] | (0xc0 & mask_if(shape & X86_OPCODE_REGISTER));
    unsigned context = x86_context_maps[shape & X86_OPCODE_CONTEXT][s->context];
    unsigned number = x86_cells[o->cells + context * o->stride + x86_modrm_maps[o->modrm][modrm]];
    const x86_row *row = &x86_rows[number];
    at = decode_operand(in, s, at, shape >> 15, opcode, modrm, row->disp);
    in->addr = s->addr;
    in->opcode_at = s->at;
    in->imm_len = row->imm;
    in->imm_at = at & mask_if(row->imm);
    in->cond = opcode & 15 & mask_if(row->form & X86_FORM_CONDITION);
    at += row->imm;
    in->len = at;
    in->op = row->op;
    in->row = number;
    in->flow = row->flow;
    in->target = target_of(in, s, row);
    in->bits |= row->bits;
    bool odd = row->check | (row->form & X86_FORM_ODD);
    if (fast) {
        if (__builtin_expect(odd, 0)) return decode_any(s->p, s->avail, s->addr, in);
    } else if (odd || s->invalid || at > ISA_MAX_INSN || at > s->avail) {
        isa_result result = decode_rest(in, s, number, at);
        if (result != ISA_OK) return result;
    }
    keep_bytes(in, s->p);
    return ISA_OK;
}

static __attribute__((noinline)) isa_result decode_opcode(isa_insn *in, const state *s)
{
    return decode_form(in, s, false);
}

/* 3DNow! puts its opcode where an immediate would stand. */
static isa_result decode_3dnow(isa_insn *in, state *s)
{
    unsigned modrm = s->p[++s->at];
    unsigned end = decode_operand(in, s, s->at, 1, 0, modrm, 0), opcode = s->p[end];
    const x86_opcode *o = &x86_opcodes[X86_MAP_3DNOW][opcode];
    unsigned number = x86_cells[o->cells + x86_modrm_maps[o->modrm][modrm]];
    const x86_row *row = &x86_rows[number];
    in->addr = s->addr;
    in->opcode_at = end++;
    in->imm_at = in->imm_len = in->cond = 0;
    s->map = X86_MAP_3DNOW;
    if (s->context & X86_CTX_LOCK) number = X86_ROW_INVALID;
    if (number <= X86_ROW_UNKNOWN || end > ISA_MAX_INSN || end > s->avail) return undecoded(in, s, end, number);
    in->len = end;
    in->op = row->op;
    in->row = number;
    in->flow = row->flow;
    in->target = target_of(in, s, row);
    in->bits |= row->bits;
    keep_bytes(in, s->p);
    return ISA_OK;
}

/* A form of known shape that no table describes. */
static isa_result decode_foreign(isa_insn *in, const state *s)
{
    in->addr = s->addr;
    in->cond = 0;
    in->opcode_at = s->at;
    unsigned at = decode_operand(in, s, s->at + 1, 1, 0, s->p[s->at + 1], 0);
    return undecoded(in, s, at, s->invalid ? X86_ROW_INVALID : X86_ROW_UNKNOWN);
}

static isa_result decode_vex(isa_insn *in, state *s, unsigned class)
{
    const uint8_t *p = s->p + s->at;
    unsigned last = class == B_VEX2 ? p[1] : p[2], map = class == B_VEX2 ? 1 : p[1] & 31;
    s->r = ~p[1] >> 4 & 8;
    s->v = ~last >> 3 & 15;
    s->context = (last & 3) | (last & 4) << 1;
    s->vector = (last & 4) << 3;
    s->prefix |= X86_PREFIX_VEX;
    s->at += class == B_VEX2 ? 2 : 3;
    if (class != B_VEX2) {
        s->x = ~p[1] >> 3 & 8;
        s->b = ~p[1] >> 2 & 8;
        s->context |= last >> 5 & 4;
        if (last & 0x80) s->prefix |= X86_PREFIX_W;
    }
    if (class == B_XOP) {
        if (map > 10) return malformed(in, s, s->at + 1);
        s->map = X86_MAP_XOP + map - 8;
    } else if (map >= 1 && map <= 3) {
        s->map = X86_MAP_VEX + map;
    } else if (map == 5 || map == 7) { /* later additions */
        s->map = X86_MAP_EVEX + map;
        return decode_foreign(in, s);
    } else {
        return malformed(in, s, s->at + 1);
    }
    return decode_opcode(in, s);
}

static isa_result decode_evex(isa_insn *in, state *s)
{
    const uint8_t *p = s->p + s->at;
    unsigned p0 = p[1], p1 = p[2], p2 = p[3], map = p0 & 7;
    s->r = (~p0 >> 4 & 8) | (~p0 & 0x10);
    s->x = ~p0 >> 3 & 8;
    s->b = ~p0 >> 2 & 8;
    s->x_rm = s->x << 1;
    s->v_index = ~p2 << 1 & 16;
    s->v = (~p1 >> 3 & 15) | s->v_index;
    s->context = (p1 & 3) | (p1 >> 5 & 4) | (p2 >> 2 & 0x18) | (p2 << 1 & 0x20) | (p2 >> 1 & 0x40) |
                 (p2 & 7 ? 0x80 : 0);
    s->vector = (p2 & 7) | (p2 >> 4 & 8) | (p2 & 0x10) | (p2 & 0x60);
    s->prefix |= X86_PREFIX_EVEX | (p1 & 0x80 ? X86_PREFIX_W : 0);
    s->at += 4;
    s->map = X86_MAP_EVEX + map;
    if (map == 0) return malformed(in, s, s->at + 1);
    if (p0 & 8 || !(p1 & 4) || map == 4 || map == 7) return decode_foreign(in, s); /* APX, or newer */
    return decode_opcode(in, s);
}

/* Opcodes that fault, or mean something else, after REX2. */
static bool rex2_barred(unsigned map, unsigned opcode)
{
    unsigned row = opcode >> 4;
    if (map) return row == 3 || row == 8 || opcode == 0x0f;
    return row == 4 || row == 7 || row == 10 || row == 14 ||
           (byte_classes[opcode] && byte_classes[opcode] != B_XOP);
}

/* D5 M0 R4 X4 B4 W R3 X3 B3: as REX, with a map bit and fifth register bits. */
static isa_result decode_rex2(isa_insn *in, state *s)
{
    unsigned p = s->p[s->at + 1], opcode = s->p[s->at + 2];
    s->at += 2;
    s->map = X86_MAP_LEGACY + (p >> 7);
    s->r = (p << 1 & 8) | (p >> 2 & 16);
    s->x = (p << 2 & 8) | (p >> 1 & 16);
    s->b = (p << 3 & 8) | (p & 16);
    if (p & 8) s->context |= X86_CTX_W;
    if (s->b) s->context |= X86_CTX_B;
    s->prefix |= X86_PREFIX_REX2 | (p & 8 ? X86_PREFIX_W : 0);
    if (rex2_barred(p >> 7, opcode) || s->invalid)
        return malformed(in, s, s->at + (p >> 7 || opcode != 0xa1 ? 1 : 9)); /* jmpabs has an address */
    return decode_opcode(in, s);
}

static inline void apply_rex(state *s, unsigned rex)
{
    s->r = rex << 1 & 8;
    s->x = rex << 2 & 8;
    s->b = rex << 3 & 8;
    s->context |= (rex & 8) | (rex & 1) << 6;
    s->prefix |= (rex == 0) | (rex >> 1 & X86_PREFIX_W);
    _Static_assert(X86_PREFIX_NOREX == 1, "a comparison's value");
}

static isa_result decode_legacy(isa_insn *in, state *s, unsigned rex)
{
    apply_rex(s, rex);
    if (s->p[s->at] == 0x0f) {
        unsigned next = s->p[++s->at];
        s->map = X86_MAP_LEGACY + 1;
        if (next == 0x0f) return decode_3dnow(in, s);
        if (next == 0x38 || next == 0x3a) {
            s->map = next == 0x38 ? X86_MAP_LEGACY + 2 : X86_MAP_LEGACY + 3;
            s->at++;
        }
    }
    return decode_opcode(in, s);
}

static __attribute__((noinline)) isa_result decode_prefixes(isa_insn *in, state *s)
{
    unsigned rex = 0;
    for (; s->at < ISA_MAX_INSN; s->at++) {
        unsigned byte = s->p[s->at], class = byte_classes[byte];
        if (class == B_REX) { rex = byte; continue; }
        /* VEX and its kin allow no REX, operand size, repeat or lock prefix before them. */
        if (class >= B_VEX2)
            s->invalid = rex || s->context & (X86_CTX_66 | X86_CTX_F2 | X86_CTX_F3 | X86_CTX_LOCK);
        switch (class) {
        case B_66: s->context |= X86_CTX_66; break;
        case B_67: s->context |= X86_CTX_A32; s->prefix |= X86_PREFIX_A32; break;
        case B_F3: s->context = (s->context & ~X86_CTX_F2) | X86_CTX_F3; break;
        case B_F2: s->context = (s->context & ~X86_CTX_F3) | X86_CTX_F2; break;
        case B_LOCK: s->context |= X86_CTX_LOCK; break;
        case B_FS: s->segment = X86_SEG_FS; break;
        case B_GS: s->segment = X86_SEG_GS; break;
        case B_SEGMENT: break;
        case B_VEX2: case B_VEX3: return decode_vex(in, s, class);
        case B_EVEX: return decode_evex(in, s);
        case B_XOP:
            if ((s->p[s->at + 1] & 31) >= 8) return decode_vex(in, s, class);
            s->invalid = false;
            return decode_legacy(in, s, rex);
        case B_REX2: s->invalid = rex != 0; return decode_rex2(in, s);
        default: return decode_legacy(in, s, rex);
        }
        rex = 0; /* only a REX right before the opcode counts */
    }
    return malformed(in, s, ISA_MAX_INSN + 1);
}

/* The general way in; also for input too short to be read in place. */
static __attribute__((noinline)) isa_result decode_any(const uint8_t *bytes, size_t avail, uint64_t addr,
                                                       isa_insn *out)
{
    uint8_t padded[32] = {0};
    state s = {.p = bytes, .avail = avail, .addr = addr};
    if (avail < sizeof padded) {
        memcpy(padded, bytes, avail);
        s.p = padded;
    }
    isa_result result = decode_prefixes(out, &s);
    if (result == ISA_TRUNCATED) memset(out, 0, sizeof *out);
    return result;
}

isa_result x86_decode(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out)
{
    if (__builtin_expect(avail < 32, 0)) return decode_any(bytes, avail, addr, out);
    unsigned at = 0, context = lone_prefix[bytes[0]];
    at += context != 0;
    unsigned is_rex = (bytes[at] ^ 0x40u) < 16, rex = bytes[at] & (0u - is_rex);
    at += is_rex;
    unsigned escape = bytes[at] == 0x0f;
    at += escape;
    if (__builtin_expect(no_opcode[escape][bytes[at]], 0)) return decode_any(bytes, avail, addr, out);
    state s = {.p = bytes, .avail = avail, .addr = addr, .at = at, .context = context,
               .map = X86_MAP_LEGACY + escape};
    apply_rex(&s, rex);
    return decode_form(out, &s, true);
}
