#include "moved/text.h"

#include "base/page.h"
#include "base/sys.h"
#include "run/confine.h"
#include "run/kernel.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static bool goes_by_file(moved_text *x)
{
    x->mem = (int)run_proc_open_memory();
    return !sys_failed(x->mem);
}

static bool begin(moved_text *x, uint64_t low, uint64_t high)
{
    x->low = inl_page_down(low);
    x->size = inl_page_up(high) - x->low;
    x->mem = -1;
    return run_may_make_code() || goes_by_file(x);
}

/* What is sealed (mseal) keeps its protection, but can be written to by way of the file. */
bool moved_text_open(moved_text *x, uint64_t low, uint64_t high)
{
    if (!begin(x, low, high)) return false;
    if (x->mem >= 0 || !sys_call3(SYS_mprotect, (long)x->low, (long)x->size, PROT_READ | PROT_WRITE)) return true;
    sys_call3(SYS_mprotect, (long)x->low, (long)x->size, PROT_READ | PROT_EXEC); /* what lies in front of the seal */
    return goes_by_file(x);
}

long moved_text_make(moved_text *x, uint64_t low, uint64_t size, bool held)
{
    if (!begin(x, low, low + size)) return x->mem;
    long at = sys_call(SYS_mmap, (long)low, (long)size, PROT_READ | (x->mem < 0 ? PROT_WRITE : PROT_EXEC),
                       MAP_PRIVATE | MAP_ANONYMOUS | (held ? MAP_FIXED : MAP_FIXED_NOREPLACE), -1, 0);
    if (at != (long)low && x->mem >= 0) sys_call1(SYS_close, x->mem);
    return at;
}

bool moved_text_put(const moved_text *x, uint64_t at, const void *bytes, size_t size)
{
    if (x->mem >= 0) return sys_call4(SYS_pwrite64, x->mem, (long)bytes, (long)size, (long)at) == (long)size;
    memcpy((void *)at, bytes, size);
    __builtin___clear_cache((char *)at, (char *)at + size);
    return true;
}

bool moved_text_close(moved_text *x)
{
    if (x->mem < 0) return !sys_call3(SYS_mprotect, (long)x->low, (long)x->size, PROT_READ | PROT_EXEC);
    sys_call1(SYS_close, x->mem);
    return true;
}
