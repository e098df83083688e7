#include "record/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    record_settings *to;
    bool counts, fewer, events; /* this text has said so */
    char *why;
    size_t size;
} reading;

static bool wrong(const reading *r, const char *word, const char *what)
{
    snprintf(r->why, r->size, "'%s' %s", word, what);
    return false;
}

/* Is a word NAME=VALUE? */
static const char *value_of(const char *word, const char *name)
{
    size_t n = strlen(name);
    return strncmp(word, name, n) == 0 && word[n] == '=' && word[n + 1] ? word + n + 1 : NULL;
}

static bool read_number(const reading *r, const char *word, const char *value, uint64_t *to)
{
    char *end;
    *to = strtoull(value, &end, 10);
    if (!*end && value[0] != '-' && *to && *to < UINT32_MAX) return true;
    return wrong(r, word, "is no number from 1 on");
}

static bool read_time(const reading *r, const char *word, const char *value, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double number = strtod(value, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != value && number >= 0 && number < 1e9; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        *ns = (uint64_t)(number * units[i].ns);
        return true;
    }
    return wrong(r, word, "is no time: 500ns, 2us, 1.5ms, 1s");
}

static bool read_clock(reading *r, const char *word, const char *value)
{
    static const char *const names[] = {"none", "cycles", "monotonic"}; /* by record_clock */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        r->to->clock = (record_clock)i;
        r->counts |= i == RECORD_COUNTS;
        return true;
    }
    return wrong(r, word, "is none of clock=cycles, clock=monotonic, clock=none");
}

static bool read_text(const reading *r, const char *word, const char *value, char *to, size_t size)
{
    if (strlen(value) >= size) return wrong(r, word, "is too long");
    strcpy(to, value);
    return true;
}

static bool add_event(reading *r, const char *word, const char *value)
{
    char *to = r->to->events;
    if (!r->events) *to = 0;
    r->events = true;
    size_t have = strlen(to);
    if (have + 1 + strlen(value) >= sizeof r->to->events) return wrong(r, word, "makes the list of events too long");
    sprintf(to + have, "%s%s", have ? "," : "", value);
    return true;
}

static bool read_word(reading *r, const char *word)
{
    record_settings *s = r->to;
    const char *value;
    if (strcmp(word, "off") == 0) return s->off = true;
    if (strcmp(word, "counts") == 0) return read_clock(r, word, "none");
    if ((value = value_of(word, "clock"))) return read_clock(r, word, value);
    if ((value = value_of(word, "every"))) return s->thin = 0, r->fewer = true, read_number(r, word, value, &s->every);
    if ((value = value_of(word, "thin"))) return s->every = 0, r->fewer = true, read_number(r, word, value, &s->thin);
    if ((value = value_of(word, "last"))) return r->fewer = true, read_number(r, word, value, &s->last);
    if ((value = value_of(word, "depth"))) return read_number(r, word, value, &s->depth);
    if ((value = value_of(word, "threshold"))) return read_time(r, word, value, &s->threshold);
    if ((value = value_of(word, "event"))) return add_event(r, word, value);
    if ((value = value_of(word, "file"))) return read_text(r, word, value, s->file, sizeof s->file);
    return wrong(r, word,
                 "is none of counts, clock=, every=N, thin=N, last=MB, event=NAME, depth=N, threshold=TIME, file=PATH, "
                 "off");
}

/* Commas within braces do not end it. */
size_t record_settings_word(const char *text)
{
    size_t n = 0;
    for (int braces = 0; text[n] && (text[n] != ',' || braces > 0); n++) braces += (text[n] == '{') - (text[n] == '}');
    return n;
}

/* Counting alone and all that wants a clock are one another's end: the later text's word holds. */
static bool agree(reading *r, const char *text)
{
    record_settings *s = r->to;
    if (r->counts && (r->fewer || r->events))
        return wrong(r, text, "counts all calls and no more: every, thin, last and event need another clock");
    if (r->counts) {
        s->every = s->thin = s->last = 0;
        s->events[0] = 0;
    } else if (s->clock == RECORD_COUNTS && (r->fewer || r->events)) {
        s->clock = RECORD_CYCLES;
    }
    return true;
}

bool record_settings_read(record_settings *s, const char *text, char *why, size_t size)
{
    reading r = {.to = s, .why = why, .size = size};
    char word[RECORD_PATH + 16];
    for (const char *at = text; *at;) {
        size_t n = record_settings_word(at);
        if (n >= sizeof word) return wrong(&r, "INLAY_TRACE", "has a word that is too long");
        memcpy(word, at, n);
        word[n] = 0;
        if (n && !read_word(&r, word)) return false;
        at += n + (at[n] == ',');
    }
    return agree(&r, text);
}
