/* A tool that puts what tests/samples/mirrored.c does to its memory elsewhere, by inlay_set_effective_address, and sees
 * that it is there: the address behind the instruction, the value, the piece itself at the end. With --same every
 * operand of the program whose address can be set is set to where it is; with --all each one, and behind it too. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { HERE = 0x20001000, THERE = 0x30001000, SIZE = 4096 };

static struct found {
    inlay_counter moved, insns;
    uint64_t wrong, seen;
} * found;
static bool same, all;

static inlay_expr is_in(inlay_expr address, uint64_t low)
{
    return inlay_binary(INLAY_ULT, inlay_binary(INLAY_SUB, address, inlay_const(low)), inlay_const(SIZE));
}

/* The routine is no leaf: it runs on a stack of its own between the setting and the instruction. */
static uint64_t there(uint64_t address)
{
    uint8_t byte;
    found->seen += inlay_memory_read(&byte, address, 1);
    return address - HERE + THERE;
}

static void wrong(uint64_t pc, uint64_t address)
{
    fprintf(stderr, "at %#" PRIx64 ": %#" PRIx64 "\n", pc, address);
    found->wrong++;
}

static void each_operand(inlay_insn *i, unsigned k)
{
    inlay_expr at = inlay_effective_address(k), moved;
    if (same) {
        inlay_insert(inlay_before(i), inlay_set_effective_address(k, at));
        return;
    }
    if (inlay_insn_address(i) & 1) moved = inlay_call(there, at);
    else moved = inlay_binary(INLAY_ADD, at, inlay_const(THERE - HERE));
    moved = inlay_sequence(inlay_set_effective_address(k, moved), inlay_count(&found->moved, 1));
    inlay_insert(inlay_before(i), inlay_if(is_in(at, HERE), moved, NULL));
    inlay_insert(inlay_before(i), inlay_if(is_in(at, HERE), inlay_call(wrong, inlay_pc(), at), NULL));
    if (inlay_after(i))
        inlay_insert(inlay_after(i), inlay_if(is_in(at, HERE), inlay_call(wrong, inlay_pc(), at), NULL));
}

static void each_insn(inlay_insn *i, void *arg)
{
    (void)arg;
    inlay_insert(inlay_before(i), inlay_count(&found->insns, 1));
    for (unsigned k = 0; k < inlay_insn_memory_count(i); k++)
        if (inlay_insn_memory(i, k).settable) each_operand(i, k);
        else if (all) inlay_insert(inlay_before(i), inlay_set_effective_address(k, inlay_effective_address(k)));
    if (all && inlay_after(i) && inlay_insn_memory_count(i))
        inlay_insert(inlay_after(i), inlay_set_effective_address(0, inlay_const(0)));
}

static void report(int status, void *arg)
{
    (void)arg;
    uint8_t bytes[SIZE] = {0};
    unsigned touched = 0;
    size_t n = same ? 0 : inlay_memory_read(bytes, HERE, SIZE);
    for (size_t i = 0; i < n; i++) touched += bytes[i] != 0;
    fprintf(inlay_out(), "%" PRIu64 " moved, %" PRIu64 " wrong, %u touched, %s, status %d, %" PRIu64 " instructions\n",
            inlay_counter_sum(&found->moved), found->wrong, touched, found->seen ? "seen" : "not seen", status,
            inlay_counter_sum(&found->insns));
}

int main(int argc, char **argv)
{
    inlay_option_flag(&same, "same", 0, "operands stay where they are");
    inlay_option_flag(&all, "all", 0, "also those that cannot be set");
    inlay_init(&argc, &argv, "puts a piece of memory elsewhere");
    found = inlay_alloc(sizeof *found);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
