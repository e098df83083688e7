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
    AddCallProto("Report()");
    replace("malloc", "new_malloc");
    replace("calloc", "new_calloc");
    replace("realloc", "new_realloc");
    replace("free", "new_free");
    AddCallProgram(ProgramAfter, "Report");
}
