/* A part's header for the instruction set that this build is for. Generic files name none:
 *
 *     #include INL_ARCH_HEADER(run, abi)        is "run/<isa>/abi.h"
 *
 * The build says which it is (INL_ARCH); every part has one folder for each, with the same file names. */
#ifndef INL_BASE_ARCH_H
#define INL_BASE_ARCH_H

#define INL_ARCH_TEXT_(x) #x
#define INL_ARCH_TEXT(x)  INL_ARCH_TEXT_(x)
/* clang-format off */
#define INL_ARCH_HEADER(part, name) INL_ARCH_TEXT(part/INL_ARCH/name.h)
/* clang-format on */

#endif
