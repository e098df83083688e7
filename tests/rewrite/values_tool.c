/* Expressions against what the program does: what a tool is told in front of an instruction must be what is there
 * behind it, and where a branch is said to go is where the next block begins.
 *
 *     load     memory_value(before)                        = register(after)          mov, movzx, movsx, movsxd, pop
 *     store    register(before)                            = memory_value(after)      mov
 *     place    effective_address(before)                   = effective_address(after)  what only reads memory
 *     lea      effective_address(before)                   = register(after)
 *     sum      register op register(before)                = register(after)          add, sub, xor, and, or
 *     jump     taken ? branch_target : fall_through        = the next block           in one procedure
 *     call     fall_through(at the call)                   = return_address(entry)    with the same stack pointer
 *     result   return_value(at the return)                 = register(behind the call)
 *
 * But the entry of a jump table, which may be that of a copy for code that has moved, is not what the tool is shown: of
 * what reads one, operand and place are the same before and after.
 *
 * Nothing is compared with other runs, so that it holds for any program of one thread. The report has the number of
 * each kind, and of each kind the first that is wrong. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

typedef enum kind { LOAD, STORE, PLACE, LEA, SUM, JUMP, CALL, RESULT, KINDS } kind;
static const char *const names[] = {"load", "store", "place", "lea", "sum", "jump", "call", "result"};

typedef struct noted { /* in front of the instruction, by this thread */
    uint64_t value, next;
    uint64_t behind, stack; /* of the last call */
    uint64_t returns_to, result;
    uint64_t entry; /* of a jump table, that has been loaded */
} noted;

static inlay_local *local;
static struct tally {
    uint64_t right, wrong, pc, is, said;
} * tallies;

static uint64_t low(uint64_t value, uint64_t size) { return size >= 8 ? value : value & ((1ull << (8 * size)) - 1); }

static void tell(kind k, uint64_t pc, uint64_t is, uint64_t said)
{
    struct tally *t = &tallies[k];
    if (is == said) {
        t->right++;
        return;
    }
    if (!t->wrong++) t->pc = pc, t->is = is, t->said = said;
}

static void note(noted *n, uint64_t value) { n->value = value; }
static void check(noted *n, uint64_t k, uint64_t pc, uint64_t is, uint64_t size)
{
    tell((kind)k, pc, low(is, size), low(n->value, size));
}

static void leave(noted *n, uint64_t next, uint64_t first, uint64_t size) { n->next = next - first < size ? next : 0; }

static void arrive(noted *n, uint64_t pc, uint64_t result)
{
    if (n->next) tell(JUMP, pc, pc, n->next);
    if (n->returns_to == pc) tell(RESULT, pc, result, n->result);
    n->next = n->returns_to = 0;
}

static void call(noted *n, uint64_t behind, uint64_t stack) { n->behind = behind, n->stack = stack; }

static void enter(noted *n, uint64_t pc, uint64_t returns_to, uint64_t stack)
{
    if (n->behind && n->stack == stack + 8) tell(CALL, pc, returns_to, n->behind);
    n->behind = 0;
}

static void go_back(noted *n, uint64_t returns_to, uint64_t result) { n->returns_to = returns_to, n->result = result; }

static bool is_general(const inlay_operand *o)
{
    return o->kind == INLAY_OPERAND_REGISTER && inlay_reg_kind_of(o->reg) == INLAY_REG_GENERAL;
}

static bool is_memory(const inlay_operand *o) { return o->kind == INLAY_OPERAND_MEMORY && o->size <= 8; }

static bool only_reads(const inlay_operand *o) { return is_memory(o) && o->read && !o->write; }

static void compare(inlay_insn *in, kind k, inlay_expr before, inlay_expr after, unsigned size)
{
    inlay_expr where = inlay_local_address(local);
    inlay_insert(inlay_before(in), inlay_call(note, where, before));
    inlay_insert(inlay_after(in), inlay_call(check, where, inlay_const(k), inlay_pc(), after, inlay_const(size)));
}

static inlay_expr result_of(const char *name, inlay_expr a, inlay_expr b)
{
    static const struct known {
        const char *name;
        inlay_op op;
    } known[] = {{"add", INLAY_ADD}, {"sub", INLAY_SUB}, {"xor", INLAY_XOR}, {"and", INLAY_AND}, {"or", INLAY_OR}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) return inlay_binary(known[i].op, a, b);
    return NULL;
}

static void each_load(inlay_insn *in, const char *name, const inlay_operand *to, const inlay_operand *from)
{
    inlay_expr value = inlay_memory_value(from->memory);
    if (!strcmp(name, "movsx") || !strcmp(name, "movsxd")) value = inlay_extend(value, from->size, true);
    compare(in, LOAD, value, inlay_register(to->reg), to->size);
}

static void each_insn(inlay_insn *in)
{
    const char *name = inlay_opcode_name(inlay_insn_opcode(in));
    inlay_operand a = inlay_insn_operand(in, 0), b = inlay_insn_operand(in, 1);
    bool moves = !strncmp(name, "mov", 3);
    if (!inlay_insn_falls_through(in) || inlay_insn_is_branch(in) || inlay_insn_is_rep(in)) return;
    if (moves && is_general(&a) && is_memory(&b)) {
        each_load(in, name, &a, &b);
    } else if (moves && is_memory(&a) && is_general(&b)) {
        compare(in, STORE, inlay_register(b.reg), inlay_memory_value(a.memory), a.size);
    } else if (!strcmp(name, "pop") && is_general(&a) && a.reg != inlay_reg_stack_pointer()) {
        compare(in, LOAD, inlay_memory_value(0), inlay_register(a.reg), a.size);
    } else if (!strcmp(name, "lea") && is_general(&a)) {
        compare(in, LEA, inlay_effective_address(0), inlay_register(a.reg), a.size);
    } else if (only_reads(&a) || only_reads(&b)) {
        inlay_expr place = inlay_effective_address(only_reads(&a) ? a.memory : b.memory);
        compare(in, PLACE, place, place, 8);
    } else if (is_general(&a) && is_general(&b)) {
        inlay_expr result = result_of(name, inlay_register(a.reg), inlay_register(b.reg));
        if (result) compare(in, SUM, result, inlay_register(a.reg), a.size);
    }
}

/* movslq (%rdx,%rax,4),%rax ; add %rdx,%rax ; jmp *%rax */
static const inlay_insn *table_read(inlay_block *block)
{
    const inlay_insn *last = inlay_block_last(block), *found = NULL;
    if (!inlay_insn_is_indirect(last) || inlay_insn_is_call(last) || inlay_insn_memory_count(last)) return NULL;
    for (inlay_insn *in = inlay_block_first(block); in; in = inlay_insn_next(in))
        if (!strcmp(inlay_opcode_name(inlay_insn_opcode(in)), "movsxd") && inlay_insn_memory_count(in)) found = in;
    return found;
}

static inlay_expr entry_read(void)
{
    return inlay_binary(INLAY_XOR, inlay_effective_address(0), inlay_memory_value(0));
}

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    inlay_expr where = inlay_local_address(local), to = inlay_return_address();
    inlay_insert(inlay_proc_entry(proc),
                 inlay_call(enter, where, inlay_const(inlay_proc_address(proc)), to, inlay_stack_pointer()));
    inlay_insert(inlay_proc_return(proc), inlay_call(go_back, where, to, inlay_return_value()));
}

static void entry_is(uint64_t pc, uint64_t is, uint64_t target) { tell(JUMP, pc, is, target); }

/* jmp *table(,%rax,8), in the switches made here: the entry is where it goes. */
static void table_jump(inlay_insn *last)
{
    inlay_address a = inlay_insn_address_of(last, 0);
    const inlay_proc *p = inlay_insn_proc(last);
    if (!p || strcmp(inlay_proc_name(p), "step") || !inlay_insn_is_indirect(last) || inlay_insn_is_return(last)) return;
    if (inlay_insn_memory_count(last) && a.base < 0 && a.index >= 0)
        inlay_insert(inlay_before(last),
                     inlay_call(entry_is, inlay_pc(), inlay_memory_value(0), inlay_branch_target()));
}

/* mov table(,%rax,8),%rax ... jmp *%rax: likewise. */
static inlay_insn *table_load(inlay_block *block)
{
    inlay_insn *last = inlay_block_last(block), *found = NULL;
    if (!inlay_insn_is_indirect(last) || inlay_insn_is_call(last) || inlay_insn_memory_count(last)) return NULL;
    inlay_operand to = inlay_insn_operand(last, 0);
    for (inlay_insn *in = inlay_block_first(block); in && in != last; in = inlay_insn_next(in)) {
        if (strcmp(inlay_opcode_name(inlay_insn_opcode(in)), "mov") || !inlay_insn_memory_count(in)) continue;
        inlay_operand loaded = inlay_insn_operand(in, 0);
        inlay_address a = inlay_insn_address_of(in, 0);
        if (is_general(&loaded) && is_general(&to) && loaded.reg == to.reg && a.base < 0 && a.index >= 0) found = in;
    }
    return found;
}

static void note_entry(noted *n, uint64_t entry) { n->entry = entry; }
static void check_entry(noted *n, uint64_t pc, uint64_t target) { tell(JUMP, pc, target, n->entry); }

static void loaded_jump(inlay_insn *load, inlay_insn *jump)
{
    inlay_expr where = inlay_local_address(local);
    inlay_insert(inlay_before(load), inlay_call(note_entry, where, inlay_memory_value(0)));
    inlay_insert(inlay_before(jump), inlay_call(check_entry, where, inlay_pc(), inlay_branch_target()));
}

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_expr where = inlay_local_address(local), first = inlay_const(inlay_block_address(block));
    inlay_insn *last = inlay_block_last(block);
    const inlay_insn *read = table_read(block);
    inlay_insn *load = table_load(block);
    inlay_proc *proc = inlay_block_proc(block);
    inlay_insert(inlay_block_entry(block), inlay_call(arrive, where, first, inlay_register(INLAY_RAX)));
    for (inlay_insn *in = inlay_block_first(block); in; in = inlay_insn_next(in))
        if (in == read) compare(in, PLACE, entry_read(), entry_read(), 8);
        else if (in == load) loaded_jump(load, last);
        else each_insn(in);
    if (inlay_insn_is_call(last))
        inlay_insert(inlay_before(last), inlay_call(call, where, inlay_fall_through(), inlay_stack_pointer()));
    table_jump(last);
    if (!proc || !inlay_insn_is_branch(last) || inlay_insn_is_call(last) || inlay_insn_is_return(last)) return;
    inlay_expr next = inlay_if(inlay_taken(), inlay_branch_target(), inlay_fall_through());
    inlay_insert(inlay_before(last),
                 inlay_call(leave, inlay_local_address(local), next, inlay_const(inlay_proc_address(proc)),
                            inlay_const(inlay_proc_size(proc))));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    for (unsigned k = 0; k < KINDS; k++) {
        const struct tally *t = &tallies[k];
        fprintf(inlay_out(), "%s %" PRIu64 " right, %" PRIu64 " wrong", names[k], t->right, t->wrong);
        if (t->wrong) fprintf(inlay_out(), ": at %" PRIx64 " %" PRIx64 ", said %" PRIx64, t->pc, t->is, t->said);
        fputc('\n', inlay_out());
    }
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "compares what is said of instructions with what they do");
    local = inlay_local_new(sizeof(noted));
    tallies = inlay_alloc(KINDS * sizeof *tallies);
    inlay_on_proc(each_proc, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
