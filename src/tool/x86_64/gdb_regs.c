/* Registers as gdb numbers them: in the order of the description that it is sent, which the table below is. */
#include "isa/x86_64/xstate.h"
#include "tool/gdb.h"
#include INL_ARCH_HEADER(run, abi)

#include <stdio.h>
#include <string.h>

enum kind { GENERAL, COUNTER, FLAGS, FIXED, X87, X87_WORD, XMM, MXCSR_WORD, CALL, TLS_BASE, GS_BASE, YMM_HIGH };
enum { X87_BIT = 1, SSE_BIT = 2, AVX_BIT = 4 };
enum { AT_X87 = 32, AT_XMM = 160, AT_MXCSR = 24, STATE_BV = 512, NO_MXCSR = 0x1f80, NO_CONTROL = 0x37f };
enum { CS = 0x33, SS = 0x2b };

typedef struct reg {
    const char *name, *type;
    uint8_t kind, bytes;
    uint16_t which; /* number, value of a fixed one, or offset */
} reg;
typedef struct feature {
    const char *name, *types;
    const reg *regs;
    unsigned count, needs; /* parts of the vector state */
} feature;

#define R64(name, n)                                                                                                   \
    {                                                                                                                  \
#name, "int64", GENERAL, 8, n                                                                                  \
    }
#define EIGHT(M) M(0), M(1), M(2), M(3), M(4), M(5), M(6), M(7)
#define MORE(M)  M(8), M(9), M(10), M(11), M(12), M(13), M(14), M(15)
#define ST(n)                                                                                                          \
    {                                                                                                                  \
        "st" #n, "i387_ext", X87, 10, n                                                                                \
    }
#define XMM_(n)                                                                                                        \
    {                                                                                                                  \
        "xmm" #n, "vec128", XMM, 16, n                                                                                 \
    }
#define YMMH(n)                                                                                                        \
    {                                                                                                                  \
        "ymm" #n "h", "uint128", YMM_HIGH, 16, n                                                                       \
    }

/* x87's words: where FXSAVE has them, by the low byte; how many bytes, by the high one; 0xff: as below. */
enum { TAGS = 0xff };
static const reg core[] = {
    R64(rax, RUN_RAX),
    R64(rbx, RUN_RBX),
    R64(rcx, RUN_RCX),
    R64(rdx, RUN_RDX),
    R64(rsi, RUN_RSI),
    R64(rdi, RUN_RDI),
    {"rbp", "data_ptr", GENERAL, 8, RUN_RBP},
    {"rsp", "data_ptr", GENERAL, 8, RUN_RSP},
    R64(r8, 8),
    R64(r9, 9),
    R64(r10, 10),
    R64(r11, 11),
    R64(r12, 12),
    R64(r13, 13),
    R64(r14, 14),
    R64(r15, 15),
    {"rip", "code_ptr", COUNTER, 8, 0},
    {"eflags", "i386_eflags", FLAGS, 4, 0},
    {"cs", "int32", FIXED, 4, CS},
    {"ss", "int32", FIXED, 4, SS},
    {"ds", "int32", FIXED, 4, 0},
    {"es", "int32", FIXED, 4, 0},
    {"fs", "int32", FIXED, 4, 0},
    {"gs", "int32", FIXED, 4, 0},
    EIGHT(ST),
    {"fctrl", "int", X87_WORD, 4, 0x200},
    {"fstat", "int", X87_WORD, 4, 0x202},
    {"ftag", "int", X87_WORD, 4, TAGS},
    {"fiseg", "int", X87_WORD, 4, 0x20c},
    {"fioff", "int", X87_WORD, 4, 0x408},
    {"foseg", "int", X87_WORD, 4, 0x214},
    {"fooff", "int", X87_WORD, 4, 0x410},
    {"fop", "int", X87_WORD, 4, 0x206},
};
static const reg sse[] = {EIGHT(XMM_), MORE(XMM_), {"mxcsr", "i386_mxcsr", MXCSR_WORD, 4, 0}};
static const reg linux_call[] = {{"orig_rax", "int64", CALL, 8, 0}};
static const reg segments[] = {{"fs_base", "int64", TLS_BASE, 8, 0}, {"gs_base", "int64", GS_BASE, 8, 0}};
static const reg avx[] = {EIGHT(YMMH), MORE(YMMH)};

#define FLAG(name, at)      "<field name=\"" name "\" start=\"" at "\" end=\"" at "\"/>"
#define VECTOR(id, type, n) "<vector id=\"" id "\" type=\"" type "\" count=\"" n "\"/>"
#define FIELD(name, type)   "<field name=\"" name "\" type=\"" type "\"/>"
static const char flag_types[] = "<flags id=\"i386_eflags\" size=\"4\">" FLAG("CF", "0") FLAG("", "1") FLAG("PF", "2")
    FLAG("AF", "4") FLAG("ZF", "6") FLAG("SF", "7") FLAG("TF", "8") FLAG("IF", "9") FLAG("DF", "10") FLAG("OF", "11")
        FLAG("NT", "14") FLAG("RF", "16") FLAG("VM", "17") FLAG("AC", "18") FLAG("VIF", "19") FLAG("VIP", "20")
            FLAG("ID", "21") "</flags>";
static const char vector_types[] = VECTOR("v4f", "ieee_single", "4") VECTOR("v2d", "ieee_double", "2")
    VECTOR("v16i8", "int8", "16") VECTOR("v8i16", "int16", "8") VECTOR("v4i32", "int32", "4")
        VECTOR("v2i64", "int64", "2") "<union id=\"vec128\">" FIELD("v4_float", "v4f") FIELD("v2_double", "v2d")
            FIELD("v16_int8", "v16i8") FIELD("v8_int16", "v8i16") FIELD("v4_int32", "v4i32") FIELD("v2_int64", "v2i64")
                FIELD("uint128", "uint128") "</union><flags id=\"i386_mxcsr\" size=\"4\">" FLAG("IE", "0")
                    FLAG("DE", "1") FLAG("ZE", "2") FLAG("OE", "3") FLAG("UE", "4") FLAG("PE", "5") FLAG("DAZ", "6")
                        FLAG("IM", "7") FLAG("DM", "8") FLAG("ZM", "9") FLAG("OM", "10") FLAG("UM", "11")
                            FLAG("PM", "12") FLAG("FZ", "15") "</flags>";

#define ALL(list) list, sizeof list / sizeof *list
static const feature features[] = {
    {"core", flag_types, ALL(core), 0}, {"sse", vector_types, ALL(sse), 0}, {"linux", "", ALL(linux_call), 0},
    {"segments", "", ALL(segments), 0}, {"avx", "", ALL(avx), AVX_BIT},
};
enum { FEATURES = sizeof features / sizeof *features };

static bool is_there(const feature *f)
{
    return !f->needs || (x86_xstate_here()->xsave && (x86_xstate_here()->features & f->needs) == f->needs);
}

static const reg *find(unsigned n)
{
    for (const feature *f = features; f < features + FEATURES; f++) {
        if (!is_there(f)) continue;
        if (n < f->count) return &f->regs[n];
        n -= f->count;
    }
    return NULL;
}

unsigned gdb_register_count(void)
{
    unsigned n = 0;
    for (const feature *f = features; f < features + FEATURES; f++) n += is_there(f) ? f->count : 0;
    return n;
}

size_t gdb_register_size(unsigned n)
{
    const reg *r = find(n);
    return r ? r->bytes : 0;
}

/* --- the vector state, in XSAVE's standard form --- */

static uint64_t *state_bits(const run_thread *t) { return (uint64_t *)((uint8_t *)t->frame.vector_area + STATE_BV); }

static bool is_initial(const run_thread *t, unsigned bit) { return !t->frame.no_xsave && !(*state_bits(t) & bit); }

/* The part is in use from now on; what it was as long as it was not stands in the area. */
static void use(run_thread *t, unsigned bit)
{
    uint8_t *area = t->frame.vector_area;
    const uint16_t control = NO_CONTROL;
    if (!is_initial(t, bit)) return;
    if (bit == X87_BIT) {
        memset(area, 0, AT_MXCSR);
        memset(area + AT_X87, 0, AT_XMM - AT_X87);
        memcpy(area, &control, sizeof control);
    } else if (bit == SSE_BIT) {
        memset(area + AT_XMM, 0, 256);
    } else {
        memset(area + x86_xstate_here()->part[2].offset, 0, 256);
    }
    *state_bits(t) |= bit;
}

/* Two bits a register: 3 where it is empty; FXSAVE has one, and does not tell zero from the rest. */
static uint16_t full_tags(uint8_t used)
{
    uint16_t tags = 0;
    for (unsigned i = 0; i < 8; i++) tags |= (uint16_t)((used >> i & 1 ? 0 : 3) << 2 * i);
    return tags;
}

static void get_x87_word(const uint8_t *area, const reg *r, uint8_t *out)
{
    memset(out, 0, 4);
    if (r->which != TAGS) {
        memcpy(out, area + (r->which & 0xff), r->which >> 8);
        return;
    }
    uint16_t tags = full_tags(area[4]);
    memcpy(out, &tags, sizeof tags);
}

static void set_x87_word(uint8_t *area, const reg *r, const uint8_t *in)
{
    if (r->which != TAGS) {
        memcpy(area + (r->which & 0xff), in, r->which >> 8);
        return;
    }
    area[4] = 0;
    for (unsigned i = 0; i < 8; i++) area[4] |= (uint8_t)(((in[i / 4] >> 2 * (i % 4) & 3) != 3) << i);
}

static unsigned part_of(const reg *r)
{
    return r->kind == XMM ? SSE_BIT : r->kind == YMM_HIGH ? AVX_BIT : r->kind == MXCSR_WORD ? 0 : X87_BIT;
}

static uint8_t *place_of(const run_thread *t, const reg *r)
{
    uint8_t *area = t->frame.vector_area;
    if (r->kind == X87) return area + AT_X87 + 16 * r->which;
    if (r->kind == XMM) return area + AT_XMM + 16 * r->which;
    if (r->kind == MXCSR_WORD) return area + AT_MXCSR;
    return area + x86_xstate_here()->part[2].offset + 16 * r->which;
}

static void get_vector(const run_thread *t, const reg *r, uint8_t *out)
{
    const uint16_t control = NO_CONTROL, empty = 0xffff;
    unsigned part = part_of(r);
    if (part && is_initial(t, part)) {
        memset(out, 0, r->bytes);
        if (r->kind == X87_WORD && r->which == 0x200) memcpy(out, &control, sizeof control);
        if (r->kind == X87_WORD && r->which == TAGS) memcpy(out, &empty, sizeof empty);
    } else if (r->kind == X87_WORD) {
        get_x87_word(t->frame.vector_area, r, out);
    } else {
        memcpy(out, place_of(t, r), r->bytes);
    }
}

static void set_vector(run_thread *t, const reg *r, const uint8_t *in)
{
    uint8_t now[16];
    get_vector(t, r, now);
    if (!memcmp(now, in, r->bytes)) return;
    if (part_of(r)) use(t, part_of(r));
    if (r->kind == X87_WORD) set_x87_word(t->frame.vector_area, r, in);
    else memcpy(place_of(t, r), in, r->bytes);
}

/* --- one register --- */

/* NULL: it is fixed, or a part of the vector state. */
static uint64_t *word_of(weave_context *c, const reg *r)
{
    switch (r->kind) {
    case GENERAL: return &c->gpr[r->which];
    case COUNTER: return &c->pc;
    case FLAGS: return &c->flags;
    case TLS_BASE: return &c->tls_base;
    case GS_BASE: return &c->gs_base;
    default: return NULL;
    }
}

size_t gdb_register_get(const run_thread *t, unsigned n, uint8_t out[16])
{
    const reg *r = find(n);
    if (!r) return 0;
    weave_context c = t->ctx;
    const uint64_t *word = word_of(&c, r), fixed = r->kind == CALL ? ~0ull : r->which;
    if (word) memcpy(out, word, r->bytes);
    else if (r->kind == FIXED || r->kind == CALL) memcpy(out, &fixed, r->bytes);
    else get_vector(t, r, out);
    return r->bytes;
}

size_t gdb_register_set(run_thread *t, unsigned n, const uint8_t in[16])
{
    const reg *r = find(n);
    if (!r) return 0;
    uint64_t *word = word_of(&t->ctx, r);
    if (word) memcpy(word, in, r->bytes);
    else if (r->kind != FIXED && r->kind != CALL) set_vector(t, r, in);
    return r->bytes;
}

/* --- the description --- */

typedef struct text {
    char *out;
    size_t size, at;
} text;

static void put(text *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(text *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(o->at < o->size ? o->out + o->at : NULL, o->at < o->size ? o->size - o->at : 0, fmt, args);
    va_end(args);
    if (n > 0) o->at += (size_t)n;
}

size_t gdb_register_text(char *out, size_t size)
{
    text o = {out, size, 0};
    put(&o, "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
            "<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>");
    for (const feature *f = features; f < features + FEATURES; f++) {
        if (!is_there(f)) continue;
        put(&o, "<feature name=\"org.gnu.gdb.i386.%s\">%s", f->name, f->types);
        for (const reg *r = f->regs; r < f->regs + f->count; r++)
            put(&o, "<reg name=\"%s\" bitsize=\"%u\" type=\"%s\"/>", r->name, r->bytes * 8u, r->type);
        put(&o, "</feature>");
    }
    put(&o, "</target>");
    return o.at;
}
