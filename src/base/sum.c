#include "base/sum.h"

#include <string.h>

/* Four lanes, so that the multiplications overlap. Any change of one lane's words changes its state (multiplication by
 * an odd number and addition can be undone), and the end mixes all of them. */
uint64_t inl_sum(const void *bytes, size_t size, uint64_t seed)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t lane[4] = {seed, seed ^ k, seed + k, ~seed}, w[4];
    const uint8_t *p = bytes;
    size_t left = size;
    for (; left >= sizeof w; p += sizeof w, left -= sizeof w) {
        memcpy(w, p, sizeof w);
        for (unsigned i = 0; i < 4; i++) {
            uint64_t x = lane[i] ^ w[i];
            lane[i] = (x << 29 | x >> 35) * k + i;
        }
    }
    memset(w, 0, sizeof w);
    memcpy(w, p, left);
    uint64_t sum = size;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t x = lane[i] ^ w[i];
        sum = (sum ^ x ^ x >> 32) * k;
        sum ^= sum >> 29;
    }
    return sum;
}
