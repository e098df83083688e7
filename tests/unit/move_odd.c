/* Procedures that a compiler only makes now and then, in programs whose code is moved by tests. */

/* Too short for a jump, with no padding behind it: only a springboard in another's old code catches it, however the
 * compiler lays its own procedures out. */
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".type short_one, @function\n"
        "short_one: xor %eax, %eax\n"
        "ret\n"
        ".size short_one, . - short_one\n"
        ".type long_one, @function\n"
        "long_one: .rept 16\n"
        "add $1000, %eax\n"
        ".endr\n"
        "ret\n"
        ".size long_one, . - long_one\n"
        ".popsection");
