/* Up the stack by .eh_frame: see trace.h. */
#include "tool/trace.h"
#include "tool/glibc.h"
#include "base/sys.h"
#include "image/entries.h"

#include <sys/syscall.h>
#include <sys/uio.h>

static uint64_t base(void) { return (uint64_t)(uintptr_t)&__ehdr_start; }
bool trace_is_own(uint64_t address) { return address >= base() && address < (uint64_t)(uintptr_t)end; }

bool trace_read(void *to, uint64_t from, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)from, size};
    return sys_call(SYS_process_vm_readv, sys_call0(SYS_getpid), (long)&local, 1, (long)&remote, 1, 0) == (long)size;
}

/* The bytes of the tool's image from there on. */
static image_cursor bytes_at(uint64_t at)
{
    const uint8_t *from = (const uint8_t *)at, *to = (const uint8_t *)(uintptr_t)end;
    return (image_cursor){from, trace_is_own(at) ? to : from, at};
}

static bool find_table(image_search *out)
{
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base() + __ehdr_start.e_phoff);
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (ph[i].p_type == PT_GNU_EH_FRAME) return image_search_at(bytes_at(base() + ph[i].p_vaddr), out);
    return false;
}

/* The entry that describes the code at `pc`. */
static bool find_frame(uint64_t pc, image_frame *f, uint64_t *start)
{
    image_search table;
    image_record record;
    image_cie from;
    image_range_entry entry;
    uint64_t at, behind;
    if (!find_table(&table) || !image_search_find(&table, pc, &at, start, &behind)) return false;
    if (!image_record_at(bytes_at(at), &record) || record.is_common) return false;
    if (!image_cie_at(bytes_at(record.common), &from)) return false;
    if (!image_entry_read(&record, &from, table.header, &entry) || pc - entry.addr >= entry.size) return false;
    *start = entry.addr;
    *f = (image_frame){from.program, entry.program, from.code_align, from.data_align};
    return true;
}

/* To the caller; `behind`: the place is a return address, and the call before it is meant. */
static bool leave_frame(trace_registers *r, bool behind)
{
    image_frame f;
    image_saved saved;
    uint64_t start, cfa;
    trace_registers caller = *r;
    if (!find_frame(r->pc - behind, &f, &start)) return false;
    if (!image_frame_registers(&f, start, r->pc - behind, &saved)) return false;
    cfa = r->value[saved.cfa_reg] + (uint64_t)saved.cfa_offset;
    for (unsigned i = 0; i < IMAGE_SAVED_REGS; i++) {
        uint64_t at = cfa + (uint64_t)(int64_t)saved.now.offset[i];
        if (saved.now.how[i] == IMAGE_SAVED_AT && !trace_read(&caller.value[i], at, sizeof at)) return false;
    }
    caller.value[trace_stack] = cfa;
    caller.pc = caller.value[trace_return];
    if (saved.now.how[trace_return] == IMAGE_SAVED_LOST || caller.pc == 0) return false;
    *r = caller;
    return true;
}

unsigned trace_walk(trace_registers *r, uint32_t *places, unsigned room)
{
    unsigned n = 0;
    bool behind = false;
    if (!trace_is_own(r->pc)) behind = trace_leave_nowhere(r);
    while (n < room && trace_is_own(r->pc)) {
        uint64_t before = r->value[trace_stack], pc = r->pc;
        places[n++] = (uint32_t)(r->pc - base() - behind);
        if (!leave_frame(r, behind)) break;
        if (r->value[trace_stack] <= before && r->pc == pc) break;
        behind = true;
    }
    return n;
}
