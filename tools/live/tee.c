/* tee: what a process writes to a descriptor goes to a file as well, from now on until the command ends.
 *
 *     inlay tee PID FILE
 *
 * In front of each system call a few instructions note its number, where it is for the descriptor; behind it, where it
 * has written something, a routine sends that here, in messages (inlay/event.h), so the file is this command's own: its
 * rights, its folder, its root. When there is no room for more the thread waits, as it would at a full pipe, unless
 * nobody has looked for a while. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: inlay tee [OPTIONS] PID FILE\n"
    "       inlay tee [OPTIONS] FILE -- PROGRAM [ARGS]\n"
    "\n"
    "What the process writes to its standard output is written to FILE as well, from now on until Ctrl-C, or its end, "
    "or\n"
    "for --for SECONDS; then nothing of it is left there. What its children write does not go there, if\n"
    "--children is not given. What is written\n"
    "through mapped memory, io_uring, sendfile, splice and copy_file_range is not seen; of the last three it is said.\n"
    "\n"
    "  -a                    FILE is added to\n"
    "  --children            what processes write that it forks from now on, too, and programs that it and\n"
    "                        they execute, from their first instruction\n"
    "  --fd N                another descriptor than 1\n"
    "  --for SECONDS         so long\n";

enum { THREADS = 4096, PIECE = 32 << 10, TRIES = 5000, MOST_WORDS = 1024 };
enum { TELLS_BYTES, TELLS_UNSEEN };

typedef struct shared {
    uint64_t heart; /* beats while messages are taken */
    int pid;        /* as the process sees itself; 0: what children write counts, too */
} shared;
typedef struct teed {
    inlay_process *process;
    shared *with;
} teed;

static bool appends;
static const char *descriptor = "1";
static const live_option options[] = {{"-a", NULL, &appends}, {"--fd", &descriptor, NULL}, {NULL, NULL, NULL}};
static void begins(void);
static void ended(inlay_process *);
static live_command command = {.name = "tee",
                               .begins = begins,
                               .ended = ended,
                               .kinds = INLAY_EVENTS(MESSAGE),
                               .usage = usage,
                               .options = options,
                               .least = 1,
                               .most = 1,
                               .process_first = true};
static int out;
static uint64_t wanted; /* descriptor, as a number */
static teed *all;
static unsigned count;
static uint64_t written, unseen, calls;
static bool failed;

/* --- in the process --- */

/* A message that waits for room, while the mutator takes them. */
static void post(uint64_t kind, const void *data, size_t size, const volatile shared *with)
{
    const struct timespec step = {.tv_nsec = 1000 * 1000};
    uint64_t beat = with->heart;
    if (with->pid && inlay_pid() != with->pid) return; /* a child, whose messages nobody takes */
    for (int tries = 0; !inlay_message(kind, data, size) && tries < TRIES; tries++) {
        nanosleep(&step, NULL);
        if (with->heart != beat) tries = 0;
        beat = with->heart;
    }
}

static void post_bytes(const char *at, uint64_t size, const volatile shared *with)
{
    for (uint64_t n; size; at += n, size -= n) {
        n = size < PIECE ? size : PIECE;
        post(TELLS_BYTES, at, n, with);
    }
}

static void post_parts(const struct iovec *parts, uint64_t count, uint64_t size, const volatile shared *with)
{
    for (uint64_t k = 0; k < count && k < MOST_WORDS && size; k++) {
        uint64_t n = parts[k].iov_len < size ? parts[k].iov_len : size;
        post_bytes(parts[k].iov_base, n, with);
        size -= n;
    }
}

/* Behind a call that answered `size`. */
static void seen(long number, const void *what, uint64_t count, uint64_t size, const volatile shared *with)
{
    switch (number) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_sendto: post_bytes(what, size, with); break;
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2: post_parts(what, count, size, with); break;
    case SYS_sendmsg:
        post_parts(((const struct msghdr *)what)->msg_iov, ((const struct msghdr *)what)->msg_iovlen, size, with);
        break;
    case SYS_sendfile:
    case SYS_vmsplice:
    case SYS_splice:
    case SYS_copy_file_range: post(TELLS_UNSEEN, &size, sizeof size, with); break;
    default: break;
    }
}

/* --- what is inserted --- */

/* Of the thread, a call's number as it was in front of it, and 1 more; of threads above the limit several share one. */
static inlay_expr number_of(const uint64_t *numbers)
{
    inlay_expr thread = inlay_binary(INLAY_AND, inlay_thread_id(), inlay_const(THREADS - 1));
    return inlay_binary(INLAY_ADD, inlay_pointer(numbers), inlay_binary(INLAY_SHL, thread, inlay_const(3)));
}

static inlay_expr is_for(inlay_reg which, uint64_t fd)
{
    return inlay_binary(INLAY_EQ, inlay_extend(inlay_register(which), 4, false), inlay_const(fd));
}

static inlay_expr in_front(const uint64_t *numbers, uint64_t fd)
{
    inlay_expr number = inlay_register(INLAY_RAX);
    inlay_expr note = inlay_store(number_of(numbers), number, 8);
    /* splice and copy_file_range have it third */
    inlay_expr third = inlay_binary(INLAY_LOR, inlay_binary(INLAY_EQ, number, inlay_const(SYS_splice)),
                                    inlay_binary(INLAY_EQ, number, inlay_const(SYS_copy_file_range)));
    inlay_expr other = inlay_if(is_for(INLAY_RDX, fd), inlay_if(third, note, NULL), NULL);
    return inlay_if(is_for(INLAY_RDI, fd), note, other);
}

static inlay_expr behind(const uint64_t *numbers, const shared *with, uint64_t fd)
{
    inlay_expr answer = inlay_register(INLAY_RAX), number = inlay_load(number_of(numbers), 8);
    inlay_expr call = inlay_call(seen, number, inlay_register(INLAY_RSI), inlay_register(INLAY_RDX), answer,
                                 inlay_pointer(with));
    inlay_expr forget = inlay_store(number_of(numbers), inlay_const(UINT64_MAX), 8);
    inlay_expr has_written = inlay_binary(INLAY_GT, answer, inlay_const(0));
    inlay_expr it_is = inlay_binary(INLAY_LOR, is_for(INLAY_RDI, fd), is_for(INLAY_RDX, fd));
    return inlay_if(it_is, inlay_sequence(inlay_if(has_written, call, NULL), forget), NULL);
}

/* Where it goes on. */
static inlay_point *behind_call(inlay_block *b, inlay_insn *i)
{
    inlay_insn *next = inlay_insn_next(i);
    for (unsigned k = 0; !next && k < inlay_block_successor_count(b); k++) {
        inlay_edge edge = inlay_block_successor(b, k);
        if (edge.to && edge.kind == INLAY_EDGE_FALL) next = inlay_block_first(edge.to);
    }
    return next ? inlay_before(next) : NULL;
}

static unsigned insert_in(inlay_proc *p, inlay_expr before, inlay_expr after)
{
    unsigned n = 0;
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i)) {
            inlay_point *point = inlay_insn_is_syscall(i) ? behind_call(b, i) : NULL;
            n += point && command_insert(&command, point, after) && command_insert(&command, inlay_before(i), before);
        }
    return n;
}

static unsigned insert(const shared *with)
{
    static uint64_t *numbers; /* each process has its own */
    unsigned n = 0;
    if (!numbers && (numbers = inlay_alloc(THREADS * sizeof *numbers)))
        memset(numbers, 0xff, THREADS * sizeof *numbers);
    if (!numbers) return 0;
    inlay_expr before = in_front(numbers, wanted), after = behind(numbers, with, wanted);
    for (inlay_image *i = inlay_process_image_first(command.process); i; i = inlay_image_next(i))
        for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) n += insert_in(p, before, after);
    return n;
}

/* --- what comes --- */

static void write_out(const char *at, size_t size)
{
    while (size && !failed) {
        ssize_t n = write(out, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            command_say(&command, "cannot write %s: %s", command.words[0], strerror(errno));
            failed = true;
            break;
        }
        at += n, size -= (size_t)n, written += (uint64_t)n;
    }
}

static void take_one(const inlay_event *e)
{
    uint64_t size;
    if (e->kind != INLAY_EVENT_MESSAGE) return;
    if (e->number == TELLS_BYTES) write_out(e->data, e->size);
    else if (e->size == sizeof size) unseen += (memcpy(&size, e->data, sizeof size), size);
}

static bool take(void *arg)
{
    enum { BEAT = 1000 };
    inlay_event e;
    (void)arg;
    for (unsigned many = 0; many < BEAT && command_next(&command, &e); many++) take_one(&e);
    for (unsigned k = 0; k < count; k++) all[k].with->heart++;
    return !failed;
}

/* Nothing more comes. */
static void take_rest(void)
{
    inlay_event e;
    while (inlay_event_next(&e, 0)) take_one(&e);
}

/* In its own namespace of processes. */
static int inner_pid(int pid)
{
    char path[64], line[256];
    int inner = pid;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "NSpid:", 6) && strrchr(line, '\t')) inner = atoi(strrchr(line, '\t') + 1);
    if (f) fclose(f);
    return inner;
}

static void begins(void)
{
    all = realloc(all, (count + 1) * sizeof *all);
    shared *with = inlay_process_share(command.process, sizeof *with);
    if (!with || !all) command_fail(&command, "cannot share memory");
    if (!command.children) with->pid = inner_pid(inlay_process_pid(command.process));
    all[count++] = (teed){command.process, with};
    unsigned n = insert(with);
    calls += n;
    if (!n)
        command_say(&command, "no system call of process %d can be followed: %s", inlay_process_pid(command.process),
                    inlay_process_error());
}

static void ended(inlay_process *p)
{
    for (unsigned k = count; k-- > 0;)
        if (all[k].process == p) all[k] = all[--count];
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    command_begin(&command, argc, argv);
    wanted = command_number(&command, "--fd", descriptor);
    out = open(command.words[0], O_WRONLY | O_CREAT | O_CLOEXEC | (appends ? O_APPEND : O_TRUNC), 0666);
    if (out < 0) {
        command_say(&command, "cannot write %s: %s", command.words[0], strerror(errno));
        return command_end(&command, LIVE_FAILED);
    }
    begins();
    if (!calls) return command_end(&command, LIVE_FAILED);
    command_commit(&command);
    command_say(&command, "descriptor %s of process %d goes to %s", descriptor, inlay_process_pid(command.process),
                command.words[0]);
    command_wait(&command, take, NULL);
    command_remove(&command);
    take_rest();
    command_say(&command, "%" PRIu64 " bytes", written);
    if (unseen) command_say(&command, "%" PRIu64 " bytes more went by ways that are not seen", unseen);
    return command_end(&command, failed ? LIVE_FAILED : LIVE_OK);
}
