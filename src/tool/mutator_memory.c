#include "tool/mutator.h"

#include <inlay/process.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

size_t inlay_process_read(inlay_process *p, void *to, uint64_t from, size_t bytes)
{
    mutatee *m = mutatee_of(p);
    if (p == inlay_process_self()) return inlay_memory_read(to, from, bytes);
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    struct iovec here = {to, bytes}, there = {(void *)from, bytes};
    ssize_t n = process_vm_readv(m->reads ? m->reads : m->live.pid, &here, 1, &there, 1, 0);
    if (n < 0) mutator_refuse(INL_ERR_SYSTEM, "cannot read process %d: %s", m->live.pid, strerror(errno));
    return n < 0 ? 0 : (size_t)n;
}

size_t inlay_process_write(inlay_process *p, uint64_t to, const void *from, size_t bytes)
{
    mutatee *m = mutatee_of(p);
    if (p == inlay_process_self()) return inlay_memory_write(to, from, bytes);
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    struct iovec here = {(void *)(uintptr_t)from, bytes}, there = {(void *)to, bytes};
    ssize_t n = process_vm_writev(m->live.pid, &here, 1, &there, 1, 0);
    if (n < 0) mutator_refuse(INL_ERR_SYSTEM, "cannot write to process %d: %s", m->live.pid, strerror(errno));
    return n < 0 ? 0 : (size_t)n;
}
