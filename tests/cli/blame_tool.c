/* A tool that goes wrong in one place in one way, as the environment says: BLAME=PLACE:WAY. blame.py knows what is to
 * be said of it; it finds the lines by their marks. --insert=PLACE is what it inserts, whether that goes wrong or not.
 */
#include <inlay.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *insert = "";
static volatile int zero;

static int sink(volatile char *p) { return p[0] + p[4095]; }

static int deeper(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return deeper(n + 1) + sink(room); /* mark: overflow */
}

static __attribute__((noinline)) void go_wrong(void)
{
    const char *way = strchr(getenv("BLAME"), ':') + 1;
    if (!strcmp(way, "null")) *(volatile int *)16 = 1; /* mark: null */
    if (!strcmp(way, "abort")) abort();                /* mark: abort */
    if (!strcmp(way, "exit")) exit(3);                 /* mark: exit */
    if (!strcmp(way, "zero")) exit(0);                 /* mark: zero */
    if (!strcmp(way, "loop"))
        for (;;) zero = 0; /* mark: loop */
    if (!strcmp(way, "overflow")) deeper(0);
    if (!strcmp(way, "assert")) assert(zero);                         /* mark: assert */
    if (!strcmp(way, "divide")) zero = 1000 / zero;                   /* mark: divide */
    if (!strcmp(way, "library")) zero = (int)strlen(NULL + zero);     /* mark: library */
    if (!strcmp(way, "nowhere")) ((void (*)(void))(uintptr_t)zero)(); /* mark: nowhere */
}

static void wrong_at(const char *place)
{
    const char *blame = getenv("BLAME");
    size_t n = strlen(place);
    if (blame && !strncmp(blame, place, n) && blame[n] == ':') go_wrong();
}

static bool inserts(const char *place) { return !strcmp(insert, place); }

static void routine(void) { wrong_at("routine"); }
static void inlined(int *counter) { *counter += 1; } /* mark: inlined */
static void each_image(inlay_image *i, void *arg) { wrong_at("image"); }
static void each_proc(inlay_proc *p, void *arg) { wrong_at("proc"); }
static void each_insn(inlay_insn *i, void *arg) { wrong_at("insn"); }
static void starts(void *arg) { wrong_at("start"); }
static void ends(int status, void *arg) { wrong_at("exit"); }
static void thread_starts(inlay_thread *t, void *arg) { wrong_at("thread"); }
static void thread_ends(inlay_thread *t, void *arg) { wrong_at("threadend"); }
static void forked(void *arg) { wrong_at("fork"); }
static void calls(inlay_thread *t, inlay_syscall *s, void *arg) { wrong_at("syscall"); }
static void full(const void *records, size_t count, unsigned thread, void *arg) { wrong_at("buffer"); }

static inlay_buffer *buffer;

static void each_block(inlay_block *b, void *arg)
{
    wrong_at("block");
    if (inserts("routine")) inlay_insert(inlay_block_entry(b), inlay_call(routine));
    if (inserts("inlined")) inlay_insert(inlay_block_entry(b), inlay_call(inlined, inlay_const(16)));
    if (inserts("expression"))
        inlay_insert(inlay_block_entry(b), inlay_store(inlay_const(16), inlay_load(inlay_const(16), 8), 8));
    if (inserts("buffer")) inlay_insert(inlay_block_entry(b), inlay_append(buffer, INLAY_FIELD(8, inlay_pc())));
}

__attribute__((constructor)) static void constructed(void) { wrong_at("constructor"); }

int main(int argc, char **argv)
{
    inlay_option_string(&insert, "insert", 0, "what to insert");
    wrong_at("before");
    inlay_init(&argc, &argv, "goes wrong");
    wrong_at("after");
    buffer = inlay_buffer_new(8, 64, full, NULL);
    inlay_on_image_load(each_image, NULL);
    inlay_on_proc(each_proc, NULL);
    inlay_on_block(each_block, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_start(starts, NULL);
    inlay_on_exit(ends, NULL);
    inlay_on_thread_start(thread_starts, NULL);
    inlay_on_thread_end(thread_ends, NULL);
    inlay_on_fork_child(forked, NULL);
    if (inserts("syscall")) inlay_on_syscall_entry(calls, NULL);
    return inlay_start();
}
