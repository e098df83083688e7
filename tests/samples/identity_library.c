/* Loaded by identity.c: functions whose addresses are taken in different ways. `kept`, `table` and `picked`
 * have hidden names too, by which the library names them: in code, data and a resolver. */
typedef int function(int);
#define HIDDEN_NAME(name) extern function hidden_##name __attribute__((alias("library_" #name), visibility("hidden")))
#define ALONE             __attribute__((noinline, aligned(16)))

ALONE int library_called(int n) { return n + 100; }
ALONE int library_kept(int n) { return n + 101; }
ALONE int library_table(int n) { return n + 102; }
ALONE int library_picked(int n) { return n + 103; }
ALONE static int library_other(int n) { return n + 104; }
HIDDEN_NAME(kept);
HIDDEN_NAME(table);
HIDDEN_NAME(picked);
static function *volatile table[] = {hidden_table, library_other}; /* named by relocations only */

/* The resolver calls these by pointers: from memory, and from a constant. */
ALONE static int early_kept(int n) { return n ^ 1; }
ALONE static int early_named(int n) { return n | 1; }
static function *volatile early = early_kept;

__attribute__((used)) static function *choose(void)
{
    function *volatile named = early_named;
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse2") && early(0) == named(0) ? hidden_picked : library_other;
}
function library_pick __attribute__((ifunc("choose")));

__asm__(".pushsection .text\n"
        ".balign 16\n.quad 0x1122334455667788, 0x1122334455667799\n"
        ".globl library_behind_data\n.type library_behind_data,@function\n"
        "library_behind_data: mov $105,%eax\nadd %edi,%eax\nret\n.size library_behind_data, .-library_behind_data\n"
        ".balign 16\n.globl library_only_jumps\n.type library_only_jumps,@function\n"
        "library_only_jumps: jmp 1f\n.size library_only_jumps, .-library_only_jumps\n"
        ".balign 16\n1: lea 106(%rdi),%eax\nret\n.popsection\n");
function library_behind_data, library_only_jumps, identity_own, identity_taken;

function *library_address(int which)
{
    switch (which) {
    case 0: return library_called;
    case 1: return hidden_kept;
    case 2: return table[0];
    case 3: return library_picked;
    case 4: return library_pick;
    case 5: return library_behind_data;
    case 6: return library_only_jumps;
    case 7: return identity_own;
    default: return identity_taken;
    }
}

int library_calls(function *f) { return f(1) + library_called(f == library_called); }
