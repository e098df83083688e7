/* Debug information that no compiler at hand writes: of variables whose value is told by an expression that branches.
 *
 *     chosen   flag ? (flag == 2 ? 30 : 20) : 10
 *     endless  an expression that goes back
 */
#define OP_ADDR  0x03
#define OP_DEREF_SIZE 0x94
#define OP_CONST1U 0x08
#define OP_BRA   0x28
#define OP_SKIP  0x2f
#define OP_EQ    0x29
#define OP_LIT0  0x30
#define OP_VALUE 0x9f

    .section .debug_abbrev, "", %progbits
    .byte 1, 0x11, 1, 0x03, 0x08, 0x13, 0x0b, 0, 0             /* compile_unit: name, language */
    .byte 2, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0 /* variable: name, type, location */
    .byte 3, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0 /* base_type: name, size, encoding */
    .byte 0

    .section .debug_info, "", %progbits
begin:
    .4byte end - version
version:
    .2byte 5
    .byte 1, 8
    .4byte 0
    .byte 1
    .asciz "branches.S"
    .byte 0x1d
type:
    .byte 3
    .asciz "int"
    .byte 4, 5

    .byte 2
    .asciz "chosen"
    .4byte type - begin
    .byte 5f - 1f
1:  .byte OP_ADDR
    .8byte flag
    .byte OP_DEREF_SIZE, 4, OP_BRA
    .2byte 3f - 2f
2:  .byte OP_CONST1U, 10, OP_SKIP
    .2byte 6f - 3f
3:  .byte OP_ADDR
    .8byte flag
    .byte OP_DEREF_SIZE, 4, OP_LIT0 + 2, OP_EQ, OP_BRA
    .2byte 4f - 7f
7:  .byte OP_CONST1U, 20, OP_SKIP
    .2byte 6f - 4f
4:  .byte OP_CONST1U, 30
6:  .byte OP_VALUE
5:

    .byte 2
    .asciz "endless"
    .4byte type - begin
    .byte 5f - 1f
1:  .byte OP_LIT0 + 1, OP_LIT0 + 2, OP_BRA
    .2byte 1b - 2f
2:  .byte OP_VALUE
5:
    .byte 0
end:
    .section .note.GNU-stack, "", %progbits
