/* Spoils what Inlay remembers of the first thread, so that Inlay's own code crashes when the program next sets a
 * signal's action: that is nobody's fault but Inlay's. Written against Inlay's own headers. */
#include "run/run.h"

#include <inlay.h>

static void spoil(void *arg)
{
    (void)arg;
    run_self()->signals = (struct run_signals *)16;
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "spoils what Inlay remembers");
    inlay_on_start(spoil, NULL);
    return inlay_start();
}
