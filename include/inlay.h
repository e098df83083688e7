/* Inlay: everything a tool needs. See docs/howto-tool.md for a first tool.
 *
 * Where code runs. Callbacks (inlay_on_...) and what they call run when code is discovered; analysis
 * code (snippets, and routines named by inlay_call) runs when the program executes. What
 * instrumentation leaves for analysis goes through snippet arguments, counters, or memory from
 * inlay_alloc; a tool that keeps to this runs on every engine.
 */
#ifndef INLAY_H
#define INLAY_H

#include <inlay/block.h>
#include <inlay/buffer.h>
#include <inlay/callback.h>
#include <inlay/code.h>
#include <inlay/context.h>
#include <inlay/counter.h>
#include <inlay/evaluate.h>
#include <inlay/event.h>
#include <inlay/frames.h>
#include <inlay/image.h>
#include <inlay/insn.h>
#include <inlay/local.h>
#include <inlay/loop.h>
#include <inlay/memory.h>
#include <inlay/module.h>
#include <inlay/option.h>
#include <inlay/operand.h>
#include <inlay/output.h>
#include <inlay/perf.h>
#include <inlay/point.h>
#include <inlay/proc.h>
#include <inlay/process.h>
#include <inlay/reg.h>
#include <inlay/snippet.h>
#include <inlay/stack.h>
#include <inlay/switch.h>
#include <inlay/tool.h>
#include <inlay/typed.h>
#include <inlay/worker.h>
#include <inlay/wrap.h>

#endif
