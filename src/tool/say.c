/* What a tool says to the person who runs it: lines to the tool's own standard error. */
#include "tool/state.h"
#include "base/hash.h"
#include "base/sys.h"
#include "live/live.h"
#include "move/boot.h"
#include "moved/moved.h"

#include <inlay/tool.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

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

static void before_exit(int status)
{
    tool_now->blame.ends = true;
    blame_leave();
    if (tool_now->held && tool_now->held_goes_on) live_release(tool_now->held, NULL);
    else if (tool_now->held) live_end(tool_now->held, status);
    fflush(NULL);
    moved_alone_end(); /* whoever puts it in lets the process go on without it */
}

void tool_exit(int status)
{
    before_exit(status);
    _Exit(status);
}

/* The process that it is put into goes on, and has nothing to do with it, nor perhaps a standard error that anybody
 * sees: who puts it in is told (live/remote.c). */
static _Noreturn void tell_holder(int status, const char *why, const char *more)
{
    before_exit(status);
    for (;;) sys_call4(SYS_exit_group, status, (long)MOVE_BOOT_FAILED, (long)why, (long)more);
}

void tool_fail(int status, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (moved_is_starting()) tell_holder(status, line, "");
    tool_say("%s", line);
    tool_exit(status);
}

void tool_cannot_start(const inl_error *e)
{
    const char *more = e->code == INL_ERR_NO_MEMORY ? " (see ulimit -v and -d)" : "";
    if (moved_is_starting()) tell_holder(TOOL_EXIT_FAILED, e->text, more);
    tool_fail(TOOL_EXIT_FAILED, "the tool inside this program cannot start: %s%s", e->text, more);
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

/* How often a reason has been met, this time included; 0: there are too many different ones. What stands behind an
 * address does not make it another one. */
static unsigned times_met(const char *reason)
{
    tool_reasons *r = &tool_now->reasons;
    const char *address = strstr(reason, "0x");
    uint64_t key = inl_hash(INL_HASH_BEGIN, reason, address ? (size_t)(address - reason) : strlen(reason));
    unsigned i = 0, n = 0;
    inl_lock_take(&tool_now->locks.small);
    while (i < TOOL_REASONS && r->met[i] && r->key[i] != key) i++;
    if (i < TOOL_REASONS) {
        r->key[i] = key;
        n = ++r->met[i];
    }
    inl_lock_release(&tool_now->locks.small);
    return n;
}

void tool_say_refused(const char *where, const char *why)
{
    enum { MOST = 3 };
    unsigned n = times_met(why);
    const char *space = where ? " " : "";
    if (!n) tool_say_limited("cannot insert%s%s: %s", space, where ? where : "", why);
    if (!n || n > MOST) return;
    tool_say("cannot insert%s%s: %s%s", space, where ? where : "", why,
             n == MOST ? " (more points that are refused for this reason are not told)" : "");
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
