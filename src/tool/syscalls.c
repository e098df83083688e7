/* Names of system calls, from the headers that the library is compiled with. */
#include <inlay/callback.h>

#include <string.h>

static const char *const names[] = {
#include "syscall_names.inc"
};
enum { COUNT = sizeof names / sizeof *names };

const char *inlay_syscall_name(long number) { return number >= 0 && number < COUNT ? names[number] : NULL; }

long inlay_syscall_number(const char *name)
{
    for (long n = 0; name && n < COUNT; n++)
        if (names[n] && !strcmp(names[n], name)) return n;
    return -1;
}
