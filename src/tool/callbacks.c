#include "tool/state.h"

#include <stdlib.h>

static void add(callback_kind kind, void (*f)(void), void *arg)
{
    callback *c = f ? tool_alloc(sizeof *c) : NULL;
    if (!f) return;
    if (!c) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    c->f = f;
    c->arg = arg;
    callback **end = &tool_now->callbacks[kind];
    while (*end) end = &(*end)->next;
    *end = c;
}

#define ADDER(name, kind, ...)                                                                                         \
    void inlay_on_##name(__VA_ARGS__, void *arg) { add(kind, (void (*)(void))f, arg); }

ADDER(image_load, ON_IMAGE_LOAD, void (*f)(inlay_image *, void *))
ADDER(image_unload, ON_IMAGE_UNLOAD, void (*f)(inlay_image *, void *))
ADDER(proc, ON_PROC, void (*f)(inlay_proc *, void *))
ADDER(proc_left, ON_PROC_LEFT, void (*f)(inlay_proc *, const char *, void *))
ADDER(block, ON_BLOCK, void (*f)(inlay_block *, void *))
ADDER(insn, ON_INSN, void (*f)(inlay_insn *, void *))
ADDER(thread_start, ON_THREAD_START, void (*f)(inlay_thread *, void *))
ADDER(thread_end, ON_THREAD_END, void (*f)(inlay_thread *, void *))
ADDER(syscall_entry, ON_SYSCALL_ENTRY, void (*f)(inlay_thread *, inlay_syscall *, void *))
ADDER(syscall_exit, ON_SYSCALL_EXIT, void (*f)(inlay_thread *, inlay_syscall *, void *))
ADDER(signal, ON_SIGNAL, void (*f)(inlay_thread *, int, const siginfo_t *, const inlay_context *, void *))
ADDER(fork_child, ON_FORK_CHILD, void (*f)(void *))
ADDER(exec, ON_EXEC, bool (*f)(const char *, char *const[], void *))
ADDER(start, ON_START, void (*f)(void *))
ADDER(exit, ON_EXIT, void (*f)(int, void *))

void inlay_on_kept_block(void (*f)(uint64_t, bool, void *), void *arg)
{
    tool_now->kept.promised = true;
    add(ON_KEPT_BLOCK, (void (*)(void))f, arg);
}
