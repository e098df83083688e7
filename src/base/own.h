/* Where the file lies that this code is part of: a tool's file, in each of its roles, or any other program. */
#ifndef INL_BASE_OWN_H
#define INL_BASE_OWN_H

#include <stdint.h>

uint64_t inl_own_base(void);

#endif
