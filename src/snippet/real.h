/* Floating point for snippets: routines that woven code calls. Values are the bits of doubles. */
#ifndef INL_SNIPPET_REAL_H
#define INL_SNIPPET_REAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline double real_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline uint64_t real_bits(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

uint64_t real_add(uint64_t, uint64_t);
uint64_t real_sub(uint64_t, uint64_t);
uint64_t real_mul(uint64_t, uint64_t);
uint64_t real_div(uint64_t, uint64_t);
uint64_t real_min(uint64_t, uint64_t); /* the second where one is no number */
uint64_t real_max(uint64_t, uint64_t);
uint64_t real_eq(uint64_t, uint64_t); /* 0 or 1, as are the following */
uint64_t real_ne(uint64_t, uint64_t);
uint64_t real_lt(uint64_t, uint64_t);
uint64_t real_le(uint64_t, uint64_t);
uint64_t real_true(uint64_t);
uint64_t real_round(uint64_t);  /* to a float's value */
uint64_t real_widen(uint64_t);  /* the bits of a float */
uint64_t real_narrow(uint64_t); /* to the bits of a float */
uint64_t real_from_int(uint64_t);
uint64_t real_from_uint(uint64_t);
uint64_t real_float_from_int(uint64_t); /* rounded once */
uint64_t real_float_from_uint(uint64_t);
uint64_t real_to_int(uint64_t); /* the nearest where it does not fit; 0 of what is no number */
uint64_t real_to_uint(uint64_t);
/* The two words of a long double, to a double's bits and back. */
uint64_t real_from_long(uint64_t low, uint64_t high);
uint64_t real_long_low(uint64_t);
uint64_t real_long_high(uint64_t);
/* Of a vector register, handed over as routines' arguments of type double are. */
uint64_t real_of_register(double);
uint64_t real_of_register_low(double); /* its low half is a float */

#endif
