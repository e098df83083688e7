/* Counts calls in a library that is opened, and has the kernel map what other threads of the program might map
 * meanwhile: liba.so's, between the look at its memory and the choice of a place; libb.so's, while new code is made. */
#include <inlay.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECES = 1700 };
static inlay_counter calls;
static unsigned crowds; /* in this process, which is the one that opens them */

/* The kernel goes downwards: as far as new code can be from its library. */
static void crowd(void)
{
    for (int k = 0; k < PIECES; k++)
        syscall(SYS_mmap, NULL, 1ul << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0ul);
    crowds++;
}

static void on_image(inlay_image *i, void *arg)
{
    (void)arg;
    if (!strcmp(inlay_image_name(i), "liba.so")) crowd();
}

static void on_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    if (!strcmp(inlay_image_name(inlay_proc_image(p)), "libb.so") && !crowds) crowd();
    if (!strcmp(inlay_proc_name(p), "kind_of")) inlay_insert(inlay_proc_entry(p), inlay_count(&calls, 1));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%u crowd, %d calls\n", crowds, (int)inlay_counter_sum(&calls));
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "maps memory while libraries are instrumented");
    inlay_on_image_load(on_image, NULL);
    inlay_on_proc(on_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
