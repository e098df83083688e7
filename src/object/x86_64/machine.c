/* x86-64: relocations of object files, and the few instructions that stubs are made of. */
#include "object/file.h"
#include "record/tells.h"

static object_value reloc(uint32_t type, unsigned *size)
{
    *size = 4;
    switch (type) {
    case R_X86_64_NONE: return OBJECT_NOTHING;
    case R_X86_64_64:
    case R_X86_64_SIZE64: *size = 8; return OBJECT_ABSOLUTE;
    case R_X86_64_32:
    case R_X86_64_32S:
    case R_X86_64_SIZE32: return OBJECT_ABSOLUTE;
    case R_X86_64_16: *size = 2; return OBJECT_ABSOLUTE;
    case R_X86_64_8: *size = 1; return OBJECT_ABSOLUTE;
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return OBJECT_RELATIVE;
    case R_X86_64_PC64: *size = 8; return OBJECT_RELATIVE;
    case R_X86_64_PC16: *size = 2; return OBJECT_RELATIVE;
    case R_X86_64_PC8: *size = 1; return OBJECT_RELATIVE;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
    case R_X86_64_TLSGD:
    case R_X86_64_TLSLD:
    case R_X86_64_GOTTPOFF:
    case R_X86_64_GOTPC32_TLSDESC: return OBJECT_SLOT;
    case R_X86_64_DTPMOD64:
    case R_X86_64_DTPOFF64:
    case R_X86_64_TPOFF64: *size = 8; return OBJECT_THREAD;
    case R_X86_64_DTPOFF32:
    case R_X86_64_TPOFF32:
    case R_X86_64_TLSDESC_CALL: return OBJECT_THREAD;
    default: return OBJECT_UNKNOWN;
    }
}

/* lea x@tlsgd(%rip), %rdi; call __tls_get_addr */
static bool glues(uint32_t type) { return type == R_X86_64_TLSGD || type == R_X86_64_TLSLD; }

static void dummy(uint8_t *to, bool returns)
{
    memset(to, 0xcc, 16);
    if (returns) to[0] = 0xc3;
    else to[0] = 0x0f, to[1] = 0x0b;
}

/* __x86_indirect_thunk_rax, which whoever links brings along (-mindirect-branch=thunk-extern) */
static bool dummy_thunk(uint8_t *to, const char *name)
{
    static const char *const registers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                            "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    static const char *const begins[] = {"__x86_indirect_thunk_", "__x86_indirect_jump_thunk_",
                                         "__x86_indirect_call_thunk_"};
    const char *in_it = NULL;
    for (size_t i = 0; i < sizeof begins / sizeof *begins && !in_it; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) in_it = name + strlen(begins[i]);
    for (uint8_t r = 0; in_it && r < sizeof registers / sizeof *registers; r++) {
        if (strcmp(in_it, registers[r]) != 0) continue;
        const uint8_t code[] = {r < 8 ? 0x40 : 0x41, 0xff, (uint8_t)(0xe0 | (r & 7))}; /* jmp *register */
        dummy(to, false);
        memcpy(to, code, sizeof code);
        return true;
    }
    return false;
}

static bool is_padding(const uint8_t *at, size_t have, unsigned *size)
{
    isa_insn in;
    *size = 1;
    if (at[0] == 0xcc) return true;
    if (isa_x86_64.decode(at, have, 0, &in) != ISA_OK) return false;
    *size = in.len;
    return strcmp(isa_x86_64.mnemonic(in.op), "nop") == 0;
}

static void fill(uint8_t *at, size_t size) { memset(at, 0xcc, size); }

/* Displacements of 4 bytes stand at the end. */
static bool reaches(const isa_insn *in, unsigned *field)
{
    const uint8_t *p = in->raw + in->opcode_at;
    *field = in->len - 4u;
    return p[0] == 0xe9 || (p[0] == 0x0f && (p[1] & 0xf0) == 0x80);
}

static const char *fixed(const isa_insn *in)
{
    if (in->flow == ISA_FLOW_COND_REG || in->flow == ISA_FLOW_TX || in->flow == ISA_FLOW_FAR)
        return "it has a branch of an odd kind where a jump must stand";
    return in->bits & ISA_BIT_UNKNOWN ? "it has an unknown instruction where a jump must stand" : NULL;
}

/* Divisions, and memory but for the stack and what has an address of its own. */
static bool may_fault(const isa_insn *in)
{
    if (!in->modrm_at) return in->bits & ISA_BIT_REP;
    const uint8_t *p = in->raw + in->modrm_at;
    bool divides = (in->raw[in->opcode_at] & 0xfe) == 0xf6 && (p[0] >> 3 & 7) >= 6;
    if (p[0] >> 6 == 3 || !(in->bits & ISA_BIT_MEM) || in->bits & ISA_BIT_PCREL_MEM) return divides;
    bool extended = in->opcode_at && (in->raw[in->opcode_at - 1] & 0xf1) == 0x41;
    return divides || (p[0] & 7) != 4 || (p[1] & 7) != 4 || extended;
}

static bool is_landing(const isa_insn *in)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    return in->len == 4 && memcmp(in->raw, endbr64, 4) == 0;
}

static void jump(inl_bytes *b, size_t *field)
{
    inl_bytes_number(b, 0xe9, 1);
    *field = inl_bytes_reserve(b, 4);
}

static void branch(inl_bytes *b, const isa_insn *in, size_t *field)
{
    if (in->flow == ISA_FLOW_COND) inl_bytes_number(b, 0x800fu | (unsigned)in->cond << 8, 2);
    else inl_bytes_number(b, 0xe9, 1);
    *field = inl_bytes_reserve(b, 4);
}

static void skip_unless(inl_bytes *b, const isa_insn *in, size_t *from)
{
    inl_bytes_number(b, 0x70u | (in->cond ^ 1u), 1);
    *from = inl_bytes_reserve(b, 1);
}

static void skip_here(inl_bytes *b, size_t from)
{
    uint8_t distance = (uint8_t)(b->size - from - 1);
    inl_bytes_set(b, from, &distance, 1);
}

/* An instruction that has a field of what tells of the procedure as its operand. */
static void with_field(inl_bytes *b, object_hook *h, const char *opcode, size_t member, const char *behind, size_t more)
{
    inl_bytes_put(b, opcode, strlen(opcode));
    size_t at = inl_bytes_reserve(b, 4);
    inl_bytes_put(b, behind, more);
    h->fields[h->count].at = at;
    h->fields[h->count].base = b->size;
    h->fields[h->count++].member = member;
}

/* call *recorder@GOTPCREL(%rip), which no lazy binding comes in between of and linkers make a direct call of; nop whose
 * displacement is the distance from here to what tells of the procedure */
enum { CALL_SIZE = 6, NOP_SIZE = 7 };

static void call_recorder(inl_bytes *b, object_hook *h)
{
    static const uint8_t nop[] = {0x0f, 0x1f, 0x80};
    inl_bytes_number(b, 0x15ff, 2);
    h->call = inl_bytes_reserve(b, 4);
    size_t base = b->size;
    inl_bytes_put(b, nop, sizeof nop);
    h->fields[h->count].at = inl_bytes_reserve(b, 4);
    h->fields[h->count].base = base;
    h->fields[h->count++].member = 0;
}

static void skip(inl_bytes *b, unsigned opcode, unsigned distance) { inl_bytes_number(b, opcode | distance << 8, 2); }

/* cmp low, %rsp; jb 1f; subq $1, left; jns 2f; 1: call ...; 2: or cmpl $0, open; je 2f; call ...; 2: or the call alone,
 * which leaves what lies below the stack pointer as it is */
static void record(inl_bytes *b, bool leaves, bool keeps_flags, object_hook *h)
{
    static const uint8_t over_red_zone[] = {0x48, 0x8d, 0x64, 0x24, 0x80}; /* lea -128(%rsp), %rsp */
    static const uint8_t back[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0}; /* and back */
    enum { JB = 0x72, JE = 0x74, JNS = 0x79, SUB_SIZE = 8, JUMP_SIZE = 2 };
    h->count = 0;
    if (keeps_flags) {
        inl_bytes_put(b, over_red_zone, sizeof over_red_zone);
        call_recorder(b, h);
        inl_bytes_put(b, back, sizeof back);
        return;
    }
    if (leaves) {
        with_field(b, h, "\x83\x3d", offsetof(record_tells, open), "\0", 1);
        skip(b, JE, CALL_SIZE + NOP_SIZE);
    } else {
        with_field(b, h, "\x48\x3b\x25", offsetof(record_tells, low), "", 0);
        skip(b, JB, SUB_SIZE + JUMP_SIZE);
        with_field(b, h, "\x48\x83\x2d", offsetof(record_tells, left), "\1", 1);
        skip(b, JNS, CALL_SIZE + NOP_SIZE);
    }
    call_recorder(b, h);
}

const object_isa object_isa_x86_64 = {
    .isa = &isa_x86_64,
    .jump_size = 5,
    .arithmetic = 1 << 0 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 11, /* C, P, A, Z, S, O */
    .field_end = 4,
    .relative32 = R_X86_64_PC32,
    .call32 = R_X86_64_GOTPCRELX,
    .relative64 = R_X86_64_PC64,
    .absolute64 = R_X86_64_64,
    .absolute32 = R_X86_64_32,
    .none = R_X86_64_NONE,
    .reloc = reloc,
    .glues = glues,
    .dummy = dummy,
    .dummy_thunk = dummy_thunk,
    .is_padding = is_padding,
    .fill = fill,
    .reaches = reaches,
    .fixed = fixed,
    .may_fault = may_fault,
    .is_landing = is_landing,
    .jump = jump,
    .branch = branch,
    .skip_unless = skip_unless,
    .skip_here = skip_here,
    .record = record,
};
