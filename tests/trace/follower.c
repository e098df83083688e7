/* follower -r RANGES -o OUT [--] PROGRAM [ARGS]
 *
 * Runs PROGRAM, its threads and its children of fork and vfork one instruction at a time, and writes each entry and
 * exit of the procedures in RANGES, a line each, as they come:
 *
 *     PID TID + NAME      its first instruction is reached: by a call, a jump, a return, from above, as a handler
 *     PID TID - NAME      it is left by a return, or by a jump to another one's first instruction, or to code that
 * nothing is known of, with the stack as it found it PID TID x NAME      it is not there any more: the stack pointer is
 * above where it was entered, or something is entered in its place, or the thread is over
 *
 * RANGES tells of the program's own file, addresses as in the file:
 *
 *     b ADDRESS                   of its first segment
 *     p ADDRESS SIZE STUB NAME    a procedure; STUB: up to so many bytes more may lie on the stack when it is left
 *     c ADDRESS SIZE 0 NAME       a part of that procedure, elsewhere: to come there is to stay
 *     s ADDRESS SIZE              a stack beside the threads' own
 *     t ADDRESS SIZE              a thunk: what leads there leads where it leads to
 *
 * The thread that a program begins with is called TID and a number more with each program that it executes. A child of
 * vfork has its parent's memory, and so its parent's entries and exits are those of both.
 *
 * What runs before the program's entry point (the dynamic linker) is not stepped through, and of a program that another
 * one is replaced by nothing is told. Knows nothing of recordings, nor what code does: of an instruction only whether
 * it is a call, a return, a system call or anything else. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 1024, MOST_STACKS = 16, MOST_THUNKS = 64, CODE = 15 };

typedef struct range {
    uint64_t low, size, stub;
    const char *name;
    bool is_part;
    int whole; /* itself, or what it is a part of */
} range;

typedef struct frame {
    uint64_t sp;
    int proc;
} frame;

typedef struct frames {
    frame *at;
    size_t count, room;
} frames;

typedef struct thread {
    pid_t tid, pid;        /* tid 0: the place is free */
    struct thread *parent; /* whose frames these are; NULL: its own */
    int executed;
    bool watched, begun;
    int deliver;
    uint64_t base, pc, sp;
    struct {
        int kind;
        uint64_t pc, sp;
    } via;                              /* what led into a thunk */
    frames stacks[MOST_STACKS + 1];     /* the last: its own */
    int running[MOST_STACKS + 1], runs; /* stacks, each on top of the one before */
    struct {
        int stack;
        size_t count;               /* of its frames; 0: nothing */
    } on[MOST_STACKS + 1];          /* what each was begun on top of */
    int seen[MOST_STACKS + 1], saw; /* in this order */
} thread;

static range *procs, beside[MOST_STACKS], thunks[MOST_THUNKS];
static int proc_count, beside_count, thunk_count;
static uint64_t first_segment;
static char program[4096];
static thread threads[MOST_THREADS];
static FILE *out;

static void die(const char *what)
{
    fprintf(stderr, "follower: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- what is looked for --- */

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const range *)a)->low, y = ((const range *)b)->low;
    return x < y ? -1 : x > y;
}

static void read_ranges(const char *path)
{
    FILE *f = fopen(path, "re");
    char *line = NULL, name[4096];
    size_t size = 0;
    if (!f) die(path);
    while (getline(&line, &size, f) > 0) {
        range r = {0};
        char what;
        if (sscanf(line, "%c %" SCNx64 " %" SCNx64 " %" SCNx64 " %4095[^\n]", &what, &r.low, &r.size, &r.stub, name) ==
            5) {
            r.name = strdup(name);
            r.is_part = what == 'c';
            procs = realloc(procs, (size_t)(proc_count + 1) * sizeof *procs);
            if (!procs) die("memory");
            procs[proc_count++] = r;
        } else if (sscanf(line, "s %" SCNx64 " %" SCNx64, &r.low, &r.size) == 2 && beside_count < MOST_STACKS) {
            beside[beside_count++] = r;
        } else if (sscanf(line, "t %" SCNx64 " %" SCNx64, &r.low, &r.size) == 2 && thunk_count < MOST_THUNKS) {
            thunks[thunk_count++] = r;
        } else if (sscanf(line, "b %" SCNx64, &first_segment) != 1) {
            fprintf(stderr, "follower: %s: what is '%s'?\n", path, line);
            exit(1);
        }
    }
    fclose(f);
    free(line);
    qsort(procs, (size_t)proc_count, sizeof *procs, by_address);
    for (int i = 0; i < proc_count; i++) {
        procs[i].whole = i;
        for (int k = 0; procs[i].is_part && k < proc_count; k++)
            if (!procs[k].is_part && strcmp(procs[k].name, procs[i].name) == 0) procs[i].whole = k;
    }
}

/* -1: none. */
static int proc_at(uint64_t addr)
{
    int low = 0, high = proc_count;
    while (low < high) {
        int mid = (low + high) / 2;
        if (procs[mid].low <= addr) low = mid + 1;
        else high = mid;
    }
    return low && addr - procs[low - 1].low < procs[low - 1].size ? low - 1 : -1;
}

/* --- frames --- */

static thread *owner(thread *t) { return t->parent ? t->parent : t; }

static int place_of(const thread *t, uint64_t sp)
{
    for (int i = 0; i < beside_count; i++)
        if (sp - t->base - beside[i].low <= beside[i].size) return i;
    return MOST_STACKS;
}

/* The stack at hand: one that others run on top of stops them, another one runs on top of the one before. */
static frames *stack_of(thread *t, uint64_t sp)
{
    t = owner(t);
    int place = place_of(t, sp), k = t->runs;
    if (t->runs && t->running[t->runs - 1] == place) return &t->stacks[place];
    while (k && t->running[k - 1] != place) k--;
    if (k) {
        t->runs = k;
        return &t->stacks[place];
    }
    int below = t->runs ? t->running[t->runs - 1] : place;
    t->on[place].stack = below;
    t->on[place].count = t->runs ? t->stacks[below].count : 0;
    t->running[t->runs++] = place;
    for (k = 0; k < t->saw && t->seen[k] != place;) k++;
    if (k == t->saw) t->seen[t->saw++] = place;
    return &t->stacks[place];
}

static void tell(const thread *t, char what, int proc)
{
    fprintf(out, "%d %d.%d %c %s\n", t->pid, t->tid, t->executed, what, procs[proc].name);
}

static void pop(thread *t, frames *s, char what) { tell(owner(t), what, s->at[--s->count].proc); }

/* What ran on top of a frame that is left without an exit is gone with it. */
static void abandon(thread *t, const frames *s)
{
    for (int i = 0; i <= MOST_STACKS; i++) {
        if (!t->on[i].count || &t->stacks[t->on[i].stack] != s || t->on[i].count != s->count) continue;
        while (t->stacks[i].count) pop(t, &t->stacks[i], 'x');
        t->on[i].count = 0;
    }
}

static void drop_below(thread *t, frames *s, uint64_t sp)
{
    while (s->count && s->at[s->count - 1].sp < sp) {
        abandon(owner(t), s);
        pop(t, s, 'x');
    }
}

static void enter(thread *t, int proc, uint64_t sp)
{
    frames *s = stack_of(t, sp);
    drop_below(t, s, sp + 1);
    if (s->count == s->room) {
        s->room = s->room ? s->room * 2 : 64;
        s->at = realloc(s->at, s->room * sizeof *s->at);
        if (!s->at) die("memory");
    }
    s->at[s->count++] = (frame){sp, proc};
    tell(owner(t), '+', proc);
}

static void leave(thread *t, int proc, uint64_t sp)
{
    frames *s = stack_of(t, sp);
    drop_below(t, s, sp);
    const frame *top = s->count ? &s->at[s->count - 1] : NULL;
    if (top && (top->sp == sp || (top->proc == proc && top->sp - sp <= procs[proc].stub))) {
        for (int i = 0; i <= MOST_STACKS; i++)
            if (&owner(t)->stacks[owner(t)->on[i].stack] == s && owner(t)->on[i].count == s->count)
                owner(t)->on[i].count = 0;
        pop(t, s, '-');
    }
}

static void end_thread(thread *t)
{
    if (t->parent) {
        memset(t, 0, sizeof *t);
        return;
    }
    for (; t->runs; t->runs--)
        while (t->stacks[t->running[t->runs - 1]].count) pop(t, &t->stacks[t->running[t->runs - 1]], 'x');
    for (int i = 0; i < t->saw; i++)
        while (t->stacks[t->seen[i]].count) pop(t, &t->stacks[t->seen[i]], 'x');
    for (int i = 0; i <= MOST_STACKS; i++) free(t->stacks[i].at);
    memset(t, 0, sizeof *t);
}

/* --- instructions --- */

typedef enum kind { OTHER, CALL, RETURN, SYSTEM } kind;

static kind kind_of(const uint8_t *code, size_t size)
{
    size_t i = 0;
    while (i < size && (strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", code[i]) && code[i])) i++;
    if (i < size && code[i] >= 0x40 && code[i] <= 0x4f) i++;
    if (i + 1 >= size) return i < size && code[i] == 0xc3 ? RETURN : OTHER;
    if (code[i] == 0xe8 || (code[i] == 0xff && (code[i + 1] >> 3 & 7) >= 2 && (code[i + 1] >> 3 & 7) <= 3)) return CALL;
    if (code[i] == 0xc3 || code[i] == 0xc2) return RETURN;
    return code[i] == 0x0f && code[i + 1] == 0x05 ? SYSTEM : OTHER;
}

static kind kind_at(const thread *t)
{
    uint8_t code[CODE];
    struct iovec to = {code, CODE}, from = {(void *)t->pc, CODE};
    ssize_t n = process_vm_readv(t->tid, &to, 1, &from, 1, 0);
    if (n < 0) {
        to.iov_len = from.iov_len = 4096 - t->pc % 4096;
        n = from.iov_len < CODE ? process_vm_readv(t->tid, &to, 1, &from, 1, 0) : -1;
    }
    return n > 0 ? kind_of(code, (size_t)n) : OTHER;
}

static bool is_thunk(uint64_t addr)
{
    for (int i = 0; i < thunk_count; i++)
        if (addr - thunks[i].low < thunks[i].size) return true;
    return false;
}

/* A thunk's return takes an address that was put on the stack, below where the procedure was entered: it is a jump. */
static bool jumps(thread *t, int own, uint64_t sp)
{
    const frames *s = stack_of(t, sp);
    return own >= 0 && s->count && s->at[s->count - 1].proc == own && s->at[s->count - 1].sp > sp;
}

/* The instruction at t->pc was executed, and control went to `pc`. */
static void after_step(thread *t, kind k, uint64_t pc, uint64_t sp)
{
    uint64_t at = t->pc, old = t->sp;
    bool within = is_thunk(at - t->base);
    if (is_thunk(pc - t->base)) {
        if (!within) t->via.kind = (int)k, t->via.pc = at, t->via.sp = old;
        return;
    }
    if (within) {
        at = t->via.pc, old = t->via.sp;
        k = t->via.kind == OTHER && sp > old ? RETURN : (kind)t->via.kind;
    }
    int from = proc_at(at - t->base), to = proc_at(pc - t->base);
    bool first = to >= 0 && pc - t->base == procs[to].low && !procs[to].is_part;
    int own = from < 0 ? -1 : procs[from].whole, others = to < 0 ? -1 : procs[to].whole;
    if (within && k == RETURN && jumps(t, own, old)) k = OTHER, old = sp;
    if (own >= 0 && k == RETURN) leave(t, own, old);
    else if (own >= 0 && own != others && (first || to < 0) && k == OTHER) leave(t, own, old);
    drop_below(t, stack_of(t, sp), sp);
    if (first && k != SYSTEM) enter(t, to, sp);
}

/* --- threads --- */

static thread *thread_of(pid_t tid)
{
    thread *free_place = NULL;
    for (int i = 0; i < MOST_THREADS; i++) {
        if (threads[i].tid == tid) return &threads[i];
        if (!threads[i].tid && !free_place) free_place = &threads[i];
    }
    if (!free_place) die("too many threads");
    *free_place = (thread){.tid = tid};
    return free_place;
}

static pid_t process_of(pid_t tid)
{
    char path[40], line[256];
    int pid = tid;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "Tgid: %d", &pid);
    if (f) fclose(f);
    return pid;
}

static uint64_t auxiliary(pid_t pid, uint64_t type)
{
    char path[40];
    Elf64_auxv_t a;
    uint64_t found = 0;
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    FILE *f = fopen(path, "re");
    while (f && fread(&a, sizeof a, 1, f) == 1)
        if (a.a_type == type) found = a.a_un.a_val;
    if (f) fclose(f);
    return found;
}

static void find_program(thread *t)
{
    char link[40], path[4096], line[4400], name[4200];
    uint64_t low, offset;
    snprintf(link, sizeof link, "/proc/%d/exe", t->pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    t->watched = strcmp(path, program) == 0;
    snprintf(link, sizeof link, "/proc/%d/maps", t->pid);
    FILE *f = fopen(link, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %4199[^\n]", &low, &offset, name) != 3) continue;
        if (offset || strcmp(name, path) != 0) continue;
        t->base = low - first_segment;
        break;
    }
    if (f) fclose(f);
}

/* Runs up to the program's entry point. */
static void run_up_to_entry(thread *t)
{
    uint64_t entry = auxiliary(t->pid, AT_ENTRY);
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, t->tid, entry, NULL);
    if (errno) die("its entry point");
    ptrace(PTRACE_POKETEXT, t->tid, entry, (word & ~0xffl) | 0xcc);
    int status;
    struct user_regs_struct r;
    if (ptrace(PTRACE_CONT, t->tid, NULL, NULL) != 0 || waitpid(t->tid, &status, __WALL) != t->tid ||
        status >> 8 != SIGTRAP || ptrace(PTRACE_GETREGS, t->tid, NULL, &r) != 0)
        die("up to its entry point");
    ptrace(PTRACE_POKETEXT, t->tid, entry, word);
    r.rip = entry;
    ptrace(PTRACE_SETREGS, t->tid, NULL, &r);
}

static void read_place(thread *t, uint64_t *pc, uint64_t *sp)
{
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, t->tid, NULL, &r) != 0) die("registers");
    *pc = r.rip;
    *sp = r.rsp;
}

static void begin(thread *t)
{
    t->pid = process_of(t->tid);
    t->begun = true;
    find_program(t);
    read_place(t, &t->pc, &t->sp);
}

static void executed(thread *t)
{
    pid_t tid = t->tid;
    int before = t->executed;
    end_thread(t);
    t->tid = tid;
    t->executed = before + 1;
    begin(t);
    if (!t->watched) return;
    run_up_to_entry(t);
    read_place(t, &t->pc, &t->sp);
    int proc = proc_at(t->pc - t->base);
    if (proc < 0 || procs[proc].low != t->pc - t->base) return;
    enter(t, proc, t->sp);
    t->stacks[MOST_STACKS].at[0].sp = UINT64_MAX; /* nobody has called it, and it takes what lies on its stack */
}

/* The parent waits until the child executes a program or ends. Which of them is told first is not known. */
static void vforked(thread *t)
{
    unsigned long child = 0;
    ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &child);
    if (child) thread_of((pid_t)child)->parent = owner(t);
}

static void go_on(thread *t)
{
    int way = t->watched ? PTRACE_SINGLESTEP : PTRACE_CONT;
    if (ptrace(way, t->tid, NULL, (long)t->deliver) != 0 && errno != ESRCH) die("step");
}

/* --- stops --- */

static bool entered_handler(pid_t tid)
{
    siginfo_t si;
    return ptrace(PTRACE_GETSIGINFO, tid, NULL, &si) == 0 && si.si_code == SIGTRAP;
}

static void stepped(thread *t)
{
    uint64_t pc, sp;
    kind k = kind_at(t);
    bool handler = t->deliver && entered_handler(t->tid);
    read_place(t, &pc, &sp);
    if (!handler) {
        after_step(t, k, pc, sp);
    } else {
        int to = proc_at(pc - t->base);
        drop_below(t, stack_of(t, sp), sp);
        if (to >= 0 && procs[to].low == pc - t->base && !procs[to].is_part) enter(t, to, sp);
    }
    t->deliver = 0;
    t->pc = pc;
    t->sp = sp;
}

/* Without a handler nothing was executed on the way to such a stop. */
static void stopped(thread *t, int status)
{
    int event = status >> 16, signal = WSTOPSIG(status);
    if (!t->begun) { /* a new thread's first, or a new process's */
        begin(t);
        t->deliver = 0;
    } else if (event == PTRACE_EVENT_EXEC) {
        executed(t);
    } else if (event) {
        if (event == PTRACE_EVENT_VFORK) vforked(t);
        t->deliver = 0; /* the system call comes to its end with the next step */
    } else if (signal == SIGTRAP && t->watched) {
        stepped(t);
    } else {
        t->deliver = signal == SIGTRAP ? 0 : signal;
    }
}

static int follow(pid_t first)
{
    int result = 1, status;
    pid_t tid;
    while ((tid = waitpid(-1, &status, __WALL)) > 0) {
        thread *t = thread_of(tid);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (tid == first) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            end_thread(t);
            continue;
        }
        stopped(t, status);
        go_on(t);
    }
    return result;
}

static pid_t start(char **argv)
{
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[0], argv);
        fprintf(stderr, "follower: %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) exit(127);
    ptrace(PTRACE_SETOPTIONS, pid, NULL,
           (long)(PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                  PTRACE_O_TRACEEXEC));
    return pid;
}

static void stay_on_this_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    const char *ranges = NULL;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-' && argv[i][1] != '-'; i += 2) {
        if (argv[i][1] == 'r') ranges = argv[i + 1];
        else if (argv[i][1] == 'o' && !(out = fopen(argv[i + 1], "we"))) die(argv[i + 1]);
    }
    if (i < argc && !strcmp(argv[i], "--")) i++;
    if (!ranges || !out || i >= argc) {
        fprintf(stderr, "usage: follower -r RANGES -o OUT [--] PROGRAM [ARGS]\n");
        return 2;
    }
    if (!realpath(argv[i], program)) die(argv[i]);
    read_ranges(ranges);
    stay_on_this_processor();
    thread *t = thread_of(start(argv + i));
    executed(t);
    go_on(t);
    int result = follow(t->tid);
    return fclose(out) == 0 ? result : 1;
}
