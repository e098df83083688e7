/* How much memory does the program allocate and give back? Its allocator is replaced by one that knows. */
#include <stdio.h>
#include <instrument.h>

static void replace(char *name, char *by)
{
    Proc *p = GetNamedProc(name);
    if (p != NULL) ReplaceProcedure(p, by);
}

Instrument()
{
    static int seen;

    if (seen++) return;
    AddCallProto("Open()");
    AddCallProto("Report()");
    replace("malloc", "new_malloc");
    replace("calloc", "new_calloc");
    replace("realloc", "new_realloc");
    replace("reallocarray", "new_reallocarray");
    replace("free", "new_free");
    replace("cfree", "new_free");
    replace("memalign", "new_memalign");
    replace("aligned_alloc", "new_memalign");
    replace("posix_memalign", "new_posix_memalign");
    replace("valloc", "new_valloc");
    replace("pvalloc", "new_pvalloc");
    replace("malloc_usable_size", "new_usable_size");
    AddCallProgram(ProgramBefore, "Open");
    AddCallProgram(ProgramAfter, "Report");
}
