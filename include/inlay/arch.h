/* Which instruction set a tool is compiled for: headers that differ lie in a folder each, with the same names. */
#ifndef INLAY_ARCH_H
#define INLAY_ARCH_H

/* clang-format off */
#if defined __x86_64__
#define INLAY_ARCH_HEADER(name) <inlay/x86_64/name.h>
#elif defined __aarch64__
#define INLAY_ARCH_HEADER(name) <inlay/aarch64/name.h>
#else
#error "Inlay does not know this architecture"
#endif
/* clang-format on */

#endif
