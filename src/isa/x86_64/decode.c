/* Bytes to isa_insn: length, identity, flow, the register numbers of all fields.
 *
 * This is the JIT's hot path, and code is unpredictable input: what costs time is not the work but
 * mispredicted branches. So the common shape (at most one of 66, F2, F3, then a REX, then perhaps
 * 0F) is recognised by arithmetic, and decode_form() takes ModRM byte, SIB, displacement, immediate
 * and target in straight line, with sizes from tables and masks where something is absent; fields
 * that lie side by side in isa_insn are put together in registers and stored at once. When
 * anything is out of the ordinary, decoding starts again in decode_any(): a plain prefix loop,
 * then the same decode_form(), then the checks that only unusual forms need.
 *
 * Memory: the bytes are read in place when 40 of them may be read, which nothing that is looked at
 * before the length is known can pass; shorter input is copied to a zero-padded buffer. Whether the
 * instruction fits into what there is is asked once, at the end.
 *
 * What the tables do not know still gets a length where the encoding space fixes one: the 0F38 and
 * 0F3A maps, VEX, XOP, EVEX (APX's promoted forms among them) all have a ModRM byte and an
 * immediate whose size is a property of map and opcode. None of these spaces holds a branch, so
 * such an instruction may be copied. REX2 is decoded like REX, with five-bit registers.
 */
#include <string.h>
#include "isa/x86_64/tables.h"

/* clang-format off */
enum byte_class { B_OPCODE, B_REX, B_66, B_67, B_F3, B_F2, B_LOCK, B_SEGMENT, B_FS, B_GS, B_0F,
                  B_VEX2, B_VEX3, B_EVEX, B_XOP, B_REX2 };

static const uint8_t byte_classes[256] = {
    [0x40] = B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX,
    B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX, B_REX,
    [0x0f] = B_0F, [0x26] = B_SEGMENT, [0x2e] = B_SEGMENT, [0x36] = B_SEGMENT, [0x3e] = B_SEGMENT,
    [0x64] = B_FS, [0x65] = B_GS, [0x66] = B_66, [0x67] = B_67, [0x62] = B_EVEX, [0x8f] = B_XOP,
    [0xc4] = B_VEX3, [0xc5] = B_VEX2, [0xd5] = B_REX2, [0xf0] = B_LOCK, [0xf2] = B_F2, [0xf3] = B_F3,
};
/* clang-format on */

/* What a byte means as the only legacy prefix. */
static const uint8_t lone_prefix[256] = {[0x66] = X86_CTX_66, [0xf3] = X86_CTX_F3, [0xf2] = X86_CTX_F2};

/* Bytes that in the opcode's place, without or with 0F before them, are no opcodes of the first two
 * maps. */
static const uint8_t
    no_opcode[2][256] = {{[0x26] = 1, [0x2e] = 1, [0x36] = 1, [0x3e] = 1, [0x40] = 1, 1,          1,          1,
                          1,          1,          1,          1,          1,          1,          1,          1,
                          1,          1,          1,          1,          [0x62] = 1, [0x64] = 1, 1,          1,
                          1,          [0x8f] = 1, [0xc4] = 1, 1,          [0xd5] = 1, [0xf0] = 1, [0xf2] = 1, 1},
                         {[0x0f] = 1, [0x38] = 1, [0x3a] = 1}};

/* 15 bytes of prefixes, EVEX, opcode, ModRM, SIB, displacement, and 8 bytes read from there. */
enum { READABLE = 40 };

/* What is known before the opcode. */
typedef struct state {
    const uint8_t *p; /* READABLE bytes */
    size_t avail;     /* that many of them are the caller's */
    uint64_t addr;
    unsigned at;      /* next byte */
    unsigned context; /* X86_CTX_* or the vector context */
    unsigned map;
    unsigned x, sib;                     /* added to a SIB's index; 0 or SIB_EXTENDED with it */
    uint64_t extension;                  /* what the prefixes add to the other register numbers, as in NUMBERS */
    unsigned v_index;                    /* EVEX: V' adds to a vector index */
    unsigned v, vector, prefix, segment; /* isa_insn.x */
    bool invalid;                        /* prefixes that fault whatever follows */
} state;

/* All ones if `yes`. Written out because compilers turn conditional expressions into branches. */
static inline unsigned mask_if(unsigned yes) { return 0u - (yes != 0); }

/* What a ModRM byte says about the bytes after it: bytes of displacement, and ... Entries from 256
 * on are for opcodes without one, by the opcode's low bits. */
enum { M_SIB = 8, M_RIP = 16, M_MEM = 32, M_NO_BASE = 64 /* SIB base 5 means none */, NO_MODRM = 256 };
#define ROW(f, sib, five) f, f, f, f, sib, five, f, f
#define ROWS8(f, sib, five)                                                                                            \
    ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five), ROW(f, sib, five),  \
        ROW(f, sib, five), ROW(f, sib, five)
static const uint8_t modrm_forms[NO_MODRM + 8] = {
    ROWS8(M_MEM, M_MEM | M_SIB | M_NO_BASE, M_MEM | M_RIP | 4),
    ROWS8(M_MEM | 1, M_MEM | M_SIB | 1, M_MEM | 1),
    ROWS8(M_MEM | 4, M_MEM | M_SIB | 4, M_MEM | 4),
};

/* isa_insn.x[1] to x[8] as one number. */
enum { AT_SEGMENT = 0, AT_REG = 8, AT_RM = 16, AT_V = 24, AT_BASE = 32, AT_INDEX = 40, AT_SCALE = 48, AT_VECTOR = 56 };
#define NUMBERS(reg, rm, base, index)                                                                                  \
    ((uint64_t)(reg) << AT_REG | (uint64_t)(rm) << AT_RM | (uint64_t)(base) << AT_BASE | (uint64_t)(index) << AT_INDEX)

/* The register numbers in a ModRM byte; a SIB's are added to the 0 that stands in their place. */
#define MEM(g, m)     NUMBERS(g, m, m, X86_NONE)
#define MEMS(g, five) MEM(g, 0), MEM(g, 1), MEM(g, 2), MEM(g, 3), NUMBERS(g, 4, 0, 0), five, MEM(g, 6), MEM(g, 7)
#define MOD0(g)       MEMS(g, NUMBERS(g, 5, X86_NONE, X86_NONE))
#define MOD1(g)       MEMS(g, MEM(g, 5))
#define REG(g, m)     NUMBERS(g, m, X86_NONE, X86_NONE)
#define REGS(g)       REG(g, 0), REG(g, 1), REG(g, 2), REG(g, 3), REG(g, 4), REG(g, 5), REG(g, 6), REG(g, 7)
#define EACH(f)       f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
static const uint64_t modrm_numbers[NO_MODRM + 8] = {EACH(MOD0), EACH(MOD1), EACH(MOD1), EACH(REGS), REGS(0)};

/* The same of a SIB byte, from AT_BASE on, four times: from 256 on for indices with an extension bit (then 4 is one
 * too), from 512 on for mod 0, where base 5 means none. */
enum { SIB_EXTENDED = 256, SIB_MOD0 = 512 };
#define SIB(i, s, b) ((NUMBERS(0, 0, b, i) | (uint64_t)(s) << AT_SCALE) >> AT_BASE)
#define SIBS(i, s, five)                                                                                               \
    SIB(i, s, 0), SIB(i, s, 1), SIB(i, s, 2), SIB(i, s, 3), SIB(i, s, 4), SIB(i, s, five), SIB(i, s, 6), SIB(i, s, 7)
#define SCALED(four, s, five)                                                                                          \
    SIBS(0, s, five), SIBS(1, s, five), SIBS(2, s, five), SIBS(3, s, five), SIBS(four, s, five), SIBS(5, s, five),     \
        SIBS(6, s, five), SIBS(7, s, five)
#define ALL_SIBS(four, five) SCALED(four, 0, five), SCALED(four, 1, five), SCALED(four, 2, five), SCALED(four, 3, five)
static const uint32_t sib_numbers[1024] = {ALL_SIBS(X86_NONE, 5), ALL_SIBS(4, 5), ALL_SIBS(X86_NONE, X86_NONE),
                                           ALL_SIBS(4, X86_NONE)};

/* What a REX prefix means; the first entry is for none. */
/* clang-format off */
typedef struct rex_meaning { uint64_t extension; uint8_t context, prefix, index; uint16_t sib; } rex_meaning;
#define REX(w, r, x, b) {NUMBERS(8 * (r), 8 * (b), 8 * (b), 0), ((w) ? X86_CTX_W : 0) | ((b) ? X86_CTX_B : 0), \
                         (w) ? X86_PREFIX_W : 0, 8 * (x), (x) ? SIB_EXTENDED : 0}
#define REXB(w, r, x) REX(w, r, x, 0), REX(w, r, x, 1)
#define REXXB(w, r) REXB(w, r, 0), REXB(w, r, 1)
static const rex_meaning rex_meanings[17] = {
    {0, 0, X86_PREFIX_NOREX, 0, 0}, REXXB(0, 0), REXXB(0, 1), REXXB(1, 0), REXXB(1, 1)};
/* clang-format on */

/* Sign-extended value of `size` bytes (1, 2, 4 or 8). */
static inline int64_t load_signed(const uint8_t *p, unsigned size)
{
    uint64_t v;
    memcpy(&v, p, 8);
    unsigned shift = 0u - 8 * size;
    return (int64_t)(v << (shift & 63)) >> (shift & 63);
}

/* Immediate bytes of an opcode that the tables lack. */
static unsigned unknown_imm(const state *s, unsigned opcode, unsigned modrm)
{
    unsigned wide = (s->context & 3) == 1 ? 2 : 4; /* pp = 66 */
    switch (s->map) {
    case X86_MAP_LEGACY + 3:
    case X86_MAP_VEX + 3:
    case X86_MAP_EVEX + 3:
    case X86_MAP_XOP: return 1;
    case X86_MAP_XOP + 2: return 4;
    case X86_MAP_LEGACY + 1:
    case X86_MAP_VEX + 1:
    case X86_MAP_EVEX + 1:
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
    static const uint8_t ones[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
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
    bool too_long = at > ISA_MAX_INSN;
    if (too_long) {
        at = ISA_MAX_INSN;
        row = X86_ROW_INVALID;
    }
    in->row = row;
    in->op = x86_rows[row].op;
    in->len = at;
    keep_bytes(in, s->p);
    if (row == X86_ROW_INVALID) {
        in->flow = ISA_FLOW_TRAP;
        in->bits = too_long ? ISA_BIT_PRIV : 0; /* another fault than that of what is no instruction */
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

/* ModRM byte, SIB and displacement, and the fields from opcode_at on. `w` are the bytes from the
 * ModRM byte's place on, `opcode` is for forms without one. Returns the offset behind. */
typedef struct operand {
    unsigned end;
    unsigned form;
} operand;
static inline __attribute__((always_inline)) operand decode_operand(isa_insn *in, const state *s, uint64_t w,
                                                                    unsigned has, unsigned opcode, const x86_row *row)
{
    unsigned present = 0u - has, none = NO_MODRM | (opcode & 7), which = none ^ ((none ^ (w & 0xff)) & present);
    unsigned form = modrm_forms[which], sib = w >> 8 & 0xff, has_sib = form >> 3 & 1;
    unsigned no_base = form >> 6 & ((sib & 7) == 5), disp = (form & 7) + 4 * no_base;
    unsigned modrm_at = s->at + 1, disp_at = modrm_at + has + has_sib, end = disp_at + disp;
    unsigned sib_entry = sib + s->sib + (form & M_NO_BASE) * (SIB_MOD0 / M_NO_BASE);
    uint64_t sib_part = (uint64_t)sib_numbers[sib_entry] << AT_BASE | (uint64_t)s->x << AT_INDEX;
    uint64_t numbers = modrm_numbers[which] | (sib_part & (0 - (uint64_t)has_sib)) | s->extension |
                       (uint64_t)s->v << AT_V | (uint64_t)s->vector << AT_VECTOR | s->segment;
    unsigned imm = row->imm & 15;
    uint64_t places = s->at | (modrm_at & present) << 8 | (disp_at & mask_if(disp)) << 16 | (end & mask_if(imm)) << 24 |
                      (uint64_t)disp << 32 | (uint64_t)imm << 40 | (uint64_t)(opcode & row->cond) << 48 |
                      (uint64_t)(s->prefix | (form >> 2 & X86_PREFIX_MEM)) << 56;
    memcpy(&in->opcode_at, &places, sizeof places);
    memcpy(&in->x[X86_X_SEGMENT], &numbers, sizeof numbers);
    return (operand){end, form};
}

/* Identity, length and target: `end` is the offset behind the operand. */
static inline __attribute__((always_inline)) void decode_identity(isa_insn *in, const state *s, const x86_row *row,
                                                                  unsigned number, operand o)
{
    unsigned pcrel = o.form >> 4 & 1;
    uint64_t head, len = o.end + (row->imm & 15);
    memcpy(&head, row, sizeof head);
    head = (head & 0xffffff000000ffff) | (uint64_t)number << 16 | len << 32 |
           (uint64_t)pcrel << 48; /* ISA_BIT_PCREL_MEM */
    memcpy(&in->op, &head, sizeof head);
    in->addr = s->addr;
    /* Of a branch or of a PC-relative operand; no instruction has both. */
    unsigned size = row->imm >> 4 | pcrel << 2;
    uint64_t target = s->addr + len + (uint64_t)load_signed(s->p + o.end - 4 * pcrel, size);
    in->target = target & (0 - (uint64_t)(size != 0));
}
_Static_assert(ISA_BIT_PCREL_MEM == 1 && X86_PREFIX_MEM == M_MEM >> 2, "bits move by shifts");
_Static_assert(offsetof(isa_insn, bits) == offsetof(isa_insn, op) + 6 && offsetof(x86_row, bits) == 6 &&
                   offsetof(isa_insn, flow) == offsetof(isa_insn, op) + 5 && offsetof(x86_row, flow) == 5 &&
                   offsetof(isa_insn, len) == offsetof(isa_insn, op) + 4 &&
                   offsetof(isa_insn, row) == offsetof(isa_insn, op) + 2,
               "stored at once");
_Static_assert(offsetof(isa_insn, x) == offsetof(isa_insn, opcode_at) + 7 &&
                   offsetof(isa_insn, cond) == offsetof(isa_insn, opcode_at) + 6 &&
                   offsetof(isa_insn, imm_len) == offsetof(isa_insn, opcode_at) + 5,
               "stored at once");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are put together as numbers");

/* What only unusual forms need: number is the row's, `at` the offset behind the instruction. */
static isa_result decode_rest(isa_insn *in, const state *s, unsigned number, unsigned at)
{
    const x86_row *row = &x86_rows[number];
    if (s->invalid) number = X86_ROW_INVALID;
    if (number <= X86_ROW_UNKNOWN) return undecoded(in, s, at, number);
    if (at > ISA_MAX_INSN || at > s->avail) return undecoded(in, s, at, X86_ROW_INVALID);
    if (s->prefix & X86_PREFIX_A32 && in->bits & ISA_BIT_PCREL_MEM) in->target = (uint32_t)in->target;
    if (row->form & X86_FORM_VSIB) { /* the index may be number 4, and has a fifth bit */
        if (in->x[X86_X_INDEX] == X86_NONE) in->x[X86_X_INDEX] = 4;
        in->x[X86_X_INDEX] |= s->v_index;
        in->x[X86_X_V] &= 15;
    }
    if (row->form & X86_FORM_MOFFS) { /* taken for an immediate so far */
        in->disp_at = in->imm_at;
        in->disp_len = in->imm_len;
        in->imm_at = in->imm_len = 0;
    }
    if (row->form & X86_FORM_INT && s->p[in->imm_at] == 0x80) in->flow = ISA_FLOW_SYSCALL;
    if (row->check && !fields_allowed(in, row)) return undecoded(in, s, at, X86_ROW_INVALID);
    return ISA_OK;
}

static isa_result decode_any(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out);

/* From the opcode on: `s` holds map, context and extensions, `w` the bytes. `fast`: there are bytes
 * enough, and the state is not to be handed on. */
static inline __attribute__((always_inline)) isa_result decode_form(isa_insn *in, const state *s, uint64_t w, bool fast)
{
    unsigned opcode = w & 0xff;
    const x86_opcode *o = &x86_opcodes[s->map][opcode];
    unsigned shape = o->context;
    w = w >> 8 | (0xc0 & (0u - (shape >> 14 & 1)));
    unsigned context = x86_context_maps[shape & X86_OPCODE_CONTEXT][s->context];
    unsigned number = x86_cells[o->cells + (context << o->shift) + x86_modrm_maps[o->modrm][w & 0xff]];
    const x86_row *row = &x86_rows[number];
    operand tail = decode_operand(in, s, w, shape >> 15, opcode, row);
    decode_identity(in, s, row, number, tail);
    if (fast) {
        if (__builtin_expect(row->check != X86_CHECK_NOTHING, 0) &&
            (row->form & X86_FORM_ODD || row->check == X86_CHECK_FORM || !fields_allowed(in, row)))
            return decode_any(s->p, s->avail, s->addr, in);
    } else {
        isa_result result = decode_rest(in, s, number, tail.end + (row->imm & 15));
        if (result != ISA_OK) return result;
    }
    keep_bytes(in, s->p);
    return ISA_OK;
}

static isa_result decode_opcode(isa_insn *in, const state *s)
{
    uint64_t w;
    memcpy(&w, s->p + s->at, 8);
    return decode_form(in, s, w, false);
}

/* 3DNow! puts its opcode where an immediate would stand. */
static isa_result decode_3dnow(isa_insn *in, state *s)
{
    const x86_row *none = &x86_rows[X86_ROW_INVALID];
    uint64_t w;
    memcpy(&w, s->p + s->at + 1, 8);
    operand o = decode_operand(in, s, w, 1, 0, none);
    unsigned opcode_at = o.end++;
    const x86_opcode *entry = &x86_opcodes[X86_MAP_3DNOW][s->p[opcode_at]];
    unsigned number = x86_cells[entry->cells + x86_modrm_maps[entry->modrm][w & 0xff]];
    if (s->context & X86_CTX_LOCK) s->invalid = true;
    decode_identity(in, s, &x86_rows[number], number, (operand){o.end, o.form & ~M_RIP});
    if (o.form & M_RIP) {
        in->bits |= ISA_BIT_PCREL_MEM;
        in->target = s->addr + in->len + (uint64_t)load_signed(s->p + in->disp_at, 4);
    }
    in->opcode_at = opcode_at;
    isa_result result = decode_rest(in, s, number, o.end);
    if (result == ISA_OK) keep_bytes(in, s->p);
    return result;
}

/* A form of known shape that no table describes. */
static isa_result decode_foreign(isa_insn *in, const state *s)
{
    const x86_row *unknown = &x86_rows[X86_ROW_UNKNOWN];
    uint64_t w;
    memcpy(&w, s->p + s->at + 1, 8);
    operand o = decode_operand(in, s, w, 1, 0, unknown);
    decode_identity(in, s, unknown, X86_ROW_UNKNOWN, o);
    return undecoded(in, s, o.end, s->invalid ? X86_ROW_INVALID : X86_ROW_UNKNOWN);
}

static inline void apply_rex(state *s, const rex_meaning *rex)
{
    s->extension = rex->extension;
    s->x = rex->index;
    s->sib = rex->sib;
    s->context |= rex->context;
    s->prefix |= rex->prefix;
}

/* r extends reg; b rm or base or the opcode's own register; x_rm rm when that is a register. */
static inline uint64_t extend(uint64_t r, uint64_t b, uint64_t x_rm)
{
    return r << AT_REG | (b | x_rm) << AT_RM | b << AT_BASE;
}

/* What the two or three bytes of a VEX or XOP prefix at s->at say; returns the map. */
static inline __attribute__((always_inline)) unsigned apply_vex(state *s, bool two_bytes)
{
    const uint8_t *p = s->p + s->at;
    unsigned last = two_bytes ? p[1] : p[2], r = ~p[1] >> 4 & 8, b = 0;
    s->v = ~last >> 3 & 15;
    s->context = (last & 3) | (last & 4) << 1;
    s->vector = (last & 4) << 3;
    s->prefix |= X86_PREFIX_VEX;
    s->at += two_bytes ? 2 : 3;
    if (!two_bytes) {
        s->x = ~p[1] >> 3 & 8;
        s->sib = s->x * (SIB_EXTENDED / 8);
        b = ~p[1] >> 2 & 8;
        s->context |= last >> 5 & 4;
        s->prefix |= last >> 5 & X86_PREFIX_W;
    }
    s->extension = extend(r, b, 0);
    return two_bytes ? 1 : p[1] & 31;
}
_Static_assert(X86_PREFIX_W == 4, "VEX.W, shifted");

static isa_result decode_vex(isa_insn *in, state *s, unsigned class)
{
    unsigned map = apply_vex(s, class == B_VEX2);
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
    s->x = ~p0 >> 3 & 8;
    s->sib = s->x ? SIB_EXTENDED : 0;
    s->extension = extend((~p0 >> 4 & 8) | (~p0 & 0x10), ~p0 >> 2 & 8, s->x << 1);
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
    return row == 4 || row == 7 || row == 10 || row == 14 || (byte_classes[opcode] && byte_classes[opcode] != B_XOP);
}

/* D5 M0 R4 X4 B4 W R3 X3 B3: as REX, with a map bit and fifth register bits. */
static isa_result decode_rex2(isa_insn *in, state *s)
{
    unsigned p = s->p[s->at + 1], opcode = s->p[s->at + 2];
    s->at += 2;
    s->map = X86_MAP_LEGACY + (p >> 7);
    unsigned b = (p << 3 & 8) | (p & 16);
    s->extension = extend((p << 1 & 8) | (p >> 2 & 16), b, 0);
    s->x = (p << 2 & 8) | (p >> 1 & 16);
    s->sib = s->x ? SIB_EXTENDED : 0;
    if (p & 8) s->context |= X86_CTX_W;
    if (b) s->context |= X86_CTX_B;
    s->prefix |= X86_PREFIX_REX2 | (p & 8 ? X86_PREFIX_W : 0);
    if (rex2_barred(p >> 7, opcode) || s->invalid)
        return malformed(in, s, s->at + (p >> 7 || opcode != 0xa1 ? 1 : 9)); /* jmpabs has an address */
    return decode_opcode(in, s);
}

static isa_result decode_legacy(isa_insn *in, state *s, unsigned rex)
{
    apply_rex(s, &rex_meanings[rex ? (rex & 15) + 1 : 0]);
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
        if (class == B_REX) {
            rex = byte;
            continue;
        }
        /* VEX and its kin allow no REX, operand size, repeat or lock prefix before them. */
        if (class >= B_VEX2) s->invalid = rex || s->context & (X86_CTX_66 | X86_CTX_F2 | X86_CTX_F3 | X86_CTX_LOCK);
        switch (class) {
        case B_66: s->context |= X86_CTX_66; break;
        case B_67:
            s->context |= X86_CTX_A32;
            s->prefix |= X86_PREFIX_A32;
            break;
        case B_F3: s->context = (s->context & ~X86_CTX_F2) | X86_CTX_F3; break;
        case B_F2: s->context = (s->context & ~X86_CTX_F3) | X86_CTX_F2; break;
        case B_LOCK: s->context |= X86_CTX_LOCK; break;
        case B_FS: s->segment = X86_SEG_FS; break;
        case B_GS: s->segment = X86_SEG_GS; break;
        case B_SEGMENT: break;
        case B_VEX2:
        case B_VEX3: return decode_vex(in, s, class);
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
static __attribute__((noinline)) isa_result decode_any(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out)
{
    uint8_t padded[READABLE];
    state s = {.p = bytes, .avail = avail, .addr = addr};
    if (avail < sizeof padded) {
        memset(padded, 0, sizeof padded);
        memcpy(padded, bytes, avail);
        s.p = padded;
    }
    isa_result result = decode_prefixes(out, &s);
    if (result == ISA_TRUNCATED) memset(out, 0, sizeof *out);
    return result;
}

/* Off the common path: VEX as the first byte has one of its own. */
static __attribute__((noinline)) isa_result decode_uncommon(const uint8_t *bytes, size_t avail, uint64_t addr,
                                                            isa_insn *out)
{
    state s = {.p = bytes, .avail = avail, .addr = addr};
    uint64_t w;
    if ((bytes[0] & 0xfe) != 0xc4) return decode_any(bytes, avail, addr, out);
    unsigned map = bytes[0] == 0xc5 ? apply_vex(&s, true) : apply_vex(&s, false);
    if (map - 1 > 2) return decode_any(bytes, avail, addr, out);
    s.map = X86_MAP_VEX + map;
    memcpy(&w, bytes + s.at, 8);
    return decode_form(out, &s, w, true);
}

isa_result x86_decode(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out)
{
    uint64_t w; /* shifted as prefixes are taken off */
    if (__builtin_expect(avail < READABLE, 0)) return decode_any(bytes, avail, addr, out);
    memcpy(&w, bytes, 8);
    unsigned context = lone_prefix[w & 0xff], prefixed = 0;
    if (__builtin_expect(context != 0, 0)) { /* in most code rare enough for a branch */
        prefixed = 1;
        w >>= 8;
    }
    unsigned low = (w & 0xff) ^ 0x40, is_rex = low < 16;
    const rex_meaning *rex = &rex_meanings[(low + 1) & (0u - is_rex)];
    w >>= is_rex << 3; /* a shift by 0 or 8, where compilers would turn a selection into a jump */
    unsigned escape = (w & 0xff) == 0x0f;
    w >>= escape << 3;
    if (__builtin_expect(no_opcode[escape][w & 0xff], 0)) return decode_uncommon(bytes, avail, addr, out);
    state s = {.p = bytes,
               .avail = avail,
               .addr = addr,
               .at = prefixed + is_rex + escape,
               .context = context,
               .map = X86_MAP_LEGACY + escape};
    apply_rex(&s, rex);
    return decode_form(out, &s, w, true);
}
