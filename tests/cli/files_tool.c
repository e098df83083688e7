/* A tool that writes a file of its own, and leaves it to the end to be written and closed. A thread has the stream when
 * the program forks. */
#include <inlay.h>

#include <string.h>
#include <time.h>

static FILE *own;
static int is_held, has_forked;

static void wait_for(const int *what)
{
    for (time_t start = time(NULL); !__atomic_load_n(what, __ATOMIC_ACQUIRE) && time(NULL) < start + 20;) {}
}

static void held(void)
{
    flockfile(own);
    __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
    wait_for(&has_forked);
    funlockfile(own);
}

static void before_fork(void)
{
    fprintf(own, "before\n");
    wait_for(&is_held);
}

static void in_child(void) { fprintf(own, "child\n"); }

static void in_parent(void)
{
    __atomic_store_n(&has_forked, 1, __ATOMIC_RELEASE);
    fprintf(own, "parent\n");
}

static void at_end(int status, void *arg)
{
    (void)arg;
    fprintf(own, "end %d\n", status >> 8);
}

static void each_image(inlay_image *image, void *arg)
{
    static const struct {
        const char *name;
        void (*routine)(void);
    } places[] = {{"take", held}, {"is_about_to_fork", before_fork}, {"child", in_child}, {"parent", in_parent}};
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        inlay_insert(inlay_proc_entry(inlay_image_proc_named(image, places[i].name)), inlay_call(places[i].routine));
}

int main(int argc, char **argv)
{
    const char *path = "";
    inlay_option_string(&path, "own", 0, "its file");
    inlay_init(&argc, &argv, "writes a file of its own");
    own = fopen(path, "a");
    if (!own) inlay_option_refuse("%s: cannot be written", path);
    inlay_on_image_load(each_image, NULL);
    inlay_on_exit(at_end, NULL);
    return inlay_start();
}
