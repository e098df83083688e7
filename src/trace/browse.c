/* The tree of calls in a terminal: lines that open and close.
 *
 * Nothing is known of the terminal but what all have had for decades: where the cursor goes, clearing to a line's end,
 * reverse, the other screen. It is drawn anew after each key; its size is looked at while nothing is typed. */
#include "trace/out.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { MOST_WORD = 64, IDLE_MS = 300, MARGIN = 3 }; /* lines that are not the tree's */

typedef struct line {
    uint32_t node, depth;
} line;

typedef struct browser {
    const trace_file *file;
    const trace_view *view;
    size_t session;
    trace_profile p;
    bool *open; /* by node */
    INL_VEC(line) lines;
    size_t at, top; /* of lines: the chosen one, the screen's first */
    unsigned rows, columns;
    char word[MOST_WORD]; /* what is searched for */
    bool asks;            /* it is being typed */
    char said[128];
} browser;

/* --- the lines --- */

static bool list_lines(browser *b)
{
    uint32_t depth = 0;
    b->lines.count = 0;
    for (uint32_t at = 0; (at = trace_profile_next(&b->p, at, &depth));) {
        uint32_t k = at, closed = 0;
        while ((k = b->p.nodes.items[k].parent)) closed |= !b->open[k];
        if (!closed && !inl_vec_push(&b->lines, (line){at, depth})) return false;
    }
    if (b->at >= b->lines.count) b->at = b->lines.count ? b->lines.count - 1 : 0;
    return true;
}

static inl_status load(browser *b, inl_error *e)
{
    const trace_session *s = &b->file->sessions.items[b->session];
    trace_profile_free(&b->p);
    free(b->open);
    b->open = NULL;
    b->p = (trace_profile){.raw = b->view->raw, .threshold = b->view->threshold, .depth = b->view->depth};
    b->p.filter = &b->view->filter;
    b->at = b->top = 0;
    inl_status st = trace_refuse_counts(s, e);
    if (st == INL_OK) st = trace_profile_add(&b->p, s, NULL, e);
    if (st != INL_OK) return st;
    b->open = calloc(b->p.nodes.count + 1, sizeof *b->open);
    if (!b->open || !trace_profile_sort(&b->p)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (uint32_t at = b->p.nodes.items[0].first; at; at = b->p.nodes.items[at].next) b->open[at] = true;
    return list_lines(b) ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
}

/* --- the picture --- */

/* No more than `room` characters, and none that moves the cursor. */
static void put_name(FILE *f, const char *name, unsigned room)
{
    for (unsigned used = 0; *name; name++) {
        unsigned char c = (unsigned char)*name;
        bool begins = (c & 0xc0) != 0x80;
        if (begins && used++ >= room) return;
        fputc(c < 0x20 || c == 0x7f ? '?' : c, f);
    }
}

static void put_line(FILE *f, const browser *b, const line *l, bool chosen)
{
    const trace_node *n = &b->p.nodes.items[l->node];
    uint64_t whole = 0;
    for (uint32_t k = b->p.nodes.items[0].first; k; k = b->p.nodes.items[k].next) whole += b->p.nodes.items[k].total;
    if (chosen) fputs("\x1b[7m", f);
    trace_put_time(f, 12, (double)n->total);
    fprintf(f, " %5.1f%% ", whole ? (double)n->total * 100 / (double)whole : 0);
    trace_put_time(f, 12, (double)n->self);
    fprintf(f, "%12" PRIu64 "  ", n->calls);
    unsigned used = 46, indent = (l->depth - 1) * 2;
    if (indent + used + 12 > b->columns) indent = b->columns > used + 12 ? b->columns - used - 12 : 0;
    fprintf(f, "%*s%c ", (int)indent, "", !n->first ? ' ' : b->open[l->node] ? '-' : '+');
    used += indent + 2;
    if (b->columns > used) put_name(f, trace_name(trace_profile_proc(&b->p, n->proc)), b->columns - used);
    fputs("\x1b[K\x1b[m\r\n", f);
}

static void draw(browser *b)
{
    FILE *f = stdout;
    const trace_session *s = b->p.s;
    unsigned room = b->rows > MARGIN ? b->rows - MARGIN : 1;
    if (b->at < b->top) b->top = b->at;
    if (b->at >= b->top + room) b->top = b->at - room + 1;
    fputs("\x1b[H", f);
    put_name(f, s->program, b->columns > 40 ? b->columns - 40 : 1);
    fprintf(f, ", process %d, %zu of %zu\x1b[K\r\n", s->pid, b->session + 1, b->file->sessions.count);
    put_name(f, "       total      %        self       calls  procedure", b->columns);
    fputs("\x1b[K\r\n", f);
    for (unsigned i = 0; i < room; i++) {
        if (b->top + i < b->lines.count) put_line(f, b, &b->lines.items[b->top + i], b->top + i == b->at);
        else fputs("\x1b[K\r\n", f);
    }
    if (b->asks) fprintf(f, "/%s", b->word);
    else
        put_name(f,
                 b->said[0]
                     ? b->said
                     : "arrows: move, open, close   *: all below   /: search, n: next   Tab: next program   q: leave",
                 b->columns ? b->columns - 1 : 0);
    fputs("\x1b[K", f);
    fflush(f);
}

static bool measure(browser *b)
{
    struct winsize w = {0};
    unsigned rows = 24, columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col) {
        rows = w.ws_row;
        columns = w.ws_col;
    }
    bool changed = rows != b->rows || columns != b->columns;
    b->rows = rows;
    b->columns = columns;
    return changed;
}

/* --- what keys do --- */

static void open_below(browser *b, uint32_t node)
{
    uint32_t depth = 1;
    do {
        b->open[node] = true;
        node = trace_profile_next(&b->p, node, &depth);
    } while (node && depth > 1);
}

static void choose_node(browser *b, uint32_t node)
{
    for (size_t i = 0; i < b->lines.count; i++)
        if (b->lines.items[i].node == node) b->at = i;
}

/* The next one of this name in the whole tree, from the chosen one on; what it lies in is opened. */
static bool search(browser *b)
{
    uint32_t depth = b->lines.items[b->at].depth, start = b->lines.items[b->at].node, at = start;
    do {
        at = trace_profile_next(&b->p, at, &depth);
        if (!at) depth = 0;
        if (!at || !strstr(trace_name(trace_profile_proc(&b->p, b->p.nodes.items[at].proc)), b->word)) continue;
        for (uint32_t k = at; (k = b->p.nodes.items[k].parent);) b->open[k] = true;
        if (!list_lines(b)) return false;
        choose_node(b, at);
        return true;
    } while (at != start);
    snprintf(b->said, sizeof b->said, "'%s' is in no name", b->word);
    return true;
}

static bool take_word(browser *b, unsigned char c)
{
    size_t n = strlen(b->word);
    if (c == '\r' || c == '\n') {
        b->asks = false;
        return !n || !b->lines.count || search(b);
    }
    if (c == 0x1b || c == 3) b->asks = false;
    else if ((c == 0x7f || c == 8) && n) b->word[n - 1] = 0;
    else if (c >= 0x20 && c != 0x7f && n + 1 < sizeof b->word) {
        b->word[n] = (char)c;
        b->word[n + 1] = 0;
    }
    return true;
}

/* Keys that send a sequence, as the letters that do the same. */
static int key_of(const unsigned char *in, ssize_t n, ssize_t *used)
{
    static const struct {
        const char *sent;
        char key;
    } keys[] = {{"\x1b[A", 'k'},  {"\x1b[B", 'j'},  {"\x1b[C", 'l'},  {"\x1b[D", 'h'},  {"\x1bOA", 'k'},
                {"\x1bOB", 'j'},  {"\x1bOC", 'l'},  {"\x1bOD", 'h'},  {"\x1b[H", 'g'},  {"\x1b[F", 'G'},
                {"\x1b[1~", 'g'}, {"\x1b[4~", 'G'}, {"\x1b[5~", 'b'}, {"\x1b[6~", ' '}, {"\x1b", 'q'}};
    *used = 1;
    if (in[0] != 0x1b) return in[0];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        ssize_t length = (ssize_t)strlen(keys[i].sent);
        if (length > n || memcmp(in, keys[i].sent, (size_t)length) != 0) continue;
        if (length == 1 && n > 1) break; /* a sequence that is not known: not the key of its first byte */
        *used = length;
        return keys[i].key;
    }
    *used = n;
    return 0;
}

static void open_or_close(browser *b, int key)
{
    uint32_t node = b->lines.items[b->at].node, parent = b->p.nodes.items[node].parent;
    bool has = b->p.nodes.items[node].first != 0;
    if (key == 'l' && has) b->open[node] = true;
    else if (key == '\r' && has) b->open[node] = !b->open[node];
    else if (key == '*') open_below(b, node);
    else if (key == 'h' && has && b->open[node]) b->open[node] = false;
    else if (key == 'h' && parent) choose_node(b, parent);
}

static void move(browser *b, int key)
{
    size_t page = b->rows > MARGIN ? b->rows - MARGIN : 1, last = b->lines.count - 1, left = last - b->at;
    if (key == 'j' && left) b->at++;
    else if (key == 'k' && b->at) b->at--;
    else if (key == ' ') b->at += left < page ? left : page;
    else if (key == 'b') b->at -= b->at < page ? b->at : page;
    else if (key == 'g') b->at = 0;
    else if (key == 'G') b->at = last;
}

/* False: it is over; *st says whether as it should be. */
static bool press(browser *b, int key, inl_status *st, inl_error *e)
{
    b->said[0] = 0;
    if (key == 'q' || key == 3) return false;
    if (key == '\t') {
        b->session = (b->session + 1) % b->file->sessions.count;
        *st = load(b, e);
        return *st == INL_OK;
    }
    if (!b->lines.count) return true;
    bool good = true;
    if (key == '/') {
        b->asks = true;
        b->word[0] = 0;
    } else if (key == 'n' && b->word[0]) {
        good = search(b);
    } else {
        move(b, key);
        open_or_close(b, key == '\n' ? '\r' : key);
        good = list_lines(b);
    }
    if (!good) *st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return good;
}

/* --- the terminal --- */

static inl_status talk(browser *b, inl_error *e)
{
    unsigned char in[64];
    inl_status st = INL_OK;
    for (bool goes_on = true, changed = true; goes_on;) {
        changed |= measure(b);
        if (changed) draw(b);
        changed = false;
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = poll(&p, 1, IDLE_MS);
        if (ready <= 0) continue;
        ssize_t n = read(STDIN_FILENO, in, sizeof in);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        for (ssize_t i = 0, used; i < n && goes_on; i += used) {
            used = 1;
            if (b->asks) goes_on = take_word(b, in[i]);
            else goes_on = press(b, key_of(in + i, n - i, &used), &st, e);
        }
        changed = true;
    }
    return st;
}

inl_status trace_browse(const trace_file *file, const trace_view *v, inl_error *e)
{
    struct termios before, raw;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "browsing needs a terminal; inlay trace tree writes to anything");
    browser b = {.file = file, .view = v};
    inl_status st = load(&b, e);
    if (st == INL_OK) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        raw.c_iflag &= ~(tcflag_t)(ICRNL | IXON);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
        fputs("\x1b[?1049h\x1b[?25l", stdout);
        st = talk(&b, e);
        fputs("\x1b[?25h\x1b[?1049l", stdout);
        fflush(stdout);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    }
    trace_profile_free(&b.p);
    free(b.open);
    inl_vec_free(&b.lines);
    return st;
}
