// Both files in C++, with templates that both and the library instantiate.
#include <instrument.h>
#include <map>
#include <string>

static std::map<std::string, int> names;

extern "C" int Instrument(int, char **, Obj *o)
{
    for (Proc *p = GetFirstObjProc(o); p; p = GetNextProc(p)) names[ProcName(p)]++;
    AddCallProto("Names(int)");
    AddCallProgram(ProgramAfter, "Names", (int)names.size());
    return 0;
}
