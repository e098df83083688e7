/* The handles. All are opaque; each header says how long its own live. A handle that is NULL is none: what is asked of
 * it is answered by 0, NULL or false ("?" for a procedure's name), and there is no instruction, block or operand whose
 * number is too large. */
#ifndef INLAY_TYPES_H
#define INLAY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_image inlay_image;         /* a mapped ELF file; until its unload callback returns */
typedef struct inlay_proc inlay_proc;           /* a procedure; as long as its image */
typedef struct inlay_module inlay_module;       /* what it was compiled from; as long as its image */
typedef struct inlay_block inlay_block;         /* a basic block; during the callback that got it */
typedef struct inlay_insn inlay_insn;           /* an instruction; during the callback that got it */
typedef struct inlay_point inlay_point;         /* a place to insert; as long as what it belongs to */
typedef struct inlay_insertion inlay_insertion; /* what was inserted; see point.h */
typedef struct snippet inlay_snippet;           /* code to insert; managed by Inlay */
typedef struct inlay_process inlay_process;     /* a process that is instrumented; as long as it is */
typedef struct inlay_thread inlay_thread;       /* a thread; until its end callback returns */

#ifdef __cplusplus
}
#endif

#endif
