/* The tool's state as a whole: set up, taken down. */
#include "cfg/thunks.h"
#include "tool/options.h"

#include <stdlib.h>
#include <string.h>

#define NO_FDS                                                                                                         \
    {                                                                                                                  \
        -1, -1, -1, -1, -1, -1                                                                                         \
    }
#define BEGINNING(s)                                                                                                   \
    {                                                                                                                  \
        .options.fds = NO_FDS, .next_counter = WEAVE_BANKED, .next_banked = 1, .output.left_over = -1,                 \
        .process = &(s).own                                                                                            \
    }

/* The process's first state is there before anything runs: options may be declared by constructors. */
static tool_state first = BEGINNING(first);
tool_state *tool_now = &first;
__thread tool_thread_now tool_here;

void tool_state_begin(tool_state *s) { *s = (tool_state)BEGINNING(*s); }

/* The engine's modules and threads outlive the tool's handles of them. */
static void end_process(inlay_process *p)
{
    for (module *m = run_here.modules ? module_first(run_here.modules) : NULL; m; m = m->next)
        if (m->user && ((inlay_image *)m->user)->process == p) tool_image_forget(m->user);
    for (tool_thread *t = p->threads; t; t = t->next) {
        if (!t->owner) continue;
        memset(t->owner->frame.buffers, 0, sizeof t->owner->frame.buffers);
        t->owner->client = NULL;
    }
}

static void end_options(tool_state *s)
{
    tool_globs *globs[] = {&s->options.images, &s->options.procs, &s->options.not_procs, &s->options.libs,
                           &s->options.follow};
    for (size_t i = 0; i < sizeof globs / sizeof *globs; i++) { free(globs[i]->items); }
    inl_vec_free(&s->command_line.own);
    inl_vec_free(&s->command_line.carried);
    inl_vec_free(&s->kept.options);
    free(s->real_path);
}

void tool_state_end(tool_state *s)
{
    tool_output_end(&s->output);
    end_process(&s->own);
    end_options(s);
    inl_map_free(&s->records.by_key);
    tool_joints_end(&s->joints);
    free(s->derive.final);
    free(s->inherited);
    cfg_thunks_free(s->thunks);
    for (size_t i = 0; i < s->refusals.count; i++) {
        free((char *)s->refusals.items[i].what);
        free((char *)s->refusals.items[i].why);
    }
    inl_vec_free(&s->refusals);
    tool_memory_end(&s->memory); /* callbacks, records, what threads and buffers have */
    tool_state_begin(s);
}
