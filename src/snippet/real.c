#include "snippet/real.h"

uint64_t real_add(uint64_t a, uint64_t b) { return real_bits(real_of(a) + real_of(b)); }
uint64_t real_sub(uint64_t a, uint64_t b) { return real_bits(real_of(a) - real_of(b)); }
uint64_t real_mul(uint64_t a, uint64_t b) { return real_bits(real_of(a) * real_of(b)); }
uint64_t real_div(uint64_t a, uint64_t b) { return real_bits(real_of(a) / real_of(b)); }
uint64_t real_min(uint64_t a, uint64_t b) { return real_of(a) < real_of(b) ? a : b; }
uint64_t real_max(uint64_t a, uint64_t b) { return real_of(a) > real_of(b) ? a : b; }
uint64_t real_eq(uint64_t a, uint64_t b) { return real_of(a) == real_of(b); }
uint64_t real_ne(uint64_t a, uint64_t b) { return real_of(a) != real_of(b); }
uint64_t real_lt(uint64_t a, uint64_t b) { return real_of(a) < real_of(b); }
uint64_t real_le(uint64_t a, uint64_t b) { return real_of(a) <= real_of(b); }
uint64_t real_true(uint64_t a) { return real_of(a) != 0; }
uint64_t real_round(uint64_t a) { return real_bits((float)real_of(a)); }

uint64_t real_widen(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return real_bits(f);
}

uint64_t real_narrow(uint64_t a)
{
    float f = (float)real_of(a);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

uint64_t real_from_int(uint64_t v) { return real_bits((double)(int64_t)v); }
uint64_t real_from_uint(uint64_t v) { return real_bits((double)v); }
uint64_t real_float_from_int(uint64_t v) { return real_bits((float)(int64_t)v); }
uint64_t real_float_from_uint(uint64_t v) { return real_bits((float)v); }

static const double TWO_63 = 9223372036854775808.0;

uint64_t real_to_int(uint64_t a)
{
    double d = real_of(a);
    if (d != d) return 0;
    if (d >= TWO_63) return INT64_MAX;
    if (d < -TWO_63) return (uint64_t)INT64_MIN;
    return (uint64_t)(int64_t)d;
}

uint64_t real_to_uint(uint64_t a)
{
    double d = real_of(a);
    if (!(d > -1)) return 0;
    if (d >= 2 * TWO_63) return UINT64_MAX;
    return (uint64_t)d;
}

uint64_t real_of_register(double d) { return real_bits(d); }
uint64_t real_of_register_low(double d) { return real_widen(real_bits(d)); }

/* Bytes of no meaning are 0. */
static void long_words(uint64_t a, uint64_t words[2])
{
    long double d = real_of(a);
    size_t bytes = sizeof d < 16 ? sizeof d : 16;
    words[0] = words[1] = 0;
    memcpy(words, &d, bytes);
    if (__LDBL_MANT_DIG__ == 64) words[1] &= 0xffff;
}

uint64_t real_from_long(uint64_t low, uint64_t high)
{
    const uint64_t words[2] = {low, high};
    long double d;
    memcpy(&d, words, sizeof d);
    return real_bits((double)d);
}

uint64_t real_long_low(uint64_t a)
{
    uint64_t words[2];
    long_words(a, words);
    return words[0];
}

uint64_t real_long_high(uint64_t a)
{
    uint64_t words[2];
    long_words(a, words);
    return words[1];
}
