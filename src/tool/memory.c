/* Memory for tools and for what lives as long as the process: zeroed, never freed, from any thread.
 * Large pieces are mappings of their own, so that what is not touched costs nothing.
 *
 * The carried heap. What instrumentation leaves for analysis must be in the program that is written,
 * at the same address. So in the instrumentor and in the carried tool one heap that only grows lies at
 * a fixed place, and begins with the pointers from which all of it is found:
 *
 *     MOVE_HEAP_BASE   tool_heap_root
 *                         what was allocated before and during instrumentation: stored in the program
 *                         what is allocated when the program runs
 *
 * main runs in both, and the memory that it asks for before inlay_start must be the same memory: the
 * n-th request of the instrumentor's main is remembered (replay) and answers the n-th request of the
 * carried tool's main, with the content that instrumentation has left there. */
#include "tool/state.h"
#include "move/boot.h"
#include "base/page.h"
#include "base/sys.h"

#include <inlay/tool.h>

#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LARGE = 64 << 10, HEAP_STEP = 4 << 20, ALIGN = 16 };
static const uint64_t MAGIC = 0x7061656879616c6eull;

typedef struct tool_replay { /* a request of main's */
    struct tool_replay *next;
    size_t bytes;
    void *memory;
} tool_replay;

typedef struct tool_large { /* what has a mapping of its own */
    struct tool_large *next;
    void *at;
    size_t bytes;
} tool_large;

static tool_memory *state(void) { return &tool_now->memory; }

tool_heap_root *tool_heap(void) { return state()->heap; }

/* --- the carried heap --- */

static bool grow_locked(uint64_t end)
{
    tool_memory *m = state();
    if (end <= m->mapped) return true;
    uint64_t to = inl_page_up(end) + HEAP_STEP;
    if (to > MOVE_REGION_LOW) return false;
    long got = sys_call(SYS_mmap, (long)m->mapped, (long)(to - m->mapped), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (long)m->mapped) return false;
    m->mapped = to;
    return true;
}

static void *heap_alloc_locked(size_t bytes, size_t align)
{
    tool_heap_root *heap = tool_heap();
    uint64_t at = (heap->next + align - 1) & ~(uint64_t)(align - 1);
    if (bytes > MOVE_REGION_LOW - at || !grow_locked(at + bytes)) return NULL;
    heap->next = at + bytes;
    return (void *)at;
}

bool tool_heap_create(void)
{
    tool_heap_root *heap = (tool_heap_root *)MOVE_HEAP_BASE;
    state()->mapped = MOVE_HEAP_BASE;
    if (!grow_locked(MOVE_HEAP_BASE + sizeof *heap)) return false;
    state()->heap = heap;
    heap->magic = MAGIC;
    heap->next = MOVE_HEAP_BASE + sizeof *heap;
    heap->numbers[ROOT_COUNTERS] = WEAVE_BANKED;
    heap->numbers[ROOT_BANKED] = 1;
    return true;
}

void tool_heap_attach(void)
{
    tool_heap_root *r = (tool_heap_root *)MOVE_HEAP_BASE;
    if (r->magic != MAGIC) tool_fail(TOOL_EXIT_FAILED, "the carried heap is damaged");
    if (r->next_there) r->next = r->next_there;
    state()->mapped = inl_page_up(r->next);
    state()->replay = r->replay;
    state()->heap = r;
    tool_now->blame.sources = r->sources;
    snprintf(tool_handoff_data.program, sizeof tool_handoff_data.program, "%s", r->program);
    tool_counters_restore();
    tool_images_attach();
    tool_buffers_attach();
}

void tool_heap_begin(void)
{
    tool_heap_root *heap = tool_heap();
    if (!heap) return;
    state()->started = true;
    if (tool_handoff_data.role == TOOL_INSTRUMENTOR) heap->start = heap->next;
    if (tool_handoff_data.role == TOOL_CARRIED) {
        tool_counters_restore();
        tool_buffers_begin();
        tool_images_begin();
    }
}

size_t tool_heap_size(void)
{
    const tool_heap_root *heap = tool_heap();
    return heap ? inl_page_up(heap->next) - MOVE_HEAP_BASE : 0;
}

bool tool_heap_holds(const void *p)
{
    const tool_heap_root *heap = tool_heap();
    uint64_t a = (uint64_t)(uintptr_t)p;
    return heap && a >= MOVE_HEAP_BASE && a < heap->next;
}

/* --- requests --- */

static void *small_alloc(size_t bytes)
{
    inl_lock_take(&tool_now->locks.small);
    void *p = inl_arena_alloc(&state()->arena, bytes);
    inl_lock_release(&tool_now->locks.small);
    return p;
}

static void *large_alloc(size_t bytes)
{
    tool_large *l = small_alloc(sizeof *l);
    void *p = l ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                : MAP_FAILED;
    if (p == MAP_FAILED) return NULL;
    inl_lock_take(&tool_now->locks.small);
    *l = (tool_large){state()->large, p, bytes};
    state()->large = l;
    inl_lock_release(&tool_now->locks.small);
    return p;
}

void *tool_alloc(size_t bytes) { return bytes < LARGE ? small_alloc(bytes) : large_alloc(bytes); }

void tool_memory_end(tool_memory *m)
{
    for (tool_large *l = m->large; l; l = l->next) munmap(l->at, l->bytes);
    inl_arena_free(&m->arena);
    if (m->mapped) munmap((void *)MOVE_HEAP_BASE, m->mapped - MOVE_HEAP_BASE);
    *m = (tool_memory){0};
}

void *tool_carried_alloc_at(size_t bytes, size_t align)
{
    if (!tool_heap()) return tool_alloc(bytes);
    inl_lock_take(&tool_now->locks.small);
    void *p = heap_alloc_locked(bytes, align);
    inl_lock_release(&tool_now->locks.small);
    return p;
}

void *tool_carried_alloc(size_t bytes) { return tool_carried_alloc_at(bytes, ALIGN); }

/* The instrumentor's main asks. */
static void *remember(size_t bytes)
{
    tool_replay *r = tool_carried_alloc(sizeof *r);
    void *p = r ? tool_carried_alloc(bytes) : NULL;
    if (!p) return NULL;
    *r = (tool_replay){NULL, bytes, p};
    tool_heap_root *heap = tool_heap();
    if (heap->replay_last) heap->replay_last->next = r;
    else heap->replay = r;
    heap->replay_last = r;
    return p;
}

/* The carried tool's main asks: the same as there, unless it went another way. */
static void *repeat(size_t bytes)
{
    tool_replay *r = state()->replay;
    if (r && r->bytes == bytes) {
        state()->replay = r->next;
        return r->memory;
    }
    state()->replay = NULL;
    tool_say_limited("main asks for other memory than it did when the program was rewritten; what "
                     "instrumentation left there is lost");
    return tool_carried_alloc(bytes);
}

void *inlay_alloc(size_t bytes)
{
    if (!tool_heap() || state()->started || !bytes) return tool_carried_alloc(bytes);
    return tool_handoff_data.role == TOOL_CARRIED ? repeat(bytes) : remember(bytes);
}
