/* How run times with stacks of their own look whether there is room: cmp disp(%r13),%rsp, also by r12, r14, r15. And
 * code whose stack grows by pieces (-fsplit-stack): cmp %fs:0x70,%rsp, a word that is kept for it. Go's: cmp
 * 16(%r14),%rsp, or r12, in front of everything. */
#include "move/x86_64/machine.h"
#include "isa/x86_64/x86.h"

#include <string.h>

enum { REX_WB = 0x49, CMP_LOAD = 0x3b, SHORTEST = 4 };

/* REX.W and REX.B, the opcode, and a ModRM byte that says: rsp, and memory at r12 to r15 with a displacement. */
static bool is_check(const uint8_t *p)
{
    unsigned mod = p[2] >> 6, reg = p[2] >> 3 & 7, rm = p[2] & 7;
    return p[0] == REX_WB && p[1] == CMP_LOAD && (mod == 1 || mod == 2) && reg == X86_RSP && rm >= 4;
}

int move_x86_checks_stack(const uint8_t *bytes, uint32_t size)
{
    const uint8_t *p = bytes, *end = bytes + size, *found = NULL;
    while (!found && end - p >= SHORTEST && (p = memchr(p, REX_WB, (size_t)(end - p) - SHORTEST + 1))) {
        if (is_check(p)) found = p;
        p++;
    }
    isa_insn in;
    for (p = bytes; found && p < found; p += in.len) /* not in the middle of another one */
        if (isa_x86_64.decode(p, (size_t)(end - p), 0, &in) > ISA_UNKNOWN) return -1;
    return found && p == found ? 8 + (found[2] & 7) : -1;
}

bool move_x86_checks_limit(const uint8_t *bytes, uint32_t size)
{
    enum { REX_ANY_R = 0xfb, AT_R14 = 0x66, LIMIT = 0x10 }; /* r12 for a large frame: REX.R */
    isa_insn in;
    for (uint32_t at = 0; at < size; at += in.len) {
        const uint8_t *p = bytes + at;
        if (isa_x86_64.decode(p, size - at, 0, &in) > ISA_UNKNOWN) return false;
        if (in.len == 4 && (p[0] & REX_ANY_R) == REX_WB && p[1] == CMP_LOAD && p[2] == AT_R14 && p[3] == LIMIT)
            return true;
    }
    return false;
}

bool move_x86_keeps_everything(const uint8_t *bytes, uint32_t size)
{
    static const uint8_t begin[] = {0x55, 0x48, 0x89, 0xe5, 0x9c}; /* push %rbp ; mov %rsp,%rbp ; pushf */
    return size >= sizeof begin && !memcmp(bytes, begin, sizeof begin);
}

/* A ModRM byte and what follows it: memory at the absolute address 0x70. */
static const uint8_t piece_end[] = {0x25, 0x70, 0, 0, 0};

static bool names_piece_end(const isa_insn *in)
{
    enum { FS = 0x64, LAST = sizeof piece_end };
    return in->raw[0] == FS && in->len > LAST + 2 && !memcmp(in->raw + in->len - LAST, piece_end, LAST) &&
           (in->raw[in->len - LAST - 1] & 0xc7) == 4;
}

/* stc ; nopl 0(%rax,%rax,1): what linkers (gold, lld) put in the comparison's place where a procedure calls code that
 * does not know of pieces, and so always asks for more. */
static const uint8_t no_room[] = {0xf9, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};

static bool holds(const uint8_t *bytes, uint32_t size, const uint8_t *what, uint32_t length)
{
    for (uint32_t at = 0; at + length <= size; at++)
        if (bytes[at] == what[0] && !memcmp(bytes + at, what, length)) return true;
    return false;
}

bool move_x86_asks_piece(const uint8_t *bytes, uint32_t size)
{
    bool asks = holds(bytes, size, piece_end, sizeof piece_end), never = holds(bytes, size, no_room, sizeof no_room);
    isa_insn in;
    for (uint32_t at = 0; (asks || never) && at < size; at += in.len) {
        if (isa_x86_64.decode(bytes + at, size - at, 0, &in) > ISA_UNKNOWN) return false;
        if (names_piece_end(&in)) return true;
        if (never && size - at >= sizeof no_room && !memcmp(bytes + at, no_room, sizeof no_room)) return true;
    }
    return false;
}
