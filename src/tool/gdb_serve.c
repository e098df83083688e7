/* The program's side of gdb's remote protocol. A thread that has stopped reads requests here and answers, until it is
 * told how all are to go on; while they run nobody reads.
 *
 * All threads stop and go on together, as gdb's all-stop mode has it. Memory is the program's own: breakpoints leave no
 * trace in it, and what is Inlay's is not shown. When gdb is gone the program goes on without it. */
#include "tool/gdb.h"
#include "base/sys.h"
#include "run/kernel.h"

#include <inlay/tool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static tool_gdb *here(void) { return tool_now->gdb; }

/* --- answers --- */

void gdb_say(tool_gdb *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    size_t left = sizeof g->answer - g->answer_size;
    int n = vsnprintf(g->answer + g->answer_size, left, fmt, args);
    va_end(args);
    if (n > 0) g->answer_size += (size_t)n < left ? (size_t)n : left - 1;
}

void gdb_say_bytes(tool_gdb *g, const void *bytes, size_t size)
{
    size_t left = (sizeof g->answer - g->answer_size) / 2;
    g->answer_size += gdb_put_hex(g->answer + g->answer_size, bytes, size < left ? size : left);
}

static void say_exec(tool_gdb *g)
{
    char path[4096];
    long n = sys_readlink("/proc/self/exe", path, sizeof path);
    gdb_say(g, "exec:");
    if (n > 0) gdb_say_bytes(g, path, (size_t)n);
    gdb_say(g, ";");
}

static void say_stop(tool_gdb *g)
{
    int signo = g->why.why == JIT_STOP_SIGNAL ? g->info.si_signo : g->why.why == JIT_STOP_ASKED ? SIGINT : SIGTRAP;
    gdb_say(g, "T%02x", (unsigned)gdb_signal_out(signo));
    if (g->why.why == JIT_STOP_POINT) gdb_say(g, "swbreak:;");
    if (g->why.why == JIT_STOP_WATCH) gdb_say(g, "watch:%lx;", (unsigned long)g->why.addr);
    if (g->why.why == JIT_STOP_BEGIN && tool_now->options.followed && g->knows_exec) say_exec(g);
    gdb_say(g, "thread:%x;", (unsigned)g->stopped->tid);
}

/* --- registers --- */

static run_thread *chosen(tool_gdb *g)
{
    run_thread *t = g->chosen > 0 ? jit_stops_thread(g->chosen) : NULL;
    return t ? t : g->stopped;
}

static void read_registers(tool_gdb *g)
{
    uint8_t value[16];
    for (unsigned i = 0; i < gdb_register_count(); i++) gdb_say_bytes(g, value, gdb_register_get(chosen(g), i, value));
}

static void write_registers(tool_gdb *g, const char *text)
{
    uint8_t value[16];
    for (unsigned i = 0; i < gdb_register_count(); i++) {
        size_t size = gdb_register_size(i);
        if (gdb_take_hex(value, text, size) != size) break;
        gdb_register_set(chosen(g), i, value);
        text += 2 * size;
    }
    gdb_say(g, "OK");
}

static void read_register(tool_gdb *g, const char *text)
{
    uint8_t value[16];
    size_t size = gdb_register_get(chosen(g), (unsigned)gdb_take_number(&text), value);
    if (size) gdb_say_bytes(g, value, size);
    else gdb_say(g, "E01");
}

static void write_register(tool_gdb *g, const char *text)
{
    uint8_t value[16] = {0};
    unsigned n = (unsigned)gdb_take_number(&text);
    size_t size = gdb_register_size(n);
    bool good = *text == '=' && size && gdb_take_hex(value, text + 1, size) == size;
    if (good) gdb_register_set(chosen(g), n, value);
    gdb_say(g, good ? "OK" : "E01");
}

/* --- memory --- */

/* As a debugger may: whatever the protection is. Bytes. */
static size_t transfer(uint64_t at, void *bytes, size_t size, bool writes)
{
    long fd = run_proc_open_memory();
    if (sys_failed(fd)) return 0;
    long n = sys_call4(writes ? SYS_pwrite64 : SYS_pread64, fd, (long)bytes, (long)size, (long)at);
    sys_call1(SYS_close, fd);
    return n > 0 ? (size_t)n : 0;
}

static size_t outside_of_ours(uint64_t at, size_t size)
{
    for (size_t n = 0; n < size;) {
        size_t page = 4096 - ((at + n) & 4095), part = size - n < page ? size - n : page;
        if (run_is_ours(at + n, at + n + part)) return n;
        n += part;
    }
    return size;
}

static void read_memory(tool_gdb *g, const char *text)
{
    uint8_t bytes[GDB_PACKET / 2 - 8];
    uint64_t at = gdb_take_number(&text), size = *text == ',' ? (text++, gdb_take_number(&text)) : 0;
    if (size > sizeof bytes) size = sizeof bytes;
    size_t n = transfer(at, bytes, outside_of_ours(at, size), false);
    if (n || !size) gdb_say_bytes(g, bytes, n);
    else gdb_say(g, "E01");
}

/* In place: "}c" stands for a byte that packets give a meaning. */
static size_t unescape(char *text, const char *end)
{
    size_t n = 0;
    for (const char *p = text; p < end; p++) text[n++] = *p == '}' && p + 1 < end ? (char)(*++p ^ 0x20) : *p;
    return n;
}

static void write_memory(tool_gdb *g, char *text, bool is_binary)
{
    const char *p = text;
    uint64_t at = gdb_take_number(&p), size = *p == ',' ? (p++, gdb_take_number(&p)) : 0;
    char *data = text + (p - text) + 1;
    size_t n = *p != ':'   ? 0
               : is_binary ? unescape(data, g->request + g->request_size)
                           : gdb_take_hex(data, data, (size_t)(g->request + g->request_size - data) / 2);
    bool good = *p == ':' && n == size && outside_of_ours(at, size) == size;
    if (good && size) good = transfer(at, data, size, true) == size;
    if (good) jit_stops_written(at, at + size);
    gdb_say(g, good ? "OK" : "E01");
}

/* --- breakpoints: Z0,ADDR,KIND --- */

static void point(tool_gdb *g, const char *text, bool on)
{
    char type = *text++;
    if (*text == ',') text++;
    uint64_t at = gdb_take_number(&text), size = *text == ',' ? (text++, gdb_take_number(&text)) : 0;
    if (type == '0' || type == '1') gdb_say(g, jit_stops_point(at, on) ? "OK" : "E01");
    else if (type == '2') gdb_say(g, jit_stops_watch(at, (uint32_t)size, on) ? "OK" : "E01");
}

/* --- the end --- */

static void let_go(tool_gdb *g)
{
    jit_stops_end();
    g->goes_on = true;
    if (g->wire.fd >= 0) run_fd_close(g->wire.fd);
    g->wire.fd = tool_handoff_data.fds.gdb = -1;
}

static void kill_all(void)
{
    sys_call2(SYS_kill, sys_call0(SYS_getpid), SIGKILL);
    for (;;) sys_wait();
}

static void detach(tool_gdb *g)
{
    gdb_send(&g->wire, "OK", 2);
    let_go(g);
}

/* --- requests --- */

static void choose(tool_gdb *g, const char *text)
{
    if (*text == 'g') g->chosen = text[1] == '-' ? 0 : (text++, (int)gdb_take_number(&text));
    gdb_say(g, "OK");
}

static void is_alive(tool_gdb *g, const char *text)
{
    gdb_say(g, jit_stops_thread((int)gdb_take_number(&text)) ? "OK" : "E01");
}

static void many_letters(tool_gdb *g, const char *text)
{
    if (!strcmp(text, "vCont?")) gdb_say(g, "vCont;c;C;s;S;r");
    else if (!strncmp(text, "vCont;", 6)) gdb_resume(g, text + 5);
    else if (!strncmp(text, "vKill", 5)) {
        gdb_send(&g->wire, "OK", 2);
        kill_all();
    }
}

static void old_resume(tool_gdb *g, char what)
{
    char actions[64];
    const char *text = g->request + 1;
    if (what == 'C' || what == 'S') snprintf(actions, sizeof actions, ";%c%.2s:%x;c", what, text, g->stopped->tid);
    else snprintf(actions, sizeof actions, ";%c:%x;c", what, g->stopped->tid);
    gdb_resume(g, actions);
}

static void serve(tool_gdb *g)
{
    char *text = g->request + 1;
    switch (*g->request) {
    case '?': say_stop(g); break;
    case 'g': read_registers(g); break;
    case 'G': write_registers(g, text); break;
    case 'p': read_register(g, text); break;
    case 'P': write_register(g, text); break;
    case 'm': read_memory(g, text); break;
    case 'M': write_memory(g, text, false); break;
    case 'X': write_memory(g, text, true); break;
    case 'Z':
    case 'z': point(g, text, *g->request == 'Z'); break;
    case 'H': choose(g, text); break;
    case 'T': is_alive(g, text); break;
    case 'q':
    case 'Q': gdb_query(g, g->request); break;
    case 'v': many_letters(g, g->request); break;
    case 'c':
    case 's':
    case 'C':
    case 'S': old_resume(g, *g->request); break;
    case 'D': detach(g); break;
    case 'k': kill_all(); break;
    default: break; /* an empty answer: not known */
    }
}

static void converse(tool_gdb *g)
{
    g->goes_on = false;
    while (!g->goes_on) {
        if (!gdb_receive(&g->wire, g->request, &g->request_size)) {
            let_go(g);
            return;
        }
        g->answer_size = 0;
        serve(g);
        if (!g->goes_on && !gdb_send(&g->wire, g->answer, g->answer_size)) let_go(g);
        if (!strcmp(g->request, "QStartNoAckMode")) g->wire.no_ack = true;
    }
}

static void stopped(void *arg, run_thread *t, const jit_stop *why)
{
    tool_gdb *g = arg;
    bool is_first = why->why == JIT_STOP_BEGIN && !tool_now->options.followed; /* gdb will ask by itself */
    g->stopped = t;
    g->chosen = 0;
    g->why = *why;
    if (why->why == JIT_STOP_BEGIN) jit_stops_pass(g->passed);
    if (why->info) g->info = *why->info;
    if (why->why == JIT_STOP_SIGNAL) jit_stops_go(t, JIT_GO_RUN, why->info->si_signo, 0, 0); /* if gdb goes */
    g->answer_size = 0;
    say_stop(g);
    if (!is_first && !gdb_send(&g->wire, g->answer, g->answer_size)) let_go(g);
    else converse(g);
}

/* --- the process's life --- */

bool gdb_begin(jit_debugger *d)
{
    tool_gdb *g = here();
    int fd = tool_handoff_data.fds.gdb;
    if (fd < 0) return true;
    if (!g) g = tool_now->gdb = calloc(1, sizeof *g);
    if (!g) return false;
    g->wire.fd = fd;
    *d = (jit_debugger){.stopped = stopped, .arg = g};
    return true;
}

void gdb_ended(run_thread *t, int status, int signo)
{
    tool_gdb *g = here();
    if (!g || g->wire.fd < 0) return;
    jit_stops_quiet(t);
    if (g->wire.fd < 0) return; /* it has gone meanwhile */
    g->answer_size = 0;
    if (signo) gdb_say(g, "X%02x", (unsigned)gdb_signal_out(signo));
    else gdb_say(g, "W%02x", (unsigned)status & 0xff);
    gdb_send(&g->wire, g->answer, g->answer_size);
    let_go(g);
}

void gdb_forked(void)
{
    tool_gdb *g = here();
    if (!g || g->wire.fd < 0) return;
    run_fd_close(g->wire.fd);
    g->wire.fd = tool_handoff_data.fds.gdb = -1;
}

void gdb_execs(run_thread *t, bool follows)
{
    tool_gdb *g = here();
    if (!g || g->wire.fd < 0 || t->is_vfork_child) return;
    jit_stops_quiet(t);
    if (!follows) tool_say("gdb cannot go along: what process %d executes now runs natively", inlay_pid());
}

size_t gdb_handed_on(char *out, size_t size)
{
    const tool_gdb *g = here();
    if (!g || g->wire.fd < 0) return 0;
    return (size_t)snprintf(out, size, "%d,%d,%lx", g->wire.no_ack, g->knows_exec, (unsigned long)g->passed);
}

const char *gdb_take_handed_on(const char *text)
{
    int no_ack, knows_exec;
    unsigned long passed;
    tool_gdb *g = calloc(1, sizeof *g);
    if (!g || sscanf(text, "%d,%d,%lx", &no_ack, &knows_exec, &passed) != 3) return "must be three numbers";
    g->wire.no_ack = no_ack;
    g->knows_exec = knows_exec;
    g->passed = passed;
    tool_now->gdb = g;
    return NULL;
}
