/* What instrumented objects have of the recorder's settings: options become the text that INLAY_TRACE may be, too. */
#include "cli/events.h"
#include "cli/object.h"
#include "record/settings.h"

#include <stdlib.h>
#include <string.h>

static bool add(object_choice *c, const char *word)
{
    size_t have = c->settings ? strlen(c->settings) : 0;
    char *text = realloc(c->settings, have + strlen(word) + 2);
    if (!text) {
        cli_say("out of memory");
        return false;
    }
    c->settings = text;
    sprintf(text + have, "%s%s", have ? "," : "", word);
    return true;
}

/* Each event by itself, by number where the recorder does not know its name. */
static bool add_events(object_choice *c, const char *list)
{
    enum { ROOM = 8192 };
    char why[512], word[RECORD_EVENTS], *out = malloc(ROOM);
    bool good = out && events_translate(list, EVENTS_DEVICES, out, ROOM, why);
    if (!good) cli_say("--event: %s", out ? why : "out of memory");
    for (const char *at = good ? out : ""; *at && good;) {
        size_t n = record_settings_word(at);
        good = snprintf(word, sizeof word, "event=%.*s", (int)n, at) < (int)sizeof word;
        if (!good) cli_say("--event: the list is too long");
        good = good && add(c, word);
        at += n + (at[n] == ',');
    }
    free(out);
    return good;
}

int object_settings_take(object_choice *c, char **argv)
{
    static const char *const names[] = {"clock", "every", "thin", "last", "depth", "threshold", "file"};
    const char *word = argv[0], *value = strchr(word, '=');
    if (strncmp(word, "--", 2) != 0 || !value || !value[1]) return 0;
    size_t n = (size_t)(value - word) - 2;
    if (n == 5 && strncmp(word + 2, "event", n) == 0) return add_events(c, value + 1) ? 1 : -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(word + 2, names[i], n) == 0) return add(c, word + 2) ? 1 : -1;
    return 0;
}

bool object_choice_agrees(object_choice *c)
{
    static record_settings s;
    char why[RECORD_PATH + 256];
    s = (record_settings){.clock = RECORD_CYCLES};
    if (c->settings && !record_settings_read(&s, c->settings, why, sizeof why)) {
        cli_say("%s", why);
        return false;
    }
    c->counts = s.clock == RECORD_COUNTS;
    return true;
}
