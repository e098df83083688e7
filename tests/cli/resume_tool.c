/* A tool that changes what tests/samples/resumed.c does, by inlay_resume: the flags before a branch, a vector register
 * at an entry, the program counter before a call, and answers for a procedure. Prints how often. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

static struct found {
    uint64_t flags, vectors, calls, answers;
    inlay_counter insns;
} * found;

static void flip(const inlay_context *now, uint64_t behind)
{
    inlay_context c = *now;
    c.flags ^= 0x40; /* ZF */
    c.pc = behind;   /* of the comparison */
    found->flags++;
    inlay_resume(&c);
}

static bool is_done(uint64_t *times) { return (*times)++ & 1; }

/* The entry is met again, and then it goes on as it is. */
static void double_it(const inlay_context *now)
{
    double x;
    uint64_t bits;
    inlay_context c = *now;
    if (is_done(&found->vectors)) return;
    memcpy(&x, (char *)c.xsave + 160, sizeof x); /* XMM0 */
    x *= 2;
    memcpy((char *)c.xsave + 160, &x, sizeof x);
    memcpy(&bits, (char *)c.xsave + 512, sizeof bits);
    bits |= 2; /* SSE */
    memcpy((char *)c.xsave + 512, &bits, sizeof bits);
    inlay_resume(&c);
}

static void skip(const inlay_context *now, uint64_t behind)
{
    inlay_context c = *now;
    c.pc = behind;
    if (found->calls++ & 1) c.xsave = NULL; /* as they are */
    inlay_resume(&c);
}

/* Even numbers only; the original sees the others. */
static void answer(const inlay_context *now)
{
    inlay_context c = *now;
    if (c.gpr[INLAY_RDI] & 1) return;
    found->answers++;
    c.gpr[INLAY_RAX] = c.gpr[INLAY_RDI] * 5;
    inlay_memory_read(&c.pc, c.gpr[INLAY_RSP], sizeof c.pc);
    c.gpr[INLAY_RSP] += sizeof c.pc;
    inlay_resume(&c);
}

/* Over two instructions in the middle of a block. */
static void go_ahead(inlay_insn *first)
{
    inlay_insn *from = inlay_insn_next(first), *over = from ? inlay_insn_next(from) : NULL;
    inlay_insn *to = over ? inlay_insn_next(over) : NULL;
    if (to)
        inlay_insert(inlay_before(from), inlay_call(skip, inlay_context_arg(), inlay_const(inlay_insn_address(to))));
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    const inlay_proc *p = inlay_insn_proc(insn);
    const char *in = p ? inlay_proc_name(p) : "";
    inlay_insert(inlay_before(insn), inlay_count(&found->insns, 1));
    inlay_insn *next = inlay_insn_next(insn);
    if (!strcmp(in, "branch") && next && inlay_insn_is_conditional(next))
        inlay_insert(inlay_after(insn), inlay_call(flip, inlay_context_arg(), inlay_const(inlay_insn_address(next))));
    if (!strcmp(in, "straight") && inlay_insn_address(insn) == inlay_proc_address(p)) go_ahead(insn);
    if (!strcmp(in, "calls") && inlay_insn_is_call(insn))
        inlay_insert(inlay_before(insn), inlay_call(skip, inlay_context_arg(), inlay_fall_through()));
}

static bool wrong;

/* No routine, so no program to send on. */
static void starts(void *arg)
{
    (void)arg;
    inlay_context c = {0};
    if (wrong) inlay_resume(&c);
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    inlay_insert(inlay_proc_entry(inlay_image_proc_named(image, "half")), inlay_call(double_it, inlay_context_arg()));
    inlay_insert(inlay_proc_entry(inlay_image_proc_named(image, "answered")), inlay_call(answer, inlay_context_arg()));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ", %" PRIu64 " instructions\n", found->flags,
            found->vectors, found->calls, found->answers, inlay_counter_sum(&found->insns));
}

int main(int argc, char **argv)
{
    inlay_option_flag(&wrong, "wrong", 'w', "from a callback");
    inlay_init(&argc, &argv, "changes a program by inlay_resume");
    found = inlay_alloc(sizeof *found);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_start(starts, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
