/* Up the stack by .eh_frame: see trace.h. */
#include "tool/trace.h"
#include "tool/glibc.h"
#include "base/search.h"
#include "base/sys.h"

#include <sys/syscall.h>
#include <sys/uio.h>

typedef struct search_table { /* .eh_frame_hdr, as linkers write it */
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frame;
    uint32_t count;
    struct {
        int32_t code, fde; /* from the header's address */
    } rows[];
} search_table;
enum { TABLE_ENCODING = IMAGE_PE_DATAREL | IMAGE_PE_SDATA4, FDE_LONGEST = 1 << 16 };

static uint64_t base(void) { return (uint64_t)(uintptr_t)&__ehdr_start; }
bool trace_is_own(uint64_t address) { return address >= base() && address < (uint64_t)(uintptr_t)end; }

bool trace_read(void *to, uint64_t from, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)from, size};
    return sys_call(SYS_process_vm_readv, sys_call0(SYS_getpid), (long)&local, 1, (long)&remote, 1, 0) == (long)size;
}

static const search_table *find_table(void)
{
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base() + __ehdr_start.e_phoff);
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
        const search_table *t = (const search_table *)(base() + ph[i].p_vaddr);
        if (ph[i].p_type == PT_GNU_EH_FRAME && t->table_encoding == TABLE_ENCODING) return t;
    }
    return NULL;
}

/* The body of the record at `at`, with the word that tells what it is. */
static image_cursor record(uint64_t at)
{
    uint32_t size = *(const uint32_t *)at;
    const uint8_t *body = (const uint8_t *)at + 4;
    if (size > FDE_LONGEST) size = 0; /* the long form, which no compiler writes for code */
    return (image_cursor){body, body + size, at + 4};
}

typedef struct common {
    uint8_t encoding;
    bool has_augmentation;
    uint64_t code_align, data_align;
    image_cursor program;
} common;

static bool read_common(uint64_t at, common *out)
{
    image_cursor c = record(at);
    uint32_t id;
    uint8_t version;
    uint64_t number;
    char letters[8] = "";
    *out = (common){0};
    if (!image_take(&c, &id, 4) || id || !image_take(&c, &version, 1)) return false;
    for (size_t i = 0;; i++) {
        if (i == sizeof letters || !image_take(&c, &letters[i], 1)) return false;
        if (!letters[i]) break;
    }
    if (!image_take_leb(&c, false, &out->code_align) || !image_take_leb(&c, true, &out->data_align)) return false;
    if (version == 1 ? !image_skip(&c, 1) : !image_take_leb(&c, false, &number)) return false;
    out->program = c;
    if (letters[0] != 'z') return letters[0] == 0;
    out->has_augmentation = true;
    if (!image_take_leb(&c, false, &number)) return false;
    out->program = c;
    if (!image_skip(&out->program, number)) return false;
    for (const char *l = letters + 1; *l; l++) {
        uint8_t encoding;
        if (*l == 'S' || *l == 'B') continue;
        if (!image_take(&c, &encoding, 1)) return false;
        if (*l == 'R') out->encoding = encoding;
        if (*l == 'P' && !image_take_format(&c, encoding, &number)) return false;
    }
    return true;
}

/* The entry that describes the code at `pc`. */
static bool find_frame(uint64_t pc, image_frame *f, uint64_t *start)
{
    const search_table *t = find_table();
    uint64_t header = (uint64_t)(uintptr_t)t, size, id_at;
    if (!t) return false;
    size_t behind = INL_FIRST(t->count, i, header + (uint64_t)(int64_t)t->rows[i].code > pc);
    if (!behind) return false;
    image_cursor c = record(header + (uint64_t)(int64_t)t->rows[behind - 1].fde);
    uint32_t back;
    common from;
    id_at = c.addr;
    if (!image_take(&c, &back, 4) || !back || !read_common(id_at - back, &from)) return false;
    if (!image_take_pointer(&c, from.encoding, header, start) || !image_take_format(&c, from.encoding, &size))
        return false;
    if (pc < *start || pc - *start >= size) return false;
    if (from.has_augmentation && (!image_take_leb(&c, false, &size) || !image_skip(&c, size))) return false;
    *f = (image_frame){from.program, c, from.code_align, (int64_t)from.data_align};
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
