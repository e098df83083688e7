/* What the public headers promise of insertions that are removed, code that is shown again, processes and registers, on
 * the procedure `step` of tests/samples/repeats.c. Prints what it found. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { ENOUGH = 10 };
enum { STAYS, LATER, EARLY, AGAIN, REGISTERS };
static const char *const hows[] = {"stays", "later", "early", "again", "registers", NULL};
static int how;

static struct found {
    inlay_proc *step;
    inlay_insertion *entry, *block, *exit;
    uint64_t entered, removed, refused, shown, checked, wrong, parts;
    inlay_counter blocks, exits, instructions;
} * found;

static void remove_all(void)
{
    inlay_insertion *all[] = {found->entry, found->block, found->exit};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            if (inlay_remove(all[i])) found->removed++;
            else found->refused++;
        }
}

static void entered(void)
{
    if (++found->entered != ENOUGH) return;
    if (how == LATER) remove_all();
    if (how != AGAIN) return;
    uint64_t low = inlay_proc_address(found->step);
    if (!inlay_process_show_again(inlay_process_self(), low, low + inlay_proc_size(found->step))) found->refused++;
}

static bool enough(void) { return found->entered >= ENOUGH; }

/* --- registers --- */

static void whole_ones(const inlay_context *c, uint64_t rdi, uint64_t flags, uint64_t pc, uint64_t rsp,
                       uint64_t fs_base)
{
    found->checked++;
    found->wrong += rdi != c->gpr[INLAY_RDI] || rsp != c->gpr[INLAY_RSP] || pc != c->pc || fs_base != c->fs_base ||
                    (flags ^ c->flags) & 0x4d5; /* cf, pf, af, zf, sf, df */
}

static void parts_of(const inlay_context *c, uint64_t edi, uint64_t di, uint64_t dil, uint64_t bh, uint64_t zf,
                     uint64_t pf, uint64_t r11d)
{
    uint64_t rdi = c->gpr[INLAY_RDI];
    found->parts++;
    found->wrong += edi != (uint32_t)rdi || di != (uint16_t)rdi || dil != (uint8_t)rdi ||
                    bh != (c->gpr[INLAY_RBX] >> 8 & 0xff) || zf != (c->flags >> 6 & 1) || pf != (c->flags >> 2 & 1) ||
                    r11d != (uint32_t)c->gpr[INLAY_R11];
}

static void are(uint64_t word, uint64_t byte, uint64_t high, uint64_t half)
{
    found->checked++;
    found->wrong += word != 0x112233445566aaaa || byte != 0x112233445566aabb || high != 0x112233445566ccbb ||
                    half != 0xdddddddd;
}

/* rax is nothing before the procedure has worked out its result. Four values are made of it one after the other. */
static void set_parts(inlay_point *entry)
{
    uint64_t *kept = inlay_alloc(4 * sizeof *kept);
    inlay_reg part[] = {INLAY_AX, INLAY_AL, INLAY_AH, INLAY_EAX};
    uint64_t value[] = {0xaaaa, 0x3bb, 0xfcc, 0x77dddddddd};
    inlay_insert(entry, inlay_set_register(INLAY_RAX, inlay_const(0x1122334455667788)));
    for (int i = 0; i < 4; i++) {
        inlay_insert(entry, inlay_set_register(part[i], inlay_const(value[i])));
        inlay_insert(entry, inlay_store(inlay_pointer(&kept[i]), inlay_register(INLAY_RAX), 8));
    }
    inlay_insert(entry, inlay_call(are, inlay_load(inlay_pointer(&kept[0]), 8), inlay_load(inlay_pointer(&kept[1]), 8),
                                   inlay_load(inlay_pointer(&kept[2]), 8), inlay_load(inlay_pointer(&kept[3]), 8)));
}

/* The dynamic linker's way to a procedure that is called for the first time. */
static void whole_state(inlay_insn *insn)
{
    const char *name = inlay_opcode_name(inlay_insn_opcode(insn));
    found->wrong += strstr(name, "xsave") && inlay_insn_vectors_read(insn) != UINT32_MAX;
    found->wrong += strstr(name, "xrstor") && inlay_insn_vectors_written(insn) != UINT32_MAX;
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    whole_state(insn);
    inlay_proc *p = inlay_insn_proc(insn);
    if (how != REGISTERS || !p || (strcmp(inlay_proc_name(p), "main") && strcmp(inlay_proc_name(p), "step"))) return;
    inlay_point *before = inlay_before(insn);
    inlay_insert(before, inlay_call(whole_ones, inlay_context_arg(), inlay_register(INLAY_RDI),
                                    inlay_register(INLAY_RFLAGS), inlay_register(INLAY_RIP),
                                    inlay_register(inlay_reg_stack_pointer()), inlay_register(INLAY_FS_BASE)));
    inlay_insert(before, inlay_call(parts_of, inlay_context_arg(), inlay_register(INLAY_EDI), inlay_register(INLAY_DI),
                                    inlay_register(INLAY_DIL), inlay_register(INLAY_BH), inlay_register(INLAY_ZF),
                                    inlay_register(INLAY_PF), inlay_register(INLAY_R11D)));
}

/* Names are there, each once; whole registers are whole. What has no value is refused. */
static uint64_t check_names(void)
{
    uint64_t count = strcmp(inlay_reg_name(INLAY_FS_BASE), "fs_base") ? 1 : 0;
    for (inlay_reg r = 0; r < 0x1000; r++) {
        const char *name = inlay_reg_name(r);
        if (inlay_reg_kind_of(r) == INLAY_REG_NONE) {
            if (strcmp(name, "?") || inlay_reg_bits(r)) return 0;
            continue;
        }
        unsigned shift;
        inlay_reg whole = inlay_reg_whole(r, &shift);
        if (shift + inlay_reg_bits(r) > inlay_reg_bits(whole) || inlay_reg_whole(whole, NULL) != whole) return 0;
        for (inlay_reg other = 0; other < r; other++)
            if (!strcmp(name, inlay_reg_name(other))) return 0;
        count++;
    }
    inlay_reg none[] = {INLAY_XMM0, INLAY_FS, INLAY_K0 + 1, INLAY_ST0, INLAY_MXCSR, INLAY_GS_BASE, 0x7ff};
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++)
        if (inlay_register(none[i]) || inlay_set_register(none[i], inlay_const(0))) return 0;
    return inlay_set_register(INLAY_RIP, inlay_const(0)) || inlay_register_ref(INLAY_EAX) ? 0 : count;
}

/* --- */

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_process *p = inlay_process_self();
    if (!inlay_image_is_main(image)) return;
    found->step = inlay_image_proc_named(image, "step");
    if (!found->step || inlay_image_process(image) != p || !inlay_process_image_first(p) ||
        inlay_process_proc_at(p, inlay_proc_address(found->step)) != found->step)
        found->wrong++;
    if (how == AGAIN || how == REGISTERS) {
        inlay_insert(inlay_proc_entry(found->step), inlay_call(entered));
        if (how == REGISTERS) set_parts(inlay_proc_entry(found->step));
        return;
    }
    found->entry = inlay_insert(inlay_proc_entry(found->step), inlay_call(entered));
    found->block = inlay_insert(inlay_block_entry(inlay_proc_block_first(found->step)), inlay_count(&found->blocks, 1));
    found->exit = inlay_insert(inlay_proc_exit(found->step), inlay_count(&found->exits, 1));
    if (how == EARLY) remove_all();
}

static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_block_proc(block);
    if (how != AGAIN || !p || p != found->step) return;
    found->shown++;
    inlay_insertion *twice = inlay_insert(inlay_block_anywhere(block), inlay_count(&found->instructions, 1));
    inlay_insertion *kept = inlay_insert(inlay_block_anywhere(block), inlay_count(&found->instructions, 1));
    if (!inlay_remove(twice)) found->wrong++;
    if (enough() && !inlay_remove(kept)) found->wrong++;
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    unsigned threads = 0;
    inlay_process *p = inlay_process_self();
    for (inlay_thread *t = inlay_process_thread_first(p); t; t = inlay_process_thread_next(p, t)) {
        threads++;
        if (inlay_thread_process(t) != p) found->wrong++;
    }
    if (inlay_process_pid(p) != inlay_pid() || strcmp(inlay_process_program(p), inlay_program())) found->wrong++;
    inlay_json_begin(NULL, '{');
    inlay_json_uint("entered", found->entered);
    inlay_json_uint("blocks", inlay_counter_sum(&found->blocks));
    inlay_json_uint("exits", inlay_counter_sum(&found->exits));
    inlay_json_uint("again", inlay_counter_sum(&found->instructions));
    inlay_json_uint("shown", found->shown);
    inlay_json_uint("removed", found->removed);
    inlay_json_uint("refused", found->refused);
    inlay_json_uint("checked", found->checked);
    inlay_json_uint("parts", found->parts);
    inlay_json_uint("names", how == REGISTERS ? check_names() : 0);
    inlay_json_uint("threads", threads);
    inlay_json_uint("wrong", found->wrong);
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_option_choice(&how, hows, "how", "what to try");
    inlay_init(&argc, &argv, "tries the public interface");
    found = inlay_alloc(sizeof *found);
    inlay_on_image_load(image_loaded, NULL);
    if (how == AGAIN) inlay_on_block(each_block, NULL);
    if (how == REGISTERS) inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
