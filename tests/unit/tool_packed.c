/* Records packed and unpacked: the same, whatever forms stand beside each other. */
#include <inlay/trace_format.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* tools/trace.h, trace/reader.h: which cannot be included together. */
size_t trace_pack(uint32_t *out, size_t room, const inlay_trace_record *, size_t count);
size_t trace_unpack(const void *from, size_t bytes, inlay_trace_record *out);

enum { MOST = 4000, ROUNDS = 400, ROOM = MOST * 5 };

static uint64_t state = 88172645463325252u;

static uint64_t random_to(uint64_t end)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % end;
}

static inlay_trace_record made(uint64_t *time, uint64_t *sp, unsigned odd)
{
    uint32_t what = 2 + (uint32_t)random_to(900);
    *time += random_to(3000);
    *sp += 16 * (random_to(21) - 10);
    switch (odd && random_to(odd) == 0 ? random_to(9) : 9) {
    case 0: *time += 1u << 15; break;
    case 1: *time += (uint64_t)1 << (26 + random_to(21)); break; /* the other half of the word changes, too */
    case 2: *time -= random_to(5000); break;
    case 3: *sp += 8; break;
    case 4: *sp += 1u << random_to(20); break;
    case 5: *sp ^= (uint64_t)1 << (32 + random_to(16)); break;
    case 6: what = 1u << (10 + random_to(21)); break;
    case 7: *sp -= 512 - 16 * random_to(3); break; /* the short form's end */
    case 8:
        return (inlay_trace_record){random_to(1u << 30), (uint32_t)(random_to(20) | 'e' << 8 | 8 << 16),
                                    (uint32_t)INLAY_TRACE_VALUE};
    default: break;
    }
    return (inlay_trace_record){*time << 16 | (*sp >> 32 & 0xffff), (uint32_t)*sp, what};
}

static void comes_back(void **unused)
{
    static inlay_trace_record from[MOST], to[MOST];
    static uint32_t packed[ROOM];
    (void)unused;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t time = random_to((uint64_t)1 << 40), sp = 0x7ffd00001000 + 16 * random_to(1u << 20);
        size_t count = 1 + random_to(MOST);
        for (size_t i = 0; i < count; i++) from[i] = made(&time, &sp, round % 8 ? 1u << round % 8 : 0);
        size_t bytes = trace_pack(packed, sizeof packed, from, count);
        assert_true(bytes > 0);
        if (round % 8 == 0) assert_true(bytes <= count * 4 + 16); /* but for the first all are short */
        memset(to, 0, sizeof to);
        assert_int_equal(trace_unpack(packed, bytes, NULL), count);
        trace_unpack(packed, bytes, to);
        assert_memory_equal(from, to, count * sizeof *from);
    }
}

static void has_room(void **unused)
{
    static inlay_trace_record from[MOST];
    static uint32_t packed[ROOM];
    (void)unused;
    uint64_t time = 1, sp = 0x7ffd00001000;
    for (size_t i = 0; i < MOST; i++) from[i] = made(&time, &sp, 2);
    size_t bytes = trace_pack(packed, sizeof packed, from, MOST);
    for (size_t room = 0; room < bytes; room += 4 * 97) {
        packed[room / 4] = 0x5aa5a55a;
        size_t got = trace_pack(packed, room, from, MOST);
        assert_int_equal(got, 0);
        assert_int_equal(packed[room / 4], 0x5aa5a55a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back), cmocka_unit_test(has_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
