/* Text of unknown origin (names of files, symbols) where it has to be UTF-8. */
#ifndef INL_BASE_UTF8_H
#define INL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that the text begins with; 0: it is none, too long a form, a surrogate, above 0x10ffff. */
static inline size_t inl_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
    return n;
}

#endif
