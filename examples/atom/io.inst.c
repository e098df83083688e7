/* Reads and writes of each file: calls, bytes, cycles; and which file a number was. */
#include <stdio.h>
#include <instrument.h>

static void around(char *name, char *before, char *after)
{
    Proc *p = GetNamedProc(name);
    if (p == NULL) return;
    AddCallProc(p, ProcBefore, before, REG_ARG_1, REG_ARG_2, REG_CC);
    AddCallProc(p, ProcAfter, after, REG_RETVAL, REG_CC);
}

Instrument()
{
    static int seen;

    if (seen++) return;
    AddCallProto("Opening(REGV, REGV, REGV)");
    AddCallProto("Opened(REGV, REGV)");
    AddCallProto("Reading(REGV, REGV, REGV)");
    AddCallProto("Writing(REGV, REGV, REGV)");
    AddCallProto("Done(REGV, REGV)");
    AddCallProto("Report()");
    around("open", "Opening", "Opened");
    around("read", "Reading", "Done");
    around("write", "Writing", "Done");
    AddCallProgram(ProgramAfter, "Report");
}
