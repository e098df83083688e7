/* inlay-events is started, and its answer read. */
#include "cli/cli.h"
#include "cli/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool events_of_library(const char *word, events_code *out, char why[512])
{
    cli_place place;
    char path[PATH_MAX + 32], answer[1024];
    *out = (events_code){0};
    if (!cli_place_find(&place)) return false;
    snprintf(path, sizeof path, "%s/../inlay-events", place.tools);
    char *const argv[] = {path, (char *)(uintptr_t)word, NULL};
    if (!cli_answer(argv, true, answer, sizeof answer)) {
        snprintf(why, 512, "it is none of the kernel's, and inlay-events, which asks libpfm4 and PAPI, cannot be run");
        return false;
    }
    if (!strncmp(answer, "no ", 3)) snprintf(why, 512, "%.500s", answer + 3);
    return sscanf(answer, "code %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %3[ukh]", &out->type, &out->config[0],
                  &out->config[1], &out->config[2], out->modifiers) >= 4;
}
