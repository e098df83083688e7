/* ... and this one in a routine that is called. */
#include "blame_ways.h"

void Analysis(void) { wrong_at("analysis"); }
