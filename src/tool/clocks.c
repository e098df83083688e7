/* The clocks of the tool's C library: it reads them in the vdso, which is the program's, and may go. From then on it
 * makes system calls. Its pointers lie in memory that it has made read-only when it started. */
#include "tool/clocks.h"
#include "base/page.h"
#include "base/sys.h"
#include "tool/glibc.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

void clocks_vdso(uint64_t *low, uint64_t *high)
{
    const Elf64_Ehdr *h = (const void *)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Phdr *ph = h ? (const void *)((const char *)h + h->e_phoff) : NULL;
    *low = *high = (uint64_t)(uintptr_t)h;
    for (unsigned k = 0; h && k < h->e_phnum; k++)
        if (ph[k].p_type == PT_LOAD && *low + ph[k].p_vaddr + ph[k].p_memsz > *high)
            *high = inl_page_up(*low + ph[k].p_vaddr + ph[k].p_memsz);
}

static void forget(void **procedure)
{
    if (!procedure || !*procedure) return;
    long page = (long)inl_page_down((uint64_t)(uintptr_t)procedure);
    if (sys_call3(SYS_mprotect, page, INL_PAGE, PROT_READ | PROT_WRITE)) return;
    __atomic_store_n(procedure, NULL, __ATOMIC_RELAXED);
}

void clocks_without_vdso(void *arg)
{
    (void)arg;
    forget(&_dl_vdso_clock_gettime64);
    forget(&_dl_vdso_gettimeofday);
    forget(&_dl_vdso_time);
    forget(&_dl_vdso_getcpu);
    forget(&_dl_vdso_clock_getres_time64);
}
