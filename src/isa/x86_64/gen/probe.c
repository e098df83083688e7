/* Synthesises one form's bytes and asks Zydis. */
#include <string.h>
#include "gen.h"

static ZydisDecoder decoder;

void probe_init(void) { ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

bool form_is_evex(const form *f) { return f->map > X86_MAP_EVEX; }
bool form_is_vector(const form *f) { return f->map > X86_MAP_VEX; }
bool form_is_memory(const form *f) { return f->modrm < 0xc0; }

static size_t put_legacy_prefixes(uint8_t *b, const form *f, const fields *r)
{
    size_t n = 0;
    int c = f->context;
    if (c & X86_CTX_66) b[n++] = 0x66;
    if (c & X86_CTX_A32) b[n++] = 0x67;
    if (c & X86_CTX_LOCK) b[n++] = 0xf0;
    if (c & X86_CTX_F3) b[n++] = 0xf3;
    else if (c & X86_CTX_F2) b[n++] = 0xf2;
    unsigned rex = (c & X86_CTX_W ? 8 : 0) | (r->reg & 8 ? 4 : 0) | (r->index & 8 ? 2 : 0) |
                   (r->rm & 8 || c & X86_CTX_B ? 1 : 0);
    if (rex) b[n++] = 0x40 | rex;
    if (f->map != X86_MAP_LEGACY) b[n++] = 0x0f;
    if (f->map == X86_MAP_LEGACY + 2) b[n++] = 0x38;
    if (f->map == X86_MAP_LEGACY + 3) b[n++] = 0x3a;
    if (f->map == X86_MAP_3DNOW) b[n++] = 0x0f;
    return n;
}

static size_t put_vex(uint8_t *b, const form *f, const fields *r)
{
    bool xop = f->map >= X86_MAP_XOP;
    unsigned c = f->context;
    b[0] = xop ? 0x8f : 0xc4;
    b[1] = (r->reg & 8 ? 0 : 0x80) | (r->index & 8 ? 0 : 0x40) | (r->rm & 8 ? 0 : 0x20) |
           (xop ? f->map - X86_MAP_XOP + 8 : f->map - X86_MAP_VEX);
    b[2] = (c >> 2 & 1) << 7 | (~r->vvvv & 15) << 3 | (c >> 3 & 1) << 2 | (c & 3);
    return 3;
}

static size_t put_evex(uint8_t *b, const form *f, const fields *r)
{
    unsigned c = f->context;
    bool memory = form_is_memory(f);
    unsigned x = memory ? r->index >> 3 & 1 : r->rm >> 4 & 1;
    unsigned v = memory && (f->modrm & 7) == 4 ? (r->vvvv | r->index) >> 4 & 1 : r->vvvv >> 4 & 1;
    b[0] = 0x62;
    b[1] = (r->reg & 8 ? 0 : 0x80) | (x ? 0 : 0x40) | (r->rm & 8 ? 0 : 0x20) | (r->reg & 16 ? 0 : 0x10) |
           (f->map - X86_MAP_EVEX);
    b[2] = (c >> 2 & 1) << 7 | (~r->vvvv & 15) << 3 | 4 | (c & 3);
    b[3] = (c >> 6 & 1) << 7 | (c >> 3 & 3) << 5 | (c >> 5 & 1) << 4 | (v ? 0 : 8) | (c >> 7 & 1);
    return 4;
}

static size_t synthesise(uint8_t *b, const form *f, const fields *r)
{
    size_t n = form_is_evex(f)     ? put_evex(b, f, r)
               : form_is_vector(f) ? put_vex(b, f, r)
                                   : put_legacy_prefixes(b, f, r);
    if (f->map != X86_MAP_3DNOW) b[n++] = f->opcode;
    b[n++] = f->modrm;
    unsigned mod = f->modrm >> 6, rm = f->modrm & 7;
    if (mod != 3 && rm == 4) b[n++] = (r->index & 7) << 3;
    if (f->map == X86_MAP_3DNOW) {
        n += mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
        b[n++] = f->opcode;
    }
    return n;
}

void probe_with(answer *a, form f, fields r)
{
    uint8_t bytes[32] = {0};
    synthesise(bytes, &f, &r);
    a->form = f;
    a->fields = r;
    a->status = ZydisDecoderDecodeInstruction(&decoder, &a->context, bytes, sizeof bytes, &a->in);
    /* Another processor's instructions that share encodings with ours. */
    if (ZYAN_SUCCESS(a->status) &&
        (a->in.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX || a->in.meta.isa_ext == ZYDIS_ISA_EXT_KNC ||
         a->in.meta.isa_ext == ZYDIS_ISA_EXT_KNCE || a->in.meta.isa_ext == ZYDIS_ISA_EXT_KNCV))
        a->status = ZYDIS_STATUS_BAD_REGISTER;
}

void probe(answer *a, form f)
{
    static const uint8_t vvvv[] = {0, 9, 6, 5, 3};
    unsigned reg = f.modrm >> 3 & 7, rm = f.modrm & 7;
    for (unsigned i = 0; i < sizeof vvvv * 4; i++) {
        fields r = {reg + (i / sizeof vvvv & 1) * 8, rm, vvvv[i % sizeof vvvv], i / sizeof vvvv & 2 ? 7 : 2};
        probe_with(a, f, r);
        if (a->status != ZYDIS_STATUS_BAD_REGISTER) return;
    }
}

void probe_operands(answer *a)
{
    ZydisDecoderDecodeOperands(&decoder, &a->context, &a->in, a->op, a->in.operand_count);
}
