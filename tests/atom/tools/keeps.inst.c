#include <instrument.h>

Instrument(int argc, char **argv, Obj *obj)
{
    ReplaceProcedure(FindProc(obj, "leaf"), "Answer");
}
