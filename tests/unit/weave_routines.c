/* Routines as tools have them: sums, tables, bits, conditions. Compiled with different compilers and levels;
 * SET names the table of one compilation. All answer 64 bits, for halves of registers hold anything. */
#include "weave_routines.h"

typedef uint64_t u64;

static u64 nothing(void) { return 0; }
static u64 same(u64 a) { return a; }
static u64 constant(u64 a)
{
    (void)a;
    return 0x123456789abcdef0;
}
static u64 count(void) { return ++cells[0]; }
static u64 add_to(u64 n, u64 amount)
{
    cells[n & 31] += amount;
    return amount;
}
static u64 through_pointer(u64 n, u64 amount) { return cell_pointer[n & 63] += amount; }
static u64 cache(u64 address)
{
    u64 line = address >> 5, place = line & 255;
    cells[1]++;
    if (cells[256 + place] != line + 1) {
        cells[2]++;
        cells[256 + place] = line + 1;
    }
    return cells[2];
}
static u64 audit(int n, u64 now)
{
    struct pair {
        long count, wasted;
    } *p = (struct pair *)cell_pointer + (n & 15);
    p->count++;
    if (cells[5] == now) p->wasted++;
    cells[5] = now;
    return (u64)p->count;
}
static u64 choose(int kind, u64 v)
{
    if (kind == 1) return cells[3] += v;
    if (kind == 2) return cells[4] ^= v;
    if (kind < 0) return cells[3]--;
    return 7;
}
static u64 by_cl(u64 a, u64 n) { return cells[6] = a << (n & 63); }
static u64 by_cl32(uint32_t a, u64 n) { return cells[6] = a >> (n & 31); }
static u64 rotate(u64 a, u64 n)
{
    n &= 63;
    return cells[7] = a << n | a >> (-n & 63);
}
static u64 divide(u64 a, u64 b) { return cells[8] = a / ((b & 0xff) + 1); }
static u64 remainder_of(int64_t a, int64_t b) { return cells[9] = (u64)(a % ((b & 0xff) + 3)); }
static u64 high(u64 a, u64 b) { return cells[10] = (u64)((unsigned __int128)a * b >> 64); }
static u64 product(u64 a, u64 b) { return cells[11] += a * b * 24; }
static u64 narrow(int8_t a, uint16_t b, int32_t c) { return cells[12] += (u64)((int64_t)a + b - (int64_t)c); }
static u64 bytes(u64 a, u64 b) { return ((uint8_t *)&cells[16])[a & 31] = (uint8_t)(b + 1); }
static u64 halves(u64 a, u64 b) { return ((uint16_t *)&cells[20])[a & 15] += (uint16_t)b; }
static u64 words(u64 a, int b) { return (u64)(int64_t)(((int32_t *)&cells[24])[a & 7] -= b); }
static u64 greater(int64_t a, int64_t b) { return cells[28] = (u64)(a > b ? a : b); }
static u64 truth(u64 a, u64 b) { return cells[29] += (u64)(a == b) + 2 * (u64)(a < b) + 4 * (u64)((int)a > (int)b); }
static u64 bit(u64 a, u64 n) { return cells[30] |= a >> (n & 63) & 1 ? 1ull << (a & 63) : 0; }
static u64 six(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    return cells[31] += a + 3 * b - 5 * c + (d ^ e) + (f & 255);
}
static u64 six_wide(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    u64 x = a * b + c, y = d - e * f;
    cells[32] = x, cells[33] = y;
    return x > y ? x - a : y + f;
}
static u64 locked(u64 a) { return __sync_fetch_and_add(&cells[34], a); }
static u64 swapped(u64 a) { return __atomic_exchange_n(&cells[35], a, __ATOMIC_SEQ_CST); }
static u64 ones(u64 a) { return cells[36] += (u64)__builtin_ctzll(a | 1ull << 40); }
static u64 limits(u64 a, u64 b)
{
    if (a - b > 1000) return cells[37]++;
    if ((a & 3) == 2 && (b & 1)) cells[38] += a;
    return a ^ b;
}
/* clang-format off */
static u64 far_constant(u64 a) { cells[39] = 0x1122334455667788; return cells[39] ^ (a + 0xfedcba9876543210); }
static u64 twice(u64 a) { u64 x = cells[40]; cells[40] = a; return x + 2 * a; }
static u64 inverted(u64 a, u64 b) { return cells[41] = ~a - -b; }
static u64 signs(int a, int64_t b) { return cells[42] = (u64)((a >> 3) + (b >> 5)); }
static u64 swap_bytes(uint32_t a) { return cells[43] = __builtin_bswap32(a); }
static u64 either(u64 a) { return cells[44] += a & 1 ? 3 : 5; }
static u64 stored_constants(int a) { cells[45] = 5; ((int *)cells)[92] = -1; ((char *)cells)[380] = (char)a; return 9; }
static u64 clamp(uint32_t a) { if (a > 100) a = 100; cells[48 + (a >> 4)] += a; return a; }
static u64 carry(u64 a, u64 b) { u64 s = a + b; cells[56] += s < a; return s; }
static u64 table(u64 k) { return cells[57] += cells[256 + (k & 7) * 3]; }
static u64 compare_cells(u64 a) { return cells[58] == a ? cells[59] : cells[60]++; }
static u64 both(u64 a, u64 b) { return cells[61] = (a && b) + (a || b); }

#define R(f, n) {#f, (void (*)(void))f, n}
const routine_set SET = {
    HOW, 43,
    {R(nothing, 0), R(same, 1), R(constant, 1), R(count, 0), R(add_to, 2), R(through_pointer, 2), R(cache, 1),
     R(audit, 2), R(choose, 2), R(by_cl, 2), R(by_cl32, 2), R(rotate, 2), R(divide, 2), R(remainder_of, 2), R(high, 2),
     R(product, 2), R(narrow, 3), R(bytes, 2), R(halves, 2), R(words, 2), R(greater, 2), R(truth, 2), R(bit, 2),
     R(six, 6), R(six_wide, 6), R(locked, 1), R(swapped, 1), R(ones, 1), R(limits, 2), R(far_constant, 1),
     R(twice, 1), R(inverted, 2), R(signs, 2), R(swap_bytes, 1), R(either, 1), R(stored_constants, 1), R(clamp, 1),
     R(carry, 2), R(table, 1), R(compare_cells, 1), R(both, 2), R(add_to, 2), R(cache, 1)}};

/* clang-format on */