/* What the calls that nothing.py makes are given where they are not given NULL. */
#include <inlay.h>

#include <string.h>

static inlay_block *v_block;
static inlay_insn *v_insn;
static inlay_proc *v_proc;
static inlay_image *v_image;
static inlay_module *v_module;
static inlay_thread *v_thread;
static inlay_loop *v_loop;
static inlay_scope *v_scope;
static inlay_switch *v_switch;
static inlay_buffer *v_buffer;
static inlay_local *v_local;
static inlay_perf *v_perf;
static inlay_point *v_point;
static inlay_insertion *v_insertion;
static inlay_process *v_process;
static inlay_counter v_counter;
static inlay_event v_event;
static inlay_context v_context;
static inlay_value v_value;
static inlay_section v_section;
static inlay_field v_field;
static inlay_expr v_expr;
static inlay_frames v_frames; /* in the caller's memory: not asked nothing */
static inlay_frame v_frame[2];
static char room[1 << 16];

static void each(void) {}

#include "calls.h"

static void made_in_main(void)
{
    v_buffer = inlay_buffer_new(8, 100, (void *)each, NULL);
    v_local = inlay_local_new(64);
    v_perf = inlay_perf_new("page-faults");
    inlay_frames_init(&v_frames, v_frame, 2, NULL, NULL);
}

static void made_of(inlay_proc *p)
{
    v_proc = p;
    v_image = inlay_proc_image(p);
    v_module = inlay_proc_module(p);
    v_loop = inlay_proc_loop_first(p);
    v_process = inlay_image_process(v_image);
    v_thread = inlay_process_thread_first(v_process);
    v_expr = inlay_const(1);
    v_field = INLAY_FIELD(8, v_expr);
    v_switch = inlay_switch_new(true);
    v_scope = inlay_scope_new(v_image, inlay_proc_address(p));
    v_event = (inlay_event){.kind = INLAY_EVENT_BREAK, .process = v_process, .context = &v_context};
}
