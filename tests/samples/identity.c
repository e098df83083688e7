/* Addresses of functions, taken in the program, in its library and by name: those of one function are equal,
 * and what lies in front of its code is found from them. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int function(int);

function library_called, library_kept, library_table, library_picked, library_pick, library_behind_data,
    library_only_jumps;
function *library_address(int which);
int library_calls(function *);

int identity_own(int n) { return n + 7; }
int identity_taken(int n) { return n + 8; }
static function *const taken[] = {identity_taken, identity_own};

static void compare(const char *name, function *mine, int which)
{
    function *found = (function *)dlsym(RTLD_DEFAULT, name);
    Dl_info info = {0};
    int named = mine && dladdr((void *)mine, &info) && info.dli_saddr == (void *)mine;
    printf("%-20s %d by name %d in the library %d symbol %d aligned %d\n", name, mine(which), found == mine,
           library_address(which) == mine, named, ((uintptr_t)mine & 15) == 0);
}

int main(void)
{
    uint64_t front;
    compare("library_called", library_called, 0);
    compare("library_kept", library_kept, 1);
    compare("library_table", library_table, 2);
    compare("library_picked", library_picked, 3);
    compare("library_pick", library_pick, 4);
    compare("library_behind_data", library_behind_data, 5);
    compare("library_only_jumps", library_only_jumps, 6);
    compare("identity_own", identity_own, 7);
    compare("identity_taken", identity_taken, 8);
    const volatile uintptr_t code = (uintptr_t)library_behind_data;
    memcpy(&front, (const void *)(code - 8), sizeof front);
    printf("in front %llx\n", (unsigned long long)front);
    printf("picked is pick %d, tables %d %d, calls %d\n", library_picked == library_pick, taken[0] == identity_taken,
           taken[1] == (function *)dlsym(RTLD_DEFAULT, "identity_own"),
           library_calls(identity_own) + library_calls(library_called));
    return 0;
}
