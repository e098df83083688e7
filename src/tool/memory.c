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
#include "base/sys.h"

#include <inlay/tool.h>

#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LARGE = 64 << 10, PAGE = 4096, HEAP_STEP = 4 << 20, ALIGN = 16 };
static const uint64_t MAGIC = 0x7061656879616c6eull;

typedef struct tool_replay { /* a request of main's */
    struct tool_replay *next;
    size_t bytes;
    void *memory;
} tool_replay;

static inl_arena arena;
static tool_heap_root *heap;
static uint64_t heap_mapped; /* to here */
static bool started;         /* main has called inlay_start */
static tool_replay *replay;  /* carried: main's next request */

tool_heap_root *tool_heap(void) { return heap; }

/* --- the carried heap --- */

static uint64_t page_up(uint64_t a) { return (a + PAGE - 1) & ~(uint64_t)(PAGE - 1); }

static bool grow_locked(uint64_t end)
{
    if (end <= heap_mapped) return true;
    uint64_t to = page_up(end) + HEAP_STEP;
    if (to > MOVE_REGION_LOW) return false;
    long got = sys_call(SYS_mmap, (long)heap_mapped, (long)(to - heap_mapped), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (long)heap_mapped) return false;
    heap_mapped = to;
    return true;
}

static void *heap_alloc_locked(size_t bytes, size_t align)
{
    uint64_t at = (heap->next + align - 1) & ~(uint64_t)(align - 1);
    if (bytes > MOVE_REGION_LOW - at || !grow_locked(at + bytes)) return NULL;
    heap->next = at + bytes;
    return (void *)at;
}

bool tool_heap_create(void)
{
    heap_mapped = MOVE_HEAP_BASE;
    if (!grow_locked(MOVE_HEAP_BASE + sizeof *heap)) return false;
    heap = (tool_heap_root *)MOVE_HEAP_BASE;
    heap->magic = MAGIC;
    heap->next = MOVE_HEAP_BASE + sizeof *heap;
    heap->numbers[ROOT_COUNTERS] = 1;
    return true;
}

void tool_heap_attach(void)
{
    tool_heap_root *r = (tool_heap_root *)MOVE_HEAP_BASE;
    if (r->magic != MAGIC) tool_fail(TOOL_EXIT_FAILED, "the carried heap is damaged");
    heap_mapped = page_up(r->next);
    replay = r->replay;
    heap = r;
    snprintf(tool_handoff_data.program, sizeof tool_handoff_data.program, "%s", r->program);
    tool_counters_restore();
    tool_images_attach();
    tool_buffers_attach();
}

void tool_heap_begin(void)
{
    if (!heap) return;
    started = true;
    if (tool_handoff_data.role == TOOL_INSTRUMENTOR) heap->start = heap->next;
    if (tool_handoff_data.role == TOOL_CARRIED) {
        tool_counters_restore();
        tool_buffers_begin();
        tool_images_begin();
    }
}

size_t tool_heap_size(void) { return heap ? page_up(heap->next) - MOVE_HEAP_BASE : 0; }

bool tool_heap_holds(const void *p)
{
    uint64_t a = (uint64_t)(uintptr_t)p;
    return heap && a >= MOVE_HEAP_BASE && a < heap->next;
}

/* --- requests --- */

void *tool_alloc(size_t bytes)
{
    if (bytes >= LARGE) {
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    inl_lock_take(&tool_small_lock);
    void *p = inl_arena_alloc(&arena, bytes);
    inl_lock_release(&tool_small_lock);
    return p;
}

void *tool_carried_alloc_at(size_t bytes, size_t align)
{
    if (!heap) return tool_alloc(bytes);
    inl_lock_take(&tool_small_lock);
    void *p = heap_alloc_locked(bytes, align);
    inl_lock_release(&tool_small_lock);
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
    if (heap->replay_last) heap->replay_last->next = r;
    else heap->replay = r;
    heap->replay_last = r;
    return p;
}

/* The carried tool's main asks: the same as there, unless it went another way. */
static void *repeat(size_t bytes)
{
    tool_replay *r = replay;
    if (r && r->bytes == bytes) {
        replay = r->next;
        return r->memory;
    }
    replay = NULL;
    tool_say_limited("main asks for other memory than it did when the program was rewritten; what "
                     "instrumentation left there is lost");
    return tool_carried_alloc(bytes);
}

void *inlay_alloc(size_t bytes)
{
    if (heap && !started && bytes) return tool_handoff_data.role == TOOL_CARRIED ? repeat(bytes) : remember(bytes);
    return tool_carried_alloc(bytes);
}
