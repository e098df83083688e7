/* Bytes to isa_insn: length, identity, flow, the register numbers of all fields.
 *
 * This is the JIT's hot path. The bytes are first copied into a zero-padded buffer, so that nothing
 * below can read outside; whether the instruction fits is asked once, at the end. Prefixes are told apart by one byte-class table; the form is then found
 * by two map look-ups and a cell (tables.h).
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

/* What is known while decoding. `raw` is longer than any instruction, so that prefixes and fields may
 * be looked at before their number is checked. */
typedef struct state {
    uint8_t raw[32];
    unsigned at;       /* next byte */
    unsigned context;  /* X86_CTX_* or the vector context */
    unsigned map;
    unsigned r, x, b;  /* what the prefixes add to the ModRM and SIB fields */
    unsigned x_rm;     /* EVEX: X adds to rm when it is a register */
    unsigned v_index;  /* EVEX: V' adds to a vector index */
    unsigned v;
    unsigned vector;   /* isa_insn.x[X86_X_VECTOR] */
    bool invalid;      /* prefixes that fault whatever follows */
} state;

/* Memory forms of a ModRM byte: displacement bytes, and whether a SIB follows. */
enum { SIB = 8, RIP = 16 };
static const uint8_t memory_forms[32] = { /* mod << 3 | rm */
    0, 0, 0, 0, SIB, RIP | 4, 0, 0,
    1, 1, 1, 1, SIB | 1, 1, 1, 1,
    4, 4, 4, 4, SIB | 4, 4, 4, 4,
};

static int64_t load_signed(const uint8_t *p, unsigned size)
{
    switch (size) {
    case 1: return (int8_t)*p;
    case 2: { int16_t v; memcpy(&v, p, 2); return v; }
    case 4: { int32_t v; memcpy(&v, p, 4); return v; }
    case 8: { int64_t v; memcpy(&v, p, 8); return v; }
    default: return 0;
    }
}

/* Immediate bytes of an opcode that the tables lack. */
static unsigned unknown_imm(unsigned map, unsigned opcode, unsigned pp)
{
    switch (map) {
    case X86_MAP_LEGACY + 3: case X86_MAP_VEX + 3: case X86_MAP_EVEX + 3: case X86_MAP_XOP: return 1;
    case X86_MAP_XOP + 2: return 4;
    case X86_MAP_LEGACY + 1: case X86_MAP_VEX + 1: case X86_MAP_EVEX + 1:
        return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6) ||
               (map == X86_MAP_LEGACY + 1 && (opcode == 0xa4 || opcode == 0xac || opcode == 0xba));
    case X86_MAP_EVEX + 4: /* APX: the one-byte opcodes and some of 0F */
        if (opcode == 0x69 || opcode == 0x81) return pp == 1 ? 2 : 4;
        return opcode == 0x24 || opcode == 0x2c || opcode == 0x6b || opcode == 0x80 || opcode == 0x83 ||
               opcode == 0xc0 || opcode == 0xc1;
    default: return 0;
    }
}

/* Fields of the ModRM byte and what follows it. */
static void decode_modrm(isa_insn *in, state *s)
{
    unsigned modrm = s->raw[s->at], rm = modrm & 7;
    in->modrm_at = s->at++;
    in->x[X86_X_REG] = (modrm >> 3 & 7) | s->r;
    in->x[X86_X_RM] = rm | s->b | s->x_rm;
    if (modrm >= 0xc0) return;
    unsigned form = memory_forms[(modrm >> 3 & 0x18) | rm], disp = form & 7;
    unsigned base = rm | s->b;
    if (form & SIB) {
        unsigned sib = s->raw[s->at++], index = (sib >> 3 & 7) | s->x;
        base = (sib & 7) | s->b;
        in->x[X86_X_SCALE] = sib >> 6;
        in->x[X86_X_INDEX] = index == 4 ? X86_NONE : index;
        if ((sib & 7) == 5 && modrm < 0x40) { base = X86_NONE; disp = 4; }
    }
    if (form & RIP) {
        base = X86_NONE;
        in->bits |= ISA_BIT_PCREL_MEM;
    }
    in->x[X86_X_BASE] = base;
    in->x[X86_X_PREFIX] |= X86_PREFIX_MEM;
    in->disp_len = disp;
    in->disp_at = disp ? s->at : 0;
    s->at += disp;
}

/* A vector index may be number 4, and has a fifth bit. */
static void decode_vector_index(isa_insn *in, const state *s)
{
    if (in->x[X86_X_INDEX] == X86_NONE) in->x[X86_X_INDEX] = 4;
    in->x[X86_X_INDEX] |= s->v_index;
    in->x[X86_X_V] &= 15;
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

/* The length of what cannot be decoded; it is invalid unless the table's cell says otherwise. */
static isa_result undecoded(isa_insn *in, state *s, unsigned row, size_t avail)
{
    in->row = row;
    in->op = x86_rows[row].op;
    in->flow = row == X86_ROW_UNKNOWN ? ISA_FLOW_NEXT : ISA_FLOW_TRAP;
    if (row == X86_ROW_UNKNOWN) {
        in->bits |= x86_rows[row].bits;
        unsigned imm = unknown_imm(s->map, s->raw[in->opcode_at], s->context & 3);
        /* APX: test r/m, imm shares its opcode with forms that have none. */
        if (s->map == X86_MAP_EVEX + 4 && (s->raw[in->opcode_at] & 0xfe) == 0xf6 &&
            !(s->raw[in->modrm_at] & 0x30))
            imm = s->raw[in->opcode_at] == 0xf6 ? 1 : (s->context & 3) == 1 ? 2 : 4;
        in->imm_len = imm;
        in->imm_at = imm ? s->at : 0;
        s->at += imm;
    }
    if (s->at > avail) return ISA_TRUNCATED;
    in->len = s->at;
    if (s->at > ISA_MAX_INSN) { in->len = ISA_MAX_INSN; row = X86_ROW_INVALID; }
    if (row == X86_ROW_INVALID) {
        in->flow = ISA_FLOW_TRAP;
        in->row = X86_ROW_INVALID;
        in->bits = 0;
        return ISA_INVALID;
    }
    if (in->bits & ISA_BIT_PCREL_MEM)
        in->target = in->addr + in->len + load_signed(s->raw + in->disp_at, 4);
    return ISA_UNKNOWN;
}

static inline void decode_immediate(isa_insn *in, state *s, const x86_row *row)
{
    if (__builtin_expect(row->form & X86_FORM_MOFFS, 0)) {
        in->disp_at = s->at;
        in->disp_len = row->disp;
        s->at += row->disp;
    }
    in->imm_len = row->imm;
    in->imm_at = row->imm ? s->at : 0;
    s->at += row->imm;
}

static inline void decode_target(isa_insn *in, const state *s, const x86_row *row)
{
    if (in->bits & ISA_BIT_PCREL_MEM) {
        in->target = in->addr + in->len + load_signed(s->raw + in->disp_at, 4);
        if (in->x[X86_X_PREFIX] & X86_PREFIX_A32) in->target = (uint32_t)in->target;
    } else if (row->form & X86_FORM_RELATIVE) {
        in->target = in->addr + in->len + load_signed(s->raw + in->imm_at, row->imm);
        if (row->form & X86_FORM_CONDITION) in->cond = s->raw[in->opcode_at] & 15;
    } else if (row->form & X86_FORM_INT && s->raw[in->imm_at] == 0x80) {
        in->flow = ISA_FLOW_SYSCALL;
    }
}

/* The form is known: find its row. */
static inline isa_result decode_form(isa_insn *in, state *s, unsigned opcode, unsigned modrm,
                                     size_t avail)
{
    const x86_opcode *o = &x86_opcodes[s->map][opcode];
    unsigned context = x86_context_maps[o->context & X86_OPCODE_CONTEXT][s->context];
    unsigned number = x86_cells[o->cells + context * o->stride + x86_modrm_maps[o->modrm][modrm]];
    const x86_row *row = &x86_rows[number];
    if (__builtin_expect(number <= X86_ROW_UNKNOWN || s->invalid, 0))
        return undecoded(in, s, s->invalid ? X86_ROW_INVALID : number, avail);
    if (row->form & X86_FORM_VSIB) decode_vector_index(in, s);
    decode_immediate(in, s, row);
    if (__builtin_expect(s->at > avail, 0)) return ISA_TRUNCATED;
    if (__builtin_expect(s->at > ISA_MAX_INSN || (row->check && !fields_allowed(in, row)), 0))
        return undecoded(in, s, X86_ROW_INVALID, avail);
    in->len = s->at;
    in->op = row->op;
    in->row = number;
    in->flow = row->flow;
    in->bits |= row->bits;
    decode_target(in, s, row);
    return ISA_OK;
}

/* From the opcode on: `s` holds map, context and extensions. */
static isa_result decode_opcode(isa_insn *in, state *s, size_t avail)
{
    unsigned opcode = s->raw[s->at], modrm = 0;
    in->opcode_at = s->at++;
    if (x86_opcodes[s->map][opcode].context & X86_OPCODE_MODRM) {
        modrm = s->raw[s->at];
        decode_modrm(in, s);
    } else {
        in->x[X86_X_RM] = (opcode & 7) | s->b;
    }
    return decode_form(in, s, opcode, modrm, avail);
}

/* 3DNow! puts its opcode where an immediate would stand. */
static isa_result decode_3dnow(isa_insn *in, state *s, size_t avail)
{
    unsigned modrm = s->raw[++s->at];
    s->map = X86_MAP_3DNOW;
    if (s->context & X86_CTX_LOCK) s->invalid = true;
    s->context = 0;
    decode_modrm(in, s);
    in->opcode_at = s->at++;
    return decode_form(in, s, s->raw[in->opcode_at], modrm, avail);
}

/* A form of known shape that no table describes; `tail` bytes follow the operands. */
static isa_result decode_foreign(isa_insn *in, state *s, unsigned tail, size_t avail)
{
    in->opcode_at = s->at++;
    decode_modrm(in, s);
    s->at += tail;
    return undecoded(in, s, s->invalid ? X86_ROW_INVALID : X86_ROW_UNKNOWN, avail);
}

static isa_result decode_vex(isa_insn *in, state *s, unsigned class, size_t avail)
{
    const uint8_t *p = s->raw + s->at;
    unsigned last = class == B_VEX2 ? p[1] : p[2];
    s->r = ~p[1] >> 4 & 8;
    s->v = ~last >> 3 & 15;
    s->context = (last & 3) | (last & 4) << 1;
    s->vector = (last & 4) << 3;
    s->at += class == B_VEX2 ? 2 : 3;
    s->map = X86_MAP_VEX + 1;
    in->x[X86_X_PREFIX] |= X86_PREFIX_VEX;
    if (class != B_VEX2) {
        unsigned map = p[1] & 31;
        s->x = ~p[1] >> 3 & 8;
        s->b = ~p[1] >> 2 & 8;
        s->context |= last >> 5 & 4;
        if (class == B_XOP) s->map = map <= 10 ? X86_MAP_XOP + map - 8 : X86_MAPS;
        else s->map = map >= 1 && map <= 3 ? X86_MAP_VEX + map : X86_MAPS;
        if (last & 0x80) in->x[X86_X_PREFIX] |= X86_PREFIX_W;
        /* Maps 5 and 7 came later; the second has 32-bit immediates. */
        if (s->map == X86_MAPS && class == B_VEX3 && (map == 5 || map == 7))
            return decode_foreign(in, s, map == 7 ? 4 : 0, avail);
    }
    in->x[X86_X_V] = s->v;
    in->x[X86_X_VECTOR] = s->vector;
    if (s->map == X86_MAPS) { s->at++; return undecoded(in, s, X86_ROW_INVALID, avail); }
    return decode_opcode(in, s, avail);
}

static isa_result decode_evex(isa_insn *in, state *s, size_t avail)
{
    const uint8_t *p = s->raw + s->at;
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
    s->at += 4;
    s->map = X86_MAP_EVEX + map;
    if (p1 & 0x80) in->x[X86_X_PREFIX] |= X86_PREFIX_W;
    in->x[X86_X_PREFIX] |= X86_PREFIX_EVEX;
    in->x[X86_X_V] = s->v;
    in->x[X86_X_VECTOR] = s->vector;
    if (map == 0) { s->at++; return undecoded(in, s, X86_ROW_INVALID, avail); }
    if (p0 & 8 || !(p1 & 4) || map == 4 || map == 7) /* APX, or not defined yet */
        return decode_foreign(in, s, map == 7 && s->raw[s->at] == 0xf8 ? 4 : 0, avail);
    return decode_opcode(in, s, avail);
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
static isa_result decode_rex2(isa_insn *in, state *s, size_t avail)
{
    unsigned p = s->raw[s->at + 1], opcode = s->raw[s->at + 2];
    s->at += 2;
    s->map = X86_MAP_LEGACY + (p >> 7);
    s->r = (p << 1 & 8) | (p >> 2 & 16);
    s->x = (p << 2 & 8) | (p >> 1 & 16);
    s->b = (p << 3 & 8) | (p & 16);
    if (p & 8) s->context |= X86_CTX_W;
    if (s->b) s->context |= X86_CTX_B;
    in->x[X86_X_PREFIX] |= X86_PREFIX_REX2 | (p & 8 ? X86_PREFIX_W : 0);
    if (rex2_barred(p >> 7, opcode) || s->invalid) {
        in->opcode_at = s->at;
        s->at += p >> 7 || opcode != 0xa1 ? 1 : 9; /* jmpabs carries an address */
        return undecoded(in, s, X86_ROW_INVALID, avail);
    }
    return decode_opcode(in, s, avail);
}

static isa_result decode_legacy(isa_insn *in, state *s, unsigned rex, size_t avail)
{
    s->r = rex << 1 & 8;
    s->x = rex << 2 & 8;
    s->b = rex << 3 & 8;
    s->context |= (rex & 8) | (rex & 1) << 6;
    if (!rex) in->x[X86_X_PREFIX] |= X86_PREFIX_NOREX;
    if (rex & 8) in->x[X86_X_PREFIX] |= X86_PREFIX_W;
    if (s->raw[s->at] == 0x0f) {
        unsigned next = s->raw[++s->at];
        s->map = X86_MAP_LEGACY + 1;
        if (next == 0x0f) return decode_3dnow(in, s, avail);
        if (next == 0x38 || next == 0x3a) {
            s->map = next == 0x38 ? X86_MAP_LEGACY + 2 : X86_MAP_LEGACY + 3;
            s->at++;
        }
    }
    return decode_opcode(in, s, avail);
}

static isa_result decode_prefixes(isa_insn *in, state *s, size_t avail)
{
    unsigned rex = 0;
    for (; s->at < ISA_MAX_INSN; s->at++) {
        unsigned byte = s->raw[s->at], class = byte_classes[byte];
        if (class == B_REX) { rex = byte; continue; }
        /* VEX and its kin allow no REX, operand size, repeat or lock prefix before them. */
        if (class >= B_VEX2)
            s->invalid = rex || s->context & (X86_CTX_66 | X86_CTX_F2 | X86_CTX_F3 | X86_CTX_LOCK);
        switch (class) {
        case B_66: s->context |= X86_CTX_66; break;
        case B_67: s->context |= X86_CTX_A32; in->x[X86_X_PREFIX] |= X86_PREFIX_A32; break;
        case B_F3: s->context = (s->context & ~X86_CTX_F2) | X86_CTX_F3; break;
        case B_F2: s->context = (s->context & ~X86_CTX_F3) | X86_CTX_F2; break;
        case B_LOCK: s->context |= X86_CTX_LOCK; break;
        case B_FS: in->x[X86_X_SEGMENT] = X86_SEG_FS; break;
        case B_GS: in->x[X86_X_SEGMENT] = X86_SEG_GS; break;
        case B_SEGMENT: break;
        case B_VEX2: case B_VEX3: return decode_vex(in, s, class, avail);
        case B_EVEX: return decode_evex(in, s, avail);
        case B_XOP:
            if ((s->raw[s->at + 1] & 31) >= 8) return decode_vex(in, s, class, avail);
            s->invalid = false;
            return decode_legacy(in, s, rex, avail);
        case B_REX2:
            s->invalid = rex != 0;
            return decode_rex2(in, s, avail);
        default: return decode_legacy(in, s, rex, avail);
        }
        rex = 0; /* only a REX right before the opcode counts */
    }
    s->at = ISA_MAX_INSN + 1;
    return undecoded(in, s, X86_ROW_INVALID, avail);
}

/* Bytes past the end are no part of the instruction. */
static inline void keep_bytes(isa_insn *in, const state *s)
{
    static const uint8_t ones[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t raw[2], mask[2];
    memcpy(raw, s->raw, 16);
    memcpy(mask, ones + 16 - in->len, 16);
    raw[0] &= mask[0];
    raw[1] &= mask[1];
    memcpy(in->raw, raw, 16);
}

isa_result x86_decode(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out)
{
    state s;
    memset(&s, 0, sizeof s);
    memset(out, 0, sizeof *out);
    out->addr = addr;
    out->x[X86_X_BASE] = out->x[X86_X_INDEX] = X86_NONE;
    if (__builtin_expect(avail >= 16, 1)) memcpy(s.raw, bytes, 16);
    else memcpy(s.raw, bytes, avail);
    isa_result result = decode_prefixes(out, &s, avail);
    keep_bytes(out, &s);
    return result;
}
