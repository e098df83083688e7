/* What the tool has of its own static C library and its linker, under the names that they have there. */
#ifndef INL_TOOL_GLIBC_H
#define INL_TOOL_GLIBC_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The linker's: where the tool's own file begins in memory, and its data end; its first instruction. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern char end[] __attribute__((visibility("hidden")));
extern void _start(void);

/* The area that it has registered for restartable sequences, from the thread pointer on; it may be older than these. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

/* Procedures of the vdso, found when it starts; NULL: it makes the system call. */
extern void *_dl_vdso_clock_gettime64 __attribute__((weak));
extern void *_dl_vdso_gettimeofday __attribute__((weak));
extern void *_dl_vdso_time __attribute__((weak));
extern void *_dl_vdso_getcpu __attribute__((weak));
extern void *_dl_vdso_clock_getres_time64 __attribute__((weak));

/* Thread-local storage of one more thread. */
void *_dl_allocate_tls(void *);
void _dl_deallocate_tls(void *, bool free_it);
/* What its own fork and the ends of threads call; those of malloc are heap.c's. */
void _IO_enable_locks(void);
void _IO_list_lock(void);
void _IO_list_unlock(void);
void _IO_list_resetlock(void);
void *_IO_iter_begin(void); /* all streams that are open, the three of its own among them */
void *_IO_iter_next(void *);
void *_IO_iter_end(void);
FILE *_IO_iter_file(void *);
void __malloc_fork_lock_parent(void);
void __malloc_fork_unlock_parent(void);
void __malloc_fork_unlock_child(void);
void __malloc_arena_thread_freeres(void);

/* --- <isa>/tls.c: a thread control block of its, and the one of the thread that runs --- */
char *tls_block_own(void);
void tls_block_prepare(void);     /* once, in the first thread: there will be others */
void tls_block_fill(char *block); /* a new one */
void tls_block_set_tid(char *block, int tid);

#endif
