/* taint: which branches hang on what the program reads from its standard input (or another: --fd), and how often.
 *
 *        tainted     executed  branch
 *           5000         5000  jz at 0x555555557686 in sub_33d0 (wc)
 *
 * What was read is marked, byte by byte; a mark goes on to what an instruction writes when it is in something that the
 * instruction reads, flags and the operands of operand.h, but not the registers of an address.
 */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum { FLAGS = 63, FLOAT = 62, VECTORS = 16 }; /* bits of a set of registers */

#define MARKS (1ull << 44) /* bytes: a bit for each byte of a program's memory; what is not marked takes no room */
static uint8_t *marks;
static uint64_t input;

typedef struct step {              /* an instruction, by its address */
    uint64_t reads, writes, keeps; /* `keeps`: written in part */
    inlay_counter executed, tainted;
    char text[8];
} step;
static inlay_local *marked; /* registers: a uint64_t of each thread's */

/* Bytes from the address on whose marks are in one byte, as its bits. */
static uint64_t together(uint64_t address, uint64_t size, uint8_t *bits)
{
    uint64_t n = 8 - address % 8 < size ? 8 - address % 8 : size;
    *bits = (uint8_t)(((1u << n) - 1) << address % 8);
    return n;
}

static void mark(uint64_t address, uint64_t size, bool to)
{
    uint8_t bits;
    for (uint64_t n; size; address += n, size -= n) {
        n = together(address, size, &bits);
        uint8_t *m = &marks[address / 8 % MARKS], wanted = to ? bits : 0;
        if ((*m & bits) == wanted) continue;
        if (to) __atomic_or_fetch(m, bits, __ATOMIC_RELAXED);
        else __atomic_and_fetch(m, ~bits, __ATOMIC_RELAXED);
    }
}

static bool is_marked(uint64_t address, uint64_t size)
{
    uint8_t bits;
    for (uint64_t n; size; address += n, size -= n) {
        n = together(address, size, &bits);
        if (marks[address / 8 % MARKS] & bits) return true;
    }
    return false;
}

static void flow(const step *s, uint64_t *regs, uint64_t from, uint64_t read, uint64_t to, uint64_t written)
{
    bool is = *regs & s->reads || is_marked(from, read);
    *regs = is ? *regs | s->writes : *regs & ~(s->writes & ~s->keeps);
    if (written) mark(to, written, is);
}

static uint64_t bit_of(const inlay_operand *o)
{
    inlay_reg whole = inlay_reg_whole(o->reg, NULL);
    switch (inlay_reg_kind_of(o->reg)) {
    case INLAY_REG_GENERAL: return 1ull << whole;
    case INLAY_REG_VECTOR: return whole - INLAY_ZMM0 < 32 ? 1ull << (VECTORS + whole - INLAY_ZMM0) : 0;
    case INLAY_REG_FLOAT: return 1ull << FLOAT; /* all of them as one */
    default: return 0;
    }
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    step *s = inlay_record(inlay_insn_address(insn), sizeof *s);
    if (!s) return;
    inlay_expr none = inlay_const(0), from = none, read = none, to = none, written = none;
    s->reads = inlay_insn_flags_read(insn) ? 1ull << FLAGS : 0;
    s->writes = inlay_insn_flags_written(insn) ? 1ull << FLAGS : 0;
    unsigned sources = 0;
    for (unsigned k = 0; k < inlay_insn_operand_count(insn); k++) {
        inlay_operand o = inlay_insn_operand(insn, k);
        bool memory = o.kind == INLAY_OPERAND_MEMORY, reg = o.kind == INLAY_OPERAND_REGISTER;
        if (reg && o.implicit && inlay_reg_whole(o.reg, NULL) == INLAY_RSP) continue;
        uint64_t bit = reg ? bit_of(&o) : 0;
        if (reg && o.read) s->reads |= bit, sources++;
        if (reg && o.write) s->writes |= bit;
        if (reg && o.write && o.size < 4) s->keeps |= bit;
        inlay_expr size = memory ? inlay_binary(INLAY_MUL, inlay_access_size(o.memory), inlay_rep_count()) : none;
        if (memory && o.read) from = inlay_effective_address(o.memory), read = size, sources++;
        if (memory && o.write) to = inlay_effective_address(o.memory), written = size;
    }
    const char *name = inlay_opcode_name(inlay_insn_opcode(insn));
    bool clears = strstr(name, "xor") || !strncmp(name, "sub", 3); /* of a register with itself */
    if (clears && sources == 2 && read == none && !(s->reads & (s->reads - 1))) s->reads = 0;
    if (inlay_insn_is_conditional(insn)) {
        snprintf(s->text, sizeof s->text, "%s", name);
        inlay_expr flags = inlay_load(inlay_local_address(marked), 8);
        inlay_insert(inlay_before(insn), inlay_count(&s->executed, 1));
        inlay_insert(inlay_before(insn),
                     inlay_count_by(&s->tainted, inlay_binary(INLAY_SHR, flags, inlay_const(FLAGS))));
    } else if (s->reads || s->writes || written != none) {
        inlay_expr record = inlay_pointer(s), regs = inlay_local_address(marked);
        inlay_insert(inlay_before(insn), inlay_call(flow, record, regs, from, read, to, written));
    }
}

static void after_call(inlay_thread *t, inlay_syscall *c, void *arg)
{
    (void)t, (void)arg;
    const char *name = inlay_syscall_name(c->number);
    bool reads = name && (!strcmp(name, "read") || !strcmp(name, "pread64") || !strcmp(name, "recvfrom"));
    if (reads && (uint64_t)c->args[0] == input && c->result > 0) mark((uint64_t)c->args[1], (uint64_t)c->result, true);
}

static void line(uint64_t address, void *record, void *arg)
{
    (void)arg;
    step *s = record;
    uint64_t tainted = inlay_counter_sum(&s->tainted);
    if (!tainted) return;
    inlay_proc *p = inlay_proc_at(address);
    inlay_image *i = inlay_image_at(address);
    fprintf(inlay_out(), "%14" PRIu64 " %12" PRIu64 "  %s at 0x%" PRIx64 " in %s (%s)\n", tainted,
            inlay_counter_sum(&s->executed), s->text, address, p ? inlay_proc_display_name(p) : "?",
            i ? inlay_image_name(i) : "?");
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%14s %12s  branch\n", "tainted", "executed");
    inlay_records(line, NULL);
}

int main(int argc, char **argv)
{
    inlay_option_uint(&input, "fd", 'f', "the descriptor whose data are followed (default 0)");
    inlay_init(&argc, &argv, "which branches hang on what the program reads");
    marked = inlay_local_new(sizeof(uint64_t));
    marks = mmap(NULL, MARKS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (marks == MAP_FAILED) {
        inlay_warn("no room for 16 TB of addresses for marks: is there a limit (ulimit -v)?");
        return 1;
    }
    inlay_on_insn(each_insn, NULL);
    inlay_on_syscall_exit(after_call, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
