/* What a tool says to the person who runs it: lines to the tool's own standard error. */
#include "tool/state.h"
#include "live/live.h"

#include <inlay/tool.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *tool_name(void) { return program_invocation_short_name; }

void tool_say_list(const char *fmt, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, fmt, args);
    fprintf(stderr, "%s: %s\n", tool_name(), line);
}

void tool_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tool_say_list(fmt, args);
    va_end(args);
}

void tool_fail(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tool_say_list(fmt, args);
    va_end(args);
    tool_exit(status);
}

void tool_exit(int status)
{
    tool_now->blame.ends = true;
    if (tool_now->held) live_end(tool_now->held, status);
    fflush(NULL);
    _Exit(status);
}

/* The same mistake is made at a thousand places: the first few are told. */
void tool_say_limited(const char *fmt, ...)
{
    enum { MOST = 20 };
    unsigned n = __atomic_fetch_add(&tool_now->said, 1, __ATOMIC_RELAXED);
    if (n >= MOST) return;
    char line[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    tool_say("%s%s", line, n == MOST - 1 ? " (further messages of this kind are left out)" : "");
}

void tool_mistake(const char *fmt, ...)
{
    va_list args;
    if (tool_here.mistake[0]) return;
    va_start(args, fmt);
    vsnprintf(tool_here.mistake, sizeof tool_here.mistake, fmt, args);
    va_end(args);
}

const char *tool_mistaken(char *out, size_t size)
{
    const char *known = tool_here.mistake[0] ? tool_here.mistake : NULL;
    snprintf(out, size, "%s", known ? known : "an empty snippet (a wrong argument, or memory is used up)");
    tool_here.mistake[0] = '\0';
    return out;
}

void inlay_warn(const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    tool_say("%s", line);
}
