#include "run/debugger.h"

#include <stddef.h>

struct jit_descriptor {
    uint32_t version, action_flag;
    struct run_debug_file *relevant_entry, *first_entry;
};
enum { JIT_NO_ACTION, JIT_REGISTER, JIT_UNREGISTER };

extern struct jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

__attribute__((visibility("default"), used)) struct jit_descriptor __jit_debug_descriptor = {.version = 1};
__attribute__((visibility("default"), used, noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

void run_debugger_tell(run_debug_file *f, bool is_there)
{
    struct jit_descriptor *d = &__jit_debug_descriptor;
    run_debug_file **to_it = f->before ? &f->before->next : &d->first_entry;
    if (is_there) {
        f->next = d->first_entry;
        if (f->next) f->next->before = f;
        d->first_entry = f;
    } else {
        *to_it = f->next;
        if (f->next) f->next->before = f->before;
    }
    d->relevant_entry = f;
    d->action_flag = is_there ? JIT_REGISTER : JIT_UNREGISTER;
    __jit_debug_register_code();
    d->action_flag = JIT_NO_ACTION;
    d->relevant_entry = NULL;
}
