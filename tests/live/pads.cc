// A procedure with sixty landing pads of two bytes, one behind the other: there is no room for a jump at each, and none for
// springboards nearby. One more lies in a part of its own, behind an instruction that nothing leads to. What is thrown by what
// it calls lands there, and what the handler of its own fault throws. `tiny` would have its springboard in what runs then.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#define TEN(DO, d) \
    DO(d##0) DO(d##1) DO(d##2) DO(d##3) DO(d##4) DO(d##5) DO(d##6) DO(d##7) DO(d##8) DO(d##9)
#define MANY(DO) TEN(DO, 1) TEN(DO, 2) TEN(DO, 3) TEN(DO, 4) TEN(DO, 5) TEN(DO, 6)
#define ALL(DO) DO(1) MANY(DO)
#define SITE(k) "B" #k ": mov $" #k ", %edi\n call at\n mov (%rax), %eax\nE" #k ":\n"
#define PAD(k) "P" #k ": inc %ebx\n"
#define ROW(k) ".uleb128 B" #k " - pads\n .uleb128 E" #k " - B" #k "\n .uleb128 P" #k " - pads\n .uleb128 1\n"

extern "C" int pads(void); // how many pads are behind that where it landed, itself included; -1: that of its own; 0: none was thrown
__asm__(".text\n"
        ".type pads, @function\n"
        "pads:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x9b, DW.ref.__gxx_personality_v0\n"
        ".cfi_lsda 0x1b, pads_table\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "xor %ebx, %ebx\n" ALL(SITE) "jmp end\n" MANY(PAD) // clang-format off
        "caught: mov %rax, %rdi\n"
        "call __cxa_begin_catch@PLT\n"
        "call __cxa_end_catch@PLT\n"
        "end: mov %ebx, %eax\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size pads, . - pads\n"
        ".type tiny, @function\n"
        "tiny: xor %eax, %eax\n"
        "ret\n"
        ".size tiny, . - tiny\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "nop\n"
        "P1: mov $-1, %ebx\n"
        "jmp caught\n"
        ".cfi_endproc\n"
        ".fill 160, 1, 6\n"
        ".section .gcc_except_table, \"a\", @progbits\n"
        "pads_table: .byte 0xff, 0x9b\n"
        ".uleb128 types - from_here\n"
        "from_here: .byte 1\n"
        ".uleb128 rows_end - rows\n"
        "rows: " ALL(ROW) "rows_end: .byte 1, 0\n"
        ".align 4\n"
        ".long 0\n"
        "types: .text\n"); // clang-format on

static int thrown_at, fault_at;
static int there;

extern "C" int *at(int k)
{
    if (k == thrown_at) throw k;
    return k == fault_at ? nullptr : &there;
}

static void handler(int) { throw 0; }

int main(int argc, char **argv)
{
    struct sigaction a = {};
    a.sa_handler = handler;
    a.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &a, nullptr);
    for (int k = 0; k < 80; k = k ? k + 8 : 1) {
        thrown_at = argc > 1 ? 0 : k;
        fault_at = argc > 1 ? k : 0;
        std::printf("%d: %d\n", k, pads());
    }
    return 4;
}
