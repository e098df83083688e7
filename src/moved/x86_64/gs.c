/* May the program have a GS base of its own beside moved code? In moved code, operands and instructions that use GS
 * have the frame's copy of it (weave/x86_64/gs.c); code that runs as it is would find the thread's block. So it may
 * where no such code uses GS: all that can be executed is Inlay's, or of images, in which each such instruction has
 * moved.
 *
 * Code is decoded from the begin of its segment on. What is data in between can only make it look worse. */
#include "base/maps_line.h"
#include "base/sys.h"
#include "isa/x86_64/x86.h"
#include "move/live.h"
#include "moved/private.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PREFIX = 0x65, LINE = 8192 };

static bool has_prefix(const isa_insn *in)
{
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == PREFIX) return true;
    return false;
}

/* rdgsbase, wrgsbase */
static bool is_base(const isa_insn *in) { return x86_is_rdfsbase_family(in) && in->raw[in->modrm_at] & 8; }

static bool uses_gs(const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM] = {0};
    if (is_base(in)) return true;
    if (!has_prefix(in)) return false;
    int n = isa_x86_64.memory(in, mem);
    for (int i = 0; i < n; i++)
        if (mem[i].segment == X86_SEG_GS && mem[i].access != ISA_ADDRESS_ONLY) return true;
    return false;
}

/* Most code holds no byte that could be of such an instruction, and need not be decoded. */
static bool may_use(const uint8_t *at, size_t n)
{
    for (const uint8_t *p = at; (p = memchr(p, 0xae, n - (size_t)(p - at))); p++)
        if (p > at && p[-1] == 0x0f) return true;
    return memchr(at, PREFIX, n) != NULL;
}

/* Procedures move as a whole; jumps over their old code have left parts of instructions behind. */
static bool has_moved(const moved_image *i, uint64_t pc)
{
    uint64_t begin, end;
    return moved_to((real_addr){pc}).at || (moved_procedure_at(i, pc, &begin, &end) && moved_to((real_addr){begin}).at);
}

static bool code_is_free(const moved_image *i, uint64_t low, uint64_t high)
{
    for (uint64_t pc = low; pc < high;) {
        isa_insn in;
        isa_result r = isa_x86_64.decode((const uint8_t *)pc, high - pc, pc, &in);
        bool whole = r == ISA_OK || r == ISA_UNKNOWN;
        if (whole && uses_gs(&in) && !has_moved(i, pc)) return false;
        pc += whole ? in.len : 1;
    }
    return true;
}

static bool segments_are_free(const moved_image *i)
{
    const Elf64_Phdr *ph = i->phdr;
    for (unsigned k = 0; k < i->phnum; k++) {
        uint64_t low = i->bias + ph[k].p_vaddr, high = low + ph[k].p_filesz;
        if (ph[k].p_type != PT_LOAD || !(ph[k].p_flags & PF_X) || (i->text_size && low <= i->text && i->text < high))
            continue;
        if (may_use((const uint8_t *)low, high - low) && !code_is_free(i, low, high)) return false;
    }
    return true;
}

static bool is_of_sites(uint64_t at)
{
    const move_told_range *areas;
    uint64_t n = moved_site_areas(&areas);
    for (uint64_t i = 0; i < n; i++)
        if (at - areas[i].low < areas[i].high - areas[i].low) return true;
    return false;
}

static bool is_inlays(const inl_maps_line *m)
{
    bool is_region = m->low >= MOVE_PARK_BASE && m->high <= MOVE_REGION_HIGH;
    return is_region || run_is_ours(m->low, m->high) || moved_at(m->low) || is_of_sites(m->low) ||
           (moved_is_live() && moved_is_new(m->low)) || !strcmp(m->name, "[vdso]") || !strcmp(m->name, "[vsyscall]");
}

static bool mapping_is_known(const inl_maps_line *m)
{
    const moved_image *i = moved_image_at(m->low);
    return !(m->prot & PROT_EXEC) || is_inlays(m) || (i && i->phdr);
}

static bool all_is_known(int maps)
{
    static char text[LINE + 1];
    size_t have = 0;
    for (long got; (got = sys_call3(SYS_read, maps, (long)(text + have), (long)(LINE - have))) > 0;) {
        char *at = text, *end;
        have += (size_t)got;
        text[have] = 0;
        for (; (end = strchr(at, '\n')); at = end + 1) {
            inl_maps_line m;
            *end = 0;
            if (!inl_maps_line_read(at, &m) || !mapping_is_known(&m)) return false;
        }
        have = (size_t)(text + have - at);
        memmove(text, at, have);
    }
    return have == 0;
}

bool moved_gs_is_free(void)
{
    int maps = (int)run_proc_open("self/maps");
    bool known = !sys_failed(maps) && all_is_known(maps);
    if (!sys_failed(maps)) sys_call1(SYS_close, maps);
    for (size_t k = 0; known && k < moved_now.image_count; k++)
        if (moved_now.images[k].phdr) known = segments_are_free(&moved_now.images[k]);
    moved_procedures_done();
    return known;
}

const char *moved_owner_refusal(void)
{
    bool wrong = moved_now.sets_block && !moved_gs_is_free();
    return wrong ? "the program sets GS for itself (wrgsbase), and has code that cannot be moved and uses it" : NULL;
}
