/* Counts calls in libraries that are opened, and has the kernel map what other threads of the program might map
 * meanwhile: between the look at its memory and the choice of a place, and again while new code is made for that. */
#include <inlay.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECES = 600 };
static inlay_counter calls;
static unsigned crowds; /* in this process, which is the one that opens them */

/* Downwards from the lowest library, past where new code is put first. */
static void crowd(void)
{
    for (int k = 0; k < PIECES; k++)
        syscall(SYS_mmap, NULL, 1ul << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0ul);
    crowds++;
}

static bool is_opened(const inlay_image *i) { return !strncmp(inlay_image_name(i), "lib", 3); }

static void on_image(inlay_image *i, void *arg)
{
    (void)arg;
    if (is_opened(i)) crowd();
}

static void on_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    if (is_opened(inlay_proc_image(p)) && crowds == 1) crowd();
    inlay_insert(inlay_proc_entry(p), inlay_count(&calls, 1));
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%u crowds, %s\n", crowds, inlay_counter_sum(&calls) ? "calls" : "no call");
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "maps memory while libraries are instrumented");
    inlay_on_image_load(on_image, NULL);
    inlay_on_proc(on_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
