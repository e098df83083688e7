/* Puts new code and the tool into a process whose threads stand still.
 *
 *     each image's room:  | new code | its map |
 *     MOVE_TOLD_BASE:   | what is told of the tool
 *     MOVE_LIVE_BASE:     | boot code, a system call, its unwind table | the carried data | move_live, links, a stack |
 *
 * The first thread starts the tool, as the boot code of a rewritten program does: it is given a first stack as the
 * kernel makes one, goes through the tool's main, and ends at the system call behind the boot code. The tool has made
 * blocks for all threads then, says where each goes on (moved/live.c), and has written the jumps over old code: should
 * whoever puts it in have died meanwhile, it is in all the same. */
#include "live/ready.h"
#include "base/bytes.h"
#include "base/first_stack.h"
#include "base/own.h"
#include "base/page.h"
#include "base/sys.h"
#include "elf/elf.h"
#include "move/isa.h"
#include "move/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_ROOM = 256 << 10 }; /* besides arguments and environment */

typedef struct live_put {
    live_process *process;
    live_ready ready;
    remote *leader;
    const live_image *images;
    size_t count;
    const live_carry *carry;
    live_process there;    /* its mappings as they were */
    move_live_image *told; /* by image */
    move_live_image told_boot;
    INL_VEC(move_told_range) new;
    bool full;
    uint64_t boot, until, data, own, stack_high;
    size_t live_size;
    struct {
        char **argv, **envp;
        void *auxv;
    } start; /* as the process was started */
} put;

/* --- memory --- */

static inl_status is_taken(const put *p, uint64_t at, long answer, inl_error *e)
{
    return inl_fail_at(e, INL_ERR_NO_MEMORY, at,
                       "process %d has mapped something at 0x%llx meanwhile, or cannot map more (%s); try again",
                       p->process->pid, (unsigned long long)at,
                       sys_failed(answer) ? strerror((int)-answer) : "something else is there");
}

/* Nothing of the process's own is there: should this process die, it goes. */
static inl_status map(put *p, uint64_t at, uint64_t size, int prot, inl_error *e)
{
    long answer, args[6] = {(long)at, (long)inl_page_up(size),
                            prot,     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                            -1,       0};
    for (size_t i = 0; i < p->there.mappings.count; i++) {
        const live_mapping *m = &p->there.mappings.items[i];
        if (m->low < at + inl_page_up(size) && m->high > at) return is_taken(p, at, -EEXIST, e);
    }
    inl_status s = live_goes(p->process, at, at + size, e);
    if (s == INL_OK) s = remote_call(p->leader, &answer, SYS_mmap, args, e);
    if (s != INL_OK) return s;
    if (answer == (long)at) return INL_OK;
    return is_taken(p, at, answer, e);
}

/* As soon as it stands still; until then the bytes are made. */
static inl_status map_with(put *p, uint64_t at, const void *bytes, uint64_t size, int prot, inl_error *e)
{
    return live_ready_add(&p->ready, &(live_text){.at = at, .bytes = bytes, .size = size, .prot = prot}, e);
}

static void unmap(put *p, uint64_t low, uint64_t high)
{
    inl_error ignored;
    long answer;
    if (low < high) remote_call(p->leader, &answer, SYS_munmap, (long[6]){(long)low, (long)(high - low)}, &ignored);
}

/* Calls for each part of what is mapped now and was not before; nothing of the process's own has run since. The kernel
 * makes one of neighbours. */
static void each_new(put *p, void (*f)(put *, uint64_t low, uint64_t high))
{
    inl_error ignored;
    live_process now = {.pid = p->process->pid};
    if (live_read_maps(&now, &ignored) != INL_OK) return;
    for (size_t i = 0; i < now.mappings.count; i++) {
        uint64_t at = now.mappings.items[i].low, high = now.mappings.items[i].high;
        for (size_t k = 0; k < p->there.mappings.count; k++) {
            const live_mapping *m = &p->there.mappings.items[k];
            if (m->high <= at || m->low >= high) continue;
            if (at < m->low) f(p, at, m->low);
            at = m->high;
        }
        if (at < high) f(p, at, high);
    }
    live_close(&now);
}

static void unmap_all(put *p) { each_new(p, unmap); }

static void note(put *p, uint64_t low, uint64_t high)
{
    move_told_range *last = p->new.count ? &p->new.items[p->new.count - 1] : NULL;
    bool fixed = low < MOVE_REGION_HIGH && high > MOVE_LIVE_BASE;
    if (fixed || low - inl_own_base() < LIVE_TOOL_MOST) return;
    if (last && last->high == low) last->high = high;
    else p->full = !inl_vec_push(&p->new, ((move_told_range){low, high})) || p->full;
}

/* Besides new code: pieces for system calls, what the tool's C library has made before anybody could tell it where. */
static inl_status tell_of_new(put *p, inl_error *e)
{
    p->new.count = 0;
    each_new(p, note);
    if (p->full) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return live_record_tell(p->leader, p->new.items, p->new.count, live_record_room(p->count), e);
}

/* --- new code --- */

uint8_t *live_text_of(const live_image *i, uint64_t *size)
{
    const move_plan *plan = i->plan;
    *size = live_hook_at(plan, i->hook_count) - plan->text_addr;
    uint8_t *text = calloc(1, *size + 1);
    if (!text) return NULL;
    memcpy(text, plan->text, plan->text_size);
    for (size_t k = 0; k < i->hook_count; k++)
        remote_put_jump(text + (live_hook_at(plan, k) - plan->text_addr), i->hooks[k].function);
    return text;
}

static inl_status put_text(put *p, const live_image *i, inl_error *e)
{
    uint64_t size;
    uint8_t *text = live_text_of(i, &size);
    if (!text) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = size ? map_with(p, i->plan->text_addr, text, size, PROT_READ | PROT_EXEC, e) : INL_OK;
    free(text);
    return s;
}

/* | text, hooks | map | unwind table | */
static inl_status put_image(put *p, size_t k, inl_error *e)
{
    const live_image *i = &p->images[k];
    const live_target *t = i->target;
    const move_plan *plan = i->plan;
    const image_segment *s;
    const inl_bytes *ro = &t->tables;
    uint64_t bias = t->module->bias;
    image_segments(t->module->image, &s);
    p->told[k] = (move_live_image){.links = {.text = plan->text_addr - bias,
                                             .text_size = plan->text_size,
                                             .map = ro->addr,
                                             .bias = bias,
                                             .low = s[0].addr},
                                   .unwind = t->unwind.header,
                                   .shown = {.at = t->unwind.at, .size = t->unwind.size},
                                   .site_count = t->site_count,
                                   .sites = t->sites};
    inl_status st = put_text(p, i, e);
    return st == INL_OK ? map_with(p, ro->addr + bias, ro->data, ro->size, PROT_READ, e) : st;
}

/* --- the tool --- */

static char **strings_of(const live_process *p, const char *what, inl_error *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", p->pid, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t room = 4096, size = 0, n = 0;
    char *bytes = malloc(room + 1);
    for (ssize_t got = 1; fd >= 0 && bytes && got > 0; size += got > 0 ? (size_t)got : 0) {
        if (size == room) {
            char *more = realloc(bytes, 2 * room + 1);
            if (!more) break;
            bytes = more;
            room *= 2;
        }
        got = read(fd, bytes + size, room - size);
    }
    if (fd >= 0) close(fd);
    if (bytes) bytes[size] = 0;
    for (size_t i = 0; bytes && i < size; i += strlen(bytes + i) + 1) n++;
    char **list = bytes ? calloc(n + 2, sizeof *list) : NULL;
    if (!list) {
        free(bytes);
        inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    list[0] = bytes; /* kept for free_strings, in front of the first */
    n = 0;
    for (size_t i = 0; i < size; i += strlen(bytes + i) + 1) list[1 + n++] = bytes + i;
    return list + 1;
}

static void free_strings(char **list)
{
    if (!list) return;
    free(list[-1]);
    free(list - 1);
}

static inl_status read_start(put *p, inl_error *e)
{
    size_t size;
    p->start.auxv = live_auxv(p->process, &size, e);
    p->start.argv = p->start.auxv ? strings_of(p->process, "cmdline", e) : NULL;
    p->start.envp = p->start.argv ? strings_of(p->process, "environ", e) : NULL;
    return p->start.envp ? INL_OK : e->code;
}

static void free_start(put *p)
{
    free_strings(p->start.argv);
    free_strings(p->start.envp);
    free(p->start.auxv);
}

/* argc, argv, environment and auxiliary vector, as they were at the start: below `top`. */
static inl_first_stack first_stack(const put *p, uint64_t top)
{
    char **argv = p->start.argv;
    inl_first_stack s = {.top = top,
                         .argv = (const char *const *)argv,
                         .envp = (const char *const *)p->start.envp,
                         .name = argv[0] ? argv[0] : "",
                         .auxv = p->start.auxv,
                         .change_count = p->process->change_count};
    for (size_t i = 0; i < s.change_count; i++)
        s.changes[i] = (Elf64_auxv_t){p->process->changes[i].type, {p->process->changes[i].value}};
    return s;
}

static inl_status put_stack(put *p, uint64_t *sp, inl_error *e)
{
    const inl_first_stack s = first_stack(p, p->stack_high);
    *sp = inl_first_stack_sp(&s);
    void *bytes = malloc(s.top - *sp);
    if (!bytes) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_first_stack_build(&s, bytes);
    inl_status st = remote_write(p->leader, *sp, bytes, s.top - *sp, e);
    free(bytes);
    return st;
}

/* The boot code's pages, but for the links that they begin with; *until: of the system call. */
static inl_status make_boot(put *p, inl_bytes *b, uint64_t *until, inl_error *e)
{
    const elf_carry *c = p->carry->packed;
    inl_bytes_put(b, c->boot, c->boot_size);
    inl_bytes_align(b, 16);
    *until = inl_bytes_here(b);
    inl_bytes_put(b, remote_tail, remote_tail_size);
    p->told_boot.links = (move_boot_links){.text = b->addr, .text_size = c->boot_size};
    if (b->failed) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return c->return_size ? elf_unwind_boot(c, b->addr, b, &p->told_boot.unwind, e) : INL_OK;
}

/* In front of the boot code are the program's links, whether it is instrumented or not. */
static inl_status put_boot(put *p, inl_error *e)
{
    const elf_carry *c = p->carry->packed;
    uint64_t bias = p->process->bias, until = 0;
    inl_bytes b = {.addr = MOVE_LIVE_BASE};
    inl_status s = make_boot(p, &b, &until, e);
    move_carry_head head;
    p->boot = b.addr;
    p->until = until + remote_tail_until;
    p->data = p->boot + inl_page_up(b.size);
    p->own = p->data + inl_page_up(c->data_size);
    move_boot_links links = {
        .self = p->boot - bias, .data = p->data - bias, .data_size = c->data_size, .entry = until - bias, .bias = bias};
    if (s == INL_OK) inl_bytes_set(&b, 0, &links, sizeof links);
    if (s == INL_OK) s = map_with(p, p->boot, b.data, b.size, PROT_READ | PROT_EXEC, e);
    inl_bytes_free(&b);
    if (s == INL_OK) s = map_with(p, p->data, c->data, c->data_size, PROT_READ, e);
    if (s != INL_OK) return s;
    memcpy(&head, c->data, sizeof head);
    head.live = p->own;
    memcpy((void *)p->ready.pieces.items[p->ready.pieces.count - 1].bytes, &head, sizeof head);
    return INL_OK;
}

/* New code is known before anything starts: whoever comes later can take it away. */
static inl_status tell_of_pieces(put *p, inl_bytes *b, inl_error *e)
{
    move_told *told = (move_told *)b->data;
    for (size_t i = 0; i < p->ready.pieces.count; i++) {
        const live_text *t = &p->ready.pieces.items[i];
        note(p, t->at, t->at + inl_page_up(t->size));
    }
    if (p->full || p->new.count > live_record_room(p->count))
        return inl_fail(e, INL_ERR_NO_MEMORY, "too many mappings are needed");
    memcpy(b->data + (told->ranges - b->addr), p->new.items, p->new.count * sizeof *p->new.items);
    told->range_count = p->new.count;
    return INL_OK;
}

/* What is told of it to whoever comes later. It is the last piece. */
static inl_status put_record(put *p, inl_error *e)
{
    inl_bytes b = {.addr = MOVE_TOLD_BASE};
    inl_status s = live_record_make(p->images, p->count, p->carry, &b, e);
    if (s == INL_OK) s = tell_of_pieces(p, &b, e);
    live_text told = {.at = MOVE_TOLD_BASE, .bytes = b.data, .size = b.size, .prot = PROT_READ | PROT_WRITE};
    if (s == INL_OK) told.first = ((move_told *)b.data)->patches - b.addr; /* there are none in force yet */
    if (s == INL_OK) s = live_ready_add(&p->ready, &told, e);
    inl_bytes_free(&b);
    return s;
}

/* --- threads --- */

bool live_hook_jump(const live_image *i, size_t k, uint8_t jump[MOVE_MOST_PATCH])
{
    uint64_t at = i->hooks[k].at;
    return move_isa_here.jump(at, live_hook_at(i->plan, k), move_isa_here.far_jump, jump);
}

static inl_status read_alternate(put *p, remote *r, move_live_thread *t, inl_error *e)
{
    uint64_t words[3]; /* stack_t: address, flags, size */
    long answer;
    inl_status s = remote_call(r, &answer, SYS_sigaltstack, (long[6]){0, (long)p->stack_high}, e);
    if (s == INL_OK) s = remote_read(r, p->stack_high, words, sizeof words, e);
    if (s != INL_OK) return s;
    t->stack = words[0];
    t->stack_flags = words[1] & 0xffffffffu;
    t->stack_size = words[2];
    return INL_OK;
}

static inl_status set_alternate(put *p, remote *r, const move_live_thread *t, inl_error *e)
{
    uint64_t words[3] = {t->stack, t->stack_flags, t->stack_size};
    long answer;
    inl_status s = remote_write(r, p->stack_high, words, sizeof words, e);
    return s == INL_OK ? remote_call(r, &answer, SYS_sigaltstack, (long[6]){(long)p->stack_high}, e) : s;
}

/* The jump at a hooked procedure's entry leads to the hook, which knows the moved one. */
static inl_status put_hooks(put *p, uint64_t at, inl_error *e)
{
    inl_status s = INL_OK;
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->images[i].hook_count && s == INL_OK; k++, at += sizeof(move_live_hook)) {
            const live_hook *h = &p->images[i].hooks[k];
            const move_live_hook one = {h->next_at, h->next};
            uint8_t jump[MOVE_MOST_PATCH];
            if (!live_hook_jump(&p->images[i], k, jump))
                return inl_fail_at(e, INL_ERR_RANGE, h->at, "there is no way to a hook");
            s = remote_write(p->leader, at, &one, sizeof one, e);
        }
    return s;
}

/* Of the file that runs here, and is to run there. */
static inl_status put_path(put *p, uint64_t at, inl_error *e)
{
    char path[PATH_MAX] = "";
    return readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? remote_write(p->leader, at, path, sizeof path, e)
                                                                 : INL_OK;
}

/* The move_live, and behind it what is told of the images, hooks, and the tool's path. */
static inl_status put_threads(put *p, inl_error *e)
{
    size_t n = p->process->threads.count, told = p->count * sizeof(move_live_image);
    p->live_size = sizeof(move_live) + n * sizeof(move_live_thread);
    uint64_t hooks = p->own + p->live_size + told, count = 0;
    for (size_t k = 0; k < p->count; k++) count += p->images[k].hook_count;
    uint64_t path = hooks + count * sizeof(move_live_hook);
    inl_status s = read_start(p, e);
    if (s != INL_OK) return s;
    const inl_first_stack first = first_stack(p, MOVE_REGION_HIGH);
    p->stack_high = inl_page_up(path + PATH_MAX) + STACK_ROOM + inl_page_up(first.top - inl_first_stack_sp(&first));
    s = map(p, p->own, p->stack_high + INL_PAGE - p->own, PROT_READ | PROT_WRITE, e);
    move_live *live = calloc(1, p->live_size);
    if (!live) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    *live = (move_live){.hook_count = count,
                        .hooks = hooks,
                        .image_count = p->count,
                        .images = p->own + p->live_size,
                        .boot = p->told_boot,
                        .tool = path,
                        .thread_count = n,
                        .word = p->process->word,
                        .tells = p->process->tells,
                        .helper = p->process->is_ours ? (uint64_t)getpid() : 0};
    for (size_t i = 0; i < n && s == INL_OK; i++) {
        remote *r = &p->process->threads.items[i];
        live->threads[i].tid = (uint64_t)live_inner_tid(r->pid);
        live->threads[i].sigmask = r->sigmask;
        live->threads[i].slot = r->slot;
        remote_context(r, &live->threads[i].ctx);
        s = read_alternate(p, r, &live->threads[i], e);
    }
    if (s == INL_OK) s = remote_write(p->leader, p->own, live, p->live_size, e);
    if (s == INL_OK) s = remote_write(p->leader, live->images, p->told, told, e);
    free(live);
    if (s == INL_OK) s = put_path(p, path, e);
    return s == INL_OK ? put_hooks(p, hooks, e) : s;
}

/* The slots of its frame hold what its registers do, wherever it goes on. */
inl_status live_settle(remote *r, const move_live_thread *t, inl_error *e)
{
    weave_frame f;
    size_t size = offsetof(weave_frame, flags) + sizeof f.flags;
    remote_registers_set_block(&r->regs, t->block);
    remote_set_context(r, &t->ctx);
    inl_status s = remote_read(r, t->block, &f, size, e);
    remote_fill_slots(r, &f);
    return s == INL_OK ? remote_write(r, t->block, &f, size, e) : s;
}

/* As the tool says. It has filled the slots of all; but the leader's way out of it went through the gate, which keeps
 * registers of its own in some. */
static inl_status settle_thread(put *p, remote *r, const move_live_thread *t, inl_error *e)
{
    remote_registers_set_block(&r->regs, t->block);
    remote_set_context(r, &t->ctx);
    inl_status s = r == p->leader ? live_settle(r, t, e) : INL_OK;
    return s == INL_OK ? set_alternate(p, r, t, e) : s;
}

static inl_status settle_threads(put *p, inl_error *e)
{
    move_live *live = malloc(p->live_size);
    if (!live) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = remote_read(p->leader, p->own, live, p->live_size, e);
    if (s == INL_OK && !live->started)
        s = inl_fail(e, INL_ERR_SYSTEM, "the tool did not start in process %d", p->process->pid);
    for (size_t i = 0; i < p->process->threads.count && s == INL_OK; i++)
        s = settle_thread(p, &p->process->threads.items[i], &live->threads[i], e);
    if (s == INL_OK && live->started == MOVE_LIVE_WITHOUT_JUMPS)
        s = inl_fail(e, INL_ERR_SYSTEM, "writing over code of process %d failed", p->process->pid);
    free(live);
    return s;
}

/* What a tool that does not start has changed: of the first thread, which the kernel was told of by another C library,
 * and descriptors. */
typedef struct before {
    uint64_t clear_tid, robust, robust_size;
    move_live_thread stack; /* its alternate one */
    uint64_t actions[5][4]; /* of `faults`, as the kernel has them */
    INL_VEC(int) fds;
} before;

/* Those that end the process where they are held back, and their handler is not the program's any more then. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

static inl_status read_actions(put *p, before *b, inl_error *e)
{
    inl_status s = INL_OK;
    long answer, at = (long)p->stack_high;
    for (size_t i = 0; i < sizeof faults / sizeof *faults && s == INL_OK; i++) {
        s = remote_call(p->leader, &answer, SYS_rt_sigaction, (long[6]){faults[i], 0, at, sizeof(uint64_t)}, e);
        if (s == INL_OK) s = remote_read(p->leader, p->stack_high, b->actions[i], sizeof b->actions[i], e);
    }
    return s;
}

static void set_actions(put *p, const before *b)
{
    inl_error ignored;
    long answer, at = (long)p->stack_high;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (remote_write(p->leader, p->stack_high, b->actions[i], sizeof b->actions[i], &ignored) != INL_OK) return;
        remote_call(p->leader, &answer, SYS_rt_sigaction, (long[6]){faults[i], at, 0, sizeof(uint64_t)}, &ignored);
    }
}

static void list_fds(const put *p, before *b)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", p->process->pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (*entry->d_name != '.' && !inl_vec_push(&b->fds, atoi(entry->d_name))) break;
    if (d) closedir(d);
}

static inl_status remember(put *p, before *b, inl_error *e)
{
    enum { GET_TID_ADDRESS = 40 };
    uint64_t words[3] = {0};
    long at = (long)p->stack_high, answer;
    inl_status s = remote_write(p->leader, p->stack_high, words, sizeof words, e);
    if (s == INL_OK) s = remote_call(p->leader, &answer, SYS_prctl, (long[6]){GET_TID_ADDRESS, at}, e);
    if (s == INL_OK) s = remote_call(p->leader, &answer, SYS_get_robust_list, (long[6]){0, at + 8, at + 16}, e);
    if (s == INL_OK) s = remote_read(p->leader, p->stack_high, words, sizeof words, e);
    b->clear_tid = words[0];
    b->robust = words[1];
    b->robust_size = words[2];
    list_fds(p, b);
    if (s == INL_OK) s = read_alternate(p, p->leader, &b->stack, e);
    b->stack.stack_flags &= ~(uint64_t)SS_ONSTACK;
    return s == INL_OK ? read_actions(p, b, e) : s;
}

static bool was_open(const before *b, int fd)
{
    for (size_t i = 0; i < b->fds.count; i++)
        if (b->fds.items[i] == fd) return true;
    return false;
}

static void take_back(put *p, const before *b)
{
    before now = {0};
    inl_error ignored;
    long answer;
    remote_call(p->leader, &answer, SYS_set_tid_address, (long[6]){(long)b->clear_tid}, &ignored);
    remote_call(p->leader, &answer, SYS_set_robust_list, (long[6]){(long)b->robust, (long)b->robust_size}, &ignored);
    set_alternate(p, p->leader, &b->stack, &ignored);
    set_actions(p, b);
    list_fds(p, &now);
    for (size_t i = 0; i < now.fds.count; i++)
        if (!was_open(b, now.fds.items[i]))
            remote_call(p->leader, &answer, SYS_close, (long[6]){now.fds.items[i]}, &ignored);
    inl_vec_free(&now.fds);
}

static inl_status start_tool(put *p, inl_error *e)
{
    void *vectors = NULL;
    size_t size = 0;
    uint64_t sp;
    before was = {0};
    inl_status s = put_stack(p, &sp, e);
    if (s == INL_OK) s = remember(p, &was, e);
    if (s == INL_OK) s = remote_vectors(p->leader, &vectors, &size, e);
    if (s == INL_OK) {
        s = live_works(p->process, true, e);
        if (s == INL_OK)
            s = remote_run(p->leader, p->boot + p->carry->packed->entry_at, sp, p->until, !p->process->is_ours, e);
        inl_status back = p->leader->gone ? s : remote_set_vectors(p->leader, vectors, size, e);
        if (s != INL_OK && !p->leader->gone) take_back(p, &was);
        if (s == INL_OK) s = back;
    }
    inl_vec_free(&was.fds);
    free(vectors);
    return s;
}

/* --- old code --- */

static live_patch *jumps_of(const live_target *t)
{
    live_patch *all = calloc(t->patches.count + 1, sizeof *all);
    for (size_t i = 0; all && i < t->patches.count; i++) {
        const move_patch *x = &t->patches.items[i];
        all[i] = (live_patch){.at = x->at.at, .size = x->size};
        memcpy(all[i].bytes, x->now, x->size);
    }
    return all;
}

static inl_status make(put *p, inl_error *e)
{
    inl_status s = p->told ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t k = 0; k < p->count && s == INL_OK; k++) s = put_image(p, k, e);
    if (s == INL_OK) s = put_boot(p, e);
    return s == INL_OK ? put_record(p, e) : s;
}

inl_status live_put_begin(live_process *process, const live_image *images, size_t count, const live_carry *carry,
                          live_put **out, inl_error *e)
{
    put *p = *out = calloc(1, sizeof *p);
    if (!p) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    *p = (put){.process = process,
               .images = images,
               .count = count,
               .carry = carry,
               .there = {.pid = process->pid},
               .told = calloc(count, sizeof(move_live_image))};
    return make(p, e);
}

void live_put_end(live_put *p)
{
    if (!p) return;
    live_ready_end(&p->ready);
    live_close(&p->there);
    free_start(p);
    free(p->told);
    inl_vec_free(&p->new);
    free(p);
}

/* Code that runs as it is, and what is mapped later, would find the thread's block by it. */
static inl_status refuse_owner(const live_put *p, inl_error *e)
{
    for (size_t i = 0; i < p->process->threads.count; i++) {
        const remote *r = &p->process->threads.items[i];
        if (!remote_registers_block(&r->regs)) continue;
        return inl_fail(e, INL_ERR_UNSUPPORTED,
                        "process %d uses GS for itself (thread %d has set its base), by which inserted code finds what "
                        "is a thread's; start it under the tool instead (inlay run)",
                        p->process->pid, r->pid);
    }
    return INL_OK;
}

/* The program's own code while it runs: it never goes. A library may, and memory that the process writes to be where it
 * was. */
static void prepare(live_put *p, bool runs)
{
    for (size_t k = 0; k < p->count && p->ready.is_apart; k++) {
        const live_target *t = p->images[k].target;
        live_patch *all = t->module->is_main == runs ? jumps_of(t) : NULL;
        if (all) live_patch_prepare(p->process, all, t->patches.count);
        free(all);
    }
}

inl_status live_put_map(live_put *p, bool runs_on, inl_error *e)
{
    inl_status s = refuse_owner(p, e);
    if (s == INL_OK) s = live_ready_map(&p->ready, p->process, runs_on, e);
    if (s == INL_OK) prepare(p, false);
    return s;
}

inl_status live_put_fill(live_put *p, inl_error *e)
{
    prepare(p, true);
    return live_ready_fill(&p->ready, p->process, e);
}

void live_put_give_up(live_put *p) { live_ready_unmap(&p->ready, p->process); }

/* Jumps over the old code of one that has gone would be written over whatever is there now. */
static inl_status check_images(const live_put *p, inl_error *e)
{
    for (size_t k = 0; k < p->count; k++) {
        const module *m = p->images[k].target->module;
        if (live_has_image(&p->there, m)) continue;
        return inl_fail(e, INL_ERR_NOT_FOUND, "process %d has unloaded %s meanwhile; try again", p->process->pid,
                        image_path(m->image));
    }
    return INL_OK;
}

inl_status live_put_finish(live_put *p, inl_error *e)
{
    p->leader = &p->process->threads.items[0];
    inl_status s = refuse_owner(p, e);
    if (s == INL_OK) s = live_read_maps(&p->there, e);
    if (s == INL_OK) s = check_images(p, e);
    if (s != INL_OK) live_put_give_up(p);
    if (s == INL_OK) s = live_ready_take(&p->ready, p->process, &p->there, e);
    if (s != INL_OK) return s;
    s = put_threads(p, e);
    if (s == INL_OK) s = start_tool(p, e);
    if (s != INL_OK && !p->leader->gone) unmap_all(p);
    if (s == INL_OK) s = live_works(p->process, false, e); /* it is in, whatever happens */
    if (s == INL_OK) s = tell_of_new(p, e);
    return s == INL_OK ? settle_threads(p, e) : s;
}

inl_status live_put_in(live_process *process, const live_image *images, size_t count, const live_carry *carry,
                       inl_error *e)
{
    live_put *p = NULL;
    inl_status s = live_put_begin(process, images, count, carry, &p, e);
    if (s == INL_OK) s = live_put_map(p, false, e);
    if (s == INL_OK) s = live_put_fill(p, e);
    if (s == INL_OK) s = live_put_finish(p, e);
    live_put_end(p);
    return s;
}
