/* From Zydis' answer to a row: identity, flow, sizes, register checks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gen.h"

pool gen_ops = {.size = sizeof(op_name)}, gen_rows = {.size = sizeof(x86_row)},
     gen_checks = {.size = sizeof(x86_check)}, gen_fxs = {.size = sizeof(x86_fx)},
     gen_vec_sets = {.size = sizeof(x86_vec_set)};
lists gen_mems = {.size = sizeof(x86_mem)}, gen_operands = {.size = sizeof(x86_operand)};

/* Rows already made: the same definition in the same context needs no second look. */
typedef struct memo_key {
    const void *definition;
    int map, context, memory, pad;
} memo_key;
static pool memo_keys = {.size = sizeof(memo_key)};
static uint16_t *memo_rows;

void rows_init(void)
{
    op_name names[2] = {{"(invalid)", "invalid"}, {"(unknown)", "unknown"}};
    x86_check any; /* stored by its bytes, so that padding counts */
    x86_mem no_mem = {.place = 255, .flags = X86_MEM_LAST};
    x86_operand no_operand = {.kind = ISA_OPERAND_NONE, .size = 0xffff, .flags = X86_OPERAND_LAST};
    x86_fx fault; /* its handler sees everything */
    x86_row row;
    memset(&any, 0, sizeof any);
    any.reg = any.rm = any.vvvv = ~0u;
    memset(&fault, 0, sizeof fault);
    fault.fixed = 0xffff;
    fault.flags_read = X86_ARITH | X86_TF | X86_IF | X86_DF | X86_AC | X86_ID;
    fault.other_reads = 0x3f;
    memset(&row, 0, sizeof row);
    pool_add(&gen_vec_sets, &(x86_vec_set){0, 0, 0});
    pool_add(&gen_ops, &names[0]);
    pool_add(&gen_ops, &names[1]);
    pool_add(&gen_checks, &any);
    any.differ = X86_SAME_NONE;
    pool_add(&gen_checks, &any);
    pool_add(&gen_fxs, &fault);
    lists_add(&gen_mems, &no_mem, 1);
    lists_add(&gen_operands, &no_operand, 1);
    row.check = X86_CHECK_FORM;
    pool_add(&gen_rows, &row);
    memset(&fault, 0, sizeof fault);
    fault.quirks = X86_FX_RARE;
    fault.rare = X86_RARE_EVERYTHING;
    row.fx = pool_add(&gen_fxs, &fault);
    row.op = 1;
    row.bits = ISA_BIT_UNKNOWN | ISA_BIT_MEM;
    pool_add(&gen_rows, &row);
}

bool mnemonic_in(const answer *a, const ZydisMnemonic *list)
{
    for (; *list; list++)
        if (*list == a->in.mnemonic) return true;
    return false;
}

bool answer_is_string(const answer *a)
{
    return a->in.meta.category == ZYDIS_CATEGORY_STRINGOP || a->in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
}

bool answer_is_nop(const answer *a)
{
    return a->in.meta.category == ZYDIS_CATEGORY_NOP || a->in.meta.category == ZYDIS_CATEGORY_WIDENOP;
}

bool answer_repeats(const answer *a) { return answer_is_string(a) && a->form.context & (X86_CTX_F2 | X86_CTX_F3); }

bool answer_stores_at_reg(const answer *a)
{
    return a->in.mnemonic == ZYDIS_MNEMONIC_MOVDIR64B || a->in.mnemonic == ZYDIS_MNEMONIC_ENQCMD ||
           a->in.mnemonic == ZYDIS_MNEMONIC_ENQCMDS;
}

static bool general(ZydisRegister r, reg_id *id)
{
    static const struct {
        ZydisRegister first;
        uint8_t bytes;
    } runs[] = {{ZYDIS_REGISTER_AX, 2}, {ZYDIS_REGISTER_EAX, 4}, {ZYDIS_REGISTER_RAX, 8}};
    if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_R15B) {
        unsigned n = r - ZYDIS_REGISTER_AL; /* al..bl, ah..bh, spl.. */
        bool high = n >= 4 && n < 8;
        *id = (reg_id){X86_CLASS_GPR, n >= 4 ? n - 4 : n, 1, high};
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (r < runs[i].first || r > runs[i].first + 15u) continue;
        *id = (reg_id){X86_CLASS_GPR, r - runs[i].first, runs[i].bytes, 0};
        return true;
    }
    return false;
}

/* clang-format off */
bool reg_of(ZydisRegister r, reg_id *id)
{
    static const struct { ZydisRegister first, last; uint8_t class; } runs[] = {
        {ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_XMM31, X86_CLASS_XMM},
        {ZYDIS_REGISTER_YMM0, ZYDIS_REGISTER_YMM31, X86_CLASS_YMM},
        {ZYDIS_REGISTER_ZMM0, ZYDIS_REGISTER_ZMM31, X86_CLASS_ZMM},
        {ZYDIS_REGISTER_K0, ZYDIS_REGISTER_K7, X86_CLASS_MASK},
        {ZYDIS_REGISTER_MM0, ZYDIS_REGISTER_MM7, X86_CLASS_MMX},
        {ZYDIS_REGISTER_ST0, ZYDIS_REGISTER_ST7, X86_CLASS_ST},
        {ZYDIS_REGISTER_ES, ZYDIS_REGISTER_GS, X86_CLASS_SEGMENT},
        {ZYDIS_REGISTER_CR0, ZYDIS_REGISTER_CR15, X86_CLASS_CR},
        {ZYDIS_REGISTER_DR0, ZYDIS_REGISTER_DR15, X86_CLASS_DR},
        {ZYDIS_REGISTER_BND0, ZYDIS_REGISTER_BND3, X86_CLASS_BND},
        {ZYDIS_REGISTER_TMM0, ZYDIS_REGISTER_TMM7, X86_CLASS_TMM}};
    static const struct { ZydisRegister reg; uint8_t number; } special[] = {
        {ZYDIS_REGISTER_X87CONTROL, X86_X87CONTROL}, {ZYDIS_REGISTER_X87STATUS, X86_X87STATUS},
        {ZYDIS_REGISTER_X87TAG, X86_X87TAG}, {ZYDIS_REGISTER_GDTR, X86_GDTR},
        {ZYDIS_REGISTER_LDTR, X86_LDTR}, {ZYDIS_REGISTER_IDTR, X86_IDTR}, {ZYDIS_REGISTER_TR, X86_TR},
        {ZYDIS_REGISTER_MXCSR, X86_MXCSR}, {ZYDIS_REGISTER_PKRU, X86_PKRU},
        {ZYDIS_REGISTER_XCR0, X86_XCR0}, {ZYDIS_REGISTER_BNDCFG, X86_BNDCFG},
        {ZYDIS_REGISTER_BNDSTATUS, X86_BNDSTATUS}, {ZYDIS_REGISTER_UIF, X86_UIF}};
    if (general(r, id)) return true;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        if (r < runs[i].first || r > runs[i].last) continue;
        *id = (reg_id){runs[i].class, r - runs[i].first, 0, 0};
        return true;
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (r != special[i].reg) continue;
        *id = (reg_id){X86_CLASS_SPECIAL, special[i].number, 0, 0};
        return true;
    }
    return false;
}
/* clang-format on */

static unsigned flow_of_branch(const answer *a)
{
    bool relative = a->in.attributes & ZYDIS_ATTRIB_IS_RELATIVE;
    bool far = a->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    switch (a->in.meta.category) {
    case ZYDIS_CATEGORY_CALL: return far ? ISA_FLOW_FAR : relative ? ISA_FLOW_CALL : ISA_FLOW_CALL_IND;
    case ZYDIS_CATEGORY_UNCOND_BR: return far ? ISA_FLOW_FAR : relative ? ISA_FLOW_JUMP : ISA_FLOW_JUMP_IND;
    case ZYDIS_CATEGORY_SYSRET: return ISA_FLOW_FAR;
    case ZYDIS_CATEGORY_RET: return a->in.mnemonic == ZYDIS_MNEMONIC_RET && !far ? ISA_FLOW_RETURN : ISA_FLOW_FAR;
    default: return ISA_FLOW_NEXT;
    }
}

static unsigned flow_of(const answer *a)
{
    switch (a->in.mnemonic) {
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE: return ISA_FLOW_COND_REG;
    case ZYDIS_MNEMONIC_XBEGIN: return ISA_FLOW_TX;
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_XEND: return ISA_FLOW_NEXT;
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER: return ISA_FLOW_SYSCALL;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT: return ISA_FLOW_TRAP;
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_UIRET:
    case ZYDIS_MNEMONIC_RSM: return ISA_FLOW_FAR;
    default: break;
    }
    return a->in.meta.category == ZYDIS_CATEGORY_COND_BR ? ISA_FLOW_COND : flow_of_branch(a);
}

/* clang-format off */
static bool serializes(const answer *a)
{
    static const ZydisMnemonic list[] = {
        ZYDIS_MNEMONIC_MFENCE, ZYDIS_MNEMONIC_LFENCE, ZYDIS_MNEMONIC_SFENCE, ZYDIS_MNEMONIC_CPUID,
        ZYDIS_MNEMONIC_SERIALIZE, ZYDIS_MNEMONIC_RDTSC, ZYDIS_MNEMONIC_RDTSCP, ZYDIS_MNEMONIC_RDPMC,
        ZYDIS_MNEMONIC_XBEGIN, ZYDIS_MNEMONIC_XEND, ZYDIS_MNEMONIC_XABORT, ZYDIS_MNEMONIC_XTEST,
        ZYDIS_MNEMONIC_CLFLUSH, ZYDIS_MNEMONIC_CLFLUSHOPT, ZYDIS_MNEMONIC_CLWB,
        ZYDIS_MNEMONIC_IRETD, ZYDIS_MNEMONIC_IRETQ, ZYDIS_MNEMONIC_IRET, 0};
    return mnemonic_in(a, list);
}
/* clang-format on */

static bool is_float(const answer *a, const x86_fx *fx)
{
    if (fx->has_vec ||
        (fx->other_reads | fx->other_writes) & (ISA_OTHER_OLD_FP | ISA_OTHER_FP_STATUS | ISA_OTHER_ALL_VEC))
        return fx->other_reads != 0x3f; /* those that leave read everything */
    return a->in.meta.category == ZYDIS_CATEGORY_X87_ALU || a->in.meta.category == ZYDIS_CATEGORY_MMX;
}

static unsigned bits_of(const answer *a, const x86_fx *fx)
{
    unsigned bits = 0;
    unsigned category = a->in.meta.category;
    if (answer_repeats(a)) bits |= ISA_BIT_REP | ISA_BIT_PREDICATED;
    if (answer_repeats(a) && a->form.context & X86_CTX_F2) bits |= ISA_BIT_REPNE;
    if (a->in.attributes & ZYDIS_ATTRIB_HAS_LOCK) bits |= ISA_BIT_LOCK;
    if (category == ZYDIS_CATEGORY_CMOV || category == ZYDIS_CATEGORY_FCMOV) bits |= ISA_BIT_PREDICATED;
    if (a->in.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) bits |= ISA_BIT_PRIV;
    if (serializes(a)) bits |= ISA_BIT_SERIALIZES;
    if (is_float(a, fx)) bits |= ISA_BIT_FP;
    return bits;
}

static unsigned form_of(const answer *a)
{
    unsigned form = 0;
    if (a->in.raw.imm[0].is_relative) form |= X86_FORM_RELATIVE;
    if (a->in.mnemonic == ZYDIS_MNEMONIC_INT) form |= X86_FORM_INT;
    if (a->in.avx.has_sae) form |= X86_FORM_SAE;
    if (a->in.avx.rounding.mode && a->form.context & 0x20 && !form_is_memory(&a->form)) form |= X86_FORM_ROUND;
    for (int i = 0; i < a->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &a->op[i];
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) form |= X86_FORM_VSIB;
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->encoding >= ZYDIS_OPERAND_ENCODING_DISP8 &&
            o->encoding <= ZYDIS_OPERAND_ENCODING_DISP16_32_32)
            form |= X86_FORM_MOFFS;
        if (o->encoding == ZYDIS_OPERAND_ENCODING_IS4) form |= X86_FORM_IS4;
    }
    return form;
}

static bool uses(const answer *a, ZydisOperandEncoding e)
{
    for (int i = 0; i < a->in.operand_count; i++)
        if (a->op[i].encoding == e) return true;
    return false;
}

/* Does the form still exist, as the same instruction, with these fields? */
static bool holds(const answer *a, fields r)
{
    form f = a->form;
    answer b;
    f.modrm = (f.modrm & 0xc0) | (r.reg & 7) << 3 | (r.rm & 7);
    probe_with(&b, f, r);
    return ZYAN_SUCCESS(b.status) && b.context.definition == a->context.definition;
}

enum { FREE_REG = 1, FREE_RM = 2, FREE_V = 4, FREE_INDEX = 8 };

/* Is there a choice of the other free fields with which the form holds? Some forms want their
 * registers all different. */
static bool can_hold(const answer *a, fields r, unsigned free)
{
    if (holds(a, r)) return true;
    for (unsigned k = 0; k < 8; k++) {
        if (free & FREE_REG) r.reg = k;
        if (free & FREE_RM) r.rm = (k + 1) & 7;
        if (free & FREE_V) r.vvvv = (k + 2) & 7;
        if (free & FREE_INDEX) r.index = (k + 5) & 7;
        if (holds(a, r)) return true;
    }
    return false;
}

static uint32_t allowed(const answer *a, uint8_t *field, fields *r, bool operand, unsigned others, unsigned limit)
{
    uint32_t mask = 0;
    uint8_t was = *field;
    for (unsigned v = 0; v < limit; v++) {
        /* An opcode extension keeps its low bits. */
        *field = operand ? v : (v & ~7u) | (was & 7);
        if (can_hold(a, *r, others)) mask |= 1u << v;
    }
    *field = was;
    return mask;
}

static unsigned must_differ(const answer *a, const x86_check *c, bool reg, bool rm, bool v, bool vsib)
{
    unsigned differ = 0;
    fields r = a->fields;
    unsigned n = 1; /* allowed wherever anything is */
    while (n < 8 && ((reg && !(c->reg >> n & 1)) || (rm && !(c->rm >> n & 1)) || (v && !(c->vvvv >> n & 1)))) n++;
    unsigned others[3], k = 0;
    for (unsigned i = 0; k < 3; i++)
        if (i != n) others[k++] = i;
    fields apart = {reg ? others[0] : r.reg, rm ? others[1] : r.rm, v ? others[2] : r.vvvv, 5};
    if (!holds(a, apart)) return 0;
    struct {
        bool applies;
        uint8_t *x, *y;
        unsigned bit;
    } pairs[] = {{reg && rm, &r.reg, &r.rm, X86_SAME_REG_RM},
                 {reg && v, &r.reg, &r.vvvv, X86_SAME_REG_V},
                 {rm && v, &r.rm, &r.vvvv, X86_SAME_RM_V},
                 {reg && vsib, &r.reg, &r.index, X86_SAME_REG_INDEX},
                 {vsib && v, &r.index, &r.vvvv, X86_SAME_INDEX_V}};
    for (unsigned i = 0; i < 5; i++) {
        if (!pairs[i].applies) continue;
        r = apart;
        *pairs[i].x = *pairs[i].y = n;
        if (!holds(a, r)) differ |= pairs[i].bit;
    }
    return differ;
}

static uint8_t check_of(const answer *a, bool vsib)
{
    x86_check c;
    fields r = a->fields;
    bool memory = form_is_memory(&a->form), vector = form_is_vector(&a->form);
    bool reg = uses(a, ZYDIS_OPERAND_ENCODING_MODRM_REG);
    bool rm = !memory && uses(a, ZYDIS_OPERAND_ENCODING_MODRM_RM);
    bool v = uses(a, ZYDIS_OPERAND_ENCODING_NDSNDD);
    unsigned limit = form_is_evex(&a->form) ? 32 : 16;
    memset(&c, 0, sizeof c);
    if (!(a->in.attributes & ZYDIS_ATTRIB_HAS_MODRM) && !vector) return 0;
    unsigned free = (reg ? FREE_REG : 0) | (rm ? FREE_RM : 0) | (v ? FREE_V : 0) | (vsib ? FREE_INDEX : 0);
    c.reg = allowed(a, &r.reg, &r, reg, free & ~FREE_REG, limit);
    c.rm = memory ? ~0u : allowed(a, &r.rm, &r, rm, free & ~FREE_RM, limit);
    c.vvvv = vector ? allowed(a, &r.vvvv, &r, true, free & ~FREE_V, vsib ? 16 : limit) : ~0u;
    c.differ = must_differ(a, &c, reg, rm, v, vsib);
    uint32_t all = limit == 32 ? ~0u : 0xffff;
    if ((c.reg & all) == all) c.reg = ~0u;
    if ((c.rm & all) == all) c.rm = ~0u;
    if (vsib && c.vvvv == 0xffff) c.vvvv = ~0u;
    if ((c.vvvv & all) == all) c.vvvv = ~0u;
    return pool_add(&gen_checks, &c);
}

static unsigned log2_of(unsigned n)
{
    unsigned k = 0;
    while (n > 1) n >>= 1, k++;
    return k;
}

static uint16_t make_row(answer *a)
{
    x86_row row;
    x86_fx fx;
    op_name name;
    bool touches;
    memset(&row, 0, sizeof row);
    memset(&name, 0, sizeof name);
    probe_operands(a);
    name.mnemonic = ZydisMnemonicGetString(a->in.mnemonic);
    name.category = category_of(a);
    row.op = pool_add(&gen_ops, &name);
    row.flow = flow_of(a);
    fx_of(a, row.flow, &fx);
    row.bits = bits_of(a, &fx);
    row.form = form_of(a);
    row.imm = (a->in.raw.imm[0].size + a->in.raw.imm[1].size) / 8;
    if (row.form & X86_FORM_RELATIVE) row.imm |= row.imm << 4;
    if (row.form & X86_FORM_MOFFS) row.imm = a->in.raw.disp.size / 8;
    if (row.flow == ISA_FLOW_COND) row.cond = 15;
    if (form_is_evex(&a->form)) row.disp_shift = log2_of(a->context.cd8_scale);
    row.check = check_of(a, row.form & X86_FORM_VSIB);
    if (!row.check && row.form & X86_FORM_ODD) row.check = X86_CHECK_FORM;
    row.fx = pool_add(&gen_fxs, &fx);
    row.mem = mems_of(a, &touches);
    if (touches) row.bits |= ISA_BIT_MEM;
    row.operands = operands_of(a);
    return pool_add(&gen_rows, &row);
}

uint16_t row_of(answer *a)
{
    memo_key key;
    memset(&key, 0, sizeof key);
    key.definition = a->context.definition;
    key.map = a->form.map;
    key.context = a->form.context;
    key.memory = form_is_memory(&a->form);
    size_t before = memo_keys.count, i = pool_add(&memo_keys, &key);
    if (memo_keys.count != before) {
        if (!(i & (i - 1))) memo_rows = realloc(memo_rows, (i ? i * 2 : 1) * sizeof *memo_rows);
        if (!memo_rows) {
            perror("gen");
            exit(1);
        }
        memo_rows[i] = make_row(a);
    }
    return memo_rows[i];
}
