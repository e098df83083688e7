/* gdb's packets: $content#sum, answered by + or - unless both have agreed to do without. */
#include "tool/gdb.h"
#include "base/sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static bool write_all(gdb_wire *w, const char *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        long n = w->fd < 0 ? -EPIPE : sys_call(SYS_sendto, w->fd, (long)(data + at), (long)(size - at), 0x4000, 0, 0);
        if (n == -EINTR || n == -EAGAIN) continue;
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

/* -1: there will be no more. */
static int next(gdb_wire *w)
{
    while (w->at == w->have) {
        long n = w->fd < 0 ? 0 : sys_call3(SYS_read, w->fd, (long)w->in, sizeof w->in);
        if (n == -EINTR || n == -EAGAIN) continue;
        if (n <= 0) return -1;
        w->at = 0;
        w->have = (size_t)n;
    }
    return (uint8_t)w->in[w->at++];
}

/* false: there will be no more. *good: whole, with the right sum. */
static bool read_frame(gdb_wire *w, char *out, size_t *size, bool *good)
{
    uint8_t sum = 0;
    size_t n = 0;
    int c;
    while ((c = next(w)) != '#') {
        if (c < 0) return false;
        sum = (uint8_t)(sum + c);
        if (n < GDB_PACKET) out[n] = (char)c;
        n++;
    }
    int high = next(w), low = next(w);
    if (high < 0 || low < 0) return false;
    *good = n <= GDB_PACKET && (gdb_hex((char)high) << 4 | gdb_hex((char)low)) == sum;
    *size = n <= GDB_PACKET ? n : 0;
    out[*size] = 0;
    return true;
}

bool gdb_receive(gdb_wire *w, char *out, size_t *size)
{
    for (;;) {
        bool good = false;
        int c = next(w);
        if (c < 0) return false;
        if (c != '$') continue; /* an acknowledgement */
        if (!read_frame(w, out, size, &good)) return false;
        if (w->no_ack) return true;
        if (!write_all(w, good ? "+" : "-", 1)) return false;
        if (good) return true;
    }
}

bool gdb_send(gdb_wire *w, const char *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t sum = 0;
    size_t n = 0;
    w->frame[n++] = '$';
    for (size_t i = 0; i < size; i++) {
        char c = data[i];
        if (c == '$' || c == '#' || c == '}' || c == '*') {
            w->frame[n++] = '}';
            sum = (uint8_t)(sum + '}');
            c ^= 0x20;
        }
        w->frame[n++] = c;
        sum = (uint8_t)(sum + (uint8_t)c);
    }
    w->frame[n++] = '#';
    w->frame[n++] = digits[sum >> 4];
    w->frame[n++] = digits[sum & 15];
    return write_all(w, w->frame, n);
}

int gdb_hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

size_t gdb_put_hex(char *out, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = bytes;
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    return 2 * size;
}

size_t gdb_take_hex(void *out, const char *text, size_t room)
{
    size_t n = 0;
    for (; n < room && gdb_hex(text[2 * n]) >= 0 && gdb_hex(text[2 * n + 1]) >= 0; n++)
        ((uint8_t *)out)[n] = (uint8_t)(gdb_hex(text[2 * n]) << 4 | gdb_hex(text[2 * n + 1]));
    return n;
}

uint64_t gdb_take_number(const char **text)
{
    uint64_t value = 0;
    for (; gdb_hex(**text) >= 0; ++*text) value = value << 4 | (uint64_t)gdb_hex(**text);
    return value;
}
