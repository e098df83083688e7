/* A list of events, word by word: what the tool knows stays as it is. */
#include "cli/events.h"
#include "tool/perf_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* PAPI's names of what the kernel counts under names of its own, whatever the processor; the others are PAPI's to
 * tell. */
static const char *const presets[][2] = {{"PAPI_TOT_CYC", "cycles"},
                                         {"PAPI_TOT_INS", "instructions"},
                                         {"PAPI_BR_INS", "branch-instructions"},
                                         {"PAPI_BR_MSP", "branch-misses"},
                                         {"PAPI_REF_CYC", "ref-cycles"}};

/* Up to a comma that does not stand within slashes, or a brace. */
static size_t word_length(const char *at)
{
    bool inside = false;
    size_t n = 0;
    for (; at[n] && (inside || !strchr(",{}", at[n])); n++)
        if (at[n] == '/') inside = !inside;
    return n;
}

static bool is_known(const char *word)
{
    perf_asked unused[INLAY_PERF_MOST];
    char why[256];
    return perf_names_read(word, unused, why, sizeof why) != 0;
}

/* "cpu/event=1,umask=2/" is shown so, but for what divides events. */
static bool put_code(char *out, size_t size, const char *word, const events_code *code)
{
    char name[PERF_NAME];
    size_t n = strlen(word);
    if (n >= sizeof name) n = sizeof name - 1;
    for (size_t i = 0; i < n; i++) name[i] = strchr(",{}", word[i]) ? '+' : word[i];
    name[n] = 0;
    int used = snprintf(out, size, "%s=%" PRIu32 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64 "%s%s", name, code->type,
                        code->config[0], code->config[1], code->config[2], code->modifiers[0] ? ":" : "",
                        code->modifiers);
    return used > 0 && (size_t)used < size;
}

/* By the preset's name, with the numbers that the kernel's word stands for. */
static bool put_preset(char *out, size_t size, const char *word)
{
    size_t n = strcspn(word, ":");
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        perf_asked asked[INLAY_PERF_MOST];
        char why[256];
        if (strlen(presets[i][0]) != n || strncmp(presets[i][0], word, n) != 0) continue;
        if (!perf_names_read(presets[i][1], asked, why, sizeof why)) return false;
        int used = snprintf(out, size, "%.*s=%" PRIu32 "/%" PRIu64 "%s", (int)n, word, asked[0].type, asked[0].config,
                            word + n);
        return used > 0 && (size_t)used < size && is_known(out);
    }
    return false;
}

/* PAPI's names have no modifiers: these are taken off for it. */
static bool ask_library(const char *word, events_code *code, char why[512])
{
    char name[512];
    size_t n = strncmp(word, "PAPI_", 5) ? strlen(word) : strcspn(word, ":");
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    if (!events_of_library(name, code, why)) return false;
    if (!word[n]) return true;
    if (!word[n + 1] || strlen(word + n + 1) >= sizeof code->modifiers ||
        strspn(word + n + 1, "ukh") != strlen(word + n + 1))
        return false;
    strcpy(code->modifiers, word + n + 1);
    return true;
}

static bool put_word(const char *word, const char *devices, char *out, size_t size, char why[512])
{
    events_code code;
    if (is_known(word)) return (size_t)snprintf(out, size, "%s", word) < size;
    int found = events_of_device(word, devices, &code, why);
    if (found < 0) return false;
    if (found > 0 || ask_library(word, &code, why)) return put_code(out, size, word, &code);
    return put_preset(out, size, word);
}

bool events_translate(const char *list, const char *devices, char *out, size_t size, char why[512])
{
    char word[512], reason[512] = "";
    size_t used = 0;
    out[0] = 0;
    for (const char *at = list; *at;) {
        size_t n = word_length(at);
        if (used + 2 >= size || n >= sizeof word) {
            snprintf(why, 512, "too long: %s", list);
            return false;
        }
        memcpy(word, at, n);
        word[n] = 0;
        at += n;
        if (n && !put_word(word, devices, out + used, size - used - 1, reason)) {
            if (reason[0]) snprintf(why, 512, "event '%.100s' is not known: %.380s", word, reason);
            else snprintf(why, 512, "'%.100s' is no event", word);
            return false;
        }
        used += strlen(out + used);
        if (*at) out[used++] = *at++;
        out[used] = 0;
    }
    return true;
}
