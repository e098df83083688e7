/* The program's registers, `inlay_context`: everything in it is the program's own (original addresses, its own bases).
 */
#ifndef INLAY_CONTEXT_H
#define INLAY_CONTEXT_H

#include <inlay/arch.h>
#include <inlay/reg.h>
#include INLAY_ARCH_HEADER(context)

#endif
