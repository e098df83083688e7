/* Makes all calls of calls.h (nothing.py) in one place of a tool. */
#include "nothing.h"

static const char *where = "exit";
static bool done;

static void make_all(void)
{
    done = true;
    for (unsigned n = 0; n < CALLS; n++) {
        fprintf(stderr, "%s\n", texts[n]);
        call(n);
    }
    fprintf(stderr, "made %d\n", CALLS);
}

static void block(inlay_block *b, void *arg)
{
    (void)arg;
    if (done || strcmp(where, "block") || !inlay_block_proc(b)) return;
    made_of(inlay_block_proc(b));
    v_block = b;
    v_insn = inlay_block_first(b);
    v_point = inlay_block_entry(b);
    make_all();
}

static void image(inlay_image *i, void *arg)
{
    (void)arg;
    if (done || strcmp(where, "image") || !inlay_image_is_main(i)) return;
    made_of(inlay_image_proc_named(i, "step"));
    v_block = inlay_proc_block_first(v_proc);
    v_insn = inlay_block_first(v_block);
    v_point = inlay_proc_entry(v_proc);
    make_all();
}

static void over(int status, void *arg)
{
    (void)status, (void)arg;
    if (done || strcmp(where, "exit")) return;
    made_of(inlay_image_proc_first(inlay_image_first()));
    inlay_reinstrument_proc(v_proc); /* which is for the JIT */
    make_all();
}

int main(int argc, char **argv)
{
    inlay_option_string(&where, "where", 0, "block, image, exit");
    inlay_init(&argc, &argv, "asks nothing");
    made_in_main();
    inlay_on_block(block, NULL);
    inlay_on_image_load(image, NULL);
    inlay_on_exit(over, NULL);
    return inlay_start();
}
