/* For each line that it reads it interprets some code, in a procedure of which an indirect jump is reached from several
 * places: each has loaded the entry of one table. What the table leads to is short, and there is no padding near. */
#include <stdio.h>

int interpret(const unsigned char *code);
__asm__(".text\n"
        ".globl interpret\n"
        ".type interpret, @function\n"
        "interpret:\n"
        " xor %esi, %esi\n"
        " movzbl (%rdi), %eax\n"
        " inc %rdi\n"
        " and $3, %eax\n"
        " mov table(,%rax,8), %rax\n"
        " jmp 9f\n"
        "skips: jmp next\n"
        "adds: jmp add\n"
        "twice: jmp add2\n"
        "next: movzbl (%rdi), %eax\n"
        " inc %rdi\n"
        " and $3, %eax\n"
        " mov table(,%rax,8), %rax\n"
        "9: jmp *%rax\n"
        "add2: inc %esi\n"
        "add: inc %esi\n"
        " movzbl (%rdi), %eax\n"
        " inc %rdi\n"
        " and $3, %eax\n"
        " mov table(,%rax,8), %rax\n"
        " jmp 9b\n"
        "ends: mov %esi, %eax\n"
        " ret\n"
        ".size interpret, . - interpret\n"
        " .section .rodata\n"
        " .balign 8\n"
        "table: .quad skips, adds, twice, ends\n"
        ".previous\n");

int main(void)
{
    static unsigned char code[1001];
    for (int k = 0; k < 1000; k++) code[k] = (unsigned char)(k % 3);
    code[1000] = 3;
    for (int c; (c = getchar()) != EOF;)
        if (c == '\n') printf("%d\n", interpret(code)), fflush(stdout);
    return 0;
}
