/* What gdb asks about the process: features, threads, its registers' description, auxiliary vector, file, the signal
 * that it has stopped for. */
#include "tool/gdb.h"
#include "base/sys.h"
#include "run/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

/* --- threads --- */

static void list_threads(tool_gdb *g)
{
    int tids[GDB_PACKET / 12];
    unsigned count = jit_stops_threads(tids, sizeof tids / sizeof *tids);
    gdb_say(g, "m");
    for (unsigned i = 0; i < count; i++) gdb_say(g, "%s%x", i ? "," : "", (unsigned)tids[i]);
}

/* As an attribute's value in XML. */
static size_t put_name(char *out, int tid)
{
    char path[64], name[64];
    snprintf(path, sizeof path, "self/task/%d/comm", tid);
    long fd = run_proc_open(path);
    long n = sys_failed(fd) ? 0 : sys_call3(SYS_read, fd, (long)name, sizeof name);
    if (!sys_failed(fd)) sys_call1(SYS_close, fd);
    size_t at = 0;
    for (long i = 0; i < n && name[i] != '\n'; i++) {
        if (strchr("<>&\"", name[i]) || (uint8_t)name[i] < ' ')
            at += (size_t)sprintf(out + at, "&#%d;", (uint8_t)name[i]);
        else out[at++] = name[i];
    }
    out[at] = 0;
    return at;
}

/* --- pieces of longer texts: qXfer:NAME:read:ANNEX:OFFSET,LENGTH --- */

static void piece(tool_gdb *g, const char *data, size_t size, uint64_t offset, uint64_t length)
{
    if (length > GDB_PACKET / 2 - 1) length = GDB_PACKET / 2 - 1;
    if (offset >= size) {
        gdb_say(g, "l");
        return;
    }
    size_t n = size - offset < length ? size - offset : length;
    g->answer[0] = n == size - offset ? 'l' : 'm';
    memcpy(g->answer + 1, data + offset, n);
    g->answer_size = n + 1;
}

static void send_threads(tool_gdb *g, uint64_t offset, uint64_t length)
{
    enum { MOST = 4096, EACH = 512 };
    int *tids = malloc(MOST * sizeof *tids);
    unsigned count = tids ? jit_stops_threads(tids, MOST) : 0;
    char *text = malloc(64 + count * (size_t)EACH), name[384];
    if (!text || !tids) {
        gdb_say(g, "E01");
    } else {
        size_t n = (size_t)sprintf(text, "<?xml version=\"1.0\"?><threads>");
        for (unsigned i = 0; i < count; i++) {
            put_name(name, tids[i]);
            n += (size_t)sprintf(text + n, "<thread id=\"%x\" name=\"%s\"/>", (unsigned)tids[i], name);
        }
        n += (size_t)sprintf(text + n, "</threads>");
        piece(g, text, n, offset, length);
    }
    free(text);
    free(tids);
}

static void send_features(tool_gdb *g, uint64_t offset, uint64_t length)
{
    size_t size = gdb_register_text(NULL, 0);
    char *text = malloc(size + 1);
    if (!text) {
        gdb_say(g, "E01");
        return;
    }
    gdb_register_text(text, size + 1);
    piece(g, text, size, offset, length);
    free(text);
}

static void send_auxv(tool_gdb *g, uint64_t offset, uint64_t length)
{
    char vector[2048];
    long fd = run_proc_open("self/auxv");
    long n = sys_failed(fd) ? -1 : sys_call3(SYS_read, fd, (long)vector, sizeof vector);
    if (!sys_failed(fd)) sys_call1(SYS_close, fd);
    if (n < 0) gdb_say(g, "E01");
    else piece(g, vector, (size_t)n, offset, length);
}

static void send_file(tool_gdb *g, uint64_t offset, uint64_t length)
{
    char path[4096];
    ssize_t n = (ssize_t)sys_readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0) gdb_say(g, "E01");
    else piece(g, path, (size_t)n, offset, length);
}

static void transfer(tool_gdb *g, const char *q)
{
    const char *read = strstr(q, ":read:"), *colon = read ? strchr(read + 6, ':') : NULL;
    if (!colon) return;
    const char *numbers = colon + 1;
    uint64_t offset = gdb_take_number(&numbers), length = (numbers += *numbers == ',', gdb_take_number(&numbers));
    if (begins(q, "features:") && begins(read + 6, "target.xml:")) send_features(g, offset, length);
    else if (begins(q, "features:")) gdb_say(g, "E00");
    else if (begins(q, "threads:")) send_threads(g, offset, length);
    else if (begins(q, "auxv:")) send_auxv(g, offset, length);
    else if (begins(q, "exec-file:")) send_file(g, offset, length);
    else if (begins(q, "siginfo:") && g->why.why != JIT_STOP_SIGNAL) gdb_say(g, "E01");
    else if (begins(q, "siginfo:")) piece(g, (const char *)&g->info, sizeof g->info, offset, length);
}

/* --- settings --- */

static void pass_signals(tool_gdb *g, const char *q)
{
    g->passed = 0;
    while (gdb_hex(*q) >= 0) {
        int signo = gdb_signal_in((int)gdb_take_number(&q));
        if (signo) g->passed |= RUN_BIT(signo);
        if (*q == ';') q++;
    }
    jit_stops_pass(g->passed);
    gdb_say(g, "OK");
}

static void tell_features(tool_gdb *g, const char *q)
{
    g->knows_exec = strstr(q, "exec-events+") != NULL;
    gdb_say(g,
            "PacketSize=%x;QStartNoAckMode+;QPassSignals+;qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;"
            "qXfer:siginfo:read+;qXfer:threads:read+;vContSupported+;swbreak+;hwbreak+%s",
            GDB_PACKET, g->knows_exec ? ";exec-events+" : "");
}

void gdb_query(tool_gdb *g, const char *q)
{
    if (begins(q, "qSupported")) tell_features(g, q);
    else if (!strcmp(q, "QStartNoAckMode")) gdb_say(g, "OK");
    else if (begins(q, "QPassSignals:")) pass_signals(g, q + 13);
    else if (begins(q, "qXfer:")) transfer(g, q + 6);
    else if (!strcmp(q, "qfThreadInfo")) list_threads(g);
    else if (!strcmp(q, "qsThreadInfo")) gdb_say(g, "l");
    else if (!strcmp(q, "qC")) gdb_say(g, "QC%x", (unsigned)g->stopped->tid);
    else if (begins(q, "qAttached")) gdb_say(g, "0");
    else if (begins(q, "qSymbol:")) gdb_say(g, "OK");
}
