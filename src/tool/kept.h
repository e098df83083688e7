/* Translations that are kept from run to run: kept.c. */
#ifndef INL_TOOL_KEPT_H
#define INL_TOOL_KEPT_H

#include "jit/jit.h"

void tool_kept_fill(jit_keeping *);

#endif
