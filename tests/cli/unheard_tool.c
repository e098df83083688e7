/* Writes in vain whenever the program calls getppid: to standard error, and more than the file of -o may have. */
#include <inlay.h>

static char much[8192];

static void called(inlay_thread *t, inlay_syscall *call, void *arg)
{
    (void)t, (void)arg;
    if (call->number != inlay_syscall_number("getppid")) return;
    fprintf(stderr, "nobody reads this\n");
    inlay_write(much, sizeof much);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "writes in vain");
    inlay_on_syscall_entry(called, NULL);
    return inlay_start();
}
