/* The tool's allocator: what analysis routines may call from anywhere in a program. */
#ifndef INL_TOOL_HEAP_H
#define INL_TOOL_HEAP_H

/* Before the program's second thread exists, on the first one: from now on each thread has a cache of its
 * own. NULL where the allocator is not linked: in programs that are no tools. */
void heap_threads_begin(void) __attribute__((weak));

#endif
